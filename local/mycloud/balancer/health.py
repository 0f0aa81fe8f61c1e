"""Which backends of a set are healthy: one checking task a backend, and the thresholds that judge its results."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence

from local.addresses import socket_address
from local.mycloud.balancer.http import HttpError, request
from local.mycloud.forwarding import connect
from local.mycloud.models import Backend, HealthCheck

BackendId = tuple[str, int]
"""A backend's address (10.x) and port."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for no time."""


class Verdict:
    """What consecutive check results say. The very first result decides at once, so that a start is quick."""

    def __init__(self, healthy_threshold: int, unhealthy_threshold: int) -> None:
        self.healthy: bool | None = None
        self._thresholds = {True: healthy_threshold, False: unhealthy_threshold}
        self._against = 0

    def add(self, passed: bool) -> bool:
        """Take one result in; whether it changed the verdict."""
        if passed == self.healthy:
            self._against = 0
            return False
        self._against += 1
        if self.healthy is not None and self._against < self._thresholds[passed]:
            return False
        self.healthy, self._against = passed, 0
        return True


class HealthMonitor:
    """Checks the backends of one set; `changed` is called when a verdict changes. Lives on the event loop."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._check = HealthCheck(protocol="NONE")
        self._verdicts: dict[BackendId, Verdict] = {}
        self._tasks: dict[BackendId, asyncio.Task[None]] = {}

    def update(self, check: HealthCheck, backends: Sequence[Backend]) -> None:
        """Check these backends from now on. What is known of those that stay is kept if the check stays the same."""
        wanted = {(backend.address, backend.port) for backend in backends}
        stays = wanted if check == self._check else set()
        for key in [key for key in self._tasks if key not in stays]:
            self._tasks.pop(key).cancel()
        # A changed check begins anew, but takes nothing out of service before it has a result of its own.
        self._verdicts = {
            key: verdict for key, verdict in self._verdicts.items() if key in wanted and check.protocol != "NONE"
        }
        self._check = check
        if check.protocol == "NONE":
            return
        for key in wanted - self._tasks.keys():
            before = self._verdicts.get(key)
            verdict = self._verdicts[key] = Verdict(check.healthy_threshold, check.unhealthy_threshold)
            verdict.healthy = before.healthy if before else None
            self._tasks[key] = asyncio.create_task(self._watch(key, verdict))

    def healthy(self, key: BackendId) -> bool | None:
        """The verdict on a backend; True where nothing is checked, None while nothing is known."""
        if self._check.protocol == "NONE":
            return True
        verdict = self._verdicts.get(key)
        return verdict.healthy if verdict else None

    def close(self) -> None:
        """Check no more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _watch(self, key: BackendId, verdict: Verdict) -> None:
        check = self._check
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            if verdict.add(await passes(check, key)):
                self._changed()
            await asyncio.sleep(max(0.0, begun + check.interval_seconds - loop.time()))


async def passes(check: HealthCheck, key: BackendId) -> bool:
    """Whether one check of a backend succeeds: TCP connects; HTTP answers 200 to 399."""
    target = (socket_address(key[0]), check.port or key[1])
    if check.protocol == "HTTP":
        try:
            status, _ = await request(target, "GET", check.path, timeout=check.timeout_seconds, read_body=False)
        except HttpError:
            return False
        return 200 <= status < 400
    # A bare socket: with hundreds of load balancers there are a thousand checks a second.
    with socket.socket() as sock:
        sock.setblocking(False)
        # Reset at the end, not closed: no check lingers in TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        try:
            async with asyncio.timeout(check.timeout_seconds):
                await connect(sock, target)
        except (OSError, TimeoutError):
            return False
    return True
