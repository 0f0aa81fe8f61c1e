"""Limits a rate: a token bucket that holds one second's worth."""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """Admits at most `rate` per second on average, and as many at once after a second of rest."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate)
        self._filled = clock()

    def take(self) -> bool:
        """Whether one more is admitted now."""
        now = self._clock()
        self._tokens = min(float(self._rate), self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
