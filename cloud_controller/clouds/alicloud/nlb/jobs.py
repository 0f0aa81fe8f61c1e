"""Waits for NLB's asynchronous jobs: many in one call, and never for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from cloud_controller.cloud import CloudError, Postponed
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.wire import Params
from cloud_controller.clouds.alicloud.patience import SECONDS, Patience
from cloud_controller.clouds.common.concurrent_calls import batches

_MOST = 20


class Jobs:
    """The jobs of one account. A job that failed is an error, and one that still runs is `Postponed`: never done."""

    def __init__(
        self,
        client: Api,
        *,
        patience: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        failed: Callable[[str], None],
    ) -> None:
        """`failed` is told the ID of each job that failed."""
        self._looks = _Looks(client)
        self.patience = Patience(seconds=patience, sleep=sleep, clock=clock)
        self._failed = failed

    def outcomes(self, jobs: Mapping[str, str]) -> dict[str, CloudError | None]:
        """Wait for these jobs (by ID, with what each does); the error of each, or None if it succeeded."""
        found: dict[str, CloudError | None] = {}

        def ask() -> bool:
            for job, status in self._looks.statuses(jobs.keys() - found.keys()).items():
                if status == "Succeeded":
                    found[job] = None
                elif status == "Failed":
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


@dataclass(eq=False, slots=True)
class _Look:
    """One look at jobs, by everybody who joined it before it began."""

    jobs: set[str] = field(default_factory=set)
    statuses: dict[str, str] | None = None
    error: CloudError | None = None


class _Looks:
    """Workers of many Services wait for jobs at once: what is asked for during a request goes into the next one."""

    def __init__(self, client: Api) -> None:
        self._client = client
        self._joining = threading.Lock()
        self._looking = threading.Lock()
        self._next = _Look()

    def statuses(self, jobs: Collection[str]) -> dict[str, str]:
        """The status of each of these jobs that the API knows."""
        with self._joining:
            look = self._next
            look.jobs |= {*jobs}
        with self._looking:
            if look.statuses is None and look.error is None:
                with self._joining:
                    self._next = _Look()
                try:
                    look.statuses = self._ask(look.jobs)
                except CloudError as error:
                    look.error = error
        if look.error is not None:
            raise look.error
        return {job: status for job, status in (look.statuses or {}).items() if job in jobs}

    def _ask(self, jobs: Collection[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for batch in batches(sorted(jobs), _MOST):
            answer = self._client.call("nlb", "ListAsynJobs", {"JobIds": [*batch]})
            found |= {str(each["Id"]): str(each["Status"]) for each in answer.get("Jobs") or ()}
        return found


def job_in(answer: Params, what: str) -> dict[str, str]:
    """The job that an answer names, with what it does."""
    job: Collection[str] = answer.get("JobId") or ""
    return {str(job): what} if job else {}
