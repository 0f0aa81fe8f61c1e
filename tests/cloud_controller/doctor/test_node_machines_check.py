"""Nodes whose machines are gone or stopped are found, and machines that never became nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from cloud_controller.cloud import InstanceState
from cloud_controller.doctor.checks.node_machines import CHECK
from cloud_controller.kube import NODES, Object
from tests.cloud_controller.doctor.looks import NOW, World, not_ready, uninitialised

SHUTDOWN = {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}
HOSTS_OF_A = [("a",), ("A",), ("Web 1", "a")]
"""Names of a machine, and what its host may be called, that make node `a`: in lower case."""


@pytest.fixture
def world() -> World:
    """A healthy node `a`, and `b`, which is not ready."""
    world = World()
    world.node("a", created_at=NOW - timedelta(hours=12))
    world.node("b", 1)
    world.change("b", not_ready)
    return world


def test_a_node_that_is_not_ready_while_its_machine_runs_is_not_the_clouds_matter(world: World) -> None:
    assert world.findings(CHECK) == []


def test_a_node_whose_machine_is_gone_is_found(world: World) -> None:
    del world.cloud.machines["b"]

    (finding,) = world.findings(CHECK)
    assert finding.subject == "node/b"
    assert finding.evidence == ("delete the node: it does not exist in the cloud provider",)


@pytest.mark.parametrize("names", HOSTS_OF_A)
def test_a_ready_node_is_found_whose_machine_was_replaced_by_one_of_the_same_name(
    world: World, names: tuple[str, ...]
) -> None:
    replaced = world.cloud.machines["a"]
    world.cloud.machines["a"] = replace(
        replaced, id="i-a2", provider_id="fake://zone-a/i-a2", name=names[0], host_names=names[1:]
    )

    (finding,) = world.findings(CHECK)

    assert finding.subject == "node/a"
    assert finding.evidence == ("spec.providerID fake://zone-a/i-a; machine i-a2 has its name",)
    assert "restart the kubelet of machine i-a2" in finding.remedy


@pytest.mark.parametrize(
    ("change", "cause"),
    [(uninitialised, "nodes-initialised"), (lambda node: node["spec"].pop("providerID"), "provider-ids")],
    ids=["never initialised", "no provider ID"],
)
def test_a_machine_is_not_found_for_what_the_node_lacks(
    world: World, change: Callable[[Object], object], cause: str
) -> None:
    del world.cloud.machines["b"]
    world.change("b", change)

    (finding,) = world.findings(CHECK)
    assert finding.follows_from == frozenset({cause})


def test_the_machine_of_a_node_with_the_provider_id_of_another_is_not_found_for_that_reason(world: World) -> None:
    world.change("b", lambda node: node["spec"].update(providerID="fake://zone-a/i-a"))

    (finding,) = world.findings(CHECK)
    assert "belongs to the older node a" in finding.evidence[0]
    assert finding.follows_from == frozenset({"provider-ids"})


def test_a_node_that_the_ccm_deletes_meanwhile_is_none(world: World) -> None:
    del world.cloud.machines["b"]
    world.meanwhile = lambda: world.api.remove(NODES, "b")

    assert world.findings(CHECK) == []


def test_a_deletion_that_is_held_is_another_checks(world: World) -> None:
    world.cloud.machines.clear()

    assert world.findings(CHECK) == []


@pytest.mark.parametrize("tainted", [True, False])
def test_a_node_whose_machine_is_stopped_is_found(world: World, tainted: bool) -> None:
    world.cloud.machine("b", state=InstanceState.STOPPED)
    if tainted:
        world.change("b", lambda node: node["spec"].update(taints=[SHUTDOWN]))

    (finding,) = world.findings(CHECK)
    assert (finding.subject, finding.what) == ("node/b", "its machine is stopped")


def test_a_node_that_is_ready_again_is_none_although_its_taint_is_still_there(world: World) -> None:
    world.change("a", lambda node: node["spec"].update(taints=[SHUTDOWN]))

    assert world.findings(CHECK) == []


def test_a_machine_that_never_became_a_node_is_found(world: World) -> None:
    world.cloud.machine("c", created_at=NOW - timedelta(minutes=11))

    (finding,) = world.findings(CHECK)
    assert (finding.subject, finding.what) == ("machine/i-c", "machine c of the cluster runs, and has no node")
    assert finding.evidence == ("created at 2026-01-01 11:49:00 UTC",)


def test_a_machine_may_take_ten_minutes_to_join(world: World) -> None:
    world.cloud.machine("c", created_at=NOW - timedelta(minutes=9))

    assert world.findings(CHECK) == []


def test_a_machine_of_unknown_age_may_just_have_been_started(world: World) -> None:
    world.cloud.machine("c")

    assert world.findings(CHECK) == []


@pytest.mark.parametrize("names", HOSTS_OF_A)
def test_a_machine_whose_node_has_no_provider_id_yet_has_joined(world: World, names: tuple[str, ...]) -> None:
    world.change("a", lambda node: node["spec"].pop("providerID"))
    made = world.cloud.machine("a", created_at=NOW - timedelta(minutes=11))
    world.cloud.machines["a"] = replace(made, name=names[0], host_names=names[1:])

    assert [each.subject for each in world.findings(CHECK) if "machine/" in each.subject] == []
