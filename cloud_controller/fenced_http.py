"""Pools of HTTP connections that check the fence right before the bytes of a request leave.

Whatever may take long is over by then: resolving the server's name, connecting, the TLS handshake. A process that is
paused meanwhile must not send its write when it wakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from cloud_controller.fence import Fence, unfenced

_current: ContextVar[Fence] = ContextVar("fence", default=unfenced)


@contextmanager
def checking(fence: Fence) -> Iterator[None]:
    """The requests that this thread sends in the block, over a pool of `POOLS`, check `fence`."""
    token = _current.set(fence)
    try:
        yield
    finally:
        _current.reset(token)


class _Connection(HTTPConnection):
    def send(self, data: Any) -> None:
        # urllib3 sends the headers, then the body. Without the whole body no server carries the request out.
        if self.sock is None:
            self.connect()
        _current.get()()
        super().send(data)


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


POOLS: dict[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TlsPool}
"""By scheme."""
