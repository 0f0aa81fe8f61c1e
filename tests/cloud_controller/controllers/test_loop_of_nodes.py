"""What the daemon's loops for nodes and routes ask of the cloud and write, pass by pass, on an API server in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cloud import InstanceState, Route, RouteFailure, Throttled, Unavailable
from cloud_controller.controllers import loop
from cloud_controller.controllers.loop import LoopController
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController, NodeLifecycleOptions
from cloud_controller.controllers.nodes import SHUTDOWN_TAINT, UNINITIALIZED_TAINT, condition, has_taint
from cloud_controller.controllers.route import RouteController, RouteOptions
from cloud_controller.kube import NODES, ForbiddenError
from tests.cloud_controller.conftest import FakeCloud, FakeRoutes
from tests.cloud_controller.controllers.nodes_in_memory import CIDR, Cluster


@pytest.fixture
def cluster(cloud: FakeCloud) -> Cluster:
    return Cluster(cloud)


# ------------------------------------------------------------------------------------------------------------- nodes


def test_a_new_node_is_two_writes_and_one_event(cluster: Cluster) -> None:
    cluster.cloud.machine("a")
    cluster.register("a")
    controller = NodeController(cluster.context)

    assert [*controller.reconcile(None)] == []

    assert cluster.writes == ["patch nodes/a/status", "patch nodes/a"]
    assert cluster.told(controller) == [("a", "Synced", "Node synced successfully")]


def test_what_its_own_writes_trigger_costs_neither_a_call_nor_a_write(cluster: Cluster) -> None:
    controller = NodeController(cluster.context)
    for number in range(100):
        cluster.cloud.machine(f"n{number}")
        cluster.register(f"n{number}")
    assert [*controller.reconcile(cluster.triggered(controller))] == []
    writes = len(cluster.writes)
    cluster.clock.now += 60  # As long as the writes of thousands of nodes take.

    again = cluster.triggered(controller)
    assert len(again) == 100
    assert [*controller.reconcile(again)] == []

    assert (cluster.cloud.describes, cluster.cloud.lists) == ([100], 0)
    assert len(cluster.writes) == writes


def test_thousands_of_nodes_that_register_one_after_another_cost_a_call_a_hundred(cluster: Cluster) -> None:
    controller = NodeController(cluster.context)
    registered = 0
    for arrive in (130, 270, 90, 310, 150, 50):  # Meanwhile the pass before was written.
        for number in range(registered, registered + arrive):
            cluster.cloud.machine(f"n{number:04}")
            cluster.register(f"n{number:04}")
        registered += arrive
        assert [*controller.reconcile(cluster.triggered(controller))] == []
        cluster.clock.now += 20
    while keys := cluster.triggered(controller):
        assert [*controller.reconcile(keys)] == []

    assert not any(has_taint(node, UNINITIALIZED_TAINT) for node in cluster.items())
    assert sum(cluster.cloud.describes) == registered == 1000
    assert len(cluster.cloud.describes) <= 11


def test_a_pass_over_all_sees_what_changed_in_the_cloud(cluster: Cluster) -> None:
    cluster.cloud.machine("a")
    cluster.register("a")
    controller = NodeController(cluster.context)
    assert [*controller.reconcile(None)] == []
    cluster.cloud.machine("a", type="large")
    cluster.clock.now += 300

    assert [*controller.reconcile(None)] == []

    assert cluster.stored["a"]["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "large"
    assert cluster.writes[2:] == ["patch nodes/a"], "the addresses are as they were"


def test_a_node_that_can_not_be_initialised_says_so_once_however_often_it_is_tried(cluster: Cluster) -> None:
    cluster.register("a")
    controller = NodeController(cluster.context)

    for _ in range(5):
        assert [*controller.reconcile(frozenset({"a"}))] == ["a"]

    assert [(who, reason) for who, reason, _ in cluster.told(controller)] == [("a", "NodeNotSynced")]


def test_a_node_that_claims_the_machine_of_an_older_one_stays_uninitialized_and_says_why(cluster: Cluster) -> None:
    cluster.cloud.machine("a")
    cluster.register("a")
    controller = NodeController(cluster.context)
    assert [*controller.reconcile(None)] == []
    cluster.register("b")
    cluster.stored["b"]["spec"]["providerID"] = "fake://zone-a/i-a"

    assert [*controller.reconcile(frozenset({"b"}))] == ["b"]

    assert has_taint(cluster.stored["b"], UNINITIALIZED_TAINT)
    assert "status" not in cluster.stored["b"] or "addresses" not in cluster.stored["b"]["status"]
    assert cluster.told(controller)[-1] == (
        "b",
        "NodeNotSynced",
        "leave uninitialized: machine i-a belongs to the older node a",
    )


def test_a_node_does_not_lose_its_machine_to_a_younger_one_that_was_registered_with_its_provider_id(
    cluster: Cluster,
) -> None:
    cluster.cloud.machine("b")
    cluster.register("b")
    cluster.register("c")
    cluster.stored["c"]["spec"]["providerID"] = "fake://zone-a/i-b"

    assert [*NodeController(cluster.context).reconcile(None)] == ["c"]

    assert cluster.stored["b"]["spec"]["providerID"] == "fake://zone-a/i-b"
    assert not has_taint(cluster.stored["b"], UNINITIALIZED_TAINT)


def test_both_delays_of_a_node_are_measured(cluster: Cluster) -> None:
    cluster.cloud.machine("a")
    cluster.register("a")

    assert [*NodeController(cluster.context).reconcile(None)] == []

    text = cluster.metrics.render().decode()
    assert "node_controller_cloud_provider_taint_removal_delay_seconds_count 1.0" in text
    assert "node_controller_initial_node_sync_delay_seconds_count 1.0" in text


# --------------------------------------------------------------------------------------------------------- lifecycle


def lost(cluster: Cluster, key: str = "a") -> None:
    """A node whose machine is gone, beside one that shows whose cluster this is."""
    cluster.cloud.machine("anchor")
    cluster.register("anchor", ready="True")
    cluster.stored["anchor"]["spec"]["providerID"] = "fake://zone-a/i-anchor"
    cluster.register(key, ready="Unknown")
    cluster.stored[key]["spec"] = {"providerID": f"fake://zone-a/i-{key}"}


def passes(controller: LoopController, monkeypatch: pytest.MonkeyPatch, *moments: float) -> Iterator[None]:
    for moment in moments:
        monkeypatch.setattr(
            "cloud_controller.controllers.node_lifecycle.time", SimpleNamespace(monotonic=lambda moment=moment: moment)
        )
        assert [*controller.reconcile(None)] == []
        yield


def test_without_a_grace_period_the_node_of_a_machine_that_is_gone_goes_at_once(cluster: Cluster) -> None:
    lost(cluster)
    controller = NodeLifecycleController(cluster.context)

    assert [*controller.reconcile(None)] == []

    assert cluster.writes == ["delete nodes/a"]
    assert cluster.told(controller) == [
        ("a", "DeletingNode", "Deleting node a because it does not exist in the cloud provider")
    ]


def test_the_grace_period_begins_when_the_machine_is_first_found_missing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(cluster)
    controller = NodeLifecycleController(cluster.context, options=NodeLifecycleOptions(grace=30))
    steps = passes(controller, monkeypatch, 100, 129, 130)

    next(steps)
    next(steps)
    assert cluster.writes == []
    next(steps)
    assert cluster.writes == ["delete nodes/a"]


def test_a_machine_that_was_seen_meanwhile_gets_the_whole_grace_period_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(cluster)
    controller = NodeLifecycleController(cluster.context, options=NodeLifecycleOptions(grace=30))
    steps = passes(controller, monkeypatch, 100, 120, 130, 160)

    next(steps)
    cluster.cloud.machine("a")
    cluster.clock.now += 10
    next(steps)
    del cluster.cloud.machines["a"]
    cluster.clock.now += 10
    next(steps)
    assert cluster.writes == []
    next(steps)
    assert cluster.writes == ["delete nodes/a"]


def test_a_new_nodes_machine_that_the_cloud_does_not_know_yet_must_be_missing_for_a_minute(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(cluster)
    cluster.stored["a"]["spec"]["taints"] = [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}]
    steps = passes(NodeLifecycleController(cluster.context), monkeypatch, 100, 159, 160)

    next(steps)
    next(steps)
    assert cluster.writes == []
    next(steps)
    assert cluster.writes == ["delete nodes/a"]


@pytest.mark.parametrize(("last", "events"), [(159, []), (160, [("a", "NotDeletingNode")])])
def test_a_node_whose_address_a_machine_has_is_kept_and_after_a_minute_an_event_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, last: float, events: list[tuple[str, str]]
) -> None:
    lost(cluster)
    cluster.stored["a"]["spec"] = {}
    cluster.stored["a"]["status"]["addresses"] = [{"type": "InternalIP", "address": "10.9.0.1"}]
    controller = NodeLifecycleController(cluster.context)

    assert len([*passes(controller, monkeypatch, 100, 130, last)]) == 3

    assert (cluster.writes, cluster.cloud.lists) == ([], 1)
    assert [(who, reason) for who, reason, _ in cluster.told(controller)] == events


def test_while_the_cloud_does_not_answer_no_node_is_deleted_whatever_the_grace(cluster: Cluster) -> None:
    lost(cluster)
    cluster.cloud.error = Unavailable("down")

    with pytest.raises(Unavailable):
        NodeLifecycleController(cluster.context).reconcile(None)

    assert cluster.writes == []


def test_a_node_that_can_not_be_deleted_says_so_and_is_come_back_to(cluster: Cluster) -> None:
    lost(cluster)
    controller = NodeLifecycleController(cluster.context)
    cluster.api.fail(ForbiddenError(403, "Forbidden", "a webhook says no"), "delete")

    assert [*controller.reconcile(None)] == ["a"]

    assert [(of, reason) for of, reason, _ in cluster.told(controller)] == [
        ("a", "DeletingNode"),
        ("a", "DeletingNodeFailed"),
    ]


def test_the_state_of_an_older_nodes_machine_is_nothing_to_a_younger_one_that_claims_it(cluster: Cluster) -> None:
    cluster.cloud.machine("a", state=InstanceState.STOPPED)
    for key in ("a", "b"):
        cluster.register(key, ready="Unknown")
        cluster.stored[key]["spec"]["providerID"] = "fake://zone-a/i-a"

    assert [*NodeLifecycleController(cluster.context).reconcile(None)] == []

    assert [has_taint(cluster.stored[key], SHUTDOWN_TAINT) for key in ("a", "b")] == [True, False]


def test_a_stopped_machine_is_one_taint_however_often_it_is_seen(cluster: Cluster) -> None:
    cluster.cloud.machine("a", state=InstanceState.STOPPED)
    cluster.register("a", ready="False")
    controller = NodeLifecycleController(cluster.context)

    for _ in range(3):
        assert [*controller.reconcile(None)] == []

    assert has_taint(cluster.stored["a"], SHUTDOWN_TAINT)
    assert cluster.writes == ["patch nodes/a"]


# ------------------------------------------------------------------------------------------------------------ routes


def routed(cluster: Cluster, count: int) -> RouteController:
    """Nodes with pod ranges, and the controller."""
    for number in range(count):
        cluster.cloud.machine(f"n{number}")
        cluster.register(f"n{number}", f"10.1.{number}.0/24")
        cluster.stored[f"n{number}"]["spec"]["providerID"] = f"fake://zone-a/i-n{number}"
    return RouteController(cluster.context, RouteOptions((CIDR,)))


def at_rest(cluster: Cluster, count: int) -> RouteController:
    """The same after a first pass, in which all routes were written."""
    controller = routed(cluster, count)
    assert [*controller.reconcile(None)] == []
    return controller


def network(cluster: Cluster, key: str) -> str:
    found = condition(cluster.stored[key], "NetworkUnavailable")
    return found["status"] if found else "nothing"


def corrections(controller: RouteController) -> float | None:
    """What the daemon exports of drift that it corrected."""
    registry = controller.context.metrics.registry
    return registry.get_sample_value("cloud_controller_drift_corrections_total", {"controller": "route"})


def test_a_route_that_somebody_else_deleted_or_turned_counts_as_drift_once_it_is_corrected(cluster: Cluster) -> None:
    controller = at_rest(cluster, 3)
    before = corrections(controller)
    gone, turned, kept = cluster.cloud.table
    cluster.cloud.table = [replace(turned, target_instance=kept.target_instance), kept]

    controller.reconcile(None)
    controller.reconcile(None)

    assert gone in cluster.cloud.table
    assert (before, corrections(controller)) == (0.0, 2.0)


def test_drift_of_routes_counts_once_even_if_reading_and_correcting_it_fail_at_first(cluster: Cluster) -> None:
    controller = at_rest(cluster, 2)
    gone = cluster.cloud.table.pop(0)
    cluster.cloud.error = Unavailable("down")
    with pytest.raises(Unavailable):
        controller.reconcile(None)
    cluster.cloud.error = None
    cluster.cloud.refuse_routes_to.add(gone.target_instance)

    counts = []
    for _ in range(2):
        assert [*controller.reconcile(None)] == [f"route/{gone.destination_cidr}"]
        counts.append(corrections(controller))
    cluster.cloud.refuse_routes_to.clear()
    controller.reconcile(None)

    assert gone in cluster.cloud.table
    assert [*counts, corrections(controller)] == [1.0, 1.0, 1.0]


def test_a_route_that_a_new_node_needs_is_no_drift(cluster: Cluster) -> None:
    controller = at_rest(cluster, 1)
    cluster.cloud.machine("n9")
    cluster.register("n9", "10.1.9.0/24")
    cluster.stored["n9"]["spec"]["providerID"] = "fake://zone-a/i-n9"

    controller.reconcile(None)

    assert len(cluster.cloud.table) == 2
    assert corrections(controller) == 0.0


def test_a_route_that_the_cloud_made_a_blackhole_is_no_drift(cluster: Cluster) -> None:
    controller = at_rest(cluster, 2)
    cluster.cloud.table = [replace(route, blackhole=True) for route in cluster.cloud.table]

    controller.reconcile(None)

    assert not any(route.blackhole for route in cluster.cloud.table)
    assert corrections(controller) == 0.0


def test_a_change_is_written_from_the_table_that_is_known(cluster: Cluster) -> None:
    controller = at_rest(cluster, 3)
    cluster.cloud.machine("n9")
    cluster.register("n9", "10.1.9.0/24")

    assert [*controller.reconcile(frozenset({"n9"}))] == []

    assert cluster.cloud.route_lists == 1
    assert [route.target_instance for route in cluster.cloud.table] == ["i-n0", "i-n1", "i-n2", "i-n9"]
    assert network(cluster, "n9") == "False"


def test_a_younger_node_with_the_range_of_an_older_one_says_that_it_has_no_network(cluster: Cluster) -> None:
    controller = at_rest(cluster, 1)
    cluster.cloud.machine("young")
    cluster.register("young", "10.1.0.0/24")
    cluster.stored["young"]["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"

    assert [*controller.reconcile(frozenset({"young"}))] == []

    assert [route.target_instance for route in cluster.cloud.table] == ["i-n0"]
    assert (network(cluster, "n0"), network(cluster, "young")) == ("False", "True")
    why = "Could not create route 10.1.0.0/24: it overlaps 10.1.0.0/24 of the older node n0"
    assert cluster.told(controller) == [("young", "FailedToCreateRoute", why)]


@pytest.mark.parametrize("left", [1, 0], ids=["one of two", "the last one"])
def test_the_route_of_a_node_that_goes_is_removed_without_reading_the_table(cluster: Cluster, left: int) -> None:
    controller = at_rest(cluster, left + 1)
    cluster.api.remove(NODES, f"n{left}")

    assert [*controller.reconcile(frozenset({f"n{left}"}))] == []

    assert cluster.cloud.route_lists == 1
    assert [route.target_instance for route in cluster.cloud.table] == [f"i-n{number}" for number in range(left)]


def test_the_route_of_a_node_that_vanishes_without_a_deletion_is_held(cluster: Cluster) -> None:
    controller = at_rest(cluster, 2)
    del cluster.stored["n1"]

    assert [*controller.reconcile(None)] == []

    [held] = controller.context.safeguard.held()
    assert held.target == "route/10.1.1.0/24"
    assert held.reason == "its machine i-n1 exists, and the deletion of its Node was not seen"
    assert [route.target_instance for route in cluster.cloud.table] == ["i-n0", "i-n1"]


def test_an_earlier_deletion_of_a_node_says_nothing_about_the_one_that_its_machine_registers_again(
    cluster: Cluster,
) -> None:
    controller = at_rest(cluster, 2)
    again = cluster.stored["n1"]
    cluster.api.remove(NODES, "n1")
    assert [*controller.reconcile(None)] == []
    cluster.api.put(NODES, {**again, "metadata": {**again["metadata"], "uid": "uid-again"}})
    assert [*controller.reconcile(None)] == []
    del cluster.stored["n1"]

    assert [*controller.reconcile(None)] == []

    assert [action.target for action in controller.context.safeguard.held()] == ["route/10.1.1.0/24"]


def test_the_route_of_a_node_that_vanished_goes_with_its_machine(cluster: Cluster) -> None:
    controller = at_rest(cluster, 2)
    del cluster.stored["n1"]
    cluster.cloud.machines["n1"] = replace(cluster.cloud.machines["n1"], state=InstanceState.TERMINATED)

    assert [*controller.reconcile(None)] == []

    assert [route.target_instance for route in cluster.cloud.table] == ["i-n0"]


def test_which_machine_is_whose_is_not_asked_in_each_pass(cluster: Cluster) -> None:
    controller = routed(cluster, 2)

    for _ in range(10):
        assert [*controller.reconcile(None)] == []
        cluster.clock.now += 30

    assert (len(cluster.cloud.describes), cluster.cloud.lists) == (1, 0)


def test_after_a_write_whose_outcome_is_not_known_the_table_is_read(cluster: Cluster) -> None:
    controller = routed(cluster, 2)
    cluster.cloud.refuse_routes_to = {"i-n1"}
    assert [*controller.reconcile(None)] == ["route/10.1.1.0/24"]
    assert network(cluster, "n1") == "True"
    cluster.cloud.refuse_routes_to = set()

    assert [*controller.reconcile(frozenset({"route/10.1.1.0/24"}))] == []

    assert cluster.cloud.route_lists == 2
    assert network(cluster, "n1") == "False"


def test_a_route_that_is_refused_is_not_tried_again_before_its_time_whatever_else_happens(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "FIRST_RETRY", 1000.0)
    controller = routed(cluster, 2)
    cluster.cloud.refuse_routes_to = {"i-n1"}
    stop: Any = None
    controller._pass(frozenset({loop.EVERYTHING}), stop)
    writes = cluster.cloud.route_writes

    for _ in range(10):
        controller._pass(frozenset({"n0"}), stop)
        controller._pass(frozenset({loop.EVERYTHING}), stop)

    assert cluster.cloud.route_writes == writes
    assert network(cluster, "n1") == "True"


def test_a_cloud_that_wants_no_more_calls_is_left_in_peace_as_long_as_it_says(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = routed(cluster, 2)
    route = Route("10.1.0.0/24", "i-n0")
    monkeypatch.setattr(FakeRoutes, "create", lambda *_: [RouteFailure(route, Throttled("too many calls", 77.0))])
    waited: list[float | None] = []
    stop: Any = SimpleNamespace(wait=waited.append)

    controller._pass(frozenset({loop.EVERYTHING}), stop)

    assert waited == [77.0]


def test_a_full_table_costs_no_write_and_is_filled_when_there_is_room(cluster: Cluster) -> None:
    cluster.cloud.quota = 2
    controller = at_rest(cluster, 4)
    writes = cluster.cloud.route_writes
    assert [network(cluster, f"n{number}") for number in range(4)] == ["False", "False", "True", "True"]

    assert [*controller.reconcile(None)] == []
    assert cluster.cloud.route_writes == writes
    cluster.cloud.quota = 10
    assert [*controller.reconcile(None)] == []

    assert len(cluster.cloud.table) == 4
    assert [network(cluster, f"n{number}") for number in range(4)] == ["False"] * 4


def test_that_the_table_is_nearly_full_is_told_in_an_event_and_in_metrics_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.cloud.quota = 5
    controller = routed(cluster, 4)

    for _ in range(3):
        assert [*controller.reconcile(None)] == []

    told = [event for event in cluster.told(controller) if event[1] == "RouteQuotaNearlyUsed"]
    assert told == [
        (
            "kube-system",
            "RouteQuotaNearlyUsed",
            "4 of 5 routes are used: request a higher quota before adding nodes",
        )
    ]
    assert caplog.text.count("route quota nearly used used=4 quota=5") == 1
    text = cluster.metrics.render().decode()
    assert "cloud_controller_routes 4.0" in text
    assert "cloud_controller_route_quota 5.0" in text


def test_a_quota_that_shrank_unseen_is_an_error_a_route_and_asked_for_again(cluster: Cluster) -> None:
    cluster.cloud.quota = 100
    controller = at_rest(cluster, 2)
    cluster.cloud.quota = 2
    cluster.cloud.machine("n9")
    cluster.register("n9", "10.1.9.0/24")

    assert [*controller.reconcile(frozenset({"n9"}))] == ["route/10.1.9.0/24"]
    assert [*controller.reconcile(None)] == []

    assert cluster.metrics.registry.get_sample_value("cloud_controller_route_quota") == 2
    assert ("n9", "FailedToCreateRoute") in [(who, reason) for who, reason, _ in cluster.told(controller)]


# -------------------------------------------------------------------------------------------------------------- idle


def test_an_idle_cluster_costs_no_write_and_one_snapshot_a_period(cluster: Cluster) -> None:
    route = routed(cluster, 150)
    controllers = [NodeController(cluster.context), NodeLifecycleController(cluster.context), route]
    for _ in range(2):
        for controller in controllers:
            assert [*controller.reconcile(None)] == []
    cluster.clock.now += 6
    cluster.api.requests.clear()
    cluster.cloud.describes.clear()
    cluster.cloud.lists = cluster.cloud.route_lists = 0

    for _ in range(20):
        for controller in controllers:
            assert [*controller.reconcile(None)] == []
            cluster.clock.now += 2

    assert cluster.writes == []
    assert (cluster.cloud.lists, cluster.cloud.describes) == (20, [])
    assert cluster.cloud.route_lists == 20
