"""The plans of several controllers, made one after the other, as `plan`, `apply` and the dry run make them."""

from __future__ import annotations

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.kube import NODES, Object
from cloud_controller.planning import PlanSettings, find
from tests.cloud_controller.conftest import FakeCloud
from tests.fake_kubernetes import FakeKubernetes


def test_the_plans_of_all_controllers_ask_the_cloud_for_each_machine_once(cloud: FakeCloud) -> None:
    machine = cloud.machine("worker")
    node: Object = {
        "metadata": {"name": "worker", "uid": "uid-1", "annotations": {}, "labels": {}},
        "spec": {"providerID": machine.provider_id, "podCIDRs": ["10.1.0.0/24"]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    api = FakeKubernetes()
    api.put(NODES, node)
    machines = InstanceSnapshot(cloud)
    settings = PlanSettings(route=RouteOptions(("10.1.0.0/16",)))

    for controller in ("node", "node-lifecycle", "route"):
        find(controller, api, cloud, machines, settings)

    assert cloud.describes == [1]
