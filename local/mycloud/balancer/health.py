"""Which backends of a set are healthy: one checking task per backend, and the thresholds."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

from local.addresses import socket_address
from local.forwarding.target import Target, connect, socket_from
from local.mycloud.models.balancing import Backend, HealthCheck

BackendId = tuple[str, int]
"""A backend's address (10.x) and port."""

_STATUS_END = len("HTTP/1.1 200")
_MAX_ANSWER = 4096


class Verdict:
    """The verdict of consecutive check results. The first result decides at once, for a quick start."""

    def __init__(self, healthy_threshold: int, unhealthy_threshold: int) -> None:
        self.healthy: bool | None = None
        self._thresholds = {True: healthy_threshold, False: unhealthy_threshold}
        self._against = 0

    def add(self, passed: bool) -> bool:
        """Add a result; returns whether it changed the verdict."""
        if passed == self.healthy:
            self._against = 0
            return False
        self._against += 1
        if self.healthy is not None and self._against < self._thresholds[passed]:
            return False
        self.healthy, self._against = passed, 0
        return True


class HealthMonitor:
    """Checks the backends of one set; `changed` is called when a verdict changes. Runs on the event loop.

    Checks are sent from the socket address `source`: their lingering connections use up no ports of 127.0.0.1.
    """

    def __init__(self, source: str, changed: Callable[[], None]) -> None:
        self._source = source
        self._changed = changed
        self._check = HealthCheck(protocol="NONE")
        self._verdicts: dict[BackendId, Verdict] = {}
        self._tasks: dict[BackendId, asyncio.Task[None]] = {}

    def update(self, check: HealthCheck, backends: Sequence[Backend]) -> None:
        """Check these backends from now on. Remaining ones keep their verdict if the check is unchanged."""
        wanted = {(backend.address, backend.port) for backend in backends}
        stays = wanted if check == self._check else set()
        for key in [key for key in self._tasks if key not in stays]:
            self._tasks.pop(key).cancel()
        # A changed check starts again, but takes nothing out of service before it has a result of its own.
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
        """The verdict on a backend; True without checks, None before the first result."""
        if self._check.protocol == "NONE":
            return True
        verdict = self._verdicts.get(key)
        return verdict.healthy if verdict else None

    def close(self) -> None:
        """Stop checking."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _watch(self, key: BackendId, verdict: Verdict) -> None:
        check = self._check
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            if verdict.add(await passes(check, key, self._source)):
                self._changed()
            await asyncio.sleep(max(0.0, begun + check.interval_seconds - loop.time()))


async def passes(check: HealthCheck, key: BackendId, source: str) -> bool:
    """Whether one check of a backend, from the socket address `source`, succeeds.

    TCP: it accepts a connection. HTTP: it answers 200 to 399.
    """
    target = (socket_address(key[0]), check.port or key[1])
    try:
        # A bare socket: with hundreds of load balancers there are a thousand checks a second.
        with socket_from(source, socket.SOCK_STREAM) as sock:
            async with asyncio.timeout(check.timeout_seconds):
                await connect(sock, target)
                return check.protocol != "HTTP" or 200 <= await _status(sock, target, check.path) < 400
    except (OSError, TimeoutError, ValueError):
        return False


async def _status(sock: socket.socket, target: Target, path: str) -> int:
    """The status of the answer to a GET. Raises ValueError if the answer is not HTTP."""
    loop = asyncio.get_running_loop()
    head = f"GET {path} HTTP/1.1\r\nHost: {target[0]}:{target[1]}\r\nConnection: close\r\n\r\n"
    await loop.sock_sendall(sock, head.encode("latin-1"))
    answer = b""
    while len(answer) < _STATUS_END and (more := await loop.sock_recv(sock, _MAX_ANSWER)):
        answer += more
    if not answer.startswith(b"HTTP/"):
        raise ValueError(f"{answer[:_STATUS_END]!r} is not HTTP")
    return int(answer[_STATUS_END - 3 : _STATUS_END])
