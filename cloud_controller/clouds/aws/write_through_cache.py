"""A cache of AWS objects by ID that follows this process's own changes, with a bounded lifetime."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")

LIFETIME = 3600.0
"""The longest time in seconds for which details that lists do not show stay valid; the shortest is half of it, so that
entries do not expire all at once."""


class WriteThroughCache(Generic[T]):
    """A read that overlaps a change of the same object does not enter the cache. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._known: dict[str, T] = {}
        self._due: dict[str, float] = {}
        self._moment = 0
        self._changed: dict[str, int] = {}
        self._changing: Counter[str] = Counter()

    def get(self, id: str) -> T | None:
        """The cached value, or None if it must be read."""
        with self._lock:
            return self._known.get(id)

    def known(self) -> dict[str, T]:
        """All cached values, by ID."""
        with self._lock:
            return dict(self._known)

    def is_due(self, id: str) -> bool:
        """Whether the entry has expired."""
        with self._lock:
            return self._due.get(id, 0.0) <= self._clock()

    def moment(self) -> int:
        """The current revision, taken before a read begins."""
        with self._lock:
            return self._moment

    def read(self, id: str, known: T, since: int, *, anew: bool = True) -> T:
        """Store the result of a read that began at revision `since`, unless the object changed meanwhile; return the
        value now cached.

        `anew`: the object was read completely, so its lifetime starts again.
        """
        with self._lock:
            if self._has_changed(id, since):
                return self._known.get(id, known)
            self._known[id] = known
            if anew:
                self._due[id] = self._clock() + LIFETIME * random.uniform(0.5, 1.0)
            return known

    @contextmanager
    def changing(self, id: str) -> Iterator[None]:
        """Wraps a change in AWS. If the change fails, the state is unknown and the entry is dropped."""
        with self._lock:
            self._changing[id] += 1
        try:
            yield
        except BaseException:
            self.forget(id)
            raise
        finally:
            with self._lock:
                self._changing[id] -= 1
                self._moment += 1
                self._changed[id] = self._moment

    def put(self, id: str, known: T) -> None:
        """Store the object's value after a change."""
        with self._lock:
            self._known[id] = known
            self._due.setdefault(id, self._clock() + LIFETIME)

    def forget(self, id: str) -> None:
        """Drop the entry: the object is deleted or must be read again."""
        with self._lock:
            self._known.pop(id, None)
            self._due.pop(id, None)

    def _has_changed(self, id: str, since: int) -> bool:
        return self._changing[id] > 0 or self._changed.get(id, 0) > since
