"""What was read of things by their id, kept true by what this process changes itself, for a bounded time."""

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
"""Seconds for which what lists do not show is believed, at most; half of it at least, so that not all ends at once."""


class Remembered(Generic[T]):
    """Safe to share between threads. What is read while the same thing is changed is not believed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._known: dict[str, T] = {}
        self._due: dict[str, float] = {}
        self._moment = 0
        self._changed: dict[str, int] = {}
        self._changing: Counter[str] = Counter()

    def get(self, id: str) -> T | None:
        """What is known of it; None: it must be read."""
        with self._lock:
            return self._known.get(id)

    def known(self) -> dict[str, T]:
        """All that is known, by id."""
        with self._lock:
            return dict(self._known)

    def is_due(self, id: str) -> bool:
        """Whether it has been believed for long enough."""
        with self._lock:
            return self._due.get(id, 0.0) <= self._clock()

    def moment(self) -> int:
        """Now, for a read that begins."""
        with self._lock:
            return self._moment

    def read(self, id: str, known: T, since: int, *, anew: bool = True) -> T:
        """Remember what a read that began at `since` found, unless it was changed meanwhile; what is known then.

        `anew`: all of it was read, so that it is believed from now on.
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
        """While AWS is being changed; where that fails, nobody knows how far it came."""
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
        """What a change has made of it."""
        with self._lock:
            self._known[id] = known
            self._due.setdefault(id, self._clock() + LIFETIME)

    def forget(self, id: str) -> None:
        """It is gone, or must be read again."""
        with self._lock:
            self._known.pop(id, None)
            self._due.pop(id, None)

    def _has_changed(self, id: str, since: int) -> bool:
        return self._changing[id] > 0 or self._changed.get(id, 0) > since
