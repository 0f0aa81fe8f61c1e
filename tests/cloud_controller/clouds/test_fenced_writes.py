"""What every cloud must keep, whatever its API: a write that the fence refuses is not sent."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from cloud_controller import clouds
from cloud_controller.cloud import Cloud, Route
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.fence import WriteRefused, unfenced
from tests.cloud_controller.clouds.aws.scripted_aws import ec2_answer, scripted
from tests.cloud_controller.clouds.conftest import MyCloudSite

ROUTE = Route("10.36.1.0/24", "i-000000000001")


@dataclass
class World:
    """A cloud, and how many requests that change something have reached its API."""

    cloud: Cloud
    writes: Callable[[], int]


def refused() -> None:
    raise WriteRefused("not now")


@pytest.fixture(params=clouds.names())
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world of each cloud that is registered: a new one is added here."""
    with ExitStack() as stack:
        if request.param == "aws":
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-nobody")
            aws = stack.enter_context(scripted([ec2_answer()]))
            yield World(Aws(aws.api(route_table_id="rtb-1").config), lambda: len(aws.requests))
        elif request.param == "mycloud":
            site: MyCloudSite = request.getfixturevalue("site")
            before = site.writes()
            yield World(site.cloud, lambda: site.writes() - before)
        else:
            pytest.fail(f"no world of cloud {request.param}")


def test_a_write_that_the_fence_refuses_does_not_reach_the_cloud(world: World) -> None:
    assert world.cloud.routes is not None
    world.cloud.fence_writes(refused)

    with pytest.raises(WriteRefused):
        world.cloud.routes.delete([ROUTE])

    assert world.writes() == 0


def test_a_write_that_the_fence_lets_through_reaches_the_cloud(world: World) -> None:
    assert world.cloud.routes is not None
    world.cloud.fence_writes(unfenced)

    world.cloud.routes.delete([ROUTE])

    assert world.writes() == 1


def test_the_fence_is_checked_once_the_connection_to_the_cloud_stands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.cloud.routes is not None
    order: list[str] = []
    connect = socket.socket.connect

    def connecting(self: socket.socket, address: tuple[str, int]) -> None:
        order.append("connect")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connecting)
    world.cloud.fence_writes(lambda: order.append("fence"))

    world.cloud.routes.delete([ROUTE])

    assert "connect" in order
    assert order[-1] == "fence"
