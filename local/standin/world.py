"""What the actions of a stand-in work on: its objects, its clock and its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from local.standin.store import Object, Store

JOB: Final = "job"
_UNFINISHED: Final = "unfinished job"
RUNNING, SUCCEEDED, FAILED = "running", "succeeded", "failed"


class World:
    """The state of a cloud. A cloud's own class adds what its actions need."""

    def __init__(
        self, store: Store | None = None, clock: Callable[[], float] = time.time, job_seconds: float = 0.2
    ) -> None:
        self.store = store or Store()
        self.clock = clock
        """Seconds since 1970."""
        self.job_seconds = job_seconds
        """What an asynchronous operation takes."""
        self.next_job_fails_with: str | None = None
        """Set by the stand-in while it carries out a call with such a fault."""

    def start_job(self, id: str, operation: str, step: str, /, **facts: Any) -> Object:
        """Begin an asynchronous operation: `step` is taken with `facts` at the first call after its time."""
        job = {
            "id": id,
            "operation": operation,
            "step": step,
            "facts": facts,
            "started": self.clock(),
            "due": self.clock() + self.job_seconds,
            "status": RUNNING,
            "error": self.next_job_fails_with,
        }
        self.store.put(JOB, id, job)
        self.store.put(_UNFINISHED, id, {"id": id, "due": job["due"]})
        return job

    def due_jobs(self) -> list[Object]:
        """The running jobs whose time has come, in its order."""
        now = self.clock()
        due = sorted((each for each in self.store.all(_UNFINISHED) if each["due"] <= now), key=lambda each: each["due"])
        return [job for each in due if (job := self.store.get(JOB, each["id"])) is not None]

    def end_job(self, job: Object, status: str) -> None:
        """Note that a job has succeeded or failed."""
        self.store.put(JOB, job["id"], {**job, "status": status})
        self.store.remove(_UNFINISHED, job["id"])
