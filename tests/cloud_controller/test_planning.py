"""The plans of several controllers, made one after the other, as `plan`, `apply` and the dry run make them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.kube import Object, Resource
from cloud_controller.planning import PlanSettings, find
from tests.cloud_controller.conftest import FakeCloud


class Cluster:
    """Nodes, as the API server lists them."""

    def __init__(self, *nodes: Object) -> None:
        self._nodes = nodes

    def list(self, _: Resource) -> Any:
        return SimpleNamespace(items=[*self._nodes])


def test_the_plans_of_all_controllers_ask_the_cloud_for_each_machine_once(cloud: FakeCloud) -> None:
    machine = cloud.machine("worker")
    node: Object = {
        "metadata": {"name": "worker", "uid": "uid-1", "annotations": {}, "labels": {}},
        "spec": {"providerID": machine.provider_id, "podCIDRs": ["10.1.0.0/24"]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    machines = InstanceSnapshot(cloud)
    settings = PlanSettings(route=RouteOptions(("10.1.0.0/16",)))

    for controller in ("node", "node-lifecycle", "route"):
        find(controller, Cluster(node), cloud, machines, settings)  # type: ignore[arg-type]

    assert cloud.describes == [1]
