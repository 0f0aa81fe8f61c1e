"""Counts the calls of each operation, for tests."""

from __future__ import annotations

import threading
from collections import Counter


class Calls:
    """Counts by `METHOD /route/template`, since the start or the last `clear`. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, operation: str) -> None:
        """Count one call."""
        with self._lock:
            self._counts[operation] += 1

    def all(self) -> dict[str, int]:
        """The present counts."""
        with self._lock:
            return dict(self._counts)

    def clear(self) -> None:
        """Reset all counts."""
        with self._lock:
            self._counts.clear()
