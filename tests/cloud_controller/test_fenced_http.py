"""A pause at any moment before the last bytes leave must be noticed: the fence is checked when all else is done."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from urllib3 import PoolManager

from cloud_controller.fence import WriteRefused
from cloud_controller.fenced_http import POOLS, checking


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server's socket; the test itself is the server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def send(method: str, listener: socket.socket, body: bytes | None = None) -> None:
    """One request over a new pool."""
    pools = PoolManager(retries=False, timeout=10)
    pools.pool_classes_by_scheme = POOLS
    pools.request(method, f"http://127.0.0.1:{listener.getsockname()[1]}/thing", body=body)


def received(connection: socket.socket) -> bytes:
    """All that the client sent before it closed the connection."""
    with connection:
        connection.settimeout(10)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_the_fence_is_checked_once_the_connection_stands_and_a_refused_request_sends_nothing(
    listener: socket.socket,
) -> None:
    accepted: list[socket.socket] = []

    def fence() -> None:
        accepted.append(listener.accept()[0])
        raise WriteRefused("the lease is lost")

    with pytest.raises(WriteRefused), checking(fence):
        send("DELETE", listener)

    assert received(*accepted) == b""


def test_a_request_refused_after_its_headers_never_gets_its_body_sent(listener: socket.socket) -> None:
    accepted: list[socket.socket] = []

    def fence() -> None:
        if accepted:
            raise WriteRefused("the lease is lost")
        accepted.append(listener.accept()[0])

    with pytest.raises(WriteRefused), checking(fence):
        send("POST", listener, b'{"name":"a"}')

    assert received(*accepted).endswith(b"\r\n\r\n")
