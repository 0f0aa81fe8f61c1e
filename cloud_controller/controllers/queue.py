"""A work queue like client-go's: each key at most once at a time, with delays and a backoff per key.

Unlike client-go's, a failed key keeps its backoff when it is added again, unless the `Cause` may fix the failure. Keys
that use much CPU time share one worker, so that the author of such objects slows down only those.
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
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import ApiError
from cloud_controller.retries import backoff

K = TypeVar("K", bound=str)

_COSTLY = 0.5
"""CPU seconds from which a key counts as costly; a usual key takes a few milliseconds."""
_LONGEST_OF_MANY = 15.0
"""Seconds after which a failed key is retried at the latest, if many objects depend on it."""

_log = logging.getLogger(__name__)


class Cause(IntEnum):
    """Why a key is added; higher values bypass more kinds of `Failure`."""

    ROUTINE = 0
    """A full resync, or the echo of our own write."""
    DEPENDENCY = 1
    """Something that the object depends on changed: nodes, pods, another object."""
    OBJECT = 2
    """The object itself or its cloud resources changed."""


class Failure(IntEnum):
    """What failed; its value is the lowest `Cause` that bypasses the backoff."""

    OF_OBJECT = Cause.DEPENDENCY
    """The object asks for something impossible."""
    NO_ANSWER = Cause.OBJECT
    """The cloud or the API server is unavailable. A change that thousands of keys depend on must not retry them all."""
    THROTTLED = Cause.OBJECT + 1
    """The cloud set the retry time; nothing bypasses it."""


class WorkQueue(Generic[K]):
    """A FIFO queue of keys, taken one by one (`work`) or all that are ready (`get_batch`).

    A waiting key is not queued twice. A key that is added while it is processed is queued again when that work is
    `done`, so no key ever has two workers. Failures back off per key, from `first` seconds, doubling, to `longest`,
    with up to 10 % jitter; a `Cause` that the `Failure` lets through bypasses the backoff. Only one of the keys that
    were costly the last time is processed at a time. Keys in `of_many` stand for the work of many objects: they are
    never costly, and their backoff ends at 15 seconds.
    """

    def __init__(
        self,
        first: float = 5.0,
        longest: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        of_many: Collection[K] = (),
    ) -> None:
        self._of_many = of_many
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
        """The highest cause for which each key was added since its work last began."""
        self._not_before: dict[K, tuple[float, Failure]] = {}
        self._failures: dict[K, int] = {}
        self._retries = 0
        self._closed = False

    def depth(self) -> int:
        """The number of keys that wait for a worker; delayed keys do not count."""
        with self._changed:
            self._release()
            return len(self._queued | self._again)

    @property
    def retries(self) -> int:
        """The number of times that keys were added with backoff."""
        with self._changed:
            return self._retries

    def longest_running(self) -> float:
        """Seconds since the oldest work in progress began; 0 if there is none."""
        with self._changed:
            return max(0.0, self._clock() - min(self._working.values())) if self._working else 0.0

    def add(self, key: K, cause: Cause = Cause.ROUTINE) -> None:
        """Queue `key` now, or when its backoff is over (`must_wait`)."""
        with self._changed:
            self._remember(key, cause)
            self._due.pop(key, None)
            self._add(key)

    def add_after(self, key: K, seconds: float, cause: Cause = Cause.ROUTINE) -> None:
        """Queue `key` in `seconds`, later if its backoff is longer, or earlier if it is due earlier already."""
        with self._changed:
            self._remember(key, cause)
            self._delay(key, self._clock() + seconds)

    def add_failed(self, key: K, seconds: float, failure: Failure) -> None:
        """Queue the failed `key` again in `seconds`; until then, only some causes bypass the wait (see `Failure`)."""
        with self._changed:
            until = self._clock() + seconds
            self._not_before[key] = until, failure
            self._delay(key, until)

    def add_rate_limited(self, key: K, failure: Failure = Failure.OF_OBJECT) -> float:
        """Queue the failed `key` again after its backoff; return the seconds until then."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self._retries += 1
        longest = min(self._longest, _LONGEST_OF_MANY) if key in self._of_many else self._longest
        delay = backoff(failures + 1, self._first, longest) * random.uniform(1.0, 1.1)
        self.add_failed(key, delay, failure)
        return delay

    def add_after_error(self, key: K, error: CloudError | ApiError) -> float:
        """Queue the failed `key` again: after `Throttled` when the cloud allows it, otherwise after its backoff.

        Returns the seconds until then.
        """
        if isinstance(error, Throttled):
            self.add_failed(key, error.retry_after, Failure.THROTTLED)
            return error.retry_after
        no_answer = isinstance(error, Unavailable | ApiError)
        return self.add_rate_limited(key, Failure.NO_ANSWER if no_answer else Failure.OF_OBJECT)

    def must_wait(self, key: K, cause: Cause) -> bool:
        """Whether `key` is in backoff that this cause does not bypass."""
        with self._changed:
            until, failure = self._not_before.get(key, (0.0, Failure.OF_OBJECT))
            return cause < failure and until > self._clock()

    def forget(self, key: K) -> None:
        """Reset the key's backoff after a success."""
        with self._changed:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key has failed since the last `forget`."""
        with self._changed:
            return self._failures.get(key, 0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a key is ready; False once closed or after `timeout` seconds."""
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._release()
                if self._next() is not None:
                    return True
                now = self._clock()
                waits = [due - now for due, _ in self._delayed[:1]]
                if deadline is not None:
                    if deadline <= now:
                        return False
                    waits.append(deadline - now)
                self._changed.wait(min(waits, default=None))
            return False

    def get(self, timeout: float | None = None) -> K | None:
        """The next key, for which the caller must call `done`; None once closed or after `timeout` seconds."""
        with self._changed:
            key = self._next() if self.wait(timeout) else None
            return None if key is None else self._take(key)

    def get_batch(self) -> frozenset[K]:
        """Every key that is ready now; the caller must call `done` for each."""
        with self._changed:
            self._release()
            return frozenset(map(self._take, [*self._ready]))

    def done(self, key: K, seconds: float = 0.0) -> None:
        """The work on `key` has ended, successfully or not, after this many CPU seconds."""
        with self._changed:
            self._working.pop(key, None)
            if key in self._costly:
                self._changed.notify()  # Another costly key may be waiting for it.
            if seconds >= _COSTLY and key not in self._of_many:
                self._costly.add(key)
            else:
                self._costly.discard(key)
            if key in self._again:
                self._again.discard(key)
                self._add(key)

    def close(self) -> None:
        """Make every waiting `get` return None; queued keys are dropped."""
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

    def _take(self, key: K) -> K:
        self._ready.remove(key)
        self._queued.discard(key)
        self._causes.pop(key, None)
        self._working[key] = self._clock()
        return key

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
            if self._due.get(key) == due:  # Otherwise it was queued, or rescheduled earlier, meanwhile.
                del self._due[key]
                self._add(key)


def work(queue: WorkQueue[K], handle: Callable[[K], None]) -> None:
    """Process keys with `handle` until the queue is closed; the body of a worker thread.

    After any error the key is retried: a bug that one object's author can reach must not stop the work on all others,
    here and at the next leader. Only `WriteRefused` ends the thread. `handle` itself reports the error (event, status).
    """
    while (key := queue.get()) is not None:
        began = time.thread_time()
        try:
            handle(key)
        except (CloudError, ApiError) as error:
            delay = queue.add_after_error(key, error)
            _log.warning("failed key=%s retry_in=%.1fs error=%r", key, delay, str(error))
        except WriteRefused:
            raise
        except Exception as bug:  # noqa: BLE001 - whatever it is, it concerns this key
            delay = queue.add_rate_limited(key)
            _log.critical("bug key=%s retry_in=%.1fs", key, delay, exc_info=bug)
        else:
            queue.forget(key)
        finally:
            queue.done(key, time.thread_time() - began)
