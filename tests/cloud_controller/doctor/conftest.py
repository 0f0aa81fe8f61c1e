"""Services with real load balancers, on the API of mycloud without a data plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloud_controller import apply
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.kube import ENDPOINT_SLICES, NODES, SERVICES, Object
from cloud_controller.planning import PlanSettings, find
from tests.cloud_controller.clouds.conftest import MyCloudSite, _server, site
from tests.cloud_controller.clouds.mycloud.services import web
from tests.cloud_controller.doctor.looks import OLD, World, node_of
from tests.cloud_controller.load_balancing import endpoint, endpoint_slice

__all__ = ["ServiceWorld", "_server", "site", "world"]


class _NoEvents:
    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Nobody reads it."""

    warning = normal


@dataclass
class ServiceWorld(World):
    """A cluster with two nodes, `a` and `b`; `serve` makes Services with ready pods on `a`."""

    site: Any = None

    def put(self, service: Object, *, created: str = OLD) -> None:
        """Somebody creates a Service with a ready pod on `a`; the CCM has not seen it yet."""
        service["metadata"]["creationTimestamp"] = created
        self.api.put(SERVICES, service)
        of = service["metadata"]["name"]
        self.api.put(ENDPOINT_SLICES, endpoint_slice(endpoint("10.1.0.2", "a"), name=f"{of}-1", of=of))

    def serve(self, annotations: dict[str, str] | None = None, **more: Any) -> Object:
        """A Service that has been served for long."""
        service = web(annotations, **more)
        self.put(service)
        self.reconcile()
        return self.service(service["metadata"]["name"])

    def reconcile(self) -> None:
        """What a CCM and the cloud do until nothing is left to do."""
        cloud = self.site.new_cloud()
        while True:
            found = find("service", self.api, cloud, InstanceSnapshot(cloud.instances), self.settings)
            if not found.plan.changes and not found.busy:
                return
            balancers = found.load_balancers
            apply.run(found.plan, self.api, cloud, events=_NoEvents(), controller="service", load_balancers=balancers)
            self.site.settle()

    def rename(self, load_balancer: str) -> None:
        """Somebody changes a load balancer by hand."""
        self.site.client.update("load_balancers", load_balancer, {"name": "renamed"})
        self.site.settle()

    def service(self, name: str = "web") -> Object:
        """The Service as it is stored."""
        return self.api.get(SERVICES, name, "default")

    def load_balancer(self) -> dict[str, Any]:
        """The only load balancer."""
        (found,) = self.site.load_balancers()
        return dict(found)


@pytest.fixture
def world(site: MyCloudSite) -> ServiceWorld:
    """No Service yet."""
    cloud = site.new_cloud()
    world = ServiceWorld(cloud=cloud, site=site, controllers=("service",), settings=PlanSettings())
    for number, name in enumerate(("a", "b")):
        site.machine(name)
        machine = next(each for each in cloud.instances.list() if each.name == name)
        world.api.put(NODES, node_of(machine, number))
    return world


@pytest.fixture
def nodes() -> World:
    """Two nodes of the fake cloud, in order."""
    world = World()
    world.node("a")
    world.node("b", 1)
    return world
