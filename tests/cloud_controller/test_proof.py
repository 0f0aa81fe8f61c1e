"""Machines and routes tell whose cloud config it is where nothing else does, whichever controllers run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloud_controller.binding import NOTHING, Binding, Evidence
from cloud_controller.cloud import AccessDenied, ForeignCluster, InstanceState, Route
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.kube import Object
from cloud_controller.proof import prove
from tests.cloud_controller.conftest import FakeCloud

HERE = Binding("uid-here")
RANGES = ("10.1.0.0/16",)


class Choosy(FakeCloud):
    """A cloud that leaves nodes alone whose name begins with "virtual", and lists no task."""

    def leaves_alone(self, node: Mapping[str, Any]) -> bool:
        return bool(node["metadata"]["name"].startswith("virtual"))


def node(name: str, machine: str | None = None) -> Object:
    spec = {"providerID": f"fake://zone-a/i-{machine}"} if machine else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}


def proved(cloud: FakeCloud, *nodes: Object, found: tuple[Evidence, ...] = (), binding: Binding = HERE) -> None:
    prove(found, lambda: nodes, cloud, InstanceSnapshot(cloud), RANGES, binding)


@pytest.fixture
def cloud() -> FakeCloud:
    """With machine `worker` of the cluster."""
    made = Choosy()
    made.machine("worker")
    return made


def test_machines_none_of_which_is_a_nodes_are_another_clusters(cloud: FakeCloud) -> None:
    with pytest.raises(ForeignCluster, match=r"1 machines of this cluster, but none .* another one: then"):
        proved(cloud, node("theirs", "theirs"), node("virtual-1", "worker"))


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (node("worker"),),
        (node("worker", "worker"), node("theirs", "theirs")),
        (node("old", "old"), node("worker")),
        (node("virtual-1", "theirs"),),
        (node("worker", "old"),),
    ],
    ids=[
        "they boot",
        "they register",
        "one is a Node's",
        "all were replaced, and the first new one registers",
        "the only Nodes are left alone",
        "a machine was replaced by one of its name, whose Node stays",
    ],
)
def test_machines_may_be_the_clusters_own_where(cloud: FakeCloud, nodes: tuple[Object, ...]) -> None:
    proved(cloud, *nodes)


@pytest.mark.parametrize(
    "change",
    [lambda cloud: cloud.machines.clear(), lambda cloud: cloud.machine("worker", state=InstanceState.TERMINATED)],
    ids=["none", "terminated"],
)
def test_without_a_living_machine_in_the_account_nodes_prove_nothing(
    cloud: FakeCloud, change: Callable[[FakeCloud], object]
) -> None:
    change(cloud)

    proved(cloud, node("theirs", "theirs"))


def test_machines_that_may_not_be_listed_prove_nothing_and_allow_nothing(cloud: FakeCloud) -> None:
    cloud.error = AccessDenied("not allowed")

    with pytest.raises(AccessDenied):
        proved(cloud, node("theirs", "theirs"))


def test_routes_to_living_machines_tell_that_nodes_were_lost(cloud: FakeCloud) -> None:
    cloud.table.append(Route("10.1.0.0/24", cloud.machines["worker"].id, owned=None))

    with pytest.raises(ForeignCluster, match="1 routes of this cluster"):
        proved(cloud)


def test_a_route_outside_of_the_pod_ranges_proves_nothing(cloud: FakeCloud) -> None:
    cloud.table.append(Route("10.9.0.0/24", cloud.machines["worker"].id, owned=None))

    proved(cloud)


def test_neither_is_read_where_something_else_is_alive(cloud: FakeCloud) -> None:
    proved(cloud, node("theirs", "theirs"), found=(Evidence("load balancers", found=2, alive=1),))

    assert (cloud.lists, cloud.route_lists, cloud.describes) == (0, 0, [])


def test_an_operator_may_start_a_cluster_beside_machines_that_are_no_nodes(cloud: FakeCloud) -> None:
    proved(cloud, node("theirs", "theirs"), binding=Binding("uid-here", NOTHING))
