"""The plans of several controllers, made one after the other, as `plan`, `apply` and the dry run make them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cloud import CloudError
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.kube import NODES, PERSISTENT_VOLUMES, Object
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    HealthCheck,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
)
from cloud_controller.plan import Attention
from cloud_controller.planning import PlanSettings, find, unhealthy
from tests.cloud_controller.conftest import FakeCloud, FakeRoutes
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


def test_the_plan_of_volumes_asks_for_no_machines_that_another_plan_has_listed(cloud: FakeCloud) -> None:
    offered = SimpleNamespace(
        provisioner="fake/volume", driver="fake", parameters={}, largest_gib=100, list=lambda _=None: []
    )
    pv: Object = {
        "metadata": {"name": "left", "annotations": {"pv.kubernetes.io/provisioned-by": "fake/volume"}},
        "spec": {"csi": {"driver": "fake", "volumeHandle": "vol-1"}, "persistentVolumeReclaimPolicy": "Delete"},
        "status": {"phase": "Released"},
    }
    machine = cloud.machine("worker")
    api = FakeKubernetes()
    api.put(NODES, {"metadata": {"name": "worker"}, "spec": {"providerID": machine.provider_id}})
    api.put(PERSISTENT_VOLUMES, pv)
    machines = InstanceSnapshot(cloud)
    machines.cluster_machines()

    with_volumes: Any = SimpleNamespace(cluster_id=cloud.cluster_id, volumes=offered, instances=cloud)
    found = find("volume", api, with_volumes, machines, PlanSettings())

    assert [action.target for action in found.plan.changes] == ["pv/left"]
    assert cloud.lists == 1


def test_a_route_quota_that_cannot_be_read_prevents_no_plan(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: FakeRoutes) -> None:
        raise CloudError("the account has no quota service")

    monkeypatch.setattr(FakeRoutes, "quota", refuse)
    machine = cloud.machine("worker")
    api = FakeKubernetes()
    api.put(
        NODES, {"metadata": {"name": "worker"}, "spec": {"providerID": machine.provider_id, "podCIDR": "10.1.0.0/24"}}
    )

    found = find("route", api, cloud, InstanceSnapshot(cloud), PlanSettings(route=RouteOptions(("10.1.0.0/16",))))

    assert next(action.target for action in found.plan) == "route/10.1.0.0/24"


def test_a_service_without_a_healthy_backend_is_a_finding() -> None:
    def pool(name: str, service: str, *addresses: str) -> Pool:
        members = tuple(Member(address, 80, address) for address in addresses)
        return Pool(name, HealthCheck("TCP"), members, tags=Owner("c-1", f"uid-{service}", "default", service).tags)

    pools = (pool("a", "down", "1", "2"), pool("b", "up", "1", "2"), pool("c", "unknown", "1"), pool("d", "empty"))
    tags = Owner("c-1", "uid-down", "default", "down").tags
    lb = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, LoadBalancerModel("edge", pools=pools, tags=tags))
    health = {("a", "1", 80): False, ("a", "2", 80): False, ("b", "1", 80): False, ("b", "2", 80): True}

    (finding,) = unhealthy(lb, health, "c-1")
    assert (finding.target, finding.attention) == ("service/default/down", Attention.NO_HEALTHY_BACKEND)
    assert finding.reason == "none of the 2 backends of load balancer lb-1 passes its health check"
    assert not [*unhealthy(lb, health, "c-2")]
