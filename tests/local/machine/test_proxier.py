"""One listener of the node-proxier, with real sockets on 127.2.x."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
from urllib3 import BaseHTTPResponse

from local.http_client import HttpError, on_thread, request
from local.machine.proxier import Forwarding, HealthPorts
from local.machine.proxy_rules import Listener, Route, ServiceHealth, Target
from tests.local.scenarios import DEADLINE, free_port, run

HOST = "127.2.200.3"


async def backend(name: bytes) -> tuple[Target, asyncio.Server]:
    """A server that answers every line with its name and the client that it sees."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.readline():
                writer.write(name + b" " + writer.get_extra_info("peername")[0].encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    return server.sockets[0].getsockname(), server


async def get(at: Target) -> BaseHTTPResponse:
    return await on_thread(lambda: request("GET", f"http://{at[0]}:{at[1]}/", seconds=DEADLINE))


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"who\n")
    return (await reader.readline()).split()[0]


async def ask_as(client: str, port: int) -> list[str]:
    """The answering backend, and the client that it sees."""
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(client, 0))
    writer.write(b"who\n")
    answer = await reader.readline()
    writer.close()
    return answer.decode().split()


def test_new_connections_take_turns_and_an_established_one_survives_every_change() -> None:
    async def scenario() -> None:
        one, first_server = await backend(b"one")
        two, second_server = await backend(b"two")
        port = free_port(HOST)
        forwarding = Forwarding(Listener("TCP", HOST, port, shared=False), Route((one, two)))
        await forwarding.listen()

        connections = [await asyncio.open_connection(HOST, port) for _ in range(4)]
        assert [await ask(*connection) for connection in connections] == [b"one", b"two", b"one", b"two"]

        forwarding.lead(Route((two,)))
        assert await ask(*connections[0]) == b"one"
        assert await ask(*await asyncio.open_connection(HOST, port)) == b"two"
        forwarding.stop_listening()
        assert await ask(*connections[0]) == b"one"
        with suppress(ConnectionRefusedError):
            await asyncio.open_connection(HOST, port)
            raise AssertionError("a port without endpoints accepted a connection")

        # The endpoints are back while old connections still hold the port.
        again = Forwarding(Listener("TCP", HOST, port, shared=False), Route((one,)))
        await again.listen()
        assert await ask(*await asyncio.open_connection(HOST, port)) == b"one"
        for closing in (forwarding, again):
            closing.close()
        for server in (first_server, second_server):
            server.close()

    run(scenario)


def test_every_machine_can_listen_on_a_cluster_address() -> None:
    async def scenario() -> None:
        target, server = await backend(b"b")
        port = free_port(HOST)
        machines = [Forwarding(Listener("TCP", HOST, port, shared=True), Route((target,))) for _ in range(3)]
        for machine in machines:
            await machine.listen()

        for _ in range(6):
            assert await ask(*await asyncio.open_connection(HOST, port)) == b"b"
        for machine in machines:
            machine.close()
        server.close()

    run(scenario)


def test_with_affinity_every_machine_chooses_the_same_endpoint_for_a_client() -> None:
    async def scenario() -> None:
        (one, first_server), (two, second_server) = await backend(b"one"), await backend(b"two")
        route = Route((one, two), affinity_seconds=60)
        ports = [free_port(HOST), free_port(HOST)]
        machines = [Forwarding(Listener("TCP", HOST, port, shared=False), route) for port in ports]
        for machine in machines:
            await machine.listen()

        chosen = {}
        for number in range(1, 21):
            client = f"127.2.9.{number}"
            answers = [(await ask_as(client, port))[0] for port in ports * 2]
            assert len(set(answers)) == 1
            chosen[client] = answers[0]
        assert set(chosen.values()) == {"one", "two"}

        # A third endpoint changes nothing for clients that have one.
        three, third_server = await backend(b"three")
        for machine in machines:
            machine.lead(Route((one, two, three), affinity_seconds=60))
        assert {client: (await ask_as(client, ports[0]))[0] for client in chosen} == chosen
        for machine in machines:
            machine.close()
        for server in (first_server, second_server, third_server):
            server.close()

    run(scenario)


def test_an_endpoint_sees_the_client_unless_the_route_masquerades() -> None:
    async def scenario() -> None:
        target, server = await backend(b"b")
        port = free_port(HOST)
        forwarding = Forwarding(Listener("TCP", HOST, port, shared=False), Route((target,)))
        await forwarding.listen()

        assert await ask_as("127.2.9.1", port) == ["b", "127.2.9.1"]
        forwarding.lead(Route((target,), masquerade=True))
        assert await ask_as("127.2.9.1", port) == ["b", "127.0.0.1"]
        forwarding.close()
        server.close()

    run(scenario)


def test_a_health_port_returns_the_number_of_local_endpoints_and_fails_without_any() -> None:
    async def scenario() -> None:
        at = (HOST, free_port(HOST))
        ports = HealthPorts()

        async def asked() -> tuple[int, object]:
            answer = await get(at)
            return answer.status, answer.json()

        def content(count: int) -> object:
            service = {"namespace": "n", "name": "s"}
            return {"service": service, "localEndpoints": count, "serviceProxyHealthy": True}

        assert await ports.keep({at: ServiceHealth("n", "s", 2)}) == []
        assert await asked() == (200, content(2))
        await ports.keep({at: ServiceHealth("n", "s", 0)})
        assert await asked() == (503, content(0))
        await ports.keep({})
        with pytest.raises(HttpError):
            await asked()

    run(scenario)


def test_a_health_port_in_use_is_reported_and_served_once_it_is_free() -> None:
    async def scenario() -> None:
        blocker = socket.create_server((HOST, 0))
        at = blocker.getsockname()
        ports, wanted = HealthPorts(), {at: ServiceHealth("n", "s", 1)}

        (failure,) = await ports.keep(wanted)
        assert f"{at[0]}:{at[1]}" in failure

        blocker.close()
        assert await ports.keep(wanted) == []
        assert (await get(at)).status == 200
        ports.close()

    run(scenario)
