"""The calls that a measured controller makes, as what answers them counts them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Counted:
    """Successful calls by operation, and failed ones by operation and code."""

    calls: Mapping[str, int]
    failed: Mapping[str, int]
    busy: int
    """Calls in progress."""
    last: float
    """When the latest answer was sent, by the machine's monotonic clock."""

    def since(self, earlier: Counted) -> Counted:
        """The counts since `earlier`."""
        return Counted(_less(self.calls, earlier.calls), _less(self.failed, earlier.failed), self.busy, self.last)

    @property
    def total(self) -> int:
        """All calls, including failed ones: a cloud counts them against the account's rate like any other."""
        return sum(self.calls.values()) + sum(self.failed.values())


class Counting(Protocol):
    """A simulated cloud that counts."""

    def counted(self) -> Counted:
        """All calls so far."""
        ...


class Tally:
    """The counts. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._busy = 0
        self._last = 0.0

    def begin(self) -> None:
        """A call has arrived."""
        with self._lock:
            self._busy += 1

    def end(self, operation: str, failure: str | None = None) -> None:
        """It is answered; `failure`: with this code of an error."""
        with self._lock:
            self._busy -= 1
            self._last = time.monotonic()
            if failure is None:
                self._calls[operation] += 1
            else:
                self._failed[f"{operation} {failure}"] += 1

    def counted(self) -> Counted:
        """All calls so far."""
        with self._lock:
            return Counted(dict(self._calls), dict(self._failed), self._busy, self._last)


def _less(counts: Mapping[str, int], earlier: Mapping[str, int]) -> dict[str, int]:
    return {name: more for name, count in counts.items() if (more := count - earlier.get(name, 0))}
