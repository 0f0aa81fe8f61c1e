"""Timing of the service controller: debouncing node changes, and polling while the cloud is working."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary


@dataclass(frozen=True, slots=True)
class Debounce:
    """How long changes are batched: until `quiet` seconds pass without one, but at most `longest` seconds."""

    quiet: float
    longest: float


DEBOUNCE_CHANGED = Debounce(quiet=1.5, longest=15.0)
"""For added and changed nodes: hundreds within seconds become one change of members."""
DEBOUNCE_REMOVED = Debounce(quiet=0.5, longest=2.0)
"""For removed nodes: a gone node gets traffic until its members are removed or its health check fails."""


class NodeDebouncer:
    """Batches node changes into one change of members. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[Debounce, float] = {}
        self._last: dict[Debounce, float] = {}

    def changed(self, debounce: Debounce) -> None:
        """Record a change."""
        with self._lock:
            now = self._clock()
            self._since.setdefault(debounce, now)
            self._last[debounce] = now

    def wait(self) -> float:
        """Seconds until the batch is due; 0 if it is due or empty."""
        with self._lock:
            dues = (min(self._last[p] + p.quiet, since + p.longest) for p, since in self._since.items())
            return max(0.0, min(dues, default=0.0) - self._clock())

    def reset(self) -> None:
        """Start a new batch."""
        with self._lock:
            self._since.clear()
            self._last.clear()


SHORTEST_PAUSE = 0.3
LONGEST_PAUSE = 10.0


def poll_interval(age: float, count: int = 1) -> float:
    """Seconds until `count` operations are polled again, the youngest of which began `age` seconds ago.

    The interval grows with age and count, so completion is noticed at most a quarter of the duration late.
    """
    return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, age / 4, count / 100))


class Polling:
    """How often the cloud is polled about operations in progress. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}

    def pause(self, waiting: Collection[str]) -> float:
        """Seconds until the next poll of these names, which are all that is waited for."""
        with self._lock:
            now = self._clock()
            self._since = {name: self._since.get(name, now) for name in waiting}
            return poll_interval(now - max(self._since.values(), default=now), len(self._since))

    def pause_of(self, name: str) -> float:
        """Seconds until the next poll of this name."""
        with self._lock:
            now = self._clock()
            return poll_interval(now - self._since.setdefault(name, now))

    def age(self, name: str) -> float:
        """Seconds since this name is polled; 0 if it is not."""
        with self._lock:
            now = self._clock()
            return now - self._since.get(name, now)

    def waits_for(self, name: str) -> bool:
        """Whether this name is being polled."""
        with self._lock:
            return name in self._since

    def stop(self, name: str) -> None:
        """Stop polling this name."""
        with self._lock:
            self._since.pop(name, None)


class Round:
    """Measures how long it takes to process each of a set of names. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began = 0.0
        self._left: set[str] = set()

    def begin(self, names: Iterable[str]) -> None:
        """Start a round with these names; an unfinished round is dropped."""
        with self._lock:
            self._began = self._clock()
            self._left = set(names)

    def seen(self, name: str) -> float | None:
        """Mark the name as processed; return the round's duration if it was the last one."""
        with self._lock:
            if name not in self._left:
                return None
            self._left.discard(name)
            return None if self._left else self._clock() - self._began


class Locks:
    """One lock per name, as long as it is needed; several are acquired in a fixed order."""

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
