"""Nodes that do not say what their machines are, are found: provider IDs, labels and addresses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.cloud import NodeAddress, Unavailable
from cloud_controller.doctor.checks import kubernetes_flags, node_machines, routes
from cloud_controller.doctor.checks.node_facts import ADDRESSES, LABELS, PROVIDER_IDS
from cloud_controller.doctor.findings import Check, Severity
from cloud_controller.doctor.seen import Unreadable
from tests.cloud_controller.doctor.looks import World, ago, uninitialised

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


@pytest.fixture
def world() -> World:
    """A healthy node `a`."""
    world = World()
    world.node("a")
    return world


@pytest.mark.parametrize("check", [PROVIDER_IDS, LABELS, ADDRESSES], ids=lambda check: check.name)
def test_a_healthy_node_says_what_its_machine_is(world: World, check: Check) -> None:
    assert world.findings(check) == []


@pytest.mark.parametrize(
    "check",
    [PROVIDER_IDS, LABELS, ADDRESSES, node_machines.CHECK, routes.CHECK],
    ids=lambda check: check.name,
)
def test_nothing_is_said_about_what_the_cloud_does_not_answer(world: World, check: Check) -> None:
    world.cloud.error = Unavailable("GET machines: no answer")

    with pytest.raises(Unreadable, match="no answer"):
        world.findings(check)


# ---------------------------------------------------------------------------------------------------- provider IDs


def test_an_initialised_node_without_provider_id_is_found(world: World) -> None:
    world.change("a", lambda node: node["spec"].pop("providerID"))

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.what == "it has no provider ID"


def test_a_node_that_never_waited_has_no_provider_id_for_its_kubelets_flag(world: World) -> None:
    world.change("a", lambda node: node["spec"].pop("providerID"))

    (finding,) = world.findings(PROVIDER_IDS)
    (flag,) = world.findings(kubernetes_flags.CHECK)
    assert finding.follows_from == frozenset({kubernetes_flags.CHECK.name})
    assert finding.subject == flag.subject


def test_a_node_without_provider_id_whose_machine_the_cloud_does_not_know_is_found(world: World) -> None:
    world.change("a", lambda node: node["spec"].pop("providerID"))
    del world.cloud.machines["a"]

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.evidence == ("spec.providerID is empty; the CCM's plan finds no machine named a",)


def test_where_the_ccm_leaves_nodes_alone_nothing_is_said_of_the_machine_of_a_node_without_provider_id(
    world: World,
) -> None:
    world.change("a", lambda node: node["spec"].pop("providerID"))
    world.controllers = ("service",)

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.evidence == ("spec.providerID is empty; this CCM leaves out controller node",)


def test_a_node_that_waits_has_no_provider_id_for_that_reason(world: World) -> None:
    world.change("a", uninitialised)

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.follows_from == frozenset({"nodes-initialised"})


def test_a_new_node_may_have_no_provider_id() -> None:
    world = World()
    world.node("a", created=ago(seconds=60))
    world.change("a", uninitialised)

    assert world.findings(PROVIDER_IDS) == []


def test_the_provider_id_of_another_cloud_is_found(world: World) -> None:
    world.change("a", lambda node: node["spec"].update(providerID="kind://docker/kind/a"))

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.evidence == ("spec.providerID is kind://docker/kind/a; the cloud's begin with fake://",)


def test_a_provider_id_without_a_scheme_may_be_the_clouds() -> None:
    world = World()
    world.node("a", provider_id="cn-hangzhou.i-a")

    assert world.findings(PROVIDER_IDS) == []


def test_of_two_nodes_with_one_machine_the_younger_is_found(world: World) -> None:
    world.node("b", 1, created=ago(hours=1))
    world.change("b", lambda node: node["spec"].update(providerID="fake://zone-a/i-a"))

    (finding,) = world.findings(PROVIDER_IDS)
    assert finding.subject == "node/b"
    assert finding.evidence[1] == "machine i-a belongs to the older node a"


# ---------------------------------------------------------------------------------------------------------- labels


def test_a_wrong_zone_is_found_with_the_right_one(world: World) -> None:
    world.change("a", lambda node: node["metadata"]["labels"].update({ZONE: "zone-b"}))

    (finding,) = world.findings(LABELS)
    assert finding.evidence == (f"metadata.labels[{ZONE}]: zone-b -> zone-a",)
    assert finding.severity is Severity.WARNING


def test_a_missing_beta_label_is_found(world: World) -> None:
    beta = "failure-domain.beta.kubernetes.io/region"
    world.change("a", lambda node: node["metadata"]["labels"].pop(beta))

    (finding,) = world.findings(LABELS)
    assert finding.evidence == (f"metadata.labels[{beta}]: (none) -> local",)


@pytest.mark.parametrize("provider_id", ["fake://zone-a/i-a", "cn-hangzhou.i-a"])
def test_a_zone_that_the_cloud_does_not_say_is_found_missing(provider_id: str) -> None:
    world = World()
    world.node("a", zone="", provider_id=provider_id)

    (finding,) = world.findings(LABELS)
    assert finding.what == f"it has no label {ZONE}"


def test_labels_are_found_missing_where_the_ccm_leaves_nodes_alone(world: World) -> None:
    world.controllers = ("service",)
    world.change("a", lambda node: node["metadata"]["labels"].clear())

    (finding,) = world.findings(LABELS)
    assert finding.what == f"it has no label {REGION}, {ZONE}, node.kubernetes.io/instance-type"


def test_nothing_is_said_of_the_labels_of_another_clouds_node(world: World) -> None:
    world.change("a", lambda node: node["spec"].update(providerID="kind://docker/kind/a"))
    world.change("a", lambda node: node["metadata"]["labels"].clear())

    assert world.findings(LABELS) == []


def test_a_label_that_the_ccm_restores_meanwhile_is_none(world: World) -> None:
    world.change("a", lambda node: node["metadata"]["labels"].update({ZONE: "zone-b"}))
    world.meanwhile = lambda: world.change("a", lambda node: node["metadata"]["labels"].update({ZONE: "zone-a"}))

    assert world.findings(LABELS) == []


# ------------------------------------------------------------------------------------------------------- addresses


def test_an_address_that_the_machine_no_longer_has_is_found(world: World) -> None:
    machine = world.cloud.machines["a"]
    world.cloud.machines["a"] = replace(machine, addresses=(NodeAddress("InternalIP", "10.9.0.7"),))

    (finding,) = world.findings(ADDRESSES)
    assert finding.subject == "node/a"
    assert "10.9.0.1" in finding.evidence[0]
    assert "10.9.0.7" in finding.evidence[0]


def test_a_kubelets_address_that_its_machine_does_not_have_is_found(world: World) -> None:
    annotations = {"alpha.kubernetes.io/provided-node-ip": "10.9.9.9"}
    world.change("a", lambda node: node["metadata"].update(annotations=annotations))

    (finding,) = world.findings(ADDRESSES)
    assert finding.what == "its kubelet's --node-ip is not an address of its machine"
    assert world.findings(PROVIDER_IDS) == []


def test_what_is_wrong_with_a_provider_id_says_nothing_of_addresses(world: World) -> None:
    world.node("b", 1, created=ago(hours=1))
    world.change("b", lambda node: node["spec"].update(providerID="fake://zone-a/i-a"))

    assert world.findings(ADDRESSES) == []


@pytest.mark.parametrize("check", [LABELS, ADDRESSES], ids=lambda check: check.name)
def test_what_a_node_still_waits_for_is_another_checks(world: World, check: Check) -> None:
    world.change("a", uninitialised)
    world.change("a", lambda node: node["metadata"]["labels"].clear())
    world.change("a", lambda node: node["status"].update(addresses=[]))

    assert world.findings(check) == []
