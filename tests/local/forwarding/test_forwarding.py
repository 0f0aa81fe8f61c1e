"""The TCP and UDP forwarders, with real sockets on 127.2.x."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from local.forwarding.target import Chooser, Target
from local.forwarding.tcp_forwarder import TcpForwarder
from local.forwarding.udp_forwarder import UdpForwarder
from tests.local.scenarios import DEADLINE, free_port, run, udp_client, udp_echo, until

HOST = "127.2.200.1"


def to(*targets: Target) -> Chooser:
    return lambda _client, tried: next((t for t in targets if t not in tried), None)


def closed_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> Target:
    return HOST, free_port(HOST, kind)


@asynccontextmanager
async def tcp_backend(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Target]:
    server = await asyncio.start_server(serve, HOST, 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()


async def shout_at_end_of_input(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read()).upper())
    writer.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def answer_through(forwarder: TcpForwarder, message: bytes) -> bytes:
    """The whole answer to everything sent."""
    reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))
    writer.write(message)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        forwarder.close()
        writer.close()


def test_data_sent_before_the_backend_is_connected_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a Python whose transports continue to read although they were paused when the connection was made (3.11.2).
    monkeypatch.setattr("asyncio.selector_events._SelectorSocketTransport.pause_reading", lambda _transport: None)

    async def scenario() -> None:
        async with tcp_backend(shout_at_end_of_input) as backend:
            forwarder = TcpForwarder(to(closed_port(), backend))
            port = await forwarder.listen(HOST, 0)
            with socket.create_connection((HOST, port)) as client:
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                client.setblocking(False)

                assert await asyncio.get_running_loop().sock_recv(client, 100) == b"HELLO"

    run(scenario)


def test_a_half_close_reaches_the_backend_and_its_answer_the_client() -> None:
    async def scenario() -> None:
        async with tcp_backend(shout_at_end_of_input) as backend:
            forwarder = TcpForwarder(to(backend))
            port = await forwarder.listen(HOST, 0)
            reader, writer = await asyncio.open_connection(HOST, port)

            writer.write(b"hello")
            writer.write_eof()

            assert await reader.read() == b"HELLO"
            await until(lambda: forwarder.open_connections == 0)
            assert (forwarder.counters.connections, forwarder.counters.bytes_in, forwarder.counters.bytes_out) == (
                1,
                5,
                5,
            )
            assert not forwarder.counters.active
            forwarder.close()
            writer.close()

    run(scenario)


def test_a_large_transfer_through_a_slow_reader_loses_nothing() -> None:
    async def scenario() -> None:
        payload = bytes(range(256)) * 40_000
        async with tcp_backend(echo) as backend:
            forwarder = TcpForwarder(to(backend))
            reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))

            async def send() -> None:
                writer.write(payload)
                await writer.drain()
                writer.write_eof()

            sending = asyncio.ensure_future(send())
            received = bytearray()
            while chunk := await reader.read(100_000):
                received += chunk
                await asyncio.sleep(0)
            await sending

            assert received == payload
            forwarder.close()
            writer.close()

    run(scenario)


def test_a_client_without_a_backend_is_disconnected_and_counted() -> None:
    async def scenario() -> None:
        forwarder = TcpForwarder(lambda _client, _tried: None)
        reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        await until(lambda: forwarder.open_connections == 0)
        assert forwarder.counters.refused == 1
        forwarder.close()
        writer.close()

    run(scenario)


def test_a_slow_forwarder_does_not_abandon_a_backend_that_accepted() -> None:
    async def scenario() -> None:
        async with tcp_backend(shout_at_end_of_input) as backend:
            # No time at all: on loopback a backend accepts at once, but the forwarder needs turns of its loop.
            forwarder = TcpForwarder(to(backend), connect_timeout=0)
            assert await answer_through(forwarder, b"x") == b"X"

    run(scenario)


def test_an_established_connection_survives_the_end_of_listening() -> None:
    async def scenario() -> None:
        async with tcp_backend(echo) as backend:
            forwarder = TcpForwarder(to(backend))
            reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))
            writer.write(b"1")
            assert await reader.readexactly(1) == b"1"

            forwarder.stop_listening()
            writer.write(b"2")

            assert await reader.readexactly(1) == b"2"
            forwarder.close()
            writer.close()

    run(scenario)


def test_a_connection_that_waits_to_be_accepted_when_listening_stops_is_served() -> None:
    async def scenario() -> None:
        async with tcp_backend(echo) as backend:
            forwarder = TcpForwarder(to(backend))
            port = await forwarder.listen(HOST, 0)
            # Without a turn of the loop: the kernel alone answers the client.
            with socket.create_connection((HOST, port), timeout=DEADLINE) as client:
                forwarder.stop_listening()
                reader, writer = await asyncio.open_connection(sock=client)
                writer.write(b"1")

                assert await reader.readexactly(1) == b"1"
                forwarder.close()
                writer.close()

    run(scenario)


def test_a_reset_by_the_backend_ends_the_clients_connection() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def scenario() -> None:
        async with tcp_backend(reset) as backend:
            forwarder = TcpForwarder(to(backend))
            reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))
            writer.write(b"x")
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            await until(lambda: not forwarder.counters.active)
            forwarder.close()
            writer.close()

    run(scenario)


def test_an_idle_connection_is_closed() -> None:
    async def scenario() -> None:
        async with tcp_backend(echo) as backend:
            forwarder = TcpForwarder(to(backend), idle_timeout=0.1)
            reader, writer = await asyncio.open_connection(HOST, await forwarder.listen(HOST, 0))
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            await until(lambda: forwarder.open_connections == 0)
            forwarder.close()
            writer.close()

    run(scenario)


def test_data_that_arrive_as_the_idle_timeout_fires_cause_no_error() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionResetError):
            await reader.read()
        writer.close()

    async def scenario() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context))
        async with tcp_backend(silent) as backend:
            forwarder = TcpForwarder(to(backend), idle_timeout=0.1)
            with socket.create_connection((HOST, await forwarder.listen(HOST, 0))) as client:
                await until(lambda: forwarder.counters.connections == 1)

                client.sendall(b"late")
                time.sleep(0.2)  # the loop finds the data and the expired timer in one step

                await until(lambda: forwarder.open_connections == 0)
            forwarder.close()
        gc.collect()
        assert errors == []

    run(scenario)


def test_each_udp_client_keeps_its_own_backend() -> None:
    async def scenario() -> None:
        choices = iter([await udp_echo("one", HOST), await udp_echo("two", HOST)])
        forwarder = UdpForwarder(lambda _client, _tried: next(choices))
        port = await forwarder.listen(HOST, 0)
        first, second = await udp_client(HOST, port), await udp_client(HOST, port)

        answers = [await client.ask(b"hi") for client in (first, second, first)]

        assert answers == [b"one:hi", b"two:hi", b"one:hi"]
        assert (forwarder.counters.connections, forwarder.open_sessions) == (2, 2)
        forwarder.close()

    run(scenario)


def test_an_idle_udp_session_ends() -> None:
    async def scenario() -> None:
        forwarder = UdpForwarder(to(await udp_echo("b", HOST)), idle_timeout=0.1)
        client = await udp_client(HOST, await forwarder.listen(HOST, 0))
        # Do not wait for an answer: the session may end before a slow backend sends it.
        client.send(b"hi")
        await until(lambda: forwarder.counters.connections == 1)

        await until(lambda: forwarder.open_sessions == 0)

        assert not forwarder.counters.active
        forwarder.close()

    run(scenario)


def test_a_udp_client_whose_backend_refuses_gets_another() -> None:
    async def scenario() -> None:
        choices = iter([closed_port(socket.SOCK_DGRAM), await udp_echo("b", HOST)])
        forwarder = UdpForwarder(lambda _client, _tried: next(choices))
        client = await udp_client(HOST, await forwarder.listen(HOST, 0))

        client.send(b"lost")
        await until(lambda: forwarder.counters.connections == 1 and forwarder.open_sessions == 0)

        assert await client.ask(b"found") == b"b:found"
        forwarder.close()

    run(scenario)


def test_a_datagram_for_a_backend_that_cannot_be_dialled_is_counted_as_refused() -> None:
    async def scenario() -> None:
        forwarder = UdpForwarder(to(("255.255.255.255", 9)))  # a broadcast, which the kernel forbids
        client = await udp_client(HOST, await forwarder.listen(HOST, 0))

        client.send(b"hi")
        await until(lambda: forwarder.counters.refused == 1)

        assert (forwarder.open_sessions, dict(forwarder.counters.active)) == (0, {})
        forwarder.close()

    run(scenario)


@pytest.mark.parametrize("turns_of_the_loop", range(6))
def test_a_connection_accepted_just_before_the_close_is_ended_too(turns_of_the_loop: int) -> None:
    async def scenario() -> None:
        async with tcp_backend(echo) as backend:
            forwarder = TcpForwarder(to(backend))
            port = await forwarder.listen(HOST, 0)
            with socket.create_connection((HOST, port), timeout=DEADLINE) as client:
                for _ in range(turns_of_the_loop):
                    await asyncio.sleep(0)
                forwarder.close()

                client.setblocking(False)
                with suppress(ConnectionResetError):
                    assert await asyncio.get_running_loop().sock_recv(client, 1) == b""

    run(scenario)
