"""Concurrent callers share requests to an API that answers for many objects at once.

What is asked for during a request goes into the next one. A request also waits a moment for those that may join it, so
that a burst does not cost one request for its first and another for all others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cloud_controller.cloud_errors import CloudError, Throttled, Unavailable

T = TypeVar("T")
R = TypeVar("R")


class AtWork:
    """Counts the threads inside its blocks, for requests that only these threads join."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def number(self) -> int:
        """How many there are now."""
        return self._count

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1


@dataclass(eq=False, slots=True)
class _Joined(Generic[T, R]):
    asked: set[T] = field(default_factory=set)
    callers: int = 0
    answer: R | None = None
    error: CloudError | None = None
    done: bool = False


class JoinedRequests(Generic[T, R]):
    """Safe to share between threads."""

    def __init__(self, request: Callable[[Collection[T]], R], *, callers: Callable[[], int], gather: float) -> None:
        """A request waits until as many threads as `callers` tells have joined it, at most `gather` seconds: a thread
        that is alone waits for nobody."""
        self._request = request
        self._callers = callers
        self._gather = gather
        self._joining = threading.Condition()
        self._requesting = threading.Lock()
        self._next: _Joined[T, R] = _Joined()

    def __call__(self, asked: Collection[T]) -> R:
        """The answer to a request that begins after this call, for these and for what others asked for with them.

        If it fails, each caller asks alone, because one of them may have asked for what the API refuses; not after
        throttling or silence, which more requests would prolong. Raises CloudError.
        """
        with self._joining:
            joined = self._next
            joined.asked |= {*asked}
            joined.callers += 1
            self._joining.notify_all()
        with self._requesting:
            if not joined.done:
                self._carry_out(joined)
        if joined.error is None:
            return joined.answer  # type: ignore[return-value]  # It is done, so it is an R.
        if joined.callers == 1 or isinstance(joined.error, Throttled | Unavailable):
            raise joined.error
        return self._request({*asked})

    def _carry_out(self, joined: _Joined[T, R]) -> None:
        with self._joining:
            self._joining.wait_for(lambda: joined.callers >= self._callers(), self._gather)
            self._next = _Joined()
        try:
            joined.answer = self._request(joined.asked)
        except CloudError as error:
            joined.error = error
        joined.done = True
