"""After any changes, unchanged ports continue, others open and close, and each leads to its backends."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from local.mycloud.balancer.data_plane import DataPlane
from local.mycloud.balancer_board import BalancerConfig

LB = f"127.252.{random.randrange(256)}.{random.randrange(1, 255)}"
PORTS = (8081, 8082, 8083)
BACKENDS = 3
DEADLINE = 60


@dataclass(frozen=True)
class Front:
    """A listener with a backend set of its own: its backends, and settings that must not affect connections."""

    backends: frozenset[int]
    scheduler: str
    affinity: str
    max_qps: int | None


fronts = st.builds(
    Front,
    backends=st.frozensets(st.integers(0, BACKENDS - 1), min_size=1),
    scheduler=st.sampled_from(["round_robin", "least_connections"]),
    affinity=st.sampled_from(["NONE", "CLIENT_IP"]),
    max_qps=st.sampled_from([None, 1000]),
)
configurations = st.dictionaries(st.sampled_from(PORTS), fronts)
source_ranges = st.sampled_from([[], ["127.0.0.0/8"]])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(configurations, source_ranges), min_size=1, max_size=6))
def test_every_change_takes_effect_and_spares_connections_of_unchanged_ports(
    changes: list[tuple[dict[int, Front], list[str]]],
) -> None:
    async def scenario() -> None:
        backends = [await start_backend(number) for number in range(BACKENDS)]
        data_plane = DataPlane()
        held: dict[int, Connection] = {}
        try:
            for generation, (wanted, sources) in enumerate(changes, 1):
                await data_plane.apply(config(wanted, sources, backends, generation))

                for port in [port for port in held if port not in wanted]:
                    assert await held.pop(port).is_ended()
                for port in PORTS:
                    if port in held:
                        assert await held[port].ask() == held[port].backend
                    if port in wanted:
                        connection = await Connection.open(port)
                        assert connection.backend in wanted[port].backends
                        if held.setdefault(port, connection) is not connection:
                            connection.writer.close()
                    else:
                        assert not await accepts(port)
        finally:
            for connection in held.values():
                connection.writer.close()
            await data_plane.close()
            for server in backends:
                server.close()

    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE):
            await scenario()

    asyncio.run(bounded())


class Connection:
    """A client's connection, and the number of the backend that answers on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.backend = -1

    @classmethod
    async def open(cls, port: int) -> Connection:
        made = cls(*await asyncio.open_connection(LB, port))
        made.backend = await made.ask()
        return made

    async def ask(self) -> int:
        self.writer.write(b"who\n")
        return int(await self.reader.readline())

    async def is_ended(self) -> bool:
        with suppress(ConnectionError):
            return await self.reader.read() == b""
        return True


async def start_backend(number: int) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.readline():
                writer.write(b"%d\n" % number)
        writer.close()

    return await asyncio.start_server(serve, LB, 0)


async def accepts(port: int) -> bool:
    with socket.socket() as sock:
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (LB, port))
        except ConnectionRefusedError:
            return False
        return True


def config(
    wanted: dict[int, Front], sources: list[str], backends: list[asyncio.Server], generation: int
) -> BalancerConfig:
    def backend(number: int) -> dict[str, Any]:
        host, port = backends[number].sockets[0].getsockname()
        return {"machine_id": "i-0", "address": "10" + host.removeprefix("127"), "port": port}

    return BalancerConfig.model_validate(
        {
            "id": "lb-1",
            "name": "lb",
            "state": "updating",
            "created_at": "now",
            "network_id": "net-1",
            "address": LB,
            "scheme": "internal",
            "source_ranges": sources,
            "listeners": [
                {"protocol": "TCP", "port": port, "backend_set": f"of-{port}", "max_qps": front.max_qps}
                for port, front in wanted.items()
            ],
            "backend_sets": [
                {
                    "name": f"of-{port}",
                    "scheduler": front.scheduler,
                    "session_affinity": front.affinity,
                    "health_check": {"protocol": "TCP"},
                    "backends": [backend(number) for number in sorted(front.backends)],
                }
                for port, front in wanted.items()
            ],
            "generation": generation,
        }
    )
