"""A cache of what a cloud returned, with a lifetime for each kind of entry; it follows this process's own changes.

A cloud has one `Cache`, and its parts share it. Each kind of entry is an `Entries`. Four rules hold for all:

- An entry stays after its lifetime, but is due: the next reader that needs it reads it again.
- A read that overlaps this process's own change of the object does not enter. If a change fails, the object's entries
  are dropped, because its state is unknown.
- The cloud's lists may lag: for `LAG` seconds, what this process changed takes precedence over what a list shows. It is
  kept as a kind of its own with that lifetime (`fresh`).
- That an object does not exist is an entry too (`fetch_many`).
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LAG = 60.0
"""Seconds for which a list may not show a change yet."""


class Cache:
    """The clock, the lock and the changes that all kinds of entries share. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        """Held to use several entries at once, NEVER DURING A CALL."""
        self.kinds: list[Entries[Any]] = []
        self._moment = 0
        self._changed: dict[str, int] = {}
        self._changing: Counter[str] = Counter()

    def moment(self) -> int:
        """The current revision, taken before a read begins."""
        with self.lock:
            return self._moment

    @contextmanager
    def changing(self, id: str) -> Iterator[None]:
        """Wraps a change in the cloud. If it fails, the object's entries are dropped."""
        with self.lock:
            self._changing[id] += 1
        try:
            yield
        except BaseException:
            with self.lock:
                for kind in self.kinds:
                    kind.forget(id)
            raise
        finally:
            with self.lock:
                self._changing[id] -= 1
                self._moment += 1
                self._changed[id] = self._moment

    def has_changed(self, id: str, since: int) -> bool:
        """Whether this process has changed the object since this revision, or is changing it."""
        with self.lock:
            return self._changing[id] > 0 or self._changed.get(id, 0) > since


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    read_at: float
    due_at: float


class Entries(Generic[T]):
    """The entries of one kind, by ID."""

    def __init__(self, cache: Cache, lifetime: float = math.inf, *, spread: bool = False) -> None:
        """`lifetime` in seconds. `spread`: what is read stays for a random time, at least half of it, so that entries
        are not due all at once."""
        self.cache = cache
        self._lifetime = lifetime
        self._spread = spread
        self._entries: dict[str, _Entry[T]] = {}
        self._fetching = threading.Lock()
        cache.kinds.append(self)

    def get(self, id: str) -> T | None:
        """The value, even if it is due; None: unknown."""
        with self.cache.lock:
            entry = self._entries.get(id)
            return None if entry is None else entry.value

    def all(self) -> dict[str, T]:
        """All values by ID, including those that are due."""
        with self.cache.lock:
            return {each: entry.value for each, entry in self._entries.items()}

    def fresh(self, at: float | None = None) -> dict[str, T]:
        """The values by ID that are not due, or were not `at` that time; drops the others."""
        with self.cache.lock:
            now = self.cache.clock() if at is None else at
            self._entries = {each: entry for each, entry in self._entries.items() if entry.due_at >= now}
            return self.all()

    def is_due(self, id: str, max_age: float | None = None, at: float | None = None) -> bool:
        """Whether the entry is missing, its lifetime has ended, or (if given) it is older than `max_age` seconds."""
        with self.cache.lock:
            entry, now = self._entries.get(id), self.cache.clock() if at is None else at
            if entry is None:
                return True
            return entry.due_at < now if max_age is None else now - entry.read_at > max_age

    def read(self, id: str, value: T, since: int, *, anew: bool = True, at: float | None = None) -> T:
        """Store the result of a read that began at revision `since` (and time `at`); return the value now cached.

        `anew`: the object was read completely, so its lifetime starts again; otherwise a new entry is due at once.
        """
        with self.cache.lock:
            if self.cache.has_changed(id, since):
                entry = self._entries.get(id)
                return value if entry is None else entry.value
            if not anew:
                lifetime = -math.inf
            else:
                lifetime = self._lifetime * random.uniform(0.5, 1.0) if self._spread else self._lifetime
            self._store(id, value, lifetime, anew=anew, at=at)
            return value

    def put(self, id: str, value: T, *, anew: bool = False) -> None:
        """Store the value after this process's own change, or as read of what it never changes.

        `anew`: its lifetime starts again.
        """
        with self.cache.lock:
            self._store(id, value, self._lifetime, anew=anew)

    def forget(self, *ids: str) -> None:
        """Drop the entries: the objects are deleted or must be read again."""
        with self.cache.lock:
            for each in ids:
                self._entries.pop(each, None)

    def fetch(
        self, id: str, read: Callable[[], T], max_age: float | None = None, amend: Callable[[T, float], T] | None = None
    ) -> T:
        """The value, read if it is due. Concurrent callers share one read.

        `amend` adds this process's own changes to what was read (it also gets the time when the read began), with the
        lock held.
        """
        at = self.cache.clock()
        with self.cache.lock:
            if not self.is_due(id, max_age, at):
                return self._entries[id].value
        with self._fetching:
            with self.cache.lock:
                if not self.is_due(id, max_age, at):
                    return self._entries[id].value
            since, began = self.cache.moment(), self.cache.clock()
            value = read()
            with self.cache.lock:
                return self.read(id, amend(value, began) if amend else value, since, at=began)

    def fetch_many(
        self, ids: Collection[str], read: Callable[[list[str]], Mapping[str, T]], *, missing: T
    ) -> dict[str, T]:
        """The values of these; all that are due are read at once. `missing`: the value of what does not exist."""
        with self.cache.lock:
            since, at = self.cache.moment(), self.cache.clock()
            known = {each: self._entries[each].value for each in ids if not self.is_due(each, at=at)}
        due = sorted({*ids} - known.keys())
        found = read(due) if due else {}
        return known | {each: self.read(each, found.get(each, missing), since, at=at) for each in due}

    def _store(self, id: str, value: T, lifetime: float, *, anew: bool, at: float | None = None) -> None:
        entry = self._entries.get(id)
        if entry is not None and not anew:
            entry.value = value
            return
        now = self.cache.clock() if at is None else at
        self._entries[id] = _Entry(value, now, now + lifetime)
