"""When a Service that failed is tried again, with the controller's real queue and a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.controllers.service.controller import NODES_CHANGED, RESYNC
from cloud_controller.kube import SERVICES, Object
from tests.clock import Clock
from tests.cloud_controller.clouds.mycloud.kubernetes_in_memory import ApiServer, WritesLeft
from tests.cloud_controller.clouds.mycloud.services import web
from tests.cloud_controller.clouds.mycloud.test_load_balancer_any_history import Process
from tests.cloud_controller.cluster import WEB

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

CREATE = "POST /v1/load_balancers"


@dataclass
class World:
    """One Service, and a controller that has never seen it."""

    site: MyCloudSite
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.api = ApiServer(WritesLeft())
        cloud = self.site.cloud
        cloud._client._sleep = self.clock.sleep
        self.process = Process(cloud, self.api, self.clock)
        self.pass_time(0)

    def create(self, **annotations: str) -> None:
        self.api.put(SERVICES, web(annotations))

    def annotate(self, name: str, value: str) -> None:
        def change(service: Object) -> None:
            service["metadata"]["annotations"][name] = value

        self.api.change(SERVICES, WEB, change)

    def pass_time(self, seconds: float) -> None:
        self.process.worker.run(seconds, lambda: None)

    def tries(self) -> int:
        return self.site.calls(CREATE)


@pytest.fixture
def world(site: MyCloudSite) -> World:
    return World(site)


@pytest.mark.parametrize(
    "happens",
    [
        lambda world: world.annotate("example.com/x", "y"),
        lambda world: world.process.queue.add(RESYNC),
        lambda world: world.process.queue.add(NODES_CHANGED),
    ],
    ids=["change", "resync", "nodes"],
)
def test_nothing_brings_a_throttled_service_before_its_time(world: World, happens: Callable[[World], Any]) -> None:
    world.site.fault(CREATE, "throttle", count=None, retry_after=42)
    world.create()
    world.pass_time(1)

    happens(world)
    world.pass_time(40)

    assert world.tries() == 1


def test_neither_a_full_pass_nor_nodes_bring_a_service_of_a_cloud_that_does_not_answer_before_its_time(
    world: World,
) -> None:
    world.site.fault(CREATE, "error", count=None, status=503, code="Unavailable")
    world.create()
    world.pass_time(1)
    tries = world.tries()

    world.process.queue.add(RESYNC)
    world.process.queue.add(NODES_CHANGED)
    world.pass_time(1)

    assert world.tries() == tries


def test_a_service_whose_author_mends_it_is_tried_at_once(world: World) -> None:
    prefix = "service.beta.kubernetes.io/dlb-"
    world.create(**{f"{prefix}scheme": "wrong"})
    world.pass_time(1)
    assert world.tries() == 0

    world.annotate(f"{prefix}scheme", "internal")
    world.pass_time(0)

    assert world.tries() == 1
