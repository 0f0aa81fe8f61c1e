"""When a node is deleted, tainted or left alone: every case of state and reachability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest.mock import Mock

import pytest

from cloud_controller.cloud import (
    Conflict,
    Instance,
    InstanceRef,
    InstanceState,
    InvalidConfiguration,
    NodeAddress,
    Unavailable,
)
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.node_lifecycle import (
    NodeLifecycleObservation,
    NodeLifecycleOptions,
    SetShutdownTaint,
    observe_nodes,
    patch_of,
    plan,
)
from cloud_controller.controllers.nodes import SHUTDOWN_TAINT
from cloud_controller.kube import Object
from cloud_controller.plan import Action, ActionKind

TAINT = {"key": SHUTDOWN_TAINT, "effect": "NoSchedule"}


def node(name: str = "a", ready: str | None = "Unknown", *, tainted: bool = False) -> Object:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"providerID": f"fake://zone-a/i-{name}", **({"taints": [TAINT]} if tainted else {})},
        "status": {"conditions": [{"type": "Ready", "status": ready}] if ready else []},
    }


def machine(state: InstanceState) -> Instance:
    return Instance("i-a", "fake://z/i-a", "a", "small", "z", "r", state, ())


def actions(node: Object, instances: Mapping[str, Instance | None]) -> list[Action]:
    return [*plan(NodeLifecycleObservation((node,), instances))]


@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_a_node_that_is_not_ready_and_whose_machine_is_gone_is_deleted(ready: str | None) -> None:
    (action,) = actions(node(ready=ready), {"a": None})

    assert (action.kind, action.target) == (ActionKind.DELETE, "node/a")
    assert action.reason == "it does not exist in the cloud provider"


def test_where_the_cloud_has_none_of_the_nodes_machines_their_deletion_is_held(cloud: Any) -> None:
    planned = plan(observe_nodes([node(), node("b", ready="True")], InstanceSnapshot(cloud)))

    assert planned.changes == ()
    assert [action.target for action in planned.held] == ["node/a"]


@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_a_node_whose_machine_is_stopped_gets_the_shutdown_taint(ready: str | None) -> None:
    (action,) = actions(node(ready=ready), {"a": machine(InstanceState.STOPPED)})

    assert action.kind is ActionKind.UPDATE
    assert action.operation == SetShutdownTaint(node(ready=ready), True)


@pytest.mark.parametrize("state", InstanceState)
def test_a_tainted_node_keeps_its_taint_until_it_is_ready_again(state: InstanceState) -> None:
    assert actions(node(tainted=True), {"a": machine(state)}) == []


def test_a_ready_node_loses_the_taint() -> None:
    (action,) = actions(node(ready="True", tainted=True), {})

    assert action.operation == SetShutdownTaint(node(ready="True", tainted=True), False)


@pytest.mark.parametrize("state", [InstanceState.RUNNING, InstanceState.PENDING])
def test_a_node_whose_machine_runs_is_left_alone(state: InstanceState) -> None:
    assert actions(node(), {"a": machine(state)}) == []


def test_a_node_stays_until_its_machine_has_been_missing_for_the_grace_period() -> None:
    observation = NodeLifecycleObservation((node(),), {"a": None}, missing={"a": 29.0})
    options = NodeLifecycleOptions(grace=30)

    (action,) = plan(observation, options)
    assert (action.kind, action.reason) == (
        ActionKind.IGNORE,
        "its machine has been missing for 29 s; deleted after 30 s",
    )

    (action,) = plan(replace(observation, missing={"a": 30.0}), options)
    assert action.kind is ActionKind.DELETE


def test_a_machine_that_only_its_name_tells_must_be_missing_for_a_minute() -> None:
    unidentified = node()
    del unidentified["spec"]["providerID"]
    observation = NodeLifecycleObservation((unidentified,), {"a": None})

    assert [action.kind for action in plan(observation)] == [ActionKind.IGNORE]
    assert [action.kind for action in plan(replace(observation, missing={"a": 60.0}))] == [ActionKind.DELETE]


def nameless(name: str = "web", *addresses: str) -> Object:
    """A node without provider ID, which has long not been ready."""
    unidentified = node(name)
    del unidentified["spec"]["providerID"]
    entries = [{"type": "InternalIP", "address": each} for each in addresses]
    unidentified["status"]["addresses"] = [*entries, {"type": "Hostname", "address": "10.9.0.1"}]
    return unidentified


def after_a_minute(cloud: Any, *nodes: Object) -> list[Action]:
    observation = observe_nodes(nodes, InstanceSnapshot(cloud))
    return [*plan(replace(observation, missing={each["metadata"]["name"]: 60.0 for each in nodes}))]


@pytest.mark.parametrize(
    ("kind", "machines", "nodes"),
    [
        ("InternalIP", "10.9.0.9", "10.9.0.9"),
        ("ExternalIP", "203.0.113.9", "203.0.113.9"),
        ("InternalIP", "10.9.0.9", "::ffff:10.9.0.9"),
        ("InternalIP", "fd00::9", "FD00:0:0::0009"),
    ],
)
def test_a_node_stays_while_a_machine_of_another_name_has_its_address(
    cloud: Any, kind: str, machines: str, nodes: str
) -> None:
    cloud.machine("b", addresses=(NodeAddress(kind, machines),))

    (action,) = after_a_minute(cloud, nameless("web", nodes), node("b", "True"))

    assert action.kind is ActionKind.IGNORE
    assert "machine i-b, named 'b', has its address" in str(action.reason)
    assert """kubectl patch node web -p '{"spec":{"providerID":"fake://zone-a/i-b"}}'""" in str(action.reason)


@pytest.mark.parametrize("addresses", [(), ("10.9.0.9",)])
def test_a_node_goes_whose_name_and_addresses_no_machine_has(cloud: Any, addresses: tuple[str, ...]) -> None:
    cloud.machine("gone", state=InstanceState.TERMINATED, addresses=(NodeAddress("InternalIP", "10.9.0.9"),))
    cloud.machine("b")

    (action,) = after_a_minute(cloud, nameless("web", *addresses), node("b", "True"))

    assert (action.kind, action.target) == (ActionKind.DELETE, "node/web")


def test_a_node_without_address_stays_while_a_machine_has_no_node(cloud: Any) -> None:
    for name in "bcdef":
        cloud.machine(name)

    (action,) = after_a_minute(cloud, nameless(), node("b", "True"))

    assert action.kind is ActionKind.IGNORE
    assert "these machines of the cluster have no node: i-c, i-d, i-e and 1 more" in str(action.reason)


def made(at: str, of: Object) -> Object:
    return {**of, "metadata": {**of["metadata"], "creationTimestamp": at}}


@pytest.mark.parametrize(
    ("day", "kind"),
    [("2026-01-02", ActionKind.DELETE), ("2026-01-01", ActionKind.IGNORE), ("2025-12-31", ActionKind.IGNORE)],
    ids=["used again", "not known", "host renamed"],
)
def test_the_address_of_another_nodes_machine_keeps_only_a_younger_node(cloud: Any, day: str, kind: ActionKind) -> None:
    cloud.machine("b", addresses=(NodeAddress("InternalIP", "10.9.0.5"),))
    web = made("2026-01-01T00:00:00Z", nameless("a-web", "10.9.0.5"))

    (action,) = after_a_minute(cloud, web, made(f"{day}T00:00:00Z", node("b", "True")))

    assert action.kind is kind


def test_a_machine_has_a_node_however_that_spells_its_provider_id(cloud: Any) -> None:
    machine = cloud.machine("b")
    ready = node("b", "True")
    ready["spec"]["providerID"] = "fake://i-b"
    describe = cloud.describe
    cloud.describe = lambda refs: {
        of: machine if of.provider_id == "fake://i-b" else each for of, each in describe(refs).items()
    }

    (action,) = after_a_minute(cloud, nameless(), ready)

    assert action.kind is ActionKind.DELETE


@pytest.mark.parametrize(
    ("created", "kind"),
    [
        (None, ActionKind.IGNORE),
        ("2025-12-31T23:59:00Z", ActionKind.IGNORE),
        ("2026-01-01T00:04:00Z", ActionKind.IGNORE),
        ("2026-01-01T00:06:00Z", ActionKind.DELETE),
    ],
)
def test_a_projects_machine_keeps_no_node_that_is_older(cloud: Any, created: str | None, kind: ActionKind) -> None:
    cloud.of_any_cluster = True
    cloud.machine("c", created_at=created and datetime.fromisoformat(created))
    cloud.machine("b")

    (action,) = after_a_minute(cloud, made("2026-01-01T00:00:00Z", nameless()), node("b", "True"))

    assert action.kind is kind
    assert ("these machines of the project have no node: i-c" in str(action.reason)) is (kind is ActionKind.IGNORE)


def test_a_node_that_only_its_name_tells_stays_if_machines_cannot_be_listed(cloud: Any) -> None:
    """Unlike one whose machine is gone by its ID: that a list is not new does not matter there."""
    now = 0.0
    machines = InstanceSnapshot(cloud, clock=lambda: now)
    cloud.machine("b")
    nodes = [nameless("web", "10.9.0.9"), node("gone"), node("b", "True")]
    observe_nodes(nodes, machines)

    now = 60.0
    cloud.list = Mock(side_effect=Unavailable("down"))
    observation = replace(observe_nodes(nodes, machines), missing={"web": 60.0})

    gone, web = plan(observation)
    assert (gone.kind, web.kind) == (ActionKind.DELETE, ActionKind.IGNORE)
    assert "could not list the cluster's machines: down" in str(web.reason)


def test_an_error_about_a_node_changes_nothing_and_is_reported() -> None:
    (action,) = plan(NodeLifecycleObservation((node(),), {}, {"a": InvalidConfiguration("node a", "wrong")}))

    assert (action.kind, action.reason) == (ActionKind.IGNORE, "node a: wrong")


def test_the_node_of_a_machine_that_is_removed_on_purpose_goes_though_it_is_ready() -> None:
    observation = NodeLifecycleObservation((node(ready="True"),), {})

    (action,) = plan(observation, NodeLifecycleOptions(removed=frozenset({"a"})))

    assert (action.kind, action.reason) == (ActionKind.DELETE, "its machine is being removed")


def test_only_nodes_that_are_not_ready_are_asked_about(cloud: Any) -> None:
    cloud.machine("b")

    observation = observe_nodes([node("a", "True"), node("b", "False")], InstanceSnapshot(cloud))

    assert cloud.describes == [1]
    assert set(observation.instances) == {"b"}


def test_no_node_costs_a_call_while_all_are_ready(cloud: Any) -> None:
    observe_nodes([node("a", "True"), node("b", "True")], InstanceSnapshot(cloud))

    assert cloud.describes == []


def test_that_a_machine_is_gone_is_asked_again_for_it_alone(cloud: Any) -> None:
    nodes = [node(f"n{number:03}", "False") for number in range(300)]
    for each in nodes[1:]:
        cloud.machine(each["metadata"]["name"])

    observation = observe_nodes(nodes, InstanceSnapshot(cloud))

    assert [name for name, found in observation.instances.items() if found is None] == ["n000"]
    assert (cloud.lists, cloud.describes) == (1, [1, 1])


def test_a_second_answer_that_is_an_error_deletes_nothing(cloud: Any) -> None:
    class Doubtful:
        """Says first that the machine is gone, then that two have this name."""

        asked = 0

        def list(self) -> Sequence[Instance]:
            return []

        def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
            self.asked += 1
            if self.asked == 2:
                raise Conflict("two machines are named a")
            found: Mapping[InstanceRef, Instance | None] = cloud.describe(refs)
            return found

    observation = observe_nodes([node("a")], InstanceSnapshot(Doubtful()))

    assert (set(observation.instances), set(observation.errors)) == (set(), {"a"})
    assert [action.kind for action in plan(observation)] == [ActionKind.IGNORE]


def test_the_patch_touches_no_other_taint() -> None:
    current = node()
    current["spec"]["taints"] = [{"key": "theirs", "effect": "NoExecute"}]

    patch = patch_of(SetShutdownTaint(node(), True), current)

    assert patch == {"spec": {"taints": [{"key": "theirs", "effect": "NoExecute"}, TAINT]}}


def test_there_is_no_patch_where_the_taint_is_already_as_wanted() -> None:
    assert patch_of(SetShutdownTaint(node(), True), node(tainted=True)) is None
    assert patch_of(SetShutdownTaint(node(), False), node()) is None
