"""Scenarios of asyncio, which end in time, with sockets on loopback addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

DEADLINE = 60
"""Seconds for what must happen."""


def run(scenario: Callable[[], Awaitable[T]]) -> T:
    """What the scenario returns."""

    async def bounded() -> T:
        async with asyncio.timeout(DEADLINE):
            return await scenario()

    return asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    """Wait; the scenario's deadline bounds it."""
    while not condition():
        await asyncio.sleep(0.01)


def free_port(host: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of this address that nobody uses."""
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


class UdpEcho(asyncio.DatagramProtocol):
    """Answers each datagram with its name before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.transport.sendto(self.name.encode() + b":" + data, addr)


class UdpClient(asyncio.DatagramProtocol):
    """A client with one socket, so one session."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002
        self.answers.put_nowait(data)

    def send(self, text: bytes) -> None:
        self.transport.sendto(text)

    async def ask(self, text: bytes) -> bytes:
        self.send(text)
        return await self.answers.get()


async def udp_echo(name: str, host: str) -> tuple[str, int]:
    """The address of an echo, which ends with the scenario."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: UdpEcho(name), local_addr=(host, 0))
    address, port = transport.get_extra_info("sockname")
    return address, port


async def udp_client(host: str, port: int) -> UdpClient:
    """A client of this address."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_datagram_endpoint(UdpClient, remote_addr=(host, port))
    return client
