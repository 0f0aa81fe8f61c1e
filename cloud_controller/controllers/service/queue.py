"""Which keys need work, each at most once at a time: a queue with delays and a backoff of its own for every key.

A key that failed waits for its time: what adds it meanwhile brings it no sooner, unless it may mend the failure.
Keys that cost much processor time have one worker together, so that whoever makes such objects slows down only them.
"""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from enum import IntEnum
from typing import Generic, TypeVar

from cloud_controller.cloud import CloudError, Throttled, Unavailable
from cloud_controller.kube import ApiError

K = TypeVar("K", bound=str)

_COSTLY = 0.5
"""Seconds of processor time from which on a key is costly; a usual one takes some thousandths."""

_log = logging.getLogger(__name__)


class Cause(IntEnum):
    """Why a key is added."""

    ROUTINE = 0
    """A full pass, or the echo of a write of our own."""
    SURROUNDINGS = 1
    """Something that its object depends on changed: nodes, pods, another object."""
    OBJECT = 2
    """Its object changed, or what was made for it in the cloud."""


class Failure(IntEnum):
    """What failed, and so the least `Cause` that brings the key before its time."""

    OF_OBJECT = Cause.SURROUNDINGS
    """What the object asks for can't be done."""
    NO_ANSWER = Cause.OBJECT
    """The cloud or the API server: a change of something that a thousand keys depend on must not ask it each time."""
    THROTTLED = Cause.OBJECT + 1
    """The cloud named the time: nothing comes before it."""


class WorkQueue(Generic[K]):
    """Keys to work on, first in, first out.

    A key that is added while it waits is not queued twice; one that is added while it is worked on is queued again
    when that work is `done`, so that one key never has two workers. Failures back off per key from `first` seconds,
    doubling, to `longest`, with up to a tenth of jitter. A key that failed comes at its time, or earlier for a `Cause`
    that its `Failure` lets through. Of the keys that were costly the last time one is worked on at a time;
    `never_costly` are those that stand for the work of many.
    """

    def __init__(
        self,
        first: float = 5.0,
        longest: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        never_costly: Collection[K] = (),
    ) -> None:
        self._never_costly = never_costly
        self._costly: set[K] = set()
        self._first = first
        self._longest = longest
        self._clock = clock
        self._changed = threading.Condition()
        self._ready: deque[K] = deque()
        self._queued: set[K] = set()
        self._working: dict[K, float] = {}
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._delayed: list[tuple[float, K]] = []
        self._causes: dict[K, Cause] = {}
        """The strongest for which each key was added since its work last began."""
        self._not_before: dict[K, tuple[float, Failure]] = {}
        self._failures: dict[K, int] = {}
        self._retries = 0
        self._closed = False

    def depth(self) -> int:
        """How many keys wait for a worker; those whose time has not come do not."""
        with self._changed:
            self._release()
            return len(self._queued | self._again)

    @property
    def retries(self) -> int:
        """How often keys were added with backoff."""
        with self._changed:
            return self._retries

    def longest_running(self) -> float:
        """Seconds for which the key has been worked on that was taken first; 0 where none is."""
        with self._changed:
            return max(0.0, self._clock() - min(self._working.values())) if self._working else 0.0

    def add(self, key: K, cause: Cause = Cause.ROUTINE) -> None:
        """Work on `key` as soon as a worker is free and it need not wait (`must_wait`)."""
        with self._changed:
            self._remember(key, cause)
            self._due.pop(key, None)
            self._add(key)

    def add_after(self, key: K, seconds: float, cause: Cause = Cause.ROUTINE) -> None:
        """Work on `key` in `seconds`, later while it must wait, or earlier where it is due earlier anyway."""
        with self._changed:
            self._remember(key, cause)
            self._delay(key, self._clock() + seconds)

    def add_failed(self, key: K, seconds: float, failure: Failure) -> None:
        """Work on `key`, which failed, again in `seconds`, whatever adds it until then; see `Failure`."""
        with self._changed:
            until = self._clock() + seconds
            self._not_before[key] = until, failure
            self._delay(key, until)

    def add_rate_limited(self, key: K, failure: Failure = Failure.OF_OBJECT) -> float:
        """Work on `key`, which failed, again after its backoff; returns the seconds until then."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self._retries += 1
        delay = min(self._first * (1 << min(failures, 32)), self._longest) * random.uniform(1.0, 1.1)
        self.add_failed(key, delay, failure)
        return delay

    def must_wait(self, key: K, cause: Cause) -> bool:
        """Whether `key` failed, and its time has not come for this cause."""
        with self._changed:
            until, failure = self._not_before.get(key, (0.0, Failure.OF_OBJECT))
            return cause < failure and until > self._clock()

    def forget(self, key: K) -> None:
        """Begin the key's backoff anew: its work succeeded."""
        with self._changed:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key failed since it was last forgotten."""
        with self._changed:
            return self._failures.get(key, 0)

    def get(self, timeout: float | None = None) -> K | None:
        """The next key, which the caller must end with `done`; None once closed, or when `timeout` seconds passed."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._release()
                if (key := self._next()) is not None:
                    self._ready.remove(key)
                    self._queued.discard(key)
                    self._causes.pop(key, None)
                    self._working[key] = self._clock()
                    return key
                now = self._clock()
                waits = [due - now for due, _ in self._delayed[:1]]
                if deadline is not None:
                    if deadline <= now:
                        return None
                    waits.append(deadline - now)
                self._changed.wait(min(waits, default=None))
            return None

    def done(self, key: K, seconds: float = 0.0) -> None:
        """The work on `key` has ended, well or badly, after so many seconds of processor time."""
        with self._changed:
            self._working.pop(key, None)
            if key in self._costly:
                self._changed.notify()  # Another may wait for its end.
            if seconds >= _COSTLY and key not in self._never_costly:
                self._costly.add(key)
            else:
                self._costly.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        """Let every waiting `get` return None; keys still queued are dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, key: K) -> None:
        if self._closed or key in self._queued:
            return
        if key in self._working:
            self._again.add(key)
            return
        if self.must_wait(key, self._causes.get(key, Cause.ROUTINE)):
            self._delay(key, self._not_before[key][0])
            return
        self._queued.add(key)
        self._ready.append(key)
        self._changed.notify()

    def _next(self) -> K | None:
        one_at_work = not self._costly.isdisjoint(self._working)
        return next((key for key in self._ready if not (one_at_work and key in self._costly)), None)

    def _delay(self, key: K, due: float) -> None:
        if self._closed or key in self._queued or self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._delayed, (due, key))
        self._changed.notify()

    def _remember(self, key: K, cause: Cause) -> None:
        if key not in self._queued:
            self._causes[key] = max(cause, self._causes.get(key, cause))

    def _release(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:  # Else it was added, or became due earlier, meanwhile.
                del self._due[key]
                self._add(key)


def work(queue: WorkQueue[K], handle: Callable[[K], None]) -> None:
    """Take keys and `handle` them until the queue is closed; the body of a worker thread.

    A key whose handling raises `Throttled` comes back after the time that the cloud names, one that raises another
    `CloudError` or an `ApiError` after its backoff. `handle` has reported the error (event, status) where people look.
    """
    while (key := queue.get()) is not None:
        began = time.thread_time()
        try:
            handle(key)
        except Throttled as error:
            queue.add_failed(key, error.retry_after, Failure.THROTTLED)
            _log.warning("throttled key=%s retry_in=%.1fs", key, error.retry_after)
        except (CloudError, ApiError) as error:
            no_answer = isinstance(error, Unavailable | ApiError)
            delay = queue.add_rate_limited(key, Failure.NO_ANSWER if no_answer else Failure.OF_OBJECT)
            _log.warning("failed key=%s retry_in=%.1fs error=%r", key, delay, str(error))
        else:
            queue.forget(key)
        finally:
            queue.done(key, time.thread_time() - began)
