"""Pods without their route are found, and routes in their ranges that nobody needs."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import Route
from cloud_controller.doctor.checks.routes import CHECK
from cloud_controller.doctor.findings import Finding, Severity
from cloud_controller.kube import Object
from tests.cloud_controller.doctor.looks import World, ago


@pytest.fixture
def world() -> World:
    """Two nodes with their routes, 10.1.0.0/24 to `a` and 10.1.1.0/24 to `b`."""
    world = World()
    world.node("a")
    world.node("b", 1)
    return world


def unavailable(node: Object) -> None:
    reason = {"reason": "NoRouteCreated", "message": "RouteController failed to create a route"}
    node["status"]["conditions"][1].update(status="True", **reason)


def only(world: World) -> Finding:
    (finding,) = world.findings(CHECK)
    return finding


def test_nodes_with_their_routes_are_no_finding(world: World) -> None:
    assert world.findings(CHECK) == []


def test_a_missing_route_is_found(world: World) -> None:
    del world.cloud.table[1]

    finding = only(world)
    assert (finding.subject, finding.what) == ("route/10.1.1.0/24", "it is missing: route pods of b to b")
    assert finding.follows_from is None


@pytest.mark.parametrize("controllers", [("route",), ("node",)], ids=["routes", "none"])
def test_a_new_node_may_wait_for_its_route(controllers: tuple[str, ...]) -> None:
    world = World(controllers=controllers)
    world.node("a", created=ago(seconds=60))
    world.change("a", unavailable)
    world.cloud.table.clear()

    assert world.findings(CHECK) == []


def test_a_route_that_the_ccm_creates_meanwhile_is_none(world: World) -> None:
    route = world.cloud.table.pop()
    world.meanwhile = lambda: world.cloud.table.append(route)

    assert world.findings(CHECK) == []


def test_a_route_to_a_machine_that_is_gone_is_found(world: World) -> None:
    world.cloud.table[1] = Route("10.1.1.0/24", "i-b", blackhole=True)

    finding = only(world)
    assert finding.what.startswith("it leads to the wrong machine")
    assert finding.evidence == ("next_hop: i-b (gone) -> i-b",)


def test_a_route_that_no_node_needs_is_found(world: World) -> None:
    world.cloud.table.append(Route("10.1.9.0/24", "i-gone", blackhole=True))

    finding = only(world)
    assert (finding.subject, finding.what) == ("route/10.1.9.0/24", "no node has this pod range")
    assert finding.severity is Severity.WARNING


def test_a_foreign_route_in_the_pods_range_is_found(world: World) -> None:
    world.cloud.table.append(Route("10.1.9.0/24", "nat-1", owned=False))

    finding = only(world)
    assert finding.what == "a route in the pods' range is not the cluster's"
    assert "nat-1 is not a machine of this cluster" in finding.evidence[0]
    assert finding.severity is Severity.WARNING


def test_a_foreign_route_elsewhere_is_nobodys_concern(world: World) -> None:
    world.cloud.table.append(Route("0.0.0.0/0", "nat-1", owned=False))

    assert world.findings(CHECK) == []


def test_a_route_beyond_the_quota_follows_from_the_quota(world: World) -> None:
    world.cloud.table.pop()
    world.cloud.quota = 1
    world.change("b", unavailable)

    finding = only(world)
    assert finding.what == "pods of b are unreachable"
    assert finding.follows_from == frozenset({"quotas"})


def test_a_range_outside_the_clusters_is_a_first_cause(world: World) -> None:
    world.cloud.table.pop()
    world.change("b", lambda node: node["spec"].update(podCIDRs=["10.2.0.0/24"]))
    world.change("b", unavailable)

    finding = only(world)
    assert finding.evidence == ("it is outside --cluster-cidr=10.1.0.0/16",)
    assert finding.follows_from == frozenset()


def test_a_mark_that_stays_although_the_route_is_there_is_found(world: World) -> None:
    world.change("b", unavailable)

    finding = only(world)
    assert finding.subject == "node/b"
    assert "NoRouteCreated: RouteController failed" in finding.evidence[0]


def test_a_route_whose_deletion_is_held_is_another_checks(world: World) -> None:
    world.cloud.machine("elsewhere")
    world.cloud.table.append(Route("10.1.9.0/24", "i-elsewhere"))

    assert world.findings(CHECK) == []


@pytest.mark.parametrize("marked", [True, False])
def test_where_the_ccm_writes_no_routes_only_nodes_that_wait_for_one_are_found(world: World, marked: bool) -> None:
    world.controllers = ("node",)
    world.cloud.table.clear()
    if marked:
        world.change("b", unavailable)

    found: list[Any] = [(each.subject, each.follows_from) for each in world.findings(CHECK)]
    assert found == ([("node/b", frozenset())] if marked else [])
