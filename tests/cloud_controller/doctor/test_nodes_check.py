"""Nodes that wait for their initialisation are found, each with its cause."""

from __future__ import annotations

from cloud_controller.cloud import Unavailable
from cloud_controller.doctor.checks.nodes import INITIALISED
from cloud_controller.kube import NODES
from tests.cloud_controller.doctor.looks import World, ago, uninitialised


def waiting(name: str, **machine: str) -> World:
    """A world with a healthy node, and one that waits."""
    world = World()
    world.node("healthy")
    world.node(name, 1, **machine)
    world.change(name, uninitialised)
    return world


def test_a_healthy_cluster_has_no_node_that_waits() -> None:
    world = World()
    world.node("a")

    assert world.findings(INITIALISED) == []


def test_a_new_node_may_wait() -> None:
    world = World()
    world.node("a", created=ago(seconds=60))
    world.change("a", uninitialised)

    assert world.findings(INITIALISED) == []


def test_a_node_that_the_ccm_would_initialise_follows_from_what_keeps_the_ccm_from_it() -> None:
    (finding,) = waiting("a").findings(INITIALISED)

    assert finding.subject == "node/a"
    assert "waited for 12 h" in finding.what
    assert finding.follows_from is None


def test_a_node_without_a_machine_waits_for_that_alone() -> None:
    world = waiting("a")
    del world.cloud.machines["a"]

    (finding,) = world.findings(INITIALISED)
    assert "the cloud has no machine named a" in finding.evidence[1]
    assert "cluster's tag" in finding.remedy
    assert finding.follows_from == frozenset()


def test_a_node_with_the_provider_id_of_another_node_waits_for_that_alone() -> None:
    world = waiting("a")
    world.change("a", lambda node: node["spec"].update(providerID="fake://zone-a/i-healthy"))
    world.change("a", lambda node: node["metadata"].update(creationTimestamp=ago(hours=1)))

    (finding,) = world.findings(INITIALISED)
    assert "belongs to the older node healthy" in finding.evidence[1]
    assert finding.remedy.startswith("delete the node that does not run on this machine")


def test_a_node_whose_address_is_not_its_machines_waits_for_that_alone() -> None:
    world = waiting("a")
    annotations = {"alpha.kubernetes.io/provided-node-ip": "10.9.9.9"}
    world.change("a", lambda node: node["metadata"].update(annotations=annotations))

    (finding,) = world.findings(INITIALISED)
    assert "'10.9.9.9' is not an address of machine i-a" in finding.evidence[1]
    assert finding.remedy.startswith("correct what the reason names")


def test_a_node_waits_for_the_controller_that_the_ccm_does_not_run() -> None:
    world = waiting("a")
    world.controllers = ("service",)

    (finding,) = world.findings(INITIALISED)
    assert "controller node" in finding.remedy
    assert finding.follows_from == frozenset()


def test_while_the_cloud_fails_the_event_says_why_a_node_waits() -> None:
    world = waiting("a")
    world.event(world.api.objects(NODES)["a"], "NodeNotSynced", "leave uninitialized: the cloud is down")
    world.cloud.error = Unavailable("GET machines: no answer")

    (finding,) = world.findings(INITIALISED)
    assert finding.evidence[1] == "event NodeNotSynced: leave uninitialized: the cloud is down"
    assert finding.follows_from is None
