"""The latest reports of the load balancers' data plane: health and counters, in the API's memory.

The data plane is a separate process that outlives the API; it repeats every report to a restarted API (`boot`), so
these need not be durable. What must be (which generation is applied) goes into the store.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel

from local.mycloud.models.balancing import BackendHealth, ListenerCounters, LoadBalancer


class BalancerConfig(LoadBalancer):
    """A load balancer in the form that the data plane gets."""

    generation: int


class ConfigAnswer(BaseModel):
    """What changed since the requested version; `boot` identifies one start of the API."""

    boot: str
    version: int
    load_balancers: list[BalancerConfig]


class BalancerReport(BaseModel):
    """The data plane's report on one load balancer. `failures`: why listeners cannot be bound. `closed`: it is gone."""

    id: str
    generation: int
    failures: list[str] = []
    closed: bool = False
    health: list[BackendHealth] = []
    counters: list[ListenerCounters] = []


class BalancerBoard:
    """The latest report of each load balancer, and the bell that wakes the waiting data plane."""

    def __init__(self) -> None:
        self.boot = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._reports: dict[str, BalancerReport] = {}
        self._bells: set[Bell] = set()

    def put(self, report: BalancerReport) -> None:
        """Store a report, or forget a load balancer that is gone."""
        with self._lock:
            if report.closed:
                self._reports.pop(report.id, None)
            else:
                self._reports[report.id] = report

    def report(self, id: str) -> BalancerReport | None:
        """The latest report of a load balancer, if there is one."""
        with self._lock:
            return self._reports.get(id)

    def ring(self) -> None:
        """Wake all waiters: something may have changed in the store. Callable from any thread."""
        with self._lock:
            for bell in self._bells:
                bell.ring()

    @contextmanager
    def bell(self) -> Iterator[Bell]:
        """A bell that rings if `ring` is called after this: read the store inside the block, then wait."""
        bell = Bell(asyncio.get_running_loop())
        with self._lock:
            self._bells.add(bell)
        try:
            yield bell
        finally:
            with self._lock:
                self._bells.discard(bell)


class Bell:
    """One waiter's bell."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake the waiter. Callable from any thread."""
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> None:
        """Wait until it rang (perhaps before this call), at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
