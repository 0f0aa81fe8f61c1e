"""The data plane with a real API that stops and starts: changes arrive, forwarding continues."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.addresses import AddressBlock, socket_address
from local.http_server import config, serving
from local.mycloud import balancing, compute, networking
from local.mycloud.api import create_app
from local.mycloud.balancer.data_plane import DataPlane
from local.mycloud.balancer.follower import Follower
from local.mycloud.context import Context
from local.mycloud.models.balancing import Backend, CreateLoadBalancer, LoadBalancerRecord, PutListener
from local.mycloud.models.common import State
from local.mycloud.models.compute import CreateCluster, CreateMachine
from local.mycloud.models.networking import CreateNetwork, CreateSubnet
from local.mycloud.store import Store
from tests.local import scenarios
from tests.local.mycloud.conftest import FakeKubeconfigs
from tests.local.scenarios import DEADLINE, free_port, until

pytestmark = pytest.mark.integration

HOST = f"127.252.{random.randrange(256)}.{random.randrange(1, 255)}"
TOKEN = "token"


class World:
    """A store with one load balancer in front of one backend, and an API that can be started and stopped."""

    def __init__(self, directory: Path) -> None:
        self.store = Store(directory / "mycloud.db")
        self.api_port = free_port(HOST)
        with self.store.write() as session:
            network = networking.create_network(session, AddressBlock(240), CreateNetwork(name="n"))
            subnet = networking.create_subnet(session, CreateSubnet(name="s", network_id=network.id, zone="zone-a"))
            cluster = compute.create_cluster(session, CreateCluster(name="c", network_id=network.id))
            machine = compute.create_machine(
                session,
                CreateMachine(name="m", subnet_id=subnet.id, cluster_id=cluster.id, type="m1.small", role="worker"),
            )
            # Random in each run, so that concurrent runs never meet.
            address = f"10.241.{random.randrange(16)}.{random.randrange(10, 250)}"
            session.save(machine.model_copy(update={"private_ips": [address]}))
            session.save(network.model_copy(update={"next_lb_host": random.randrange(10, 16_000)}))
            self.network, self.machine, self.address = network.id, machine.id, address

    def balancer(self, backend_port: int) -> LoadBalancerRecord:
        request = CreateLoadBalancer.model_validate(
            {
                "name": "lb",
                "network_id": self.network,
                "listeners": [{"protocol": "TCP", "port": 8080, "backend_set": "web"}],
                "backend_sets": [
                    {
                        "name": "web",
                        "health_check": {"protocol": "NONE"},
                        "backends": [Backend(machine_id=self.machine, address=self.address, port=backend_port)],
                    }
                ],
            }
        )
        with self.store.write() as session:
            return balancing.create_load_balancer(session, request, 1)

    def record(self, balancer: LoadBalancerRecord) -> LoadBalancerRecord | None:
        with self.store.read() as session:
            return session.find(LoadBalancerRecord, balancer.id)

    @contextmanager
    def api(self) -> Iterator[Context]:
        context = Context(AddressBlock(240), self.store, TOKEN, FakeKubeconfigs())
        with serving(config(create_app(context), HOST, self.api_port)):
            yield context


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def run(world: World, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario beside a data plane that follows the world's API, whether it runs or not."""

    async def beside_a_follower() -> None:
        data_plane = DataPlane()
        follower = asyncio.create_task(Follower(data_plane, f"http://{HOST}:{world.api_port}", TOKEN).run())
        try:
            await scenario()
        finally:
            follower.cancel()
            await data_plane.close()

    scenarios.run(beside_a_follower)


async def serve_backend(world: World) -> int:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(answer, socket_address(world.address), 0)
    return int(server.sockets[0].getsockname()[1])


async def ask(balancer: LoadBalancerRecord, port: int = 8080) -> bytes:
    reader, writer = await asyncio.open_connection(balancer.address, port)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_a_load_balancer_becomes_available_changes_and_is_deleted(world: World) -> None:
    async def scenario() -> None:
        balancer = world.balancer(await serve_backend(world))
        with world.api() as context:
            await until(lambda: the(world, balancer).state == State.AVAILABLE)
            assert await ask(balancer) == b"hello"
            await until(lambda: connections(context, balancer) == 1)

            with world.store.write() as session:
                balancing.put_listener(session, balancer.id, "TCP", 8081, PutListener(backend_set="web"), 1)
            await until(lambda: the(world, balancer).state == State.AVAILABLE)
            assert await ask(balancer, 8081) == b"hello"

            with world.store.write() as session:
                balancing.delete_load_balancer(session, balancer.id)
            await until(lambda: world.record(balancer) is None)
            with pytest.raises(ConnectionRefusedError):
                await ask(balancer)

    run(world, scenario)


def test_forwarding_continues_while_the_api_is_down_and_a_restarted_one_gets_every_report(world: World) -> None:
    async def scenario() -> None:
        balancer = world.balancer(await serve_backend(world))
        with world.api():
            await until(lambda: the(world, balancer).state == State.AVAILABLE)
            assert await ask(balancer) == b"hello"

        assert await ask(balancer) == b"hello"
        with world.store.write() as session:
            balancing.put_listener(session, balancer.id, "TCP", 8081, PutListener(backend_set="web"), 1)

        with world.api() as context:
            await until(lambda: the(world, balancer).state == State.AVAILABLE)
            await until(lambda: connections(context, balancer) == 2)
            assert await ask(balancer, 8081) == b"hello"

    run(world, scenario)


def test_a_load_balancer_removed_while_the_follower_was_away_is_closed(world: World) -> None:
    async def scenario() -> None:
        balancer = world.balancer(await serve_backend(world))
        with world.api():
            await until(lambda: the(world, balancer).state == State.AVAILABLE)
        with world.store.write() as session:
            session.remove(balancer.id)

        with world.api():
            async with asyncio.timeout(DEADLINE):
                while True:
                    try:
                        await ask(balancer)
                    except ConnectionRefusedError:
                        return
                    await asyncio.sleep(0.05)

    run(world, scenario)


def the(world: World, balancer: LoadBalancerRecord) -> LoadBalancerRecord:
    found = world.record(balancer)
    assert found is not None
    return found


def connections(context: Context, balancer: LoadBalancerRecord) -> int:
    report = context.board.report(balancer.id)
    return 0 if report is None else report.counters[0].connections
