"""Undeclared objects in the cluster of stack `local`: `down` leaks none of them, whatever was killed.

Modules that run later need the shared stack up again: by its name, this one is the last of those with its `timeout`.
"""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.kube import PERSISTENT_VOLUME_CLAIMS, SERVICES, STORAGE_CLASSES
from tests.e2e.local_stack import LocalStack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

AT_ONCE = {
    "metadata": {"name": "at-once"},
    "provisioner": "mycloud.io/volume",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
SHOP = {
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {"type": "LoadBalancer", "selector": {"app.kubernetes.io/name": "web"}, "ports": [{"port": 8081}]},
}
DATA = {
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "at-once",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


@pytest.fixture(scope="module")
def stack(shared_stack: LocalStack) -> LocalStack:
    """The shared stack, with an undeclared Service with its load balancer and a claim with its volume."""
    kube = shared_stack.kube
    kube.create(SERVICES, SHOP)
    kube.create(STORAGE_CLASSES, AT_ONCE)
    kube.create(PERSISTENT_VOLUME_CLAIMS, DATA)
    eventually(lambda: ingress(shared_stack), "the Service has a load balancer")
    eventually(lambda: phase(shared_stack) == "Bound", "the claim has a volume")
    return shared_stack


def ingress(stack: LocalStack) -> list[Any]:
    status = stack.kube.get(SERVICES, "shop", "default")["status"]
    return list(status.get("loadBalancer", {}).get("ingress") or [])


def phase(stack: LocalStack) -> str:
    found = stack.kube.get(PERSISTENT_VOLUME_CLAIMS, "data", "default")
    return str(found.get("status", {}).get("phase"))


def ids(stack: LocalStack) -> dict[str, set[str]]:
    """The ids of everything in the cloud."""
    kinds = ("networks", "subnets", "clusters", "machines", "load_balancers", "volumes")
    return {kind: {each["id"] for each in stack.cloud.list(kind)} for kind in kinds}


def test_down_names_undeclared_objects_and_stops_before_the_first_deletion(stack: LocalStack) -> None:
    before = ids(stack)

    reported = stack.run("down", expect=1)

    assert "Service default/shop (127." in reported
    assert "PersistentVolumeClaim default/data" in reported
    assert "--delete-unmanaged" in reported
    assert "default/web" not in reported
    assert ids(stack) == before


def test_down_deletes_undeclared_objects_on_request_although_api_and_control_plane_machine_were_killed(
    stack: LocalStack,
) -> None:
    [machine] = [each for each in stack.cloud.list("machines") if each["role"] == "control-plane"]
    processes = stack.processes()
    stack.kill_machine(str(machine["id"]))
    stack.kill("mycloud's API")

    stack.run("down", "--delete-unmanaged")

    assert not (stack.state / "mycloud").exists()
    assert stack.running(processes) == []
