"""Slows down all callers of an operation once the cloud throttles one of them: one rate limiter an operation."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cloud_controller.cloud_errors import Throttled
from cloud_controller.retries import RETRY_AFTER

_FIRST = 0.05
"""The interval in seconds after the first throttled call; each further one doubles it."""
_LONGEST = 5.0
_FORGOTTEN = 0.01
"""Intervals below this count as zero."""
_MENDING = 0.8
"""The factor by which each successful call shortens the interval."""


class RateLimiter:
    """Assigns each caller of one operation its time to call. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._interval = 0.0
        self._next = 0.0
        self._slowed = float("-inf")

    @contextmanager
    def paced(self, *, what: str, until: float, sleep: Callable[[float], None]) -> Iterator[None]:
        """One call, which begins when its turn comes; its throttling slows down all.

        Raises Throttled if the turn comes after `until` (on the monotonic clock).
        """
        left = until - self._clock()
        wait = self.turn(left)
        if wait is None:
            raise Throttled(f"{what} is throttled for longer than the call's deadline", max(left, RETRY_AFTER))
        if wait:
            sleep(wait)
        try:
            yield
        except Throttled as error:
            self.throttled(error.retry_after)
            raise
        self.succeeded()

    def turn(self, patience: float) -> float | None:
        """Reserve the next slot; return the seconds until then, or None if they exceed `patience`."""
        with self._lock:
            now = self._clock()
            wait = max(0.0, self._next - now)
            if wait > patience:
                return None
            if self._interval:
                self._next = now + wait + self._interval * random.uniform(1.0, 1.2)
            return wait

    def throttled(self, pause: float) -> None:
        """The cloud throttled a call: pause all callers for `pause` seconds, then space them out."""
        with self._lock:
            now = self._clock()
            if now >= self._slowed + pause:
                # Of the calls throttled within one pause, only the first one doubles the interval.
                self._interval = min(_LONGEST, max(_FIRST, 2 * self._interval))
                self._slowed = now
            self._next = max(self._next, now + pause)

    def succeeded(self) -> None:
        """The cloud accepted a call: shorten the interval."""
        with self._lock:
            self._interval *= _MENDING
            if self._interval < _FORGOTTEN:
                self._interval = 0.0
