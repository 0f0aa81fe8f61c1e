"""The rates of calls that a stand-in admits: none is limited until a test or a benchmark says so."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Callable

from local.token_bucket import TokenBucket


class Limits:
    """Each limited operation has a bucket of its own. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rates: dict[str, int] = {}
        self._buckets: dict[str, TokenBucket] = {}

    def set(self, operations: str, rate: int) -> None:
        """Admit at most `rate` calls a second of each operation that the glob matches (`product.*`)."""
        with self._lock:
            self._rates[operations] = rate
            self._buckets.clear()

    def admit(self, operation: str) -> bool:
        """Whether one more call of the operation is admitted now."""
        with self._lock:
            rates = [rate for glob, rate in self._rates.items() if fnmatch.fnmatchcase(operation, glob)]
            if not rates:
                return True
            if operation not in self._buckets:
                self._buckets[operation] = TokenBucket(min(rates), self._clock)
            return self._buckets[operation].take()
