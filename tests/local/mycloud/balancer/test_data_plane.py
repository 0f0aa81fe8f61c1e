"""Load balancers with real sockets, on loopback addresses that are random for each test run."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from local.addresses import socket_address
from local.mycloud.balancer.data_plane import DataPlane
from local.mycloud.balancer_board import BalancerConfig, BalancerReport
from local.mycloud.models.balancing import BackendHealth, ListenerCounters
from local.mycloud.models.common import State
from tests.local import scenarios
from tests.local.scenarios import DEADLINE, free_port, udp_client, udp_echo, until

pytestmark = pytest.mark.integration

_hosts = (f"10.252.{random.randrange(256)}.{number}" for number in itertools.cycle(range(1, 255)))

LB = socket_address(next(_hosts))

Backend = dict[str, Any]


def run(scenario: Callable[[DataPlane], Awaitable[None]]) -> None:
    async def with_data_plane() -> None:
        data_plane = DataPlane()
        try:
            await scenario(data_plane)
        finally:
            await data_plane.close()

    scenarios.run(with_data_plane)


class HttpBackend:
    """A server that returns its name; `status` is its answer to a health check's path."""

    def __init__(self, name: str) -> None:
        self.name, self.status = name, 200
        self.checked_by: set[str] = set()
        self.address = next(_hosts)
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> HttpBackend:
        self._server = await asyncio.start_server(self._serve, socket_address(self.address), self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    def __call__(self, weight: int = 1) -> Backend:
        return {"machine_id": "i-0", "address": self.address, "port": self.port, "weight": weight}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"GET /healthz"):
                self.checked_by.add(writer.get_extra_info("peername")[0])
                writer.write(f"HTTP/1.1 {self.status} Status\r\nContent-Length: 0\r\n\r\n".encode())
            elif line == b"who\n":
                writer.write(f"{self.name}\n".encode())
            elif line == b"who am I\n":
                writer.write(f"{writer.get_extra_info('peername')[0]}\n".encode())
        writer.close()


@asynccontextmanager
async def backends(*names: str) -> AsyncIterator[list[HttpBackend]]:
    made = [await HttpBackend(name).start() for name in names]
    try:
        yield made
    finally:
        for backend in made:
            backend.stop()


def tcp(port: int, backend_set: str = "set", **more: Any) -> dict[str, Any]:
    return {"protocol": "TCP", "port": port, "backend_set": backend_set, **more}


def pool(
    *members: Backend, name: str = "set", check: str = "NONE", scheduler: str = "round_robin", **more: Any
) -> dict[str, Any]:
    # No backend of these tests is silent: a late answer is due to a busy machine.
    health_check = {"protocol": check, "path": "/healthz", "interval_seconds": 1, "timeout_seconds": DEADLINE}
    return {
        "name": name,
        "scheduler": scheduler,
        "health_check": {**health_check, "healthy_threshold": 1, "unhealthy_threshold": 1},
        "backends": list(members),
        **more,
    }


_generations = itertools.count(1)


def config(
    listeners: list[dict[str, Any]],
    sets: list[dict[str, Any]],
    state: State = State.CREATING,
    id: str = "lb-1",
    sources: list[str] | None = None,
) -> BalancerConfig:
    return BalancerConfig.model_validate(
        {
            "id": id,
            "name": "lb",
            "state": state,
            "created_at": "now",
            "network_id": "net-1",
            "address": LB,
            "scheme": "internal",
            "source_ranges": sources or [],
            "listeners": listeners,
            "backend_sets": sets,
            "generation": next(_generations),
        }
    )


async def ask(port: int, client: str = "127.0.0.1", question: bytes = b"who") -> str:
    """The backend that answers a new connection; "" if the connection is closed instead."""
    reader, writer = await asyncio.open_connection(LB, port, local_addr=(client, 0))
    try:
        writer.write(question + b"\n")
        return (await reader.readline()).decode().strip()
    except ConnectionResetError:
        return ""
    finally:
        writer.close()


def the_report(data_plane: DataPlane) -> BalancerReport:
    (report,) = data_plane.reports()
    return report


def counters(data_plane: DataPlane) -> ListenerCounters:
    return the_report(data_plane).counters[0]


def health(data_plane: DataPlane) -> list[bool | None]:
    return [each.healthy for each in the_report(data_plane).health]


def test_connections_go_to_the_backends_by_weight() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            applied = config([tcp(port)], [pool(a(3), b(1))])
            await data_plane.apply(applied)

            answers = [await ask(port) for _ in range(8)]

            assert sorted(answers) == ["a"] * 6 + ["b"] * 2
            assert (the_report(data_plane).generation, the_report(data_plane).failures) == (applied.generation, [])

    run(scenario)


def test_only_healthy_backends_get_connections_and_none_means_the_connection_is_closed() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            b.status = 503
            await data_plane.apply(config([tcp(port)], [pool(a(), b(), check="HTTP")]))
            await until(lambda: health(data_plane) == [True, False])

            assert {await ask(port) for _ in range(4)} == {"a"}

            a.status, b.status = 500, 200
            await until(lambda: health(data_plane) == [False, True])
            assert {await ask(port) for _ in range(4)} == {"b"}

            b.status = 404
            await until(lambda: health(data_plane) == [False, False])
            assert await ask(port) == ""

    run(scenario)


def test_health_checks_come_from_the_load_balancers_own_address() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            await data_plane.apply(config([tcp(free_port(LB))], [pool(a(), check="HTTP")]))
            await until(lambda: health(data_plane) == [True])

            assert a.checked_by == {LB}

    run(scenario)


def test_a_refusing_backend_is_skipped_for_the_next() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a(), b())]))
            b.stop()

            assert {await ask(port) for _ in range(4)} == {"a"}

    run(scenario)


def test_max_qps_rejects_new_connections_and_counts_them() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port, max_qps=1)], [pool(a())]))

            answers = await asyncio.gather(*(ask(port) for _ in range(20)))

            assert "a" in answers
            assert "" in answers
            assert counters(data_plane).rejected_qps == answers.count("")

    run(scenario)


def test_a_port_in_use_fails_the_listener_until_the_port_is_free() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            port, other = free_port(LB), free_port(LB)
            blocker = socket.create_server((LB, port))
            await data_plane.apply(config([tcp(port), tcp(other)], [pool(a())]))

            assert the_report(data_plane).failures == [f"listener TCP {port} on {LB}: Address already in use"]
            assert await ask(other) == "a"

            blocker.close()
            await data_plane.retry()
            assert the_report(data_plane).failures == []
            assert await ask(port) == "a"

    run(scenario)


def test_a_deleted_load_balancer_is_reported_closed_until_that_is_acknowledged() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        port = free_port(LB)
        await data_plane.apply(config([tcp(port)], [pool()]))

        await data_plane.apply(config([tcp(port)], [pool()], state=State.DELETING))

        reports = data_plane.reports()
        assert [(report.id, report.closed) for report in reports] == [("lb-1", True)]
        with socket.create_server((LB, port)):
            pass
        data_plane.acknowledged(reports)
        assert data_plane.reports() == []

    run(scenario)


def test_a_backend_sees_the_address_of_the_client() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a())]))

            assert await ask(port, client="127.2.7.8", question=b"who am I") == "127.2.7.8"

    run(scenario)


def test_only_clients_of_the_source_ranges_are_served_and_a_change_spares_open_connections() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a())], sources=["127.2.7.0/24", "10.2.8.0/24"]))
            clients = ["127.2.7.9", "127.2.8.9", "127.2.9.9"]
            assert [await ask(port, client) for client in clients] == ["a", "a", ""]
            assert counters(data_plane).rejected_source == 1
            reader, writer = await asyncio.open_connection(LB, port, local_addr=("127.2.7.9", 0))

            await data_plane.apply(config([tcp(port)], [pool(a())], sources=["127.2.9.0/24"]))

            assert [await ask(port, client) for client in clients] == ["", "", "a"]
            writer.write(b"who\n")
            assert await reader.readline() == b"a\n"
            writer.close()

    run(scenario)


def test_with_client_affinity_a_client_keeps_its_backend_while_that_is_healthy() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b", "c") as (a, b, c):
            port, other_port = free_port(LB), free_port(LB)
            members = [pool(a(), b(), c(), check="HTTP", session_affinity="CLIENT_IP")]
            await data_plane.apply(config([tcp(port), tcp(other_port)], members))
            await until(lambda: health(data_plane) == [True, True, True])
            clients = [f"127.2.7.{number}" for number in range(1, 4)]
            chosen = {client: await ask(port, client) for client in clients}
            assert sorted(chosen.values()) == ["a", "b", "c"]

            for listener in (port, other_port):
                assert {client: await ask(listener, client) for client in clients} == chosen

            a.status = 500
            await until(lambda: health(data_plane) == [False, True, True])
            moved = {client: await ask(port, client) for client in clients}
            assert moved == {client: await ask(port, client) for client in clients}
            assert [client for client in clients if moved[client] != chosen[client]] == [
                client for client in clients if chosen[client] == "a"
            ]

    run(scenario)


def test_connections_made_at_once_spread_by_least_connections() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a(), scheduler="least_connections")]))
            _, held = await asyncio.open_connection(LB, port)
            await until(lambda: counters(data_plane).connections == 1)
            await data_plane.apply(config([tcp(port)], [pool(a(), b(), scheduler="least_connections")]))

            connections = await asyncio.gather(*(asyncio.open_connection(LB, port) for _ in range(9)))
            for _, writer in connections:
                writer.write(b"who\n")
            answers = [await reader.readline() for reader, _ in connections]

            assert (answers.count(b"a\n"), answers.count(b"b\n")) == (4, 5)
            for _, writer in [*connections, (None, held)]:
                writer.close()

    run(scenario)


def test_new_backends_serve_before_their_first_check_where_no_other_is_healthy() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a(), check="HTTP")]))
            await until(lambda: health(data_plane) == [True])

            await data_plane.apply(config([tcp(port)], [pool(b(), check="HTTP")]))

            assert health(data_plane) == [None]
            assert await ask(port) == "b"

    run(scenario)


def test_no_request_fails_once_a_dead_backend_is_noticed_nor_when_it_comes_back() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a(), b(), check="TCP")]))
            await until(lambda: health(data_plane) == [True, True])
            answers: list[str] = []

            async def traffic() -> None:
                while True:
                    answers.append(await ask(port))

            async def answers_once_health_is(*wanted: bool) -> list[str]:
                await until(lambda: health(data_plane) == list(wanted))
                begun = len(answers) + len(clients)  # those in transit were sent before
                await until(lambda: len(answers) > begun + 50)
                return answers[begun:]

            clients = [asyncio.create_task(traffic()) for _ in range(4)]
            assert set(await answers_once_health_is(True, True)) == {"a", "b"}
            b.stop()
            assert set(await answers_once_health_is(True, False)) == {"a"}
            noticed = len(answers)
            await b.start()
            assert set(await answers_once_health_is(True, True)) == {"a", "b"}
            assert "" not in answers[noticed:]
            for client in clients:
                client.cancel()

    run(scenario)


def test_a_retry_during_a_change_does_not_disturb_it() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        blocker = socket.create_server((LB, 0))
        listeners = [tcp(blocker.getsockname()[1])]
        await data_plane.apply(config(listeners, [pool()]))
        assert the_report(data_plane).failures
        blocker.close()

        async def retry_after(turns_of_the_loop: int) -> None:
            for _ in range(turns_of_the_loop):
                await asyncio.sleep(0)
            await data_plane.retry()

        change = data_plane.apply(config(listeners, [pool()]))
        await asyncio.gather(change, *(retry_after(turns) for turns in range(20)))

        assert the_report(data_plane).failures == []

    run(scenario)


def test_only_a_load_balancer_with_something_new_gets_another_revision() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a") as (a,):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a())]))
            await data_plane.apply(config([tcp(free_port(LB))], [pool(a())], id="lb-2"))
            before = data_plane.revisions()
            assert data_plane.revisions() == before

            await ask(port)

            after = data_plane.revisions()
            assert [each for each in after if after[each] != before[each]] == ["lb-1"]

    run(scenario)


async def udp_backend(name: str) -> Backend:
    address = next(_hosts)
    _, port = await udp_echo(name, socket_address(address))
    return {"machine_id": "i-0", "address": address, "port": port}


def udp(port: int, **more: Any) -> dict[str, Any]:
    return {**tcp(port, **more), "protocol": "UDP"}


def test_a_udp_client_keeps_its_backend_until_that_is_removed() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        port = free_port(LB, socket.SOCK_DGRAM)
        one, two = await udp_backend("one"), await udp_backend("two")
        await data_plane.apply(config([udp(port)], [pool(one, two)]))
        client = await udp_client(LB, port)

        first = {await client.ask(b"x") for _ in range(4)}
        assert len(first) == 1
        stays = two if first == {b"one:x"} else one
        await data_plane.apply(config([udp(port)], [pool(stays)]))

        assert {await client.ask(b"x")} == {b"one:x", b"two:x"} - first
        assert health(data_plane) == [True]

    run(scenario)


def test_max_qps_of_a_udp_listener_counts_datagrams() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        port = free_port(LB, socket.SOCK_DGRAM)
        await data_plane.apply(config([udp(port, max_qps=2)], [pool(await udp_backend("one"))]))
        client = await udp_client(LB, port)

        for _ in range(20):
            client.send(b"x")

        assert await client.answers.get() == b"one:x"
        await until(lambda: counters(data_plane).rejected_qps >= 10)

    run(scenario)


def test_a_datagram_of_a_client_outside_the_source_ranges_is_dropped_also_in_an_open_session() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        port = free_port(LB, socket.SOCK_DGRAM)
        members = pool(await udp_backend("one"))
        await data_plane.apply(config([udp(port)], [members], sources=["127.0.0.0/24"]))
        client = await udp_client(LB, port)
        assert await client.ask(b"x") == b"one:x"

        await data_plane.apply(config([udp(port)], [members], sources=["127.2.0.0/16"]))
        client.send(b"x")

        await until(lambda: counters(data_plane).rejected_source == 1)
        assert counters(data_plane).bytes_in == 1

    run(scenario)


def test_health_is_unknown_until_the_first_check_and_kept_while_backends_change() -> None:
    async def scenario(data_plane: DataPlane) -> None:
        async with backends("a", "b") as (a, b):
            port = free_port(LB)
            await data_plane.apply(config([tcp(port)], [pool(a(), check="HTTP")]))
            assert health(data_plane) == [None]
            await until(lambda: health(data_plane) == [True])

            await data_plane.apply(config([tcp(port)], [pool(a(), b(), check="HTTP")]))

            assert the_report(data_plane).health == [
                BackendHealth(backend_set="set", address=a.address, port=a.port, healthy=True),
                BackendHealth(backend_set="set", address=b.address, port=b.port, healthy=None),
            ]

    run(scenario)
