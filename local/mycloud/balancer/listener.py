"""One listener of a load balancer: its socket, its limit and its choice of a healthy backend."""

from __future__ import annotations

import os
from collections.abc import Callable

from local.addresses import socket_address
from local.forwarding.affinity import ClientAffinity
from local.forwarding.target import Target
from local.forwarding.tcp_forwarder import TcpForwarder
from local.forwarding.udp_forwarder import UdpForwarder
from local.mycloud.balancer.schedulers import Candidate, Scheduler, scheduler
from local.mycloud.balancer.sources import SourceRanges
from local.mycloud.models.balancing import Backend, BackendSet, Listener, ListenerCounters
from local.token_bucket import TokenBucket


class Pool:
    """The backends available to a listener, and the scheduler."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.affinity: ClientAffinity | None = None
        self.scheduler_name = ""

    def set(self, backend_set: BackendSet, healthy: Callable[[Backend], bool | None]) -> None:
        """Offer the healthy backends; weight 0 excludes a backend from new choices.

        If none is healthy, those without a verdict are tried: a set of new backends serves at once.
        """
        verdicts = [(backend, healthy(backend)) for backend in backend_set.backends if backend.weight > 0]
        usable = [backend for backend, verdict in verdicts if verdict]
        self.candidates = [
            Candidate((socket_address(backend.address), backend.port), backend.weight)
            for backend in usable or [backend for backend, verdict in verdicts if verdict is None]
        ]
        self.scheduler_name = backend_set.scheduler
        if backend_set.session_affinity == "NONE":
            self.affinity = None
        elif self.affinity is None:
            self.affinity = ClientAffinity(backend_set.session_affinity_timeout_seconds)
        else:
            self.affinity.timeout = backend_set.session_affinity_timeout_seconds


class ActiveListener:
    """A listener with its socket. `update` changes everything except protocol and port without interruption."""

    def __init__(self, address: str, config: Listener, pool: Pool, sources: SourceRanges) -> None:
        self.config = config
        self.error: str | None = None
        self._address = address
        self._pool = pool
        self._sources = sources
        self._scheduler: Scheduler = scheduler(pool.scheduler_name)
        self._scheduler_name = pool.scheduler_name
        self._bucket: TokenBucket | None = None
        self._rejected_qps = 0
        self._rejected_source = 0
        self._is_bound = False
        self._forwarder: TcpForwarder | UdpForwarder
        if config.protocol == "TCP":
            self._forwarder = TcpForwarder(self._choose_for_connection, idle_timeout=config.idle_timeout_seconds)
        else:
            self._forwarder = UdpForwarder(
                self._choose, idle_timeout=config.idle_timeout_seconds, admit=self._is_admitted
            )
        self._limit(config.max_qps)

    async def bind(self) -> None:
        """Listen, unless it does already; `error` then says why it could not, or is None."""
        if self._is_bound:
            return
        try:
            await self._forwarder.listen(self._address, self.config.port)
        except OSError as error:
            # asyncio's own message repeats the address.
            reason = os.strerror(error.errno) if error.errno else error
            self.error = f"listener {self.config.protocol} {self.config.port} on {self._address}: {reason}"
        else:
            self.error, self._is_bound = None, True

    def update(self, config: Listener, pool: Pool, sources: SourceRanges) -> None:
        """Apply a changed configuration; established connections stay as they are."""
        if config.max_qps != self.config.max_qps:
            self._limit(config.max_qps)
        if pool.scheduler_name != self._scheduler_name:
            self._scheduler, self._scheduler_name = scheduler(pool.scheduler_name), pool.scheduler_name
        self.config = config
        self._pool = pool
        self._sources = sources
        self._forwarder.idle_timeout = config.idle_timeout_seconds
        self.backends_changed()

    def backends_changed(self) -> None:
        """End UDP sessions with backends that are no longer offered: a UDP client cannot notice it by itself."""
        if isinstance(self._forwarder, UdpForwarder):
            offered = {candidate.target for candidate in self._pool.candidates}
            self._forwarder.end_sessions(lambda target: target in offered)

    def traffic(self) -> int:
        """The sum of all counters: another number means other counters."""
        counters = self._forwarder.counters
        went_through = counters.connections + counters.bytes_in + counters.bytes_out
        return went_through + self._rejected_qps + self._rejected_source

    def counters(self) -> ListenerCounters:
        """The present counters."""
        counters = self._forwarder.counters
        return ListenerCounters(
            protocol=self.config.protocol,
            port=self.config.port,
            connections=counters.connections,
            bytes_in=counters.bytes_in,
            bytes_out=counters.bytes_out,
            rejected_qps=self._rejected_qps,
            rejected_source=self._rejected_source,
        )

    def close(self) -> None:
        """Stop listening and end every connection."""
        self._is_bound = False
        self._forwarder.close()

    def _limit(self, max_qps: int | None) -> None:
        self._bucket = None if max_qps is None else TokenBucket(max_qps)

    def _is_admitted(self, client: Target) -> bool:
        if not self._sources.admits(client[0]):
            self._rejected_source += 1
            return False
        if self._bucket is None or self._bucket.take():
            return True
        self._rejected_qps += 1
        return False

    def _choose_for_connection(self, client: Target, tried: frozenset[Target]) -> Target | None:
        # A retry of the same connection, after a backend refused it, is not another connection.
        return self._choose(client, tried) if tried or self._is_admitted(client) else None

    def _choose(self, client: Target, tried: frozenset[Target]) -> Target | None:
        left = {each.target: each for each in self._pool.candidates if each.target not in tried}

        def pick() -> Target | None:
            return self._scheduler.choose(list(left.values()), self._forwarder.counters.active)

        affinity = self._pool.affinity
        return pick() if affinity is None else affinity.choose(client[0], left, pick)
