"""The rights at mycloud: exactly the operations that each controller's part of the cloud calls, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import pytest

from cloud_controller.cloud import InstanceRef, InvalidConfiguration, NotFound, Route
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import Config
from cloud_controller.clouds.mycloud.permissions import globs, operations
from cloud_controller.controller_names import NAMES
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck, Listener, LoadBalancerModel, Owner, Pool
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.volumes import VolumeRequest

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite
from tests.cloud_controller.clouds.mycloud.services import named, web

Calls = Mapping[str, Callable[[], object]]
"""Each method of a part that asks mycloud something, called once; what it is called for need not exist."""

MACHINE = "mycloud://local/zone-b/i-000000000000"
LB, VOLUME = "lb-000000000000", "vol-000000000000"
MEMBER = Member("10.0.0.1", 30080, "i-000000000000")
POOL = Pool("tcp-80", HealthCheck("TCP", 30080, "/", 2, 1, 2, 2), (MEMBER,), {"scheduler": "round_robin"})
MODEL = LoadBalancerModel(
    "web", {"scheme": "internal", "source_ranges": ()}, (), (), Owner("c-1", "uid-1", "default", "web").tags
)
OPERATIONS = (
    CreateLoadBalancer(MODEL, "token-1"),
    AdoptLoadBalancer(LB, {}),
    UpdateLoadBalancer(LB, MODEL),
    PutPool(LB, POOL, new=True),
    AddMembers(LB, "tcp-80", (MEMBER,)),
    RemoveMembers(LB, "tcp-80", (MEMBER,)),
    PutListener(LB, Listener("TCP", 80, "tcp-80", {})),
    DeleteListener(LB, "TCP", 80),
    DeletePool(LB, "tcp-80"),
    DeleteLoadBalancer(LB),
)
PURE = {"builder", "driver", "largest_gib", "parameters", "provisioner"}


def of_instances(cloud: MyCloud) -> tuple[object, Calls]:
    part = cloud.instances
    refs = [InstanceRef("n1", MACHINE), InstanceRef("n2")]
    return part, {"list": part.list, "describe": lambda: part.describe(refs)}


def of_routes(cloud: MyCloud) -> tuple[object, Calls]:
    part = cloud.routes
    routes = [Route("10.0.0.0/24", MACHINE)]
    return part, {
        "list": part.list,
        "quota": part.quota,
        "create": lambda: part.create(routes),
        "delete": lambda: part.delete(routes),
    }


def of_load_balancers(cloud: MyCloud) -> tuple[object, Calls]:
    part = cloud.load_balancers
    return part, {
        "facts": lambda: part.facts([web(named(id=LB))], {}, ()),
        "read": lambda: part.read(["uid-1"], [LB]),
        "health": lambda: part.health(LB),
        "perform": lambda: [part.perform(None, [each]) for each in OPERATIONS],
    }


def of_volumes(cloud: MyCloud) -> tuple[object, Calls]:
    part = cloud.volumes
    request = VolumeRequest("v", "zone-b", 1, {"type": "standard"}, {}, "token-1")
    return part, {
        "list": lambda: part.list([VOLUME]),
        "create": lambda: part.create(request),
        "attach": lambda: part.attach(VOLUME, MACHINE),
        "detach": lambda: part.detach(VOLUME, MACHINE),
        "resize": lambda: part.resize(VOLUME, 2),
        "tag": lambda: part.tag(VOLUME, {}),
        "delete": lambda: part.delete(VOLUME),
    }


def lists_machines(cloud: MyCloud) -> tuple[object, Calls]:
    part = cloud.instances
    return part, {"list": part.list}


PARTS: Mapping[str, tuple[Callable[[MyCloud], tuple[object, Calls]], ...]] = {
    "node": (of_instances,),
    "node-lifecycle": (of_instances,),
    "route": (of_instances, of_routes),
    "service": (of_load_balancers, lists_machines),
    "volume": (of_volumes, lists_machines),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_controllers_rights_are_what_its_part_of_the_cloud_calls(site: MyCloudSite, name: str) -> None:
    limited = site.issue_token(operations=globs([name]))
    cloud = MyCloud(Config(site.endpoint, limited, site.cluster["id"]))
    before = site.context.calls.all()

    cloud.check_access([name])
    for calls_of in PARTS[name]:
        for call in calls_of(cloud)[1].values():
            with suppress(NotFound, InvalidConfiguration):
                call()

    after = site.context.calls.all()
    made = {operation for operation, count in after.items() if count > before.get(operation, 0)}
    called = {re.sub(r"\{\w+\}", "ID", each) for each in made} - {"POST /v1/access:check"}
    assert called == {each.format(network="ID", table="ID") for each in operations(name)}


@pytest.mark.parametrize("calls_of", [of_instances, of_routes, of_load_balancers, of_volumes])
def test_no_method_is_left_out(site: MyCloudSite, calls_of: Callable[[MyCloud], tuple[Any, Calls]]) -> None:
    part, calls = calls_of(site.cloud)

    assert {name for name in vars(type(part)) if not name.startswith("_")} - PURE == calls.keys()


def test_no_operation_is_left_out() -> None:
    assert {type(each) for each in OPERATIONS} == {*get_args(Operation)}
