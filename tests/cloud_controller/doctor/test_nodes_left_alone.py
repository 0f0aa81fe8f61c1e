"""Nodes that the cloud leaves alone, as those of another provider, are no check's concern."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloud_controller.doctor.checks import kubernetes_flags, node_facts, node_machines, nodes, routes
from cloud_controller.doctor.findings import Check
from cloud_controller.kube import Object
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor.looks import World, not_ready, uninitialised


class SelectiveCloud(FakeCloud):
    """Leaves nodes of another provider alone."""

    def leaves_alone(self, node: Object) -> bool:
        return bool(node["metadata"]["name"] == "elsewhere")


def of_another_provider(node: Object) -> None:
    node["spec"]["providerID"] = "elsewhere://a"


def without_provider_id(node: Object) -> None:
    del node["spec"]["providerID"]


def stopped(node: Object) -> None:
    not_ready(node)
    node["spec"]["taints"] = [{"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}]


def without_route(node: Object) -> None:
    node["status"]["conditions"][1]["status"] = "True"


CASES: list[tuple[Check, Callable[[Object], None]]] = [
    (nodes.INITIALISED, uninitialised),
    (node_facts.PROVIDER_IDS, of_another_provider),
    (node_machines.CHECK, stopped),
    (routes.CHECK, without_route),
    (kubernetes_flags.CHECK, without_provider_id),
]


@pytest.mark.parametrize(("check", "change"), CASES, ids=[check.name for check, _ in CASES])
@pytest.mark.parametrize(("node", "findings"), [("elsewhere", 0), ("here", 1)], ids=["left alone", "the cloud's"])
def test_a_node_is_a_finding_only_if_the_cloud_does_not_leave_it_alone(
    check: Check, change: Callable[[Object], None], node: str, findings: int
) -> None:
    world = World(cloud=SelectiveCloud())
    world.node(node)
    world.change(node, change)

    assert len(world.findings(check)) == findings
