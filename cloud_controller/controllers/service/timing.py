"""When the service controller looks again: after a storm of node changes, and while the cloud is at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary


@dataclass(frozen=True, slots=True)
class Patience:
    """How long changes are gathered: until none came for `quiet` seconds, but `longest` seconds at most."""

    quiet: float
    longest: float


GATHER_NEW = Patience(quiet=1.5, longest=15.0)
"""Nodes that came or changed: two hundred within seconds are one change of members."""
GATHER_GONE = Patience(quiet=0.5, longest=2.0)
"""A node that is gone gets requests until its members are out, or a health check has failed."""


class NodeStorm:
    """Changes of nodes that wait to become one change of members. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[Patience, float] = {}
        self._last: dict[Patience, float] = {}

    def changed(self, patience: Patience) -> None:
        """A node changed."""
        with self._lock:
            now = self._clock()
            self._since.setdefault(patience, now)
            self._last[patience] = now

    def wait(self) -> float:
        """Seconds until what was gathered is due; 0 if it is, or if there is nothing."""
        with self._lock:
            dues = (min(self._last[p] + p.quiet, since + p.longest) for p, since in self._since.items())
            return max(0.0, min(dues, default=0.0) - self._clock())

    def over(self) -> None:
        """All that was gathered is being seen to."""
        with self._lock:
            self._since.clear()
            self._last.clear()


FIRST_LOOK = 0.3
LONGEST_PAUSE = 10.0


def pause_between_looks(age: float, count: int = 1) -> float:
    """Seconds until `count` things are looked at again of which the youngest has been under way for `age` seconds.

    The longer it takes and the more it is, the rarer: what takes a minute is seen at most a quarter of it late.
    """
    return min(LONGEST_PAUSE, max(FIRST_LOOK, age / 4, count / 100))


class Polling:
    """How often the cloud is asked about what it is at work on. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}

    def pause(self, waiting: Collection[str]) -> float:
        """Seconds until the next look at these, which are all that there is to wait for."""
        with self._lock:
            now = self._clock()
            self._since = {name: self._since.get(name, now) for name in waiting}
            return pause_between_looks(now - max(self._since.values(), default=now), len(self._since))

    def pause_of(self, name: str) -> float:
        """Seconds until the next look at this one."""
        with self._lock:
            now = self._clock()
            return pause_between_looks(now - self._since.setdefault(name, now))

    def waits_for(self, name: str) -> bool:
        """Whether this one is waited for."""
        with self._lock:
            return name in self._since

    def over(self, name: str) -> None:
        """This one is waited for no more."""
        with self._lock:
            self._since.pop(name, None)


class Round:
    """How long it takes until each of many has been seen to. Safe to use from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began = 0.0
        self._left: set[str] = set()

    def begin(self, names: Iterable[str]) -> None:
        """From now on these are seen to; a round that has not ended yet is forgotten."""
        with self._lock:
            self._began = self._clock()
            self._left = set(names)

    def seen(self, name: str) -> float | None:
        """This one has been; the seconds that the round took if it was the last one."""
        with self._lock:
            if name not in self._left:
                return None
            self._left.discard(name)
            return None if self._left else self._clock() - self._began


class Locks:
    """One lock a name, as long as somebody needs it; several are taken in one order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    @contextmanager
    def held(self, names: Iterable[str]) -> Iterator[None]:
        """Hold the locks of all these names."""
        with self._lock:
            locks = [self._locks.setdefault(name, threading.Lock()) for name in sorted(set(names))]
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            yield
