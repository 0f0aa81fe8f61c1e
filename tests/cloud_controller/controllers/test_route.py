"""Which routes are written, removed, replaced or only reported, and what nodes then say of their network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller import apply
from cloud_controller.cloud import Instance, InstanceRef, InstanceState, InvalidConfiguration, Route
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import (
    RouteObservation,
    RouteOptions,
    evidence,
    observe_nodes,
    plan,
    plan_teardown,
)
from cloud_controller.controllers.route_plan import QuotaUse, SetNetworkAvailable, Unreachable
from cloud_controller.events import EventRecorder
from cloud_controller.kube import Object
from cloud_controller.plan import ActionKind, Plan
from tests.cloud_controller.conftest import FakeCloud
from tests.fake_kubernetes import FakeKubernetes

CLUSTER = RouteOptions(("10.1.0.0/16",))
DELETE_FOREIGN = RouteOptions(("10.1.0.0/16",), delete_foreign=True)
AVAILABLE = ("False", "RouteCreated")


def node(name: str, *cidrs: str, network: tuple[str, str] | None = AVAILABLE) -> Object:
    conditions = [{"type": "NetworkUnavailable", "status": network[0], "reason": network[1]}] if network else []
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"podCIDR": cidrs[0], "podCIDRs": [*cidrs]} if cidrs else {},
        "status": {"conditions": conditions},
    }


def machine(name: str) -> Instance:
    return Instance(f"i-{name}", f"fake://z/i-{name}", name, "small", "z", "r", InstanceState.RUNNING, ())


def observed(nodes: Iterable[Object], routes: Iterable[Route], known: Iterable[str] = "abc") -> RouteObservation:
    return RouteObservation(tuple(routes), tuple(nodes), {name: machine(name) for name in known})


def lines(plan: Plan) -> list[tuple[str, str]]:
    return [(action.kind.value, action.target) for action in plan]


def test_a_node_with_a_pod_range_gets_a_route_and_an_available_network() -> None:
    found = plan(observed([node("a", "10.1.0.0/24", network=None)], []), CLUSTER)

    assert lines(found) == [("create", "route/10.1.0.0/24"), ("update", "node/a/network-unavailable")]
    assert found.actions[0].changes[0].after == "i-a"


def test_routes_to_machines_that_are_gone_do_not_tell_whose_the_table_is() -> None:
    gone = Route("10.1.9.0/24", "i-gone", blackhole=True, owned=True)
    lost = Route("10.1.8.0/24", "i-lost", owned=True)

    assert evidence(observed([node("a", "10.1.0.0/24")], [gone]), CLUSTER).found == 0
    assert evidence(observed([node("a", "10.1.0.0/24")], [gone, lost]), CLUSTER).found == 1


def test_nothing_is_to_do_where_every_route_is_there() -> None:
    assert len(plan(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-a")]), CLUSTER)) == 0


def test_a_route_that_one_of_several_tables_lacks_is_created_there_and_deleted_nowhere() -> None:
    found = plan(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-a", partial=True)]), CLUSTER)

    assert lines(found) == [("create", "route/10.1.0.0/24")]


def test_a_node_that_the_cloud_leaves_alone_gets_no_route_and_keeps_its_condition() -> None:
    found = plan(observed([node("a", "10.1.0.0/24", network=None)], [], known=()), CLUSTER)

    assert lines(found) == []


def test_a_node_without_a_pod_range_is_left_alone() -> None:
    assert len(plan(observed([node("a", network=None)], []), CLUSTER)) == 0


def test_both_ranges_of_a_dual_stack_node_get_a_route() -> None:
    options = RouteOptions(("10.1.0.0/16", "fd00::/48"))

    found = plan(observed([node("a", "10.1.0.0/24", "fd00::/64")], []), options)

    assert lines(found) == [("create", "route/10.1.0.0/24"), ("create", "route/fd00::/64")]


@pytest.mark.parametrize(
    "route, why",
    [
        (Route("10.1.7.0/24", "i-x"), "it is not a pod CIDR of any node"),
        (Route("10.1.7.0/24", "i-x", blackhole=True), "its machine i-x is gone"),
    ],
)
def test_an_owned_route_that_no_node_needs_is_removed(route: Route, why: str) -> None:
    (action,) = plan(observed([], [route]), CLUSTER)

    assert (action.kind, action.target, action.reason) == (ActionKind.DELETE, "route/10.1.7.0/24", why)


STRAY = Route("10.1.7.0/24", "i-x")
"""The route of a machine without a Node."""


def stray(route: Route = STRAY, **more: Any) -> RouteObservation:
    return replace(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-a"), route]), **more)


@pytest.mark.parametrize(
    ("observation", "why"),
    [
        (
            stray(nodeless=frozenset({"i-x"})),
            "its machine i-x exists, and the deletion of its Node was not seen",
        ),
        (stray(anchored=False), "no Node's provider ID is one of the cluster's machines"),
    ],
    ids=["its machine exists", "no Node is the cluster's"],
)
def test_a_route_that_may_be_needed_though_its_node_is_unknown_is_held(observation: RouteObservation, why: str) -> None:
    (action,) = plan(observation, CLUSTER)

    assert (action.kind, action.target, bool(action.held)) == (ActionKind.DELETE, "route/10.1.7.0/24", True)
    assert why in str(action.reason)


@pytest.mark.parametrize(
    "observation",
    [
        stray(anchored=False, left=frozenset({"i-x"})),
        stray(machines=frozenset({"i-a", "i-x"})),
        stray(replace(STRAY, target_instance="i-a")),
    ],
    ids=[
        "the last Node was deleted",
        "its machine is gone",
        "its machine has a Node with another range",
    ],
)
def test_a_route_that_nobody_can_need_is_removed_unasked(observation: RouteObservation) -> None:
    (action,) = plan(observation, CLUSTER)

    assert (action.kind, action.target, action.held) == (ActionKind.DELETE, "route/10.1.7.0/24", None)


def test_a_machine_that_only_a_nodes_name_tells_keeps_its_other_routes(cloud: FakeCloud) -> None:
    there = cloud.machine("a")
    cloud.table += [Route("10.1.0.0/24", there.id, owned=None)]
    table = observe_nodes([node("a", "10.1.7.0/24")], cloud, InstanceSnapshot(cloud))

    (deletion,) = plan(table, CLUSTER).held

    assert deletion.target == "route/10.1.0.0/24"


def test_without_a_node_of_the_cluster_no_route_is_replaced_unasked() -> None:
    wrong = observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-x")])

    replacement, *_ = plan(replace(wrong, anchored=False), CLUSTER)

    assert (replacement.kind, bool(replacement.held)) == (ActionKind.REPLACE, True)


@pytest.mark.parametrize("blackhole", [False, True])
def test_a_route_that_leads_a_nodes_pods_elsewhere_is_replaced(blackhole: bool) -> None:
    (action,) = plan(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-x", blackhole)]), CLUSTER)

    assert (action.kind, action.target) == (ActionKind.REPLACE, "route/10.1.0.0/24")
    assert action.changes[0].after == "i-a"


def test_a_foreign_route_is_reported_and_stays() -> None:
    (action,) = plan(observed([], [Route("10.1.7.0/24", "i-x", owned=False)]), CLUSTER)

    assert action.kind is ActionKind.IGNORE
    assert "--delete-foreign-routes" in str(action.reason)


def test_a_foreign_route_is_removed_where_the_option_asks_for_it() -> None:
    found = plan(observed([], [Route("10.1.7.0/24", "i-x", owned=False)]), DELETE_FOREIGN)

    assert lines(found) == [("delete", "route/10.1.7.0/24")]


def test_a_foreign_route_in_the_place_of_a_nodes_makes_its_network_unavailable() -> None:
    found = plan(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-x", owned=False)]), CLUSTER)

    assert lines(found) == [("ignore", "route/10.1.0.0/24"), ("update", "node/a/network-unavailable")]
    assert found.actions[1].changes[0].after == "True"


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "10.2.0.0/24", "fd00::/64", "not-a-cidr"])
def test_a_route_outside_the_clusters_range_is_none_of_ours(cidr: str) -> None:
    assert len(plan(observed([], [Route(cidr, "i-x")]), DELETE_FOREIGN)) == 0


def test_the_route_of_a_node_whose_machine_the_cloud_does_not_know_is_kept() -> None:
    observation = observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-a")])

    found = plan(replace(observation, instances={"a": None}), CLUSTER)

    assert lines(found) == [("update", "node/a/network-unavailable")]


def test_the_condition_is_written_over_that_another_component_has_set() -> None:
    found = plan(
        observed([node("a", "10.1.0.0/24", network=("False", "CalicoIsUp"))], [Route("10.1.0.0/24", "i-a")]), CLUSTER
    )

    assert lines(found) == [("update", "node/a/network-unavailable")]


def test_the_routes_of_a_machine_that_is_to_go_are_removed_and_not_written_again() -> None:
    options = RouteOptions(("10.1.0.0/16",), removed=frozenset({"a"}))
    nodes = [node("a", "10.1.0.0/24"), node("b", "10.1.1.0/24")]
    routes = [Route("10.1.0.0/24", "i-a"), Route("10.1.1.0/24", "i-b")]

    assert lines(plan(observed(nodes, routes), options)) == [("delete", "route/10.1.0.0/24")]


def test_a_declared_machine_that_is_no_node_yet_is_planned_as_assumed() -> None:
    options = RouteOptions(("10.1.0.0/16",), declared=frozenset({"a", "b"}))

    (action,) = plan(observed([node("a", "10.1.0.0/24")], [Route("10.1.0.0/24", "i-a")]), options)

    assert (action.target, action.assumed) == ("route/pods-of-b", True)


def born(day: int, node: Object) -> Object:
    node["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    return node


def test_of_two_nodes_with_one_range_the_older_keeps_its_route_and_the_younger_has_no_network() -> None:
    old, young = born(1, node("b", "10.1.0.0/24")), born(2, node("a", "10.1.0.0/24"))

    found = plan(observed([young, old], [Route("10.1.0.0/24", "i-b")]), CLUSTER)

    assert lines(found) == [("ignore", "route/10.1.0.0/24"), ("update", "node/a/network-unavailable")]
    ignored, condition = found.actions
    assert ignored.operation == Unreachable(young)
    assert ignored.reason == "it overlaps 10.1.0.0/24 of the older node b"
    assert condition.changes[0].after == "True"


def test_the_older_node_gets_the_route_back_that_a_younger_one_has_taken() -> None:
    old, young = (
        born(1, node("a", "10.1.0.0/24")),
        born(2, node("b", "10.1.0.0/24", network=("True", "NoRouteCreated"))),
    )

    found = plan(observed([old, young], [Route("10.1.0.0/24", "i-b")]), CLUSTER)

    assert lines(found) == [("ignore", "route/10.1.0.0/24"), ("replace", "route/10.1.0.0/24")]
    assert found.actions[1].changes[0].after == "i-a"


@pytest.mark.parametrize("younger", ["10.1.0.0/25", "10.1.0.128/25", "10.1.0.0/20"])
def test_a_younger_nodes_range_that_overlaps_an_older_ones_gets_no_route_and_loses_the_one_it_has(younger: str) -> None:
    old = born(1, node("b", "10.1.0.0/24"))
    young = born(2, node("a", younger, network=("True", "NoRouteCreated")))

    found = plan(observed([young, old], [Route("10.1.0.0/24", "i-b"), Route(younger, "i-a")]), CLUSTER)

    assert lines(found) == [("delete", f"route/{younger}"), ("ignore", f"route/{younger}")]
    assert {action.reason for action in found} == {"it overlaps 10.1.0.0/24 of the older node b"}


def test_the_older_node_keeps_its_range_though_its_machine_is_not_known() -> None:
    old = born(1, node("x", "10.1.0.0/24", network=("True", "NoRouteCreated")))
    young = born(2, node("a", "10.1.0.0/24", network=("True", "NoRouteCreated")))

    found = plan(observed([young, old], [Route("10.1.0.0/24", "i-x")]), CLUSTER)

    assert lines(found) == [("ignore", "route/10.1.0.0/24")]


def test_a_range_outside_the_clusters_gets_no_route_and_takes_none_from_others() -> None:
    wide = born(1, node("a", "10.0.0.0/8", network=("True", "NoRouteCreated")))

    found = plan(observed([wide, born(2, node("b", "10.1.0.0/24"))], []), CLUSTER)

    assert lines(found) == [("ignore", "route/10.0.0.0/8"), ("create", "route/10.1.0.0/24")]


def test_of_two_nodes_that_claim_one_machine_the_older_alone_is_a_routes_target() -> None:
    instances: Any = OneMachine()
    old, young = born(1, node("a", "10.1.0.0/24")), born(2, node("b", "10.1.1.0/24"))
    for each, provider_id in ((old, "fake://z/i-1"), (young, "fake://other-way-to-write/i-1")):
        each["spec"]["providerID"] = provider_id
    cloud: Any = SimpleNamespace(routes=SimpleNamespace(list=list))

    found = plan(observe_nodes([young, old], cloud, InstanceSnapshot(instances)), CLUSTER)

    assert lines(found) == [("create", "route/10.1.0.0/24")]


class OneMachine:
    """A cloud in which every provider ID means the same machine."""

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        return {ref: machine("1") for ref in refs}


def test_removal_of_the_cluster_takes_every_owned_route_and_no_other() -> None:
    routes = [Route("10.1.0.0/24", "i-a"), Route("10.1.1.0/24", "i-x", owned=False), Route("10.2.0.0/24", "i-a")]

    assert lines(plan_teardown(observed([node("a", "10.1.0.0/24")], routes), CLUSTER)) == [
        ("delete", "route/10.1.0.0/24")
    ]


@pytest.mark.parametrize("cidrs", [(), ("10.1.0.0/33",), ("10.1.0.1/16",), ("10.1.0.0/16", "10.2.0.0/16"), ("x",)])
def test_a_wrong_cluster_range_is_refused_by_name(cidrs: tuple[str, ...]) -> None:
    with pytest.raises(InvalidConfiguration, match="cluster-cidr"):
        RouteOptions(cidrs)


def unmarked(cidr: str, target: str, *, blackhole: bool = False) -> Route:
    """Of a cloud whose routes carry no tags."""
    return Route(cidr, target, blackhole, owned=None)


def judged(routes: Iterable[Route], *machines: str, nodes: Iterable[Object] = ()) -> RouteObservation:
    return replace(observed(nodes, routes), machines=frozenset(machines))


def test_an_unmarked_route_to_a_machine_of_the_cluster_is_its_own() -> None:
    found = plan(judged([unmarked("10.1.7.0/24", "i-terminated", blackhole=True)], "i-terminated"), CLUSTER)

    assert lines(found) == [("delete", "route/10.1.7.0/24")]


@pytest.mark.parametrize(
    "route",
    [unmarked("10.1.7.0/24", "i-theirs"), unmarked("10.0.0.0/15", "i-ours"), unmarked("10.1.7.0/24", "i-forgotten")],
    ids=["another's machine", "not wholly inside", "nobody knows the machine"],
)
def test_an_unmarked_route_that_is_not_surely_the_clusters_is_foreign(route: Route) -> None:
    (action,) = plan(judged([route], "i-ours"), CLUSTER)

    assert action.kind is ActionKind.IGNORE
    assert "foreign" in str(action.reason)


def test_an_unmarked_route_that_leads_a_nodes_pods_to_another_of_our_machines_is_replaced() -> None:
    routes = [unmarked("10.1.0.0/24", "i-old")]

    assert lines(plan(judged(routes, "i-old", nodes=[node("a", "10.1.0.0/24")]), CLUSTER)) == [
        ("replace", "route/10.1.0.0/24")
    ]


@pytest.mark.parametrize(
    ("cidr", "planned"),
    [
        ("10.1.0.0/24", [("replace", "route/10.1.0.0/24")]),
        ("10.1.9.0/24", [("create", "route/10.1.0.0/24"), ("delete", "route/10.1.9.0/24")]),
        ("10.0.0.0/15", [("create", "route/10.1.0.0/24"), ("ignore", "route/10.0.0.0/15")]),
        ("10.9.0.0/24", [("create", "route/10.1.0.0/24")]),
    ],
)
def test_a_blackhole_whose_machine_the_cloud_forgot_is_ours_where_it_lies_in_the_pods_range(
    cidr: str, planned: list[tuple[str, str]]
) -> None:
    forgotten = Route(cidr, "", blackhole=True, owned=None)

    found = lines(plan(judged([forgotten], nodes=[node("a", "10.1.0.0/24")]), CLUSTER))

    assert sorted(line for line in found if not line[1].startswith("node/")) == planned


def test_whose_routes_are_is_asked_only_where_one_leads_to_a_machine_that_is_no_nodes(cloud: Any) -> None:
    cloud.machine("a")
    cloud.machine("old", state=InstanceState.TERMINATED)
    cloud.table = [unmarked("10.1.0.0/24", "i-a")]
    nodes = [node("a", "10.1.0.0/24")]
    assert len(plan(observe_nodes(nodes, cloud, InstanceSnapshot(cloud)), CLUSTER)) == 0
    assert cloud.lists == 0

    cloud.table.append(unmarked("10.1.1.0/24", "i-old"))

    assert lines(plan(observe_nodes(nodes, cloud, InstanceSnapshot(cloud)), CLUSTER)) == [
        ("delete", "route/10.1.1.0/24")
    ]
    assert cloud.lists == 1


def test_an_unmarked_route_goes_with_its_node_though_its_machine_went_before_any_list_showed_it(cloud: Any) -> None:
    cloud.machine("a")
    cloud.table = [unmarked("10.1.0.0/24", "i-a"), unmarked("10.1.1.0/24", "i-released")]

    found = observe_nodes([node("a", "10.1.0.0/24")], cloud, InstanceSnapshot(cloud), left=frozenset({"i-released"}))

    assert lines(plan(found, CLUSTER)) == [("delete", "route/10.1.1.0/24")]


def test_a_pod_range_outside_the_clusters_is_reported_and_gets_no_route() -> None:
    found = plan(observed([node("a", "10.1.0.0/24", "fd00::/64")], []), CLUSTER)

    assert lines(found) == [
        ("ignore", "route/fd00::/64"),
        ("create", "route/10.1.0.0/24"),
        ("update", "node/a/network-unavailable"),
    ]
    assert found.actions[0].reason == "it is outside --cluster-cidr=10.1.0.0/16"
    assert found.actions[2].changes[0].after == "True"


def test_the_network_of_a_dual_stack_node_waits_for_both_routes() -> None:
    options = RouteOptions(("10.1.0.0/16", "fd00::/48"))

    found = plan(observed([node("a", "10.1.0.0/24", "fd00::/64", network=None)], []), options)

    (condition,) = [action.operation for action in found if isinstance(action.operation, SetNetworkAvailable)]
    assert (condition.available, condition.needs) == (True, frozenset({"route/10.1.0.0/24", "route/fd00::/64"}))


def test_a_nearly_full_table_is_reported() -> None:
    nodes = [node(f"n{number}", f"10.1.{number}.0/24") for number in range(8)]
    observation = replace(
        observed(nodes, [Route("192.168.0.0/16", "i-theirs", owned=False)], []),
        instances={f"n{number}": machine(f"n{number}") for number in range(8)},
        quota=11,
    )

    report, *rest = plan(observation, CLUSTER)

    assert (report.target, report.summary) == ("route-table", "9 of 11 routes are used")
    assert report.operation == QuotaUse(9, 11)
    assert len([action for action in rest if action.kind is ActionKind.CREATE]) == 8


def test_a_table_with_room_is_not_reported() -> None:
    observation = replace(observed([node("a", "10.1.0.0/24")], []), quota=48)

    assert lines(plan(observation, CLUSTER)) == [("create", "route/10.1.0.0/24")]


def test_what_does_not_fit_into_the_table_is_not_tried_and_said_at_the_node() -> None:
    nodes = [node("a", "10.1.0.0/24", network=None), node("b", "10.1.1.0/24", network=None)]
    observation = replace(observed(nodes, [Route("192.168.0.0/16", "i-theirs", owned=False)]), quota=2)

    found = plan(observation, CLUSTER)

    assert lines(found) == [
        ("ignore", "route-table"),
        ("ignore", "route/10.1.1.0/24"),
        ("create", "route/10.1.0.0/24"),
        ("update", "node/a/network-unavailable"),
        ("update", "node/b/network-unavailable"),
    ]
    assert found.actions[1].operation == Unreachable(nodes[1])
    assert "quota of 2" in str(found.actions[1].reason)
    assert [action.changes[0].after for action in found.actions[3:]] == ["False", "True"]


def test_a_route_that_is_removed_makes_room_for_another() -> None:
    observation = replace(observed([node("a", "10.1.0.0/24")], [Route("10.1.7.0/24", "i-x")]), quota=1)

    assert ("create", "route/10.1.0.0/24") in lines(plan(observation, CLUSTER))


def test_a_route_that_was_refused_is_left_alone_for_a_while_and_its_node_is_not_available() -> None:
    observation = replace(
        observed([node("a", "10.1.0.0/24")], [Route("10.1.7.0/24", "i-x")]),
        refused={"10.1.0.0/24": "no", "10.1.7.0/24": "no"},
    )

    assert lines(plan(observation, CLUSTER)) == [
        ("ignore", "route/10.1.7.0/24"),
        ("ignore", "route/10.1.0.0/24"),
        ("update", "node/a/network-unavailable"),
    ]


CIDRS = st.integers(0, 9).map("10.1.{}.0/24".format)
NAMES = st.sampled_from("abcdef")


@given(
    nodes=st.dictionaries(NAMES, CIDRS),
    routes=st.dictionaries(
        CIDRS, st.builds(Route, st.just(""), NAMES.map("i-{}".format), st.booleans(), st.booleans())
    ),
    delete_foreign=st.booleans(),
)
def test_after_a_plan_is_carried_out_nothing_is_left_to_do(
    nodes: dict[str, str], routes: dict[str, Route], delete_foreign: bool
) -> None:
    ranges = dict(zip(nodes.values(), nodes, strict=False))  # A pod range is one node's.
    present = [node(name, cidr) for cidr, name in ranges.items()]
    table = {cidr: Route(cidr, r.target_instance, r.blackhole, r.owned) for cidr, r in routes.items()}
    options = DELETE_FOREIGN if delete_foreign else CLUSTER

    for action in plan(observed(present, table.values(), "abcdef"), options).changes:
        kind, _, cidr = action.target.partition("/")
        if kind == "route":
            table.pop(cidr, None)
            if action.kind is not ActionKind.DELETE:
                table[cidr] = action.operation.route  # type: ignore[attr-defined]

    again = plan(observed(present, table.values(), "abcdef"), options)
    assert [action.target for action in again.changes if action.target.startswith("route/")] == []
    assert [r for r in routes.values() if not r.owned and not delete_foreign] == [
        Route("", table[cidr].target_instance, table[cidr].blackhole, False)
        for cidr, r in routes.items()
        if not r.owned and not delete_foreign
    ]


def test_the_cloud_is_asked_for_the_machines_of_nodes_with_pod_ranges_only(cloud: Any) -> None:
    cloud.machine("a")

    observation = observe_nodes([node("a", "10.1.0.0/24"), node("b")], cloud, InstanceSnapshot(cloud))

    assert cloud.describes == [1]
    assert set(observation.instances) == {"a"}


def test_a_network_is_not_called_missing_because_the_cloud_denied_its_machine_once(cloud: Any) -> None:
    class Once:
        """Denies the machine the first time."""

        asked = 0

        def list(self) -> Sequence[Instance]:
            return []

        def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
            self.asked += 1
            return dict.fromkeys(refs, None if self.asked == 1 else machine("a"))

    cloud.table = [Route("10.1.0.0/24", "i-a")]

    observation = observe_nodes([node("a", "10.1.0.0/24")], cloud, InstanceSnapshot(Once()))

    assert len(plan(observation, CLUSTER)) == 0


def test_a_cloud_without_routes_is_refused_by_name(cloud: Any) -> None:
    class Routeless:
        provider_name = "plain"
        routes = None

    with pytest.raises(InvalidConfiguration, match="cloud plain does not support routes"):
        observe_nodes([], Routeless(), InstanceSnapshot(cloud))  # type: ignore[arg-type]


def test_a_route_that_fails_spoils_neither_the_others_nor_hides(cloud: Any) -> None:
    cloud.machine("a")
    cloud.machine("b")
    cloud.refuse_routes_to = {"i-a"}
    nodes = [node("a", "10.1.0.0/24", network=("True", "NoRouteCreated")), node("b", "10.1.1.0/24")]
    api = FakeKubernetes()
    events = EventRecorder(api, "test-controller")

    found = plan(observe_nodes(nodes, cloud, InstanceSnapshot(cloud)), CLUSTER)
    results = apply.run(
        Plan.of(action for action in found if action.target.startswith("route/")),
        kube=api,
        cloud=cloud,
        events=events,
        controller="route",
    )

    assert [str(result) for result in results] == ["route/10.1.0.0/24: i-a takes no routes", "route/10.1.1.0/24: done"]
    assert events.close(60)
    assert api.events == [("a", "FailedToCreateRoute", "Could not create route 10.1.0.0/24: i-a takes no routes")]
    assert [route.target_instance for route in cloud.table] == ["i-b"]
