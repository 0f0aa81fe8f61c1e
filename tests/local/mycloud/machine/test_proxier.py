"""One listener of the node-proxier, with real sockets on 127.2.x."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from local.mycloud.machine.proxier import Forwarding
from local.mycloud.machine.proxy_rules import Listener, Target

HOST = "127.2.200.3"


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await scenario()

    asyncio.run(bounded())


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


async def backend(name: bytes) -> tuple[Target, asyncio.Server]:
    """A server that says its name for every line it gets."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.readline():
                writer.write(name + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    return server.sockets[0].getsockname(), server


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"who\n")
    return (await reader.readline()).strip()


def test_new_connections_take_turns_and_an_established_one_survives_every_change() -> None:
    async def scenario() -> None:
        one, first_server = await backend(b"one")
        two, second_server = await backend(b"two")
        port = free_port()
        forwarding = Forwarding(Listener("TCP", HOST, port, shared=False))
        await forwarding.listen()
        forwarding.set_targets((one, two))

        connections = [await asyncio.open_connection(HOST, port) for _ in range(4)]
        assert [await ask(*connection) for connection in connections] == [b"one", b"two", b"one", b"two"]

        forwarding.set_targets((two,))
        assert await ask(*connections[0]) == b"one"
        assert await ask(*await asyncio.open_connection(HOST, port)) == b"two"
        forwarding.set_targets(())
        forwarding.stop_listening()
        assert await ask(*connections[0]) == b"one"
        with suppress(ConnectionRefusedError):
            await asyncio.open_connection(HOST, port)
            raise AssertionError("a port without endpoints accepted a connection")

        # The endpoints are back while old connections still hold the port.
        again = Forwarding(Listener("TCP", HOST, port, shared=False))
        await again.listen()
        again.set_targets((one,))
        assert await ask(*await asyncio.open_connection(HOST, port)) == b"one"
        for closing in (forwarding, again):
            closing.close()
        for server in (first_server, second_server):
            server.close()

    run(scenario)


def test_every_machine_can_listen_on_a_cluster_address() -> None:
    async def scenario() -> None:
        target, server = await backend(b"b")
        port = free_port()
        machines = [Forwarding(Listener("TCP", HOST, port, shared=True)) for _ in range(3)]
        for machine in machines:
            await machine.listen()
            machine.set_targets((target,))

        for _ in range(6):
            assert await ask(*await asyncio.open_connection(HOST, port)) == b"b"
        for machine in machines:
            machine.close()
        server.close()

    run(scenario)
