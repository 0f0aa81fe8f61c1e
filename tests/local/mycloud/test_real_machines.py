"""Clusters and machines of a real site: a control plane, and nodes through their life."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import NODES, Kube, NotFoundError, Object
from local import processes
from local.control_plane.components import COMPONENTS
from local.machine.processes import MARK
from local.mycloud.site import Site
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

DEADLINE = 90.0


class Cloud:
    """A site with a cluster, and clients of both."""

    def __init__(self, site: Site) -> None:
        site.up()
        self.site = site
        self.api = Client(site.endpoint, site.token)
        self.network = self.ready("networks", {"name": "n"})["id"]
        self.subnet = self.ready("subnets", {"name": "s", "network_id": self.network, "zone": "zone-b"})["id"]
        self.cluster = self.ready("clusters", {"name": "c", "network_id": self.network})
        self.kube = Kube.from_kubeconfig(self.api.get_path(f"clusters/{self.cluster['id']}/kubeconfig")["kubeconfig"])

    def ready(self, collection: str, body: dict[str, Any], state: str = "available") -> dict[str, Any]:
        made = self.api.create(collection, body)
        return self.api.wait_for_state(collection, made["id"], [state], DEADLINE)

    def machine(self, name: str, role: str = "worker", **more: Any) -> dict[str, Any]:
        body = {"name": name, "subnet_id": self.subnet, "cluster_id": self.cluster["id"], "type": "m1.small"}
        return self.ready("machines", {**body, "role": role, **more}, "running")

    def pid(self, machine: dict[str, Any]) -> int | None:
        process = processes.find(self.site.folder.process_record(machine["id"]))
        return None if process is None else process.pid

    def node(self, name: str) -> Object | None:
        try:
            return self.kube.get(NODES, name)
        except NotFoundError:
            return None

    def is_ready(self, name: str) -> bool:
        node = self.node(name)
        conditions = node["status"].get("conditions", []) if node else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    site = Site(tmp_path_factory.mktemp("site") / "state")
    try:
        yield Cloud(site)
    finally:
        site.down()


def test_a_machine_registers_its_node_and_an_admin_labels_that_of_a_control_plane(cloud: Cloud) -> None:
    machine = cloud.machine("cp-0", "control-plane", node_labels={"tier": "control"}, register_provider_id=True)

    eventually(lambda: cloud.is_ready("cp-0"), "the node is ready", DEADLINE)
    label = "node-role.kubernetes.io/control-plane"
    eventually(lambda: label in (cloud.node("cp-0") or {})["metadata"]["labels"], "an admin labels it", DEADLINE)
    node = cloud.node("cp-0")
    assert node is not None
    assert node["metadata"]["labels"]["tier"] == "control"
    assert node["spec"]["providerID"] == f"mycloud://local/zone-b/{machine['id']}"
    assert "node.cloudprovider.kubernetes.io/uninitialized" in [taint["key"] for taint in node["spec"]["taints"]]


def test_a_rebooted_machine_is_another_process_with_the_same_node(cloud: Cloud) -> None:
    machine = cloud.machine("rebooted")
    eventually(lambda: cloud.is_ready("rebooted"), "the node is ready", DEADLINE)
    before, node = cloud.pid(machine), cloud.node("rebooted")

    cloud.api.post(f"machines/{machine['id']}/reboot")

    eventually(lambda: cloud.pid(machine) not in (None, before), "another process runs", DEADLINE)
    eventually(lambda: cloud.is_ready("rebooted"), "the node is ready", DEADLINE)
    after = cloud.node("rebooted")
    assert node is not None
    assert after is not None
    assert after["metadata"]["uid"] == node["metadata"]["uid"]


def test_a_machine_whose_process_is_killed_is_stopped_and_one_that_is_terminated_leaves_nothing(cloud: Cloud) -> None:
    machine = cloud.machine("killed")
    eventually(lambda: cloud.is_ready("killed"), "the node is ready", DEADLINE)

    process = processes.find(cloud.site.folder.process_record(machine["id"]))
    assert process is not None
    process.signal(signal.SIGKILL)
    stopped = cloud.api.wait_for_state("machines", machine["id"], ["stopped"], DEADLINE)
    assert stopped["state_reason"] == "its process ended"
    eventually(lambda: not cloud.is_ready("killed"), "the node is not ready", DEADLINE)

    cloud.site.boot_crashed_machines()
    eventually(lambda: cloud.is_ready("killed"), "the node is ready", DEADLINE)

    mark = {MARK: str(cloud.site.folder.machine(machine["id"]))}
    with subprocess.Popen(["sleep", "600"], env=mark, start_new_session=True) as left_behind:
        cloud.api.delete("machines", machine["id"])
        gone = cloud.api.wait_for_state("machines", machine["id"], ["terminated"], DEADLINE)
        assert left_behind.wait(DEADLINE) == -signal.SIGKILL
    assert gone["terminated_at"] is not None
    assert not cloud.site.folder.machine(machine["id"]).exists()


def test_a_killed_control_plane_restarts_with_its_data_and_is_deleted_with_its_cluster(cloud: Cloud) -> None:
    nodes = {node["metadata"]["name"] for node in cloud.kube.list(NODES).items}
    directory: Path = cloud.site.folder.cluster(cloud.cluster["id"])
    components = processes.find_all(directory / "processes")
    assert len(components) == len(COMPONENTS)
    for component in components:
        component.signal(signal.SIGKILL)
        assert component.wait(DEADLINE)

    # Each replaces a killed one: until this is noticed, the cluster still counts as available.
    eventually(lambda: len(processes.find_all(directory / "processes")) == len(COMPONENTS), "all run again", DEADLINE)
    cloud.api.wait_for_state("clusters", cloud.cluster["id"], ["available"], DEADLINE)
    assert {node["metadata"]["name"] for node in cloud.kube.list(NODES).items} == nodes

    for machine in cloud.api.list("machines"):
        cloud.api.delete("machines", machine["id"])
        cloud.api.wait_for_state("machines", machine["id"], ["terminated"], DEADLINE)
    cloud.api.delete("clusters", cloud.cluster["id"])
    cloud.api.wait_until_gone("clusters", cloud.cluster["id"], DEADLINE)
    assert not directory.exists()
