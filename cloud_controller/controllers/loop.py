"""The reconcile loop of controllers whose plan spans many objects: node, node-lifecycle, route and volume.

Reconciles batched changes soon after they happen, and everything periodically. The service controller works on one
key of its queue at a time instead.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from cloud_controller import apply
from cloud_controller.binding import Evidence
from cloud_controller.cloud import Cloud, CloudError
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.nodes import BATCH
from cloud_controller.controllers.queue import Cause, WorkQueue
from cloud_controller.events import EventRecorder
from cloud_controller.kube import ApiError, EventType, KubeApi, Object, ObjectCache, name, uid
from cloud_controller.metrics import Metrics
from cloud_controller.plan import ActionKind, Plan
from cloud_controller.safeguard import Safeguard

EVERYTHING = "*"
"""The key of a full pass."""
FIRST_RETRY = 2.0
LONGEST_RETRY = 60.0
"""Seconds after which failed keys are retried."""
WINDOW = 0.5
"""Seconds for which changes are batched, so that a hundred new nodes are one pass."""
_WINDOWS = 4
"""Maximum number of windows to wait while more keys arrive and do not fill a batch yet."""
_REPEAT_WARNING = 600.0
"""Seconds after which an unchanged warning is repeated."""
_WARNINGS_REMEMBERED = 10_000
_STOP_CHECK = 1.0
"""Seconds between checks of the stop event while waiting; `join` wakes the loop earlier."""
_EVENTS_TIMEOUT = 0.5
"""Minimum seconds for a stopping controller to write its last events."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ControllerContext:
    """The dependencies of every controller in the daemon."""

    kube: KubeApi
    cloud: Cloud
    nodes: ObjectCache
    metrics: Metrics
    machines: InstanceSnapshot
    safeguard: Safeguard
    workers: int = apply.DEFAULT_WORKERS


class LoopController(ABC):
    """One thread that runs `reconcile` for triggered keys, and for all keys (None) every `period` seconds.

    The keys that a pass returns are retried with backoff, unless they are triggered before. After a pass that raises,
    nothing is reconciled until the first of its keys is due again.
    """

    name: ClassVar[str]
    reads_machines: ClassVar[bool] = False
    """Whether each full pass reads the cloud's machines."""

    def __init__(self, context: ControllerContext, component: str, *, period: float, window: float = WINDOW) -> None:
        self.context = context
        self.events = EventRecorder(context.kube, component)
        self._period = period
        self._window = window
        self._queue: WorkQueue[str] = WorkQueue(FIRST_RETRY, LONGEST_RETRY)
        self._queue.add(EVERYTHING)
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._trouble: str | None = None
        self._warned: dict[tuple[str, str, str], float] = {}
        context.metrics.watch_queue(self.name, self._queue)
        context.nodes.add_handler(self._on_node)

    @abstractmethod
    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """Whether a node's change (`old` None: added; `new` None: deleted) requires a pass. Must ignore heartbeats."""

    @abstractmethod
    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Observe, plan and apply for these keys (None: all); return the keys to retry."""

    def evidence(self) -> Evidence | None:
        """See `Controller.evidence`."""
        return None

    def confirmed(self, targets: Collection[str]) -> None:  # noqa: ARG002 - a full pass includes all targets
        """See `Controller.confirmed`."""
        self._queue.add(EVERYTHING, Cause.OBJECT)

    def trigger(self, key: str) -> None:
        """Reconcile `key` soon."""
        self._queue.add(key, Cause.OBJECT)

    def trigger_after(self, key: str, seconds: float) -> None:
        """Reconcile `key` in this many seconds, or earlier if something else triggers it."""
        self._queue.add_after(key, seconds, Cause.OBJECT)

    def warn(self, obj: Object, reason: str, message: str) -> bool:
        """Emit a Warning event; an identical one is repeated only every `_REPEAT_WARNING` seconds.

        Returns whether it was emitted.
        """
        # The message is part of the key: a dual-stack node may have the same problem with both CIDRs.
        warning, now = (uid(obj) or name(obj), reason, message), time.monotonic()
        if now < self._warned.get(warning, -math.inf) + _REPEAT_WARNING:
            return False
        if len(self._warned) >= _WARNINGS_REMEMBERED:
            del self._warned[next(iter(self._warned))]
        self._warned[warning] = now
        self.events.warning(obj, reason, message)
        return True

    def apply(
        self,
        plan: Plan,
        done: Callable[[apply.ActionResult], None] = lambda _: None,
        workers: int | None = None,
        *,
        about: Collection[str] | None = None,
    ) -> list[apply.ActionResult]:
        """Carry out a plan as this controller.

        `done`: called with each result as soon as it is known. `workers`: the number of concurrent writes, if not the
        daemon's default. `about`: see `Safeguard.admit`.
        """
        plan = self.context.safeguard.admit(self.name, plan, self.events, about=about)
        if plan.changes:
            _log.info("plan controller=%s changes=%d", self.name, len(plan.changes))
        self.context.metrics.planned(self.name, plan)
        results = apply.run(
            plan,
            self.context.kube,
            self.context.cloud,
            events=self.events,
            controller=self.name,
            metrics=self.context.metrics,
            workers=workers or self.context.workers,
            stop=self._stop,
            done=done,
        )
        self.context.metrics.ignored.labels(self.name).set(plan.counts.get(ActionKind.IGNORE, 0))
        self.context.safeguard.used(plan, [result.action for result in results if result.ok])
        return results

    def start(self, stop: threading.Event) -> None:
        """See `Controller.start`."""
        self._stop = stop
        if self.reads_machines:
            self.context.metrics.will_read_machines()
        self._thread = threading.Thread(target=self._run, args=(stop,), name=self.name, daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """See `Controller.join`."""
        self._queue.close()
        end = time.monotonic() + timeout
        if self._thread is not None:
            self._thread.join(timeout)
        written = self.events.close(max(_EVENTS_TIMEOUT, end - time.monotonic()))
        return written and not (self._thread and self._thread.is_alive())

    def ended(self) -> str | None:
        """See `Controller.ended`."""
        if self._thread is not None and not self._thread.is_alive() and not (self._stop and self._stop.is_set()):
            return "its thread has stopped"
        return None

    def trouble(self) -> str | None:
        """See `Controller.trouble`."""
        return self.ended() or self._trouble

    def _on_node(self, _type: EventType, old: Object | None, new: Object | None) -> None:
        node = new or old
        if node is not None and self.concerns(old, new):
            self.trigger(name(node))

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if self._queue.wait(_STOP_CHECK) and self._gather(stop):
                self._pass(self._queue.get_batch(), stop)

    def _gather(self, stop: threading.Event) -> bool:
        """Wait for changes that happen together: describing a batch of machines costs one call, like describing one."""
        before = -1
        for _ in range(_WINDOWS):
            count = self._queue.depth()
            if count <= before or count >= BATCH:
                break
            before = count
            if stop.wait(self._window):
                return False
        return True

    def _pass(self, batch: frozenset[str], stop: threading.Event) -> None:
        keys = None if EVERYTHING in batch else batch
        if keys is None:
            # Jitter keeps the controllers of many clusters from querying one cloud at the same time.
            self._queue.add_after(EVERYTHING, self._period * random.uniform(0.9, 1.1))
        delay = 0.0
        try:
            with self.context.metrics.timed(self.name):
                again = frozenset(self.reconcile(keys))
        except (CloudError, ApiError) as error:
            self._trouble = f"{type(error).__name__}: {error}"
            # The shortest: a key that has failed often must not delay the others.
            delay = min(self._queue.add_after_error(key, error) for key in batch)
            _log.warning("pass failed controller=%s retry_in=%.1fs error=%r", self.name, delay, str(error))
        else:
            self._trouble = None
            for key in batch - again:
                self._queue.forget(key)
            for key in again:
                self._queue.add_rate_limited(key)
        for key in batch:
            self._queue.done(key)
        if delay:
            stop.wait(delay)
