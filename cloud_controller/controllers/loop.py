"""When a controller looks again: soon after something changed, together with what else changed, and now and then.

The loop of the controllers whose plan spans many objects at once (node, node-lifecycle, route); the service
controller works Service by Service from a `WorkQueue`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from cloud_controller import apply
from cloud_controller.cloud import Cloud, CloudError, Throttled
from cloud_controller.events import EventRecorder
from cloud_controller.kube import ApiError, EventType, Informer, Kube, Object, name
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Plan

WINDOW = 0.5
"""Seconds for which changes are gathered after the first, so that a hundred new nodes are one pass."""
_FIRST_RETRY = 2.0
_LONGEST_RETRY = 60.0
_STOP_CHECK = 1.0
"""Seconds after which a loop that waits sees that it shall stop, unless `join` wakes it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ControllerContext:
    """What every controller of the daemon works with."""

    kube: Kube
    cloud: Cloud
    nodes: Informer
    metrics: Metrics
    workers: int = apply.DEFAULT_WORKERS


class LoopController(ABC):
    """One thread that runs `reconcile` for the keys that were triggered, or for all (None) every `period` seconds.

    A pass that raises is repeated with backoff (after `Throttled`, when the cloud allows); so are the keys that a pass
    answers. Nothing else repeats.
    """

    name: ClassVar[str]

    def __init__(self, context: ControllerContext, component: str, *, period: float, window: float = WINDOW) -> None:
        self.context = context
        self.events = EventRecorder(context.kube, component)
        self._depth = context.metrics.queue_depth.labels(self.name)
        self._period = period
        self._window = window
        self._changed = threading.Condition()
        self._keys: set[str] = set()
        self._all = True
        self._all_at = 0.0
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._trouble: str | None = None
        self._failures = 0
        self._key_failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        context.nodes.add_handler(self._on_node)

    @abstractmethod
    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """Whether a node's change (no `old`: it is new; no `new`: it is gone) calls for a pass; heartbeats do not."""

    @abstractmethod
    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Observe, plan and apply for these keys (None: everything); answers the keys to come back to."""

    def trigger(self, key: str) -> None:
        """Something about `key` changed."""
        with self._changed:
            self._keys.add(key)
            self._depth.set(len(self._keys))
            self._changed.notify()

    def apply(self, plan: Plan) -> list[apply.ActionResult]:
        """Carry out a plan as this controller."""
        if plan.changes:
            _log.info("plan controller=%s changes=%d", self.name, len(plan.changes))
        return apply.run(
            plan,
            self.context.kube,
            self.context.cloud,
            events=self.events,
            controller=self.name,
            metrics=self.context.metrics,
            workers=self.context.workers,
            stop=self._stop,
        )

    def start(self, stop: threading.Event) -> None:
        """See `Controller.start`."""
        self._stop = stop
        self._thread = threading.Thread(target=self._run, args=(stop,), name=self.name, daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """See `Controller.join`."""
        with self._changed:
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        return self.events.close() and not (self._thread and self._thread.is_alive())

    def trouble(self) -> str | None:
        """See `Controller.trouble`."""
        if self._thread is not None and not self._thread.is_alive() and not (self._stop and self._stop.is_set()):
            return "its thread has ended"
        return self._trouble

    def _on_node(self, _type: EventType, old: Object | None, new: Object | None) -> None:
        node = new or old
        if node is not None and self.concerns(old, new):
            self.trigger(name(node))

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            keys = self._next(stop)
            if stop.is_set():
                return
            self._pass(keys, stop)

    def _next(self, stop: threading.Event) -> frozenset[str] | None:
        """Wait for work; None stands for everything."""
        with self._changed:
            while not self._keys and not self._all and not stop.is_set():
                now = time.monotonic()
                self._all = now >= self._all_at
                self._keys |= {key for key, due in self._due.items() if due <= now}
                if not self._keys and not self._all:
                    self._changed.wait(min(_STOP_CHECK, min([self._all_at, *self._due.values()]) - now))
        if stop.wait(self._window):
            return None
        with self._changed:
            keys = None if self._all else frozenset(self._keys)
            self._keys.clear()
            self._depth.set(0)
            self._all = False
        return keys

    def _pass(self, keys: frozenset[str] | None, stop: threading.Event) -> None:
        if keys is None:
            # Jitter, so that the controllers of many clusters do not ask one cloud in step.
            self._all_at = time.monotonic() + self._period * random.uniform(0.9, 1.1)
        try:
            with self.context.metrics.timed(self.name):
                again = frozenset(self.reconcile(keys))
        except (CloudError, ApiError) as error:
            self._failures += 1
            self._trouble = f"{type(error).__name__}: {error}"
            delay = error.retry_after if isinstance(error, Throttled) else _backoff(self._failures)
            _log.warning("pass failed controller=%s retry_in=%.1fs error=%r", self.name, delay, str(error))
            stop.wait(delay)
            with self._changed:
                self._all = self._all or keys is None
                self._keys |= keys or frozenset()
            return
        self._failures = 0
        self._trouble = None
        self._come_back(keys, again)

    def _come_back(self, seen: frozenset[str] | None, again: frozenset[str]) -> None:
        """Give the keys that failed a time, and forget what is known of the others that the pass has seen."""
        for key in [key for key in self._key_failures if (seen is None or key in seen) and key not in again]:
            del self._key_failures[key]
            self._due.pop(key, None)
        for key in again:
            self._key_failures[key] = self._key_failures.get(key, 0) + 1
            self._due[key] = time.monotonic() + _backoff(self._key_failures[key])


def _backoff(failures: int) -> float:
    return min(_FIRST_RETRY * (1 << min(failures - 1, 10)), _LONGEST_RETRY) * random.uniform(1.0, 1.1)
