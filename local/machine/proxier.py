"""The node-proxier: forwards this machine's node ports and cluster IPs to ready endpoints, and serves health ports."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Collection, Mapping
from functools import partial
from itertools import count
from typing import Any

from cloud_controller.kube import ENDPOINT_SLICES, SERVICES, EventType, Informer, Kube, key
from local.addresses import socket_address
from local.forwarding.affinity import ClientAffinity
from local.forwarding.target import Target
from local.forwarding.tcp_forwarder import TcpForwarder
from local.forwarding.udp_forwarder import UdpForwarder
from local.http_messages import Answer, Request, json_answer
from local.http_server import IDLE_SECONDS, Application, config, listening
from local.machine.pod_status import timestamp
from local.machine.proxy_rules import (
    Listener,
    Node,
    Route,
    ServiceHealth,
    ignored_addresses,
    ignored_fields,
    rules,
)

Object = dict[str, Any]

_log = logging.getLogger(__name__)

HEALTH_PORT = 10256
"""kube-proxy's; load balancers use it to check that a node can forward."""

UDP_IDLE_SECONDS = 30.0
_DEBOUNCE_SECONDS = 0.05
_RETRY_SECONDS = 2.0


class Forwarding:
    """One listener, and its endpoints: in turn, or for each client the same."""

    def __init__(self, listener: Listener, route: Route) -> None:
        self.route = route
        self._listener = listener
        self._turn = count()
        self._affinity = ClientAffinity(0)
        self._forwarder: TcpForwarder | UdpForwarder
        if listener.protocol == "TCP":
            self._forwarder = TcpForwarder(self._choose)
        else:
            self._forwarder = UdpForwarder(self._choose, idle_timeout=UDP_IDLE_SECONDS)
        self.lead(route)

    async def listen(self) -> None:
        """Start listening. Raises OSError."""
        await self._forwarder.listen(self._listener.host, self._listener.port, reuse_port=self._listener.shared)

    def lead(self, route: Route) -> None:
        """Use this route for new connections; UDP sessions whose endpoint is gone end."""
        self.route = route
        self._affinity.timeout = route.affinity_seconds or 0
        self._forwarder.masquerade = route.masquerade
        if isinstance(self._forwarder, UdpForwarder):
            self._forwarder.end_sessions(keep=lambda target: target in route.targets)

    def stop_listening(self) -> None:
        """The Service is gone, or has no endpoint: established TCP connections continue."""
        if isinstance(self._forwarder, TcpForwarder):
            self._forwarder.stop_listening()
        else:
            self._forwarder.close()

    def close(self) -> None:
        """The machine stops."""
        self._forwarder.close()

    def _choose(self, client: Target, tried: frozenset[Target]) -> Target | None:
        targets = self.route.targets
        left = [target for target in targets if target not in tried]
        if not left:
            return None
        if self.route.affinity_seconds is not None:
            return self._affinity.choose(client[0], left, lambda: favourite(client[0], left))
        start = next(self._turn)
        turn = (targets[(start + step) % len(targets)] for step in range(len(targets)))
        return next(target for target in turn if target not in tried)


def favourite(client: str, targets: Collection[Target]) -> Target:
    """The target of a new client: the same on every node that knows the same targets."""
    return max(targets, key=lambda target: hashlib.blake2b(f"{client} {target}".encode(), digest_size=8).digest())


class HealthPorts:
    """The health check node ports: each returns the number of its Service's ready endpoints on this node."""

    def __init__(self) -> None:
        self._servers: dict[Target, asyncio.Server] = {}
        self._health: Mapping[Target, ServiceHealth] = {}

    async def keep(self, wanted: Mapping[Target, ServiceHealth]) -> list[str]:
        """Serve exactly these from now on; returns an error for each port that cannot be bound."""
        self._health = wanted
        for gone in self._servers.keys() - wanted.keys():
            self._servers.pop(gone).close()
        failures = []
        for host, port in wanted.keys() - self._servers.keys():
            try:
                answering = Application(partial(self._answer, (host, port)))
                self._servers[host, port] = await listening(config(answering, host, port, idle_seconds=IDLE_SECONDS))
            except OSError as error:
                failures.append(f"cannot serve health at {host}:{port}: {error}")
        return failures

    def close(self) -> None:
        """Close all of them."""
        for server in self._servers.values():
            server.close()

    async def _answer(self, at: Target, _: Request) -> Answer:
        health = self._health.get(at)
        if health is None:
            return Answer(503)
        content = {
            "service": {"namespace": health.namespace, "name": health.name},
            "localEndpoints": health.local_endpoints,
            "serviceProxyHealthy": True,
        }
        weight = {"X-Load-Balancing-Endpoint-Weight": str(health.local_endpoints)}
        return json_answer(200 if health.local_endpoints else 503, content, weight)


class Proxier:
    """Keeps the machine's listeners in line with Services and EndpointSlices. Runs on one event loop."""

    def __init__(self, kube: Kube, node: Node) -> None:
        self._node = node
        self._loop = asyncio.get_running_loop()
        self._services = Informer(kube, SERVICES)
        self._slices = Informer(kube, ENDPOINT_SLICES)
        self._dirty = asyncio.Event()
        self._active: dict[Listener, Forwarding] = {}
        self._health_ports = HealthPorts()
        self._skipped: set[Listener] = set()
        self._ignored: dict[str, list[str]] = {}
        self._updated = time.time()

    async def run(self) -> None:
        """Forward until cancelled."""
        for informer in (self._services, self._slices):
            informer.add_handler(self._changed)
            informer.start()
        address = socket_address(self._node.address)
        served = config(Application(self._health), address, HEALTH_PORT, idle_seconds=IDLE_SECONDS)
        health = await listening(served)
        try:
            while True:
                await self._dirty.wait()
                await asyncio.sleep(_DEBOUNCE_SECONDS)  # a rollout changes slices several times in a row
                self._dirty.clear()
                if self._services.synced and self._slices.synced:
                    await self.sync()
        finally:
            health.close()
            self._health_ports.close()
            for forwarding in self._active.values():
                forwarding.close()

    async def sync(self) -> None:
        """Bring the listeners in line with the caches."""
        services, slices = self._services.items(), self._slices.items()
        self._say_what_is_ignored(services, slices)
        wanted = rules(services, slices, self._node)
        for listener in [listener for listener in self._active if listener not in wanted.routes]:
            forwarding = self._active.pop(listener)
            forwarding.stop_listening()
            _log.info("closed %s %s:%d", listener.protocol, listener.host, listener.port)
        self._skipped &= wanted.routes.keys()
        for listener, route in wanted.routes.items():
            if listener in self._active:
                if self._active[listener].route != route:
                    self._active[listener].lead(route)
            elif listener not in self._skipped:
                await self._open(listener, route)
        for failure in await self._health_ports.keep(wanted.health_ports):
            self._try_again_after(failure)
        self._updated = time.time()

    async def _open(self, listener: Listener, route: Route) -> None:
        forwarding = Forwarding(listener, route)
        where = f"{listener.protocol} {listener.host}:{listener.port}"
        try:
            await forwarding.listen()
        except PermissionError:
            self._skipped.add(listener)
            _log.warning("skipped %s: this user may not bind ports below 1024", where)
            return
        except OSError as error:
            self._try_again_after(f"cannot listen on {where}: {error}")
            return
        self._active[listener] = forwarding
        _log.info("forwarding %s to %s", where, ", ".join(f"{host}:{port}" for host, port in route.targets))

    def _try_again_after(self, failure: str) -> None:
        _log.warning("%s; retrying in %g s", failure, _RETRY_SECONDS)
        self._loop.call_later(_RETRY_SECONDS, self._dirty.set)

    def _say_what_is_ignored(self, services: list[Object], slices: list[Object]) -> None:
        """Report unsupported fields once per object, and again when it changes."""
        found = {f"service {key(each)}": ignored_fields(each) for each in services}
        found |= {f"endpoint slice {key(each)}": ignored_addresses(each) for each in slices}
        for name, ignored in found.items():
            if ignored and ignored != self._ignored.get(name):
                _log.warning("%s: ignored: %s", name, ", ".join(ignored))
        self._ignored = found

    def _changed(self, _type: EventType, _old: Object | None, _new: Object | None) -> None:
        self._loop.call_soon_threadsafe(self._dirty.set)

    async def _health(self, request: Request) -> Answer:
        """200 at /healthz once the rules are applied."""
        if request.path != "/healthz":
            return Answer(404)
        times = {"lastUpdated": timestamp(self._updated), "currentTime": timestamp(time.time())}
        return json_answer(200 if self._services.synced and self._slices.synced else 503, times)
