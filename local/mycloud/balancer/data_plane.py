"""All load balancers of a site: takes configurations, runs forwarding sockets, and reports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from local.mycloud.balancer.health import HealthMonitor
from local.mycloud.balancer.listener import ActiveListener, Pool
from local.mycloud.balancer.sources import SourceRanges
from local.mycloud.balancer_board import BalancerConfig, BalancerReport
from local.mycloud.models.balancing import BackendHealth, BackendSet, HealthCheck
from local.mycloud.models.common import State

log = logging.getLogger(__name__)

ListenerKey = tuple[str, int]
Revision = tuple[int, int]
"""Identifies a load balancer's report: a change means a new report."""


class DataPlane:
    """Runs on one event loop. `changed` is set whenever there may be something new to report."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._balancers: dict[str, _Balancer] = {}
        self._closed: dict[str, int] = {}

    async def apply(self, config: BalancerConfig) -> None:
        """Apply a load balancer's configuration; unchanged parts are not disturbed.

        Several calls may run at once: with much traffic, each has to wait for turns of the event loop.
        """
        if config.state == State.DELETING:
            if balancer := self._balancers.pop(config.id, None):
                await balancer.close()
            self._closed[config.id] = config.generation
        else:
            balancer = self._balancers.get(config.id)
            if balancer is None:
                balancer = self._balancers[config.id] = _Balancer(self.changed.set)
            await balancer.apply(config)
        self.changed.set()

    async def retain(self, ids: Iterable[str]) -> None:
        """Close every load balancer that the API no longer has."""
        for gone in self._balancers.keys() - set(ids):
            await self._balancers.pop(gone).close()

    async def retry(self) -> None:
        """Retry the binds that failed."""
        for balancer in list(self._balancers.values()):
            if balancer.failures() and await balancer.bind():
                self.changed.set()

    def revisions(self) -> dict[str, Revision]:
        """The load balancers with a report; cheap, so it may be called often."""
        gone = {each: (generation, -1) for each, generation in self._closed.items()}
        return gone | {each: balancer.revision() for each, balancer in self._balancers.items()}

    def reports(self, ids: Iterable[str] | None = None) -> list[BalancerReport]:
        """The present reports of these load balancers (None: of all)."""
        return [self._report(each) for each in (self.revisions() if ids is None else ids)]

    def acknowledged(self, reports: Iterable[BalancerReport]) -> None:
        """The API has these reports: closed load balancers can be forgotten."""
        for report in reports:
            if report.closed:
                self._closed.pop(report.id, None)

    async def close(self) -> None:
        """Close everything."""
        await self.retain(())

    def _report(self, id: str) -> BalancerReport:
        if id in self._closed:
            return BalancerReport(id=id, generation=self._closed[id], closed=True)
        return self._balancers[id].report()


class _Balancer:
    """One load balancer: its listeners and its backend sets."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        # A change and a retry take turns: together they would bind the same listener twice, and one would fail.
        self._turn = asyncio.Lock()
        self._config: BalancerConfig | None = None
        self._carried_out = 0
        self._changes = 0
        self._refill_is_due = False
        self._listeners: dict[ListenerKey, ActiveListener] = {}
        self._monitors: dict[str, HealthMonitor] = {}
        self._pools: dict[str, Pool] = {}

    async def apply(self, config: BalancerConfig) -> None:
        async with self._turn:
            self._configure(config)
            await self._bind()
            self._carried_out = config.generation
            self._changes += 1

    async def bind(self) -> bool:
        """Bind what is not bound; returns whether anything changed."""
        async with self._turn:
            return await self._bind()

    def _configure(self, config: BalancerConfig) -> None:
        self._config = config
        sources = SourceRanges(config.source_ranges)
        self._apply_sets(config)
        wanted = {(listener.protocol, listener.port): listener for listener in config.listeners}
        for key in self._listeners.keys() - wanted.keys():
            self._listeners.pop(key).close()
        for key, listener in wanted.items():
            pool = self._pools[listener.backend_set]
            active = self._listeners.get(key)
            if active is None:
                self._listeners[key] = ActiveListener(config.address, listener, pool, sources)
            else:
                active.update(listener, pool, sources)

    async def _bind(self) -> bool:
        before = self.failures()
        for listener in self._listeners.values():
            await listener.bind()
        after = self.failures()
        if after != before:
            self._changes += 1
            log.info("%s: %s", self._config and self._config.id, "; ".join(after) or "all listeners are bound")
        return after != before

    def failures(self) -> list[str]:
        """Why listeners could not be bound."""
        return [listener.error for listener in self._listeners.values() if listener.error]

    def revision(self) -> Revision:
        """The number of changes, and a number that every traffic raises."""
        return self._changes, sum(listener.traffic() for listener in self._listeners.values())

    def report(self) -> BalancerReport:
        """The report. Its generation is the last one that is bound: a change may be in progress."""
        assert self._config is not None
        return BalancerReport(
            id=self._config.id,
            generation=self._carried_out,
            failures=self.failures(),
            health=[
                BackendHealth(
                    backend_set=backend_set.name,
                    address=backend.address,
                    port=backend.port,
                    healthy=self._monitors[backend_set.name].healthy((backend.address, backend.port)),
                )
                for backend_set in self._config.backend_sets
                for backend in backend_set.backends
            ],
            counters=[listener.counters() for listener in self._listeners.values()],
        )

    async def close(self) -> None:
        async with self._turn:
            for listener in self._listeners.values():
                listener.close()
            self._listeners.clear()  # so that no retry opens one again
            for monitor in self._monitors.values():
                monitor.close()

    def _apply_sets(self, config: BalancerConfig) -> None:
        wanted = {backend_set.name: backend_set for backend_set in config.backend_sets}
        for name in self._monitors.keys() - wanted.keys():
            self._monitors.pop(name).close()
            del self._pools[name]
        for name, backend_set in wanted.items():
            if name not in self._monitors:
                self._monitors[name] = HealthMonitor(config.address, self._health_changed)
                self._pools[name] = Pool()
            self._monitors[name].update(backend_set.health_check or HealthCheck(), backend_set.backends)
            self._fill(backend_set)

    def _health_changed(self) -> None:
        # Batched: a set of a thousand backends learns of all of them at about the same time.
        if not self._refill_is_due:
            self._refill_is_due = True
            asyncio.get_running_loop().call_soon(self._refill)

    def _refill(self) -> None:
        assert self._config is not None
        self._refill_is_due = False
        self._changes += 1
        for backend_set in self._config.backend_sets:
            self._fill(backend_set)
        for listener in self._listeners.values():
            listener.backends_changed()
        self._changed()

    def _fill(self, backend_set: BackendSet) -> None:
        monitor = self._monitors[backend_set.name]
        self._pools[backend_set.name].set(backend_set, lambda backend: monitor.healthy((backend.address, backend.port)))
