"""Forwards TCP connections from a listening address to a backend."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from local.forwarding.target import Chooser, Counters, Target, connect, socket_from

_log = logging.getLogger(__name__)

_LISTEN_BACKLOG = 512
_ACCEPT_AGAIN_SECONDS = 1.0
_CHUNK = 65536

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpForwarder:
    """Accepts TCP connections and splices each to the backend that `choose` returns.

    Half-closes pass through, back-pressure too. A connection without traffic for `idle_timeout` seconds (None: no
    limit) is closed. A backend that refuses is added to `tried` and the chooser called again. `masquerade`: backends
    see an address of this host instead of the client's.
    """

    def __init__(
        self,
        choose: Chooser,
        *,
        idle_timeout: float | None = None,
        connect_timeout: float = 5.0,
        masquerade: bool = False,
    ) -> None:
        self.counters = Counters()
        self.idle_timeout = idle_timeout
        self.masquerade = masquerade
        self._choose = choose
        self._connect_timeout = connect_timeout
        # Not an asyncio.Server: one that closes just after it accepted a connection leaves it open, and unanswered.
        self._socket: socket.socket | None = None
        self._accepted: set[socket.socket] = set()
        self._connections: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Listen on `host`:`port` (0: any free port) and return the port. Raises OSError if it cannot be bound."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind((host, port))
            sock.listen(_LISTEN_BACKLOG)
        except OSError:
            sock.close()
            raise
        self._socket = sock
        self._accept_from(sock)
        return int(sock.getsockname()[1])

    @property
    def open_connections(self) -> int:
        """The number of open client connections."""
        return len(self._connections)

    def stop_listening(self) -> None:
        """Accept no more; established connections continue, also those that only the kernel has accepted so far."""
        if self._socket is not None:
            self._accept(self._socket)
        self._close_socket()

    def close(self) -> None:
        """Stop listening and abort every established connection."""
        self._close_socket()
        for task in self._connections:
            task.cancel()
        for sock in self._accepted:  # their tasks were cancelled before they began
            sock.close()
        self._accepted.clear()

    def _close_socket(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _accept_from(self, listening: socket.socket) -> None:
        if listening is self._socket:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_LISTEN_BACKLOG):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # too many open files: an immediate retry would fail, too
                _log.error("cannot accept connections: %s; retrying in %g s", error, _ACCEPT_AGAIN_SECONDS)
                loop.remove_reader(listening)
                loop.call_later(_ACCEPT_AGAIN_SECONDS, self._accept_from, listening)
                return
            sock.setblocking(False)
            self._accepted.add(sock)
            task = loop.create_task(self._forward(sock, address))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _forward(self, sock: socket.socket, client: Target) -> None:
        self._accepted.discard(sock)
        near, far, target = await _streams(sock), None, None
        clean = False
        try:
            if (found := await self._connect(client)) is None:
                self.counters.refused += 1
                return
            far, target = found
            self.counters.connections += 1
            clean = await self._splice(near, far)
        finally:
            for _, writer in filter(None, (near, far)):
                writer.close() if clean else writer.transport.abort()
            if target is not None:
                self.counters.closed(target)

    async def _connect(self, client: Target) -> tuple[_Stream, Target] | None:
        """Find a backend that accepts. None: there is none left to try."""
        tried: frozenset[Target] = frozenset()
        while (target := self._choose(client, tried)) is not None and target not in tried:
            self.counters.opening(target)
            try:
                async with asyncio.timeout(self._connect_timeout):
                    sock = await self._dial(client, target)
                # The backend has accepted: time that this process takes from here on is not the backend's fault.
                return await _streams(sock), target
            except (OSError, TimeoutError):
                self.counters.closed(target)
                tried |= {target}
            except asyncio.CancelledError:
                self.counters.closed(target)
                raise
        return None

    async def _dial(self, client: Target, target: Target) -> socket.socket:
        sock = socket_from(None if self.masquerade else client[0], socket.SOCK_STREAM)
        try:
            await connect(sock, target)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _splice(self, near: _Stream, far: _Stream) -> bool:
        """Copy both ways. True: both ends have finished; False: one was reset, or the connection was idle for too
        long.
        """
        loop, counters = asyncio.get_running_loop(), self.counters
        clean = True

        def active() -> None:
            # Data may come in the moment at which the timeout fires; it cannot be extended any more.
            if not idle.expired():
                idle.reschedule(self.idle_timeout and loop.time() + self.idle_timeout)

        def inbound(size: int) -> None:
            counters.bytes_in += size
            active()

        def outbound(size: int) -> None:
            counters.bytes_out += size
            active()

        try:
            async with asyncio.timeout(self.idle_timeout) as idle, asyncio.TaskGroup() as copies:
                copies.create_task(_copy(near[0], far[1], inbound))
                copies.create_task(_copy(far[0], near[1], outbound))
        except* (OSError, TimeoutError):
            clean = False
        return clean


async def _streams(sock: socket.socket) -> _Stream:
    try:
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[int], None]) -> None:
    while data := await reader.read(_CHUNK):
        count(len(data))
        writer.write(data)
        await writer.drain()
    count(0)
    writer.write_eof()
