"""A client-side rate limit: a token bucket that blocks callers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """`qps` requests per second on average, with bursts of `burst`. Thread-safe."""

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be greater than 0 and burst at least 1, not {qps} and {burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._at = clock()

    def wait(self) -> float:
        """Take one token, sleeping until it is available; return the seconds slept."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps) - 1
            self._at = now
            delay = max(0.0, -self._tokens / self._qps)
        if delay:
            self._sleep(delay)
        return delay
