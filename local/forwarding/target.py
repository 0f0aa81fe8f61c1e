"""What the forwarders of load balancers and nodes share: `tcp_forwarder.py` and `udp_forwarder.py` move the bytes.

A forwarder does not know Services, health or schedulers: for each connection (TCP) or new client (UDP) it calls a
`Chooser` for the backend. A changed choice never affects an established connection. A backend sees the client's
address, unless the forwarder masquerades. All addresses are socket addresses (127.x); everything runs on one event loop
and must be called from it.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Target = tuple[str, int]
"""A socket address and a port."""

Chooser = Callable[[Target, frozenset[Target]], Target | None]
"""`choose(client, tried)`: the backend for this client, except those that have just refused; None refuses."""

_IP_BIND_ADDRESS_NO_PORT = 24
"""Linux's option that defers the choice of a bound socket's port to connect(), so that clients can share ports."""


@dataclass(slots=True)
class Counters:
    """A forwarder's counters since it was made; `bytes_in` is from clients to backends."""

    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: int = 0
    """Connections or new clients that got no backend."""

    active: Counter[Target] = field(default_factory=Counter)
    """Connections or sessions of each backend, with those being made; the "least connections" scheduler reads it."""

    def opening(self, target: Target) -> None:
        """A connection to `target` is being made."""
        self.active[target] += 1

    def closed(self, target: Target) -> None:
        """A connection to `target` ended, or failed."""
        self.active[target] -= 1
        if self.active[target] <= 0:
            del self.active[target]


async def connect(sock: socket.socket, target: Target) -> None:
    """Connect a non-blocking socket. Raises OSError."""
    # On loopback the handshake is complete when this returns, and sock_connect finds its result without a wait.
    if sock.connect_ex(target) != 0:
        await asyncio.get_running_loop().sock_connect(sock, target)


def socket_from(source: str | None, kind: socket.SocketKind) -> socket.socket:
    """A non-blocking socket to dial from `source` (None: chosen by the kernel), any port. Raises OSError."""
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
