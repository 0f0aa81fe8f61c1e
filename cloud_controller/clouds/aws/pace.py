"""How fast one operation is asked, after AWS has throttled it: all its callers together, not each for itself."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

_FIRST = 0.05
"""Seconds between two calls after the first refusal; each further one doubles them."""
_LONGEST = 5.0
_FORGOTTEN = 0.01
"""An interval below this is none."""
_MENDING = 0.8
"""What an interval shrinks to with each call that goes through."""


class Pace:
    """The turns of one operation. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._interval = 0.0
        self._next = 0.0

    def turn(self, patience: float) -> float | None:
        """Seconds until the caller may call, which is then its turn alone; None if they exceed `patience`."""
        with self._lock:
            now = self._clock()
            wait = max(0.0, self._next - now)
            if wait > patience:
                return None
            if self._interval:
                self._next = now + wait + self._interval * random.uniform(1.0, 1.2)
            return wait

    def throttled(self, pause: float) -> None:
        """The cloud refused a call: nobody calls for `pause` seconds, and then one after the other."""
        with self._lock:
            now = self._clock()
            if now + pause > self._next or not self._interval:
                # Of many that are refused at once, the first one slows all of them.
                self._interval = min(_LONGEST, max(_FIRST, 2 * self._interval))
            self._next = max(self._next, now + pause)

    def went_through(self) -> None:
        """The cloud took a call: a little faster from now on."""
        with self._lock:
            self._interval *= _MENDING
            if self._interval < _FORGOTTEN:
                self._interval = 0.0
