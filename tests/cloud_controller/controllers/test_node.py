"""What the node controller plans: each rule of upstream's node controller as a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.cloud import CloudError, Instance, InstanceState, NodeAddress
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.node import (
    ZONE_LABELS,
    NodeObservation,
    NodeOptions,
    UpdateNode,
    observe_nodes,
    patch_of,
    plan,
    plan_assumed,
)
from cloud_controller.controllers.nodes import PROVIDED_IP, UNINITIALIZED_TAINT
from cloud_controller.kube import Object
from cloud_controller.plan import Action, ActionKind, Plan

TAINT = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
INTERNAL = NodeAddress("InternalIP", "10.0.0.1")
SECOND = NodeAddress("InternalIP", "10.0.0.2")
HOSTNAME = NodeAddress("Hostname", "a")
MACHINE = Instance(
    "i-1", "fake://z/i-1", "a", "small", "zone-a", "local", InstanceState.RUNNING, addresses=(INTERNAL, HOSTNAME)
)
FACTS = {
    "node.kubernetes.io/instance-type": "small",
    "beta.kubernetes.io/instance-type": "small",
    "topology.kubernetes.io/zone": "zone-a",
    "failure-domain.beta.kubernetes.io/zone": "zone-a",
    "topology.kubernetes.io/region": "local",
    "failure-domain.beta.kubernetes.io/region": "local",
}


def new_node(name: str = "a", **metadata: Any) -> Object:
    """As a kubelet registers it."""
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **metadata},
        "spec": {"taints": [TAINT]},
        "status": {"addresses": [{"type": "Hostname", "address": name}]},
    }


def initialised_node(
    labels: Mapping[str, str] = FACTS, addresses: tuple[NodeAddress, ...] = (INTERNAL, HOSTNAME)
) -> Object:
    return {
        "metadata": {"name": "a", "uid": "uid-a", "resourceVersion": "1", "labels": {**labels}},
        "spec": {"providerID": "fake://z/i-1"},
        "status": {"addresses": [{"type": each.type, "address": each.address} for each in addresses]},
    }


def planned(node: Object, machine: Instance | None = MACHINE, error: CloudError | None = None) -> Plan:
    name = node["metadata"]["name"]
    return plan(NodeObservation((node,), {name: machine}, {name: error} if error else {}))


def only(plan: Plan) -> Action:
    (action,) = plan
    return action


def operation(plan: Plan) -> UpdateNode:
    found = only(plan).operation
    assert isinstance(found, UpdateNode)
    return found


def test_a_new_node_gets_provider_id_addresses_labels_and_loses_its_taint_in_one_action() -> None:
    action = only(planned(new_node()))

    assert (action.kind, action.target, action.summary) == (
        ActionKind.UPDATE,
        "node/a",
        "initialise as small in zone-a",
    )
    assert {change.field: change.after for change in action.changes} == {
        "spec.providerID": "fake://z/i-1",
        **{f"metadata.labels[{key}]": value for key, value in FACTS.items()},
        "status.addresses": ["InternalIP=10.0.0.1", "Hostname=a"],
        f"spec.taints[{UNINITIALIZED_TAINT}]": None,
    }


def test_an_initialised_node_that_is_as_its_machine_needs_nothing() -> None:
    assert len(planned(initialised_node())) == 0


def test_a_provider_id_is_never_written_over() -> None:
    node = new_node()
    node["spec"]["providerID"] = "fake://z/i-1"

    assert operation(planned(node)).provider_id is None


def test_labels_follow_a_machine_that_was_resized() -> None:
    action = only(planned(initialised_node(), replace(MACHINE, type="large")))

    assert {(change.field, change.before, change.after) for change in action.changes} == {
        ("metadata.labels[node.kubernetes.io/instance-type]", "small", "large"),
        ("metadata.labels[beta.kubernetes.io/instance-type]", "small", "large"),
    }


def test_of_what_the_cloud_does_not_tell_the_beta_label_says_what_todays_is() -> None:
    today, beta = ZONE_LABELS

    node = initialised_node({**FACTS, today: "old", beta: "b"})

    assert operation(planned(node, replace(MACHINE, zone=""))).labels == {today: "b"}


def test_a_label_that_neither_the_cloud_nor_its_beta_name_tells_is_left_alone() -> None:
    node = initialised_node({key: value for key, value in FACTS.items() if key != ZONE_LABELS[1]})

    assert len(planned(node, replace(MACHINE, zone=""))) == 0


def test_additional_labels_are_added_but_never_written_over_and_kubernetes_own_domains_are_dropped() -> None:
    node = initialised_node({**FACTS, "team": "theirs"})
    more = {"team": "ours", "rack": "7", "x.kubernetes.io/y": "1", "k8s.io/y": "1", "notk8s.io/y": "1"}

    assert operation(planned(node, replace(MACHINE, additional_labels=more))).labels == {
        "rack": "7",
        "notk8s.io/y": "1",
    }


def test_an_annotation_that_the_machine_does_not_have_is_taken_off_a_node_that_gave_it_itself() -> None:
    machine = replace(MACHINE, additional_annotations={"mycloud.io/ingress-node": None})
    node = initialised_node()
    assert len(planned(node, machine)) == 0
    node["metadata"]["annotations"] = {"mycloud.io/ingress-node": "true"}

    found = operation(planned(node, machine))

    assert patch_of(found, node) == {"metadata": {"annotations": {"mycloud.io/ingress-node": None}}}


def test_additional_annotations_follow_the_machine() -> None:
    machine = replace(MACHINE, additional_annotations={"mycloud.io/ingress-node": "true"})

    assert operation(planned(initialised_node(), machine)).annotations == {"mycloud.io/ingress-node": "true"}


def test_two_addresses_of_one_type_in_the_same_order_are_no_difference() -> None:
    both = (INTERNAL, SECOND, HOSTNAME)

    assert len(planned(initialised_node(addresses=both), replace(MACHINE, addresses=both))) == 0


def test_the_same_addresses_in_another_order_are_written() -> None:
    node = initialised_node(addresses=(SECOND, INTERNAL, HOSTNAME))

    assert operation(planned(node, replace(MACHINE, addresses=(INTERNAL, SECOND, HOSTNAME)))).addresses == (
        INTERNAL,
        SECOND,
        HOSTNAME,
    )


def test_a_machine_without_addresses_never_empties_a_node() -> None:
    assert len(planned(initialised_node(), replace(MACHINE, addresses=()))) == 0


def test_a_provided_ip_that_a_machine_without_addresses_can_not_have_keeps_the_taint() -> None:
    node = new_node(annotations={PROVIDED_IP: "10.0.0.1"})

    (action,) = planned(node, replace(MACHINE, addresses=()))

    assert action.kind is ActionKind.IGNORE
    assert "the cloud reports no address" in (action.reason or "")


def test_a_node_keeps_its_own_hostname_where_the_cloud_tells_none() -> None:
    assert operation(planned(new_node(), replace(MACHINE, addresses=(INTERNAL,)))).addresses == (INTERNAL, HOSTNAME)


def test_the_provided_ip_comes_first_and_alone_of_its_type() -> None:
    node = new_node(annotations={PROVIDED_IP: "10.0.0.2"})
    external = NodeAddress("ExternalIP", "192.0.2.1")
    machine = replace(MACHINE, addresses=(INTERNAL, external, SECOND, HOSTNAME))

    assert operation(planned(node, machine)).addresses == (SECOND, external, HOSTNAME)


def test_provided_ips_are_compared_as_addresses_not_as_text() -> None:
    ipv6 = NodeAddress("InternalIP", "2001:db8::1")
    node = new_node(annotations={PROVIDED_IP: "10.0.0.1, 2001:0db8:0::1"})

    assert operation(planned(node, replace(MACHINE, addresses=(ipv6, INTERNAL)))).addresses == (
        INTERNAL,
        ipv6,
        HOSTNAME,
    )


def test_a_provided_ip_that_the_machine_lacks_leaves_the_node_tainted_and_says_why() -> None:
    action = only(planned(new_node(annotations={PROVIDED_IP: "10.0.0.9"})))

    assert action.kind is ActionKind.IGNORE
    assert action.summary == "leave uninitialized"
    assert action.reason is not None
    assert "'10.0.0.9' is not an address of machine i-1 (allowed: 10.0.0.1, a)" in action.reason


@pytest.mark.parametrize("given", ["", "10.0.0.1,", "10.0.0.1,10.0.0.2", "10.0.0.1,fd00::1,10.0.0.2", "a", "fd00::1,a"])
def test_provided_ips_are_one_or_one_of_each_family_else_the_node_stays_tainted_and_says_why(given: str) -> None:
    machine = replace(MACHINE, addresses=(INTERNAL, SECOND, NodeAddress("InternalIP", "fd00::1"), HOSTNAME))

    action = only(planned(new_node(annotations={PROVIDED_IP: given}), machine))

    assert (action.kind, action.summary) == (ActionKind.IGNORE, "leave uninitialized")
    assert action.reason == (
        f"node a: annotation {PROVIDED_IP}: {given!r} is not valid"
        " (allowed: one IP address, or one IPv4 and one IPv6 address)"
    )


def test_a_host_name_that_the_kubelet_gave_itself_is_no_address_of_the_machine() -> None:
    node = new_node(annotations={PROVIDED_IP: "8.8.8.8"})
    node["status"]["addresses"] = [{"type": "Hostname", "address": "8.8.8.8"}]

    action = only(planned(node, replace(MACHINE, addresses=(INTERNAL,))))

    assert action.kind is ActionKind.IGNORE


def test_a_new_node_that_the_cloud_leaves_alone_stays_as_it_is_without_a_word() -> None:
    assert len(plan(NodeObservation((new_node(),), {}))) == 0


def test_a_new_node_without_a_machine_stays_tainted_and_says_what_was_asked_for() -> None:
    unnamed, named = new_node(), new_node()
    named["spec"]["providerID"] = "fake://z/i-1"

    found = [only(planned(each, None)) for each in (unnamed, named)]

    assert [action.kind for action in found] == [ActionKind.IGNORE, ActionKind.IGNORE]
    assert [action.reason for action in found] == [
        "the cloud has no machine named a (spec.providerID is empty)",
        "the cloud has no machine fake://z/i-1",
    ]


def test_a_new_node_whose_name_no_machine_has_says_which_one_has_its_address(cloud: Any) -> None:
    cloud.machine("web", addresses=(NodeAddress("InternalIP", "10.9.0.9"),))
    unnamed = new_node()
    unnamed["status"] = {"addresses": [{"type": "InternalIP", "address": "10.9.0.9"}]}

    action = only(plan(observe_nodes([unnamed], InstanceSnapshot(cloud))))

    assert action.kind is ActionKind.IGNORE
    assert "the cloud has no machine named a (spec.providerID is empty); machine i-web, named 'web'," in str(
        action.reason
    )


def test_an_initialised_node_without_a_machine_is_left_to_the_node_lifecycle_controller() -> None:
    assert len(planned(initialised_node(), None)) == 0


def test_a_machine_without_provider_id_leaves_the_node_tainted() -> None:
    action = only(planned(new_node(), replace(MACHINE, provider_id="")))

    assert action.kind is ActionKind.IGNORE
    assert "machine i-1 has no provider ID in the cloud" in str(action.reason)


def test_an_error_about_one_node_does_not_keep_the_others_from_being_initialised() -> None:
    nodes = (new_node("a"), new_node("b"))
    observation = NodeObservation(nodes, {"b": MACHINE}, {"a": CloudError("two machines have this name")})

    ignored, updated = plan(observation)

    assert (ignored.target, ignored.reason) == ("node/a", "two machines have this name")
    assert (updated.target, updated.kind) == ("node/b", ActionKind.UPDATE)


def test_a_declared_machine_that_is_no_node_yet_is_planned_as_assumed() -> None:
    observation = NodeObservation((initialised_node(),), {"a": MACHINE})

    assert plan(observation, NodeOptions(declared=frozenset({"a", "b"}))) == plan_assumed(["b"])


def test_without_a_cluster_every_declared_machine_is_assumed_in_order() -> None:
    assert [(action.target, action.assumed) for action in plan_assumed({"b", "a"})] == [
        ("node/a", True),
        ("node/b", True),
    ]


def test_the_patch_keeps_taints_that_others_set_meanwhile() -> None:
    wanted = operation(planned(new_node()))
    current = new_node()
    current["spec"]["taints"].append({"key": "theirs", "effect": "NoExecute"})

    patch = patch_of(wanted, current)

    assert patch is not None
    assert patch["spec"] == {"providerID": "fake://z/i-1", "taints": [{"key": "theirs", "effect": "NoExecute"}]}


def test_the_patch_leaves_out_what_another_has_done_meanwhile() -> None:
    wanted = replace(operation(planned(new_node())), labels={})

    assert patch_of(wanted, initialised_node()) is None
