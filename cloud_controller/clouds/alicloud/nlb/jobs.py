"""Waits for NLB's asynchronous jobs: many in one call, and never for long."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from cloud_controller.cloud import CloudError, Postponed
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.wire import Params
from cloud_controller.clouds.alicloud.patience import SECONDS, Patience
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.joined_requests import JoinedRequests

GATHER = 0.3
"""Seconds for which a request waits for the workers whose own is near. Jobs take longer."""
_MOST = 20


class Jobs:
    """The jobs of one account. A job that failed is an error, and one that still runs is `Postponed`: never done."""

    def __init__(
        self,
        client: Api,
        at_work: Callable[[], int],
        *,
        patience: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        failed: Callable[[str], None],
    ) -> None:
        """`at_work` tells how many threads may wait for jobs; `failed` is told the ID of each job that failed."""
        self._client = client
        self._statuses = JoinedRequests(self._look, callers=at_work, gather=GATHER)
        self.patience = Patience(seconds=patience, sleep=sleep, clock=clock)
        self._failed = failed

    def outcomes(self, jobs: Mapping[str, str]) -> dict[str, CloudError | None]:
        """Wait for these jobs (by ID, with what each does); the error of each, or None if it succeeded."""
        found: dict[str, CloudError | None] = {}

        def ask() -> bool:
            due = jobs.keys() - found.keys()
            statuses = self._statuses(due)
            for job in sorted(due & statuses.keys()):
                if statuses[job] == "Succeeded":
                    found[job] = None
                elif statuses[job] == "Failed":
                    self._failed(job)
                    found[job] = CloudError(f"Alibaba Cloud: nlb {jobs[job]} failed (job {job})")
            return len(found) == len(jobs)

        self.until(ask)
        for job, what in jobs.items():
            found.setdefault(job, Postponed(f"nlb {what} is still running (job {job})"))
        return found

    def require(self, jobs: Mapping[str, str]) -> None:
        """Wait for these jobs. Raises the first error."""
        for error in self.outcomes(jobs).values() if jobs else ():
            if error is not None:
                raise error

    def until(self, holds: Callable[[], bool]) -> bool:
        """Ask until it holds or patience ends; whether it holds."""
        return self.patience.until(holds)

    def _look(self, jobs: Collection[str]) -> dict[str, str]:
        """The status of each of these jobs that the API knows."""
        found: dict[str, str] = {}
        for batch in batches(sorted(jobs), _MOST):
            answer = self._client.call("nlb", "ListAsynJobs", {"JobIds": [*batch]})
            found |= {str(each["Id"]): str(each["Status"]) for each in answer.get("Jobs") or ()}
        return found


def job_in(answer: Params, what: str) -> dict[str, str]:
    """The job that an answer names, with what it does."""
    job: Collection[str] = answer.get("JobId") or ""
    return {str(job): what} if job else {}
