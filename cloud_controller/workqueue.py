"""Which keys need work, each at most once at a time: a queue with delays and a backoff of its own for every key."""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from cloud_controller.cloud import CloudError, Throttled
from cloud_controller.kube import ApiError

K = TypeVar("K", bound=str)

_log = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """Keys to work on, first in, first out.

    A key that is added while it waits is not queued twice; one that is added while it is worked on is queued again
    when that work is `done`, so that one key never has two workers. Failures back off per key from `first` seconds,
    doubling, to `longest`, with up to a tenth of jitter.
    """

    def __init__(self, first: float = 5.0, longest: float = 300.0, clock: Callable[[], float] = time.monotonic) -> None:
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

    def add(self, key: K) -> None:
        """Work on `key` as soon as a worker is free."""
        with self._changed:
            self._due.pop(key, None)
            self._add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Work on `key` in `seconds`, or earlier where it is due earlier anyway."""
        with self._changed:
            due = self._clock() + seconds
            if self._closed or key in self._queued or self._due.get(key, float("inf")) <= due:
                return
            self._due[key] = due
            heapq.heappush(self._delayed, (due, key))
            self._changed.notify()

    def add_rate_limited(self, key: K) -> float:
        """Work on `key` again after its backoff; returns the seconds until then."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            self._retries += 1
        delay = min(self._first * (1 << min(failures, 32)), self._longest) * random.uniform(1.0, 1.1)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Begin the key's backoff anew: its work succeeded."""
        with self._changed:
            self._failures.pop(key, None)

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
                if self._ready:
                    key = self._ready.popleft()
                    self._queued.discard(key)
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

    def done(self, key: K) -> None:
        """The work on `key` has ended, well or badly."""
        with self._changed:
            self._working.pop(key, None)
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
        self._queued.add(key)
        self._ready.append(key)
        self._changed.notify()

    def _release(self) -> None:
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            due, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:  # Else it was added, or became due earlier, meanwhile.
                del self._due[key]
                self._add(key)


def work(queue: WorkQueue[K], handle: Callable[[K], None]) -> None:
    """Take keys and `handle` them until the queue is closed; the body of a worker thread.

    A key whose handling raises `Throttled` comes back after the time that the cloud asks for, any other `CloudError`
    or `ApiError` after the key's backoff. `handle` has reported the error (event, status) where people look.
    """
    while (key := queue.get()) is not None:
        try:
            handle(key)
        except Throttled as error:
            queue.add_after(key, error.retry_after)
            _log.warning("throttled key=%s retry_in=%.1fs", key, error.retry_after)
        except (CloudError, ApiError) as error:
            delay = queue.add_rate_limited(key)
            _log.warning("failed key=%s retry_in=%.1fs error=%r", key, delay, str(error))
        else:
            queue.forget(key)
        finally:
            queue.done(key)
