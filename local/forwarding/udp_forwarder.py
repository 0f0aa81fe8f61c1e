"""Forwards datagrams from a listening address to a backend, and the answers back."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from local.forwarding.target import Chooser, Counters, Target, socket_from

_log = logging.getLogger(__name__)

MAX_UDP_SESSIONS = 4096
_DATAGRAM_BYTES = 65_536
_DATAGRAMS_A_WAKE = 64


class UdpForwarder:
    """Forwards datagrams; each client address has a session with one backend, so that answers find their way back.

    A session ends after `idle_timeout` seconds without a datagram, or when its backend refuses; the client's next
    datagram then gets a new choice. What exceeds a socket's buffer is dropped, as UDP may. `admit` is called for every
    datagram of a client; one that it denies is dropped. `masquerade` is as with TCP.
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
        """The number of clients with a session."""
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
        try:
            sock = self._socket_to(client, target)
        except OSError as error:  # too many open files, say: this datagram is lost, as UDP may
            _log.error("cannot forward datagrams to %s:%d: %s", *target, error)
            self.counters.refused += 1
            return None
        session = _Session(client, target, sock, loop.time())
        self._sessions[client] = session
        self.counters.connections += 1
        self.counters.opening(target)
        loop.add_reader(sock, self._from_backend, session)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self.idle_timeout, self._sweep)
        return session

    def _socket_to(self, client: Target, target: Target) -> socket.socket:
        sock = socket_from(None if self.masquerade else client[0], socket.SOCK_DGRAM)
        try:
            sock.connect(target)
        except OSError:
            sock.close()
            raise
        return sock

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
        """End idle sessions, and run again when the next one could expire."""
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


@dataclass(eq=False, slots=True)
class _Session:
    """A client's datagrams go to `target` through `socket`, whose address the backend sees."""

    client: Target
    target: Target
    socket: socket.socket
    last_activity: float
