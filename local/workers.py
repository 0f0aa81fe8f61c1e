"""Threads that run the steps of objects: one step at a time per object, with a delay after a failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic

log = logging.getLogger(__name__)


class Workers:
    """`count` threads. A reconciler submits steps repeatedly; they run those that may start.

    `expected` is what a step may raise; anything else is a defect and is logged with its traceback. Either way the
    object's next step starts after `retry_seconds` at the earliest. `changed` is called after a step that changed
    something.
    """

    def __init__(
        self, count: int, *, expected: type[Exception], retry_seconds: float, changed: Callable[[], None]
    ) -> None:
        self._expected = expected
        self._retry_seconds = retry_seconds
        self._changed = changed
        self._pool = ThreadPoolExecutor(count, "worker")
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._not_before: dict[str, float] = {}

    def submit(self, id: str, step: Callable[[], bool | None]) -> None:
        """Run the object's step, unless one is running or failed recently. It returns False if it changed nothing."""
        with self._lock:
            if id in self._busy or monotonic() < self._not_before.get(id, 0):
                return
            self._busy.add(id)
        self._pool.submit(step).add_done_callback(lambda future: self._done(id, future))

    def stop(self, *, wait: bool) -> None:
        """Start no more steps; `wait` for the running ones."""
        self._pool.shutdown(wait=wait, cancel_futures=True)

    def _done(self, id: str, future: Future[bool | None]) -> None:
        error = None if future.cancelled() else future.exception()
        with self._lock:
            self._busy.discard(id)
            self._not_before.pop(id, None)
            if error is not None:
                self._not_before[id] = monotonic() + self._retry_seconds
        if isinstance(error, self._expected):
            log.warning("%s: %s; retrying", id, error)
        elif error is not None:
            log.error("%s: step failed unexpectedly; retrying", id, exc_info=error)
        elif not future.cancelled() and future.result() is not False:
            self._changed()
