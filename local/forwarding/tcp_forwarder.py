"""How TCP connections get from a listening address to a backend."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Any

from local.forwarding.target import Chooser, Counters, Target, connect, socket_from

_log = logging.getLogger(__name__)

_LISTEN_BACKLOG = 512
_ACCEPT_AGAIN_SECONDS = 1.0


class TcpForwarder:
    """Accepts TCP connections and splices each to the backend that `choose` names.

    Half-closes pass through, back-pressure too. A connection without traffic for `idle_timeout` seconds (None: no
    limit) is closed. A backend that refuses is put into `tried` and the chooser asked again. `masquerade`: backends see
    an address of this host instead of the client's.
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
        # Not an asyncio.Server: one that is closed just after it accepted a connection leaves it open, and unanswered.
        self._socket: socket.socket | None = None
        self._accepted: set[socket.socket] = set()
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

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
        """How many client connections are open now."""
        return len(self._connections)

    def stop_listening(self) -> None:
        """Accept no more; established connections go on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Stop listening and reset every established connection."""
        self.stop_listening()
        for connection in list(self._connections):
            connection.abort()
        for task in list(self._tasks):
            task.cancel()
        for sock in self._accepted:
            sock.close()
        self._accepted.clear()

    def _accept_from(self, listening: socket.socket) -> None:
        if listening is self._socket:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_LISTEN_BACKLOG):
            try:
                sock, _address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # too many open files: it is no use to ask again at once
                _log.error("cannot accept connections: %s; tried again in %g s", error, _ACCEPT_AGAIN_SECONDS)
                loop.remove_reader(listening)
                loop.call_later(_ACCEPT_AGAIN_SECONDS, self._accept_from, listening)
                return
            sock.setblocking(False)
            self._accepted.add(sock)
            self._start(self._admit(sock))

    async def _admit(self, sock: socket.socket) -> None:
        connection = _Connection(self)
        self._accepted.discard(sock)
        self._connections.add(connection)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: connection.client, sock)

    def _forget(self, connection: _Connection) -> None:
        self._connections.discard(connection)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: _Connection, client: Target) -> None:
        """Find a backend that accepts, then let the client's bytes flow."""
        tried: frozenset[Target] = frozenset()
        while (target := self._choose(client, tried)) is not None and target not in tried:
            self.counters.opening(target)
            try:
                async with asyncio.timeout(self._connect_timeout):
                    sock = await self._dial(client, target)
                # The backend has accepted: how long this process then takes is no fault of it.
                await asyncio.get_running_loop().create_connection(lambda: connection.backend, sock=sock)
            except (OSError, TimeoutError):
                self.counters.closed(target)
                tried |= {target}
                continue
            connection.connected(target)
            return
        self.counters.refused += 1
        connection.abort()

    async def _dial(self, client: Target, target: Target) -> socket.socket:
        sock = socket_from(None if self.masquerade else client[0], socket.SOCK_STREAM)
        try:
            await connect(sock, target)
        except BaseException:
            sock.close()
            raise
        return sock


class _Connection:
    """One client connection and its backend connection."""

    def __init__(self, forwarder: TcpForwarder) -> None:
        self.forwarder = forwarder
        self.target: Target | None = None
        self.client = _Side(self, is_client=True)
        self.backend = _Side(self, is_client=False)
        self.client.other, self.backend.other = self.backend, self.client
        self._idle_timer: asyncio.TimerHandle | None = None
        self._last_activity = 0.0
        self._ended = False

    def connected(self, target: Target) -> None:
        """The backend accepted."""
        if self._ended:  # the client went away meanwhile
            self.forwarder.counters.closed(target)
            self.backend.abort()
            return
        self.target = target
        self.forwarder.counters.connections += 1
        self.touch()
        self._watch_idleness()
        self.client.hand_over_what_came_early()

    def touch(self) -> None:
        """Traffic was seen."""
        self._last_activity = asyncio.get_running_loop().time()

    def side_lost(self, side: _Side, error: Exception | None) -> None:
        """One of the two connections is gone: end the other, after what is still to be sent, or at once on a reset."""
        if not self._ended:
            self._ended = True
            self.forwarder._forget(self)
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            if self.target is not None:
                self.forwarder.counters.closed(self.target)
        other = side.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            if error is not None:
                other.transport.abort()
            else:
                other.transport.close()

    def abort(self) -> None:
        """Reset both connections."""
        self.client.abort()
        self.backend.abort()

    def _watch_idleness(self) -> None:
        limit = self.forwarder.idle_timeout
        if limit is None or self._ended:
            return
        loop = asyncio.get_running_loop()
        left = self._last_activity + limit - loop.time()
        if left <= 0:
            self.abort()
        else:
            self._idle_timer = loop.call_later(left, self._watch_idleness)


class _Side(asyncio.Protocol):
    """One of the two ends of a spliced connection."""

    def __init__(self, connection: _Connection, *, is_client: bool) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self._connection = connection
        self._is_client = is_client
        self._ended = False
        self._early: bytearray | None = bytearray() if is_client else None
        """What came before the other end was ready to be sent to; None once it is."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_client:
            # Until there is a backend to write to. Python 3.11.2 (Debian 12) reads on all the same when it is paused
            # here, so what comes early is kept.
            transport.pause_reading()
            forwarder = self._connection.forwarder
            forwarder._start(forwarder._connect(self._connection, transport.get_extra_info("peername")))

    def data_received(self, data: bytes) -> None:
        counters = self._connection.forwarder.counters
        if self._is_client:
            counters.bytes_in += len(data)
        else:
            counters.bytes_out += len(data)
        self._connection.touch()
        assert self.other is not None
        if self._early is not None:
            self._early += data
        elif self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.write(data)

    def hand_over_what_came_early(self) -> None:
        """Now that the other end is there: send it what this one said before, and let the rest flow."""
        assert self.other is not None
        if self._early is None or self.other.transport is None or self.transport is None:
            return
        early, self._early = bytes(self._early), None
        if not self._ended and not self.transport.is_closing():
            self.transport.resume_reading()
        self.other.transport.write(early)  # after that: a backend that takes no more pauses the reading again
        if self._ended:
            self.other.transport.write_eof()

    def eof_received(self) -> bool:
        self._ended = True
        self._connection.touch()
        assert self.other is not None
        if self._early is not None:
            return True  # passed on when there is a backend
        if self.other._ended:
            return False  # both directions are done: the transport closes, and side_lost closes the other
        if self.other.transport is not None and self.other.transport.can_write_eof():
            self.other.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        assert self.other is not None
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        assert self.other is not None
        if self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.side_lost(self, exc)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
