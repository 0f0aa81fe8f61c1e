"""The node-proxier: node ports and cluster IPs of this machine, forwarded to ready endpoints."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from itertools import count
from typing import Any

from cloud_controller.kube import ENDPOINT_SLICES, SERVICES, EventType, Informer, Kube, key
from local.addresses import socket_address
from local.mycloud.forwarding import Target, TcpForwarder, UdpForwarder
from local.mycloud.machine.pod_status import timestamp
from local.mycloud.machine.proxy_rules import Listener, ignored_fields, listeners

Object = dict[str, Any]

_log = logging.getLogger(__name__)

HEALTH_PORT = 10256
"""kube-proxy's; load balancers like to ask it whether a node can forward."""

UDP_IDLE_SECONDS = 30.0
_DEBOUNCE_SECONDS = 0.05
_RETRY_SECONDS = 2.0


class Forwarding:
    """One listener and the endpoints that it leads to, in turn."""

    def __init__(self, listener: Listener) -> None:
        self.targets: tuple[Target, ...] = ()
        self._listener = listener
        self._turn = count()
        self._forwarder: TcpForwarder | UdpForwarder
        if listener.protocol == "TCP":
            self._forwarder = TcpForwarder(self._choose)
        else:
            self._forwarder = UdpForwarder(self._choose, idle_timeout=UDP_IDLE_SECONDS)

    async def listen(self) -> None:
        """Begin. Raises OSError."""
        await self._forwarder.listen(self._listener.host, self._listener.port, reuse_port=self._listener.shared)

    def set_targets(self, targets: tuple[Target, ...]) -> None:
        """From now on new connections go to these; a UDP session whose endpoint is gone ends."""
        self.targets = targets
        if isinstance(self._forwarder, UdpForwarder):
            self._forwarder.end_sessions(keep=lambda target: target in targets)

    def stop_listening(self) -> None:
        """The Service is gone, or has no endpoint: established TCP connections go on."""
        if isinstance(self._forwarder, TcpForwarder):
            self._forwarder.stop_listening()
        else:
            self._forwarder.close()

    def close(self) -> None:
        """The machine stops."""
        self._forwarder.close()

    def _choose(self, _client: Target, tried: frozenset[Target]) -> Target | None:
        if not self.targets:
            return None
        start = next(self._turn)
        turn = (self.targets[(start + step) % len(self.targets)] for step in range(len(self.targets)))
        return next((target for target in turn if target not in tried), None)


class Proxier:
    """Keeps the machine's listeners as Services and EndpointSlices want them. Lives on one event loop."""

    def __init__(self, kube: Kube, node_address: str) -> None:
        self._node_address = node_address
        self._loop = asyncio.get_running_loop()
        self._services = Informer(kube, SERVICES)
        self._slices = Informer(kube, ENDPOINT_SLICES)
        self._dirty = asyncio.Event()
        self._active: dict[Listener, Forwarding] = {}
        self._skipped: set[Listener] = set()
        self._ignored: dict[str, list[str]] = {}
        self._updated = time.time()

    async def run(self) -> None:
        """Forward until cancelled."""
        for informer in (self._services, self._slices):
            informer.add_handler(self._changed)
            informer.start()
        health = await asyncio.start_server(self._serve_health, socket_address(self._node_address), HEALTH_PORT)
        try:
            while True:
                await self._dirty.wait()
                await asyncio.sleep(_DEBOUNCE_SECONDS)  # a rollout changes slices several times in a row
                self._dirty.clear()
                if self._services.synced and self._slices.synced:
                    await self.sync()
        finally:
            health.close()
            for forwarding in self._active.values():
                forwarding.close()

    async def sync(self) -> None:
        """Bring the listeners in line with the caches."""
        services = self._services.items()
        self._say_what_is_ignored(services)
        wanted = listeners(services, self._slices.items(), self._node_address)
        for listener in [listener for listener in self._active if listener not in wanted]:
            forwarding = self._active.pop(listener)
            forwarding.set_targets(())
            forwarding.stop_listening()
            _log.info("closed %s %s:%d", listener.protocol, listener.host, listener.port)
        self._skipped &= wanted.keys()
        for listener, targets in wanted.items():
            if listener in self._active:
                if self._active[listener].targets != targets:
                    self._active[listener].set_targets(targets)
            elif listener not in self._skipped:
                await self._open(listener, targets)
        self._updated = time.time()

    async def _open(self, listener: Listener, targets: tuple[Target, ...]) -> None:
        forwarding = Forwarding(listener)
        where = f"{listener.protocol} {listener.host}:{listener.port}"
        try:
            await forwarding.listen()
        except PermissionError:
            self._skipped.add(listener)
            _log.warning("skipped %s: ports below 1024 need a right that this user lacks", where)
            return
        except OSError as error:
            _log.warning("cannot listen on %s: %s; tried again in %g s", where, error, _RETRY_SECONDS)
            self._loop.call_later(_RETRY_SECONDS, self._dirty.set)
            return
        forwarding.set_targets(targets)
        self._active[listener] = forwarding
        _log.info("forwarding %s to %s", where, ", ".join(f"{host}:{port}" for host, port in targets))

    def _say_what_is_ignored(self, services: list[Object]) -> None:
        """Once for each Service, and again when it changes."""
        found = {key(service): ignored_fields(service) for service in services}
        for name, ignored in found.items():
            if ignored and ignored != self._ignored.get(name):
                _log.warning("service %s: ignored: %s", name, ", ".join(ignored))
        self._ignored = found

    def _changed(self, _type: EventType, _old: Object | None, _new: Object | None) -> None:
        self._loop.call_soon_threadsafe(self._dirty.set)

    async def _serve_health(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one HTTP request: 200 at /healthz once the rules are in place."""
        try:
            async with asyncio.timeout(5):
                words = (await reader.readline()).split()
                while (await reader.readline()).strip():
                    pass
        except (TimeoutError, ValueError, ConnectionError):
            writer.close()
            return
        synced = self._services.synced and self._slices.synced
        found = len(words) > 1 and words[1].split(b"?")[0] == b"/healthz"
        status = "404 Not Found" if not found else "200 OK" if synced else "503 Service Unavailable"
        times = {"lastUpdated": timestamp(self._updated), "currentTime": timestamp(time.time())}
        body = json.dumps(times).encode() if found else b""
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        writer.close()
