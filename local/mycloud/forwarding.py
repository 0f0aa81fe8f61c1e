"""How bytes get from a listening address to a backend: the TCP and UDP forwarders of load balancers and nodes.

A forwarder knows nothing of Services, health or schedulers: for each connection (TCP) or new client (UDP) it asks a
`Chooser` for the backend. A change of what the chooser answers never touches a connection that is established. A
backend sees the client's address, unless the forwarder masquerades. All addresses are socket addresses (127.x);
everything runs on one event loop and must be called from it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

_log = logging.getLogger(__name__)

Target = tuple[str, int]
"""A socket address and a port."""

Chooser = Callable[[Target, frozenset[Target]], Target | None]
"""`choose(client, tried)`: the backend for this client, not one of `tried` (those refused just now); None refuses."""

MAX_UDP_SESSIONS = 4096
_DATAGRAM_BYTES = 65_536
_DATAGRAMS_A_WAKE = 64
_LISTEN_BACKLOG = 512
_ACCEPT_AGAIN_SECONDS = 1.0
_IP_BIND_ADDRESS_NO_PORT = 24
"""Linux's option that leaves the choice of a bound socket's port to connect(), which then needs none of its own."""


@dataclass(slots=True)
class Counters:
    """What went through a forwarder since it was made; `bytes_in` is from clients to backends."""

    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: int = 0
    """Connections or new clients that got no backend."""

    active: Counter[Target] = field(default_factory=Counter)
    """Connections or sessions of each backend, also those being made; the "least connections" scheduler reads it."""

    def opening(self, target: Target) -> None:
        """A connection to `target` is being made."""
        self.active[target] += 1

    def closed(self, target: Target) -> None:
        """A connection to `target` ended, or was not to be had."""
        self.active[target] -= 1
        if self.active[target] <= 0:
            del self.active[target]


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
                    await self._dial(connection.backend, client, target)
            except (OSError, TimeoutError):
                self.counters.closed(target)
                tried |= {target}
                continue
            connection.connected(target)
            return
        self.counters.refused += 1
        connection.abort()

    async def _dial(self, protocol: asyncio.Protocol, client: Target, target: Target) -> None:
        loop = asyncio.get_running_loop()
        sock = socket_from(None if self.masquerade else client[0], socket.SOCK_STREAM)
        try:
            await connect(sock, target)
        except BaseException:
            sock.close()
            raise
        await loop.create_connection(lambda: protocol, sock=sock)


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


class UdpForwarder:
    """Forwards datagrams; each client address has a session with one backend, so that answers find their way back.

    A session ends after `idle_timeout` seconds without a datagram, or when its backend refuses; the next datagram
    of the client then gets a new choice. What does not fit into a socket's buffer is dropped, as UDP may.
    `admit` is asked for every datagram of a client; one that it denies is dropped. `masquerade` is as with TCP.
    """

    def __init__(
        self,
        choose: Chooser,
        *,
        idle_timeout: float = 60.0,
        admit: Callable[[Target], bool] | None = None,
        masquerade: bool = False,
    ) -> None:
        self.counters = Counters()
        self.idle_timeout = idle_timeout
        self.masquerade = masquerade
        self._choose = choose
        self._admit = admit
        self._socket: socket.socket | None = None
        self._sessions: dict[Target, _Session] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Listen on `host`:`port` (0: any free port) and return the port. Raises OSError if it cannot be bound."""
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            if reuse_port:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind((host, port))
        except OSError:
            sock.close()
            raise
        self._socket = sock
        asyncio.get_running_loop().add_reader(sock, self._from_clients)
        return int(sock.getsockname()[1])

    @property
    def open_sessions(self) -> int:
        """How many clients have a session now."""
        return len(self._sessions)

    def close(self) -> None:
        """Stop listening and end every session (without a listener no answer could be sent from its address)."""
        for session in list(self._sessions.values()):
            self._end(session)
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def end_sessions(self, keep: Callable[[Target], bool]) -> None:
        """End the sessions whose backend `keep` denies: a UDP client cannot notice by itself that a backend is gone."""
        for session in list(self._sessions.values()):
            if not keep(session.target):
                self._end(session)

    def _from_clients(self) -> None:
        for _ in range(_DATAGRAMS_A_WAKE):
            if self._socket is None:
                return
            try:
                data, client = self._socket.recvfrom(_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error of an answer to a client that is gone
            self._forward(data, client)

    def _forward(self, data: bytes, client: Target) -> None:
        if self._admit is not None and not self._admit(client):
            return
        tried: frozenset[Target] = frozenset()
        while (session := self._sessions.get(client) or self._open(client, tried)) is not None:
            try:
                session.socket.send(data)
            except BlockingIOError:
                return
            except OSError:  # refused: an earlier datagram met a closed port
                tried |= {session.target}
                self._end(session)
                continue
            session.last_activity = asyncio.get_running_loop().time()
            self.counters.bytes_in += len(data)
            return

    def _open(self, client: Target, tried: frozenset[Target]) -> _Session | None:
        target = self._choose(client, tried) if len(self._sessions) < MAX_UDP_SESSIONS else None
        if target is None or target in tried:
            self.counters.refused += 1
            return None
        loop = asyncio.get_running_loop()
        sock = socket_from(None if self.masquerade else client[0], socket.SOCK_DGRAM)
        sock.connect(target)
        session = _Session(client, target, sock, loop.time())
        self._sessions[client] = session
        self.counters.connections += 1
        self.counters.opening(target)
        loop.add_reader(sock, self._from_backend, session)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self.idle_timeout, self._sweep)
        return session

    def _from_backend(self, session: _Session) -> None:
        for _ in range(_DATAGRAMS_A_WAKE):
            try:
                data = session.socket.recv(_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self._end(session)
                return
            session.last_activity = asyncio.get_running_loop().time()
            self.counters.bytes_out += len(data)
            if self._socket is not None:
                try:
                    self._socket.sendto(data, session.client)
                except OSError:
                    continue  # the client's buffer is full or the client is gone: a datagram may be lost

    def _sweep(self) -> None:
        """End what has been idle too long, and come back when the next session could be."""
        now = asyncio.get_running_loop().time()
        oldest = now
        for session in list(self._sessions.values()):
            if session.last_activity + self.idle_timeout <= now:
                self._end(session)
            else:
                oldest = min(oldest, session.last_activity)
        self._sweeper = None
        if self._sessions:
            wait = max(oldest + self.idle_timeout - now, 0.05)
            self._sweeper = asyncio.get_running_loop().call_later(wait, self._sweep)

    def _end(self, session: _Session) -> None:
        if self._sessions.get(session.client) is not session:
            return
        del self._sessions[session.client]
        asyncio.get_running_loop().remove_reader(session.socket)
        session.socket.close()
        self.counters.closed(session.target)


async def connect(sock: socket.socket, target: Target) -> None:
    """Connect a non-blocking socket. Raises OSError."""
    # On loopback the handshake is over when this returns, and sock_connect finds its result without a wait.
    sock.connect_ex(target)
    await asyncio.get_running_loop().sock_connect(sock, target)


def socket_from(source: str | None, kind: socket.SocketKind) -> socket.socket:
    """A non-blocking socket to dial from `source` (None: what the kernel takes), any port. Raises OSError."""
    sock = socket.socket(socket.AF_INET, kind)
    try:
        sock.setblocking(False)
        if source is not None:
            sock.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind((source, 0))
    except OSError:
        sock.close()
        raise
    return sock


@dataclass(eq=False, slots=True)
class _Session:
    """A client's datagrams go to `target` through `socket`, whose address the backend sees."""

    client: Target
    target: Target
    socket: socket.socket
    last_activity: float
