"""How long what failed waits before it is tried again: exponential, with jitter. The work queue has the same curve."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator

FIRST_RETRY = 2.0
LONGEST_RETRY = 60.0
"""Seconds, in the loops of nodes, routes and volumes."""


def delay_after(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after this many failures in a row: `first`, doubling to `longest`, plus up to 10 %."""
    return min(first * (1 << min(failures - 1, 32)), longest) * random.uniform(1.0, 1.1)


def retry_delay(failures: int) -> float:
    """Seconds that a loop waits after this many failures in a row."""
    return delay_after(failures, FIRST_RETRY, LONGEST_RETRY)


class Backoff:
    """The backoff of each key of a loop, from FIRST_RETRY to LONGEST_RETRY."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}

    def failed(self, key: str) -> None:
        """Record a failure and double the key's delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self._due[key] = self._clock() + retry_delay(self._failures[key])

    def forget(self, key: str) -> None:
        """Reset the key after a success, or once its object is gone."""
        self._failures.pop(key, None)
        self._due.pop(key, None)

    def waits(self, key: str) -> bool:
        """Whether the key is still in backoff."""
        return key in self._due and self._due[key] > self._clock()

    def __iter__(self) -> Iterator[str]:
        """The keys that failed the last time."""
        return iter([*self._due])

    def next(self) -> float:
        """When the first key is due; infinity if there is none."""
        return min(self._due.values(), default=math.inf)
