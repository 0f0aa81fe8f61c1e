"""Volumes of a real site under pods: kube-controller-manager decides about attachments, machines mount.

The tests act as the volume controller: they attach in mycloud and update the VolumeAttachment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import (
    CSI_DRIVERS,
    CSI_NODES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTACHMENTS,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
)
from local.machine.processes import can_mount
from local.mycloud.site import Site

pytestmark = pytest.mark.control_plane

DEADLINE = 90.0
DRIVER = "mycloud.io"


def eventually(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in time: {what}; last seen: {value!r}"
        time.sleep(0.1)
    return value


def text_of(file: Path) -> str:
    """The text written so far; a shell creates a file before it writes to it."""
    return file.read_text() if file.exists() else ""


class Cloud:
    """A site with two machines, whose cluster has the driver of its volumes."""

    def __init__(self, site: Site) -> None:
        site.up()
        self.site = site
        self.api = Client(site.endpoint, site.token)
        network = self.ready("networks", {"name": "n"})["id"]
        subnet = self.ready("subnets", {"name": "s", "network_id": network, "zone": "zone-b"})["id"]
        cluster = self.ready("clusters", {"name": "c", "network_id": network})["id"]
        self.kube = Kube.from_kubeconfig(self.api.get_path(f"clusters/{cluster}/kubeconfig")["kubeconfig"])
        place = {"subnet_id": subnet, "cluster_id": cluster, "type": "m1.small", "role": "worker"}
        self.machines = {
            name: self.ready("machines", {**place, "name": name}, "running")["id"] for name in ("one", "two")
        }
        driver = {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}}
        self.kube.create(CSI_DRIVERS, {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", **driver})
        for name in self.machines:
            self.has_pod_range(name)

    def ready(self, collection: str, body: dict[str, Any], state: str = "available") -> dict[str, Any]:
        made = self.api.create(collection, body)
        return self.api.wait_for_state(collection, made["id"], [state], DEADLINE)

    def has_pod_range(self, node: str) -> None:
        eventually(lambda: self.node(node)["spec"].get("podCIDR"), f"node {node} has a pod range")

    # -- the volume controller, by hand

    def claim(self, name: str, **volume_spec: Any) -> str:
        """A claim that is bound to a new volume; returns the volume's id."""
        volume = str(self.ready("volumes", {"name": name, "zone": "zone-b", "size_gib": 1})["id"])
        size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
        source = {"csi": {"driver": DRIVER, "volumeHandle": volume}, **volume_spec}
        persistent_volume = {
            "metadata": {"name": f"pv-{name}"},
            "spec": {"capacity": size, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain", **source},
        }
        spec = {"accessModes": modes, "resources": {"requests": size}, "storageClassName": ""}
        claim = {"metadata": {"name": name}, "spec": {**spec, "volumeName": f"pv-{name}"}}
        self.kube.create(PERSISTENT_VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", **persistent_volume})
        self.kube.create(
            PERSISTENT_VOLUME_CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}, "default"
        )
        return volume

    def attachment(self, name: str, node: str) -> Object | None:
        """The VolumeAttachment of a claim's volume to a node."""
        for each in self.kube.list(VOLUME_ATTACHMENTS).items:
            spec = each["spec"]
            if (spec["source"].get("persistentVolumeName"), spec["nodeName"]) == (f"pv-{name}", node):
                assert spec["attacher"] == DRIVER
                return each
        return None

    def attach(self, name: str, volume: str, node: str) -> None:
        """The volume controller's action for a VolumeAttachment, which must exist."""
        wish = eventually(lambda: self.attachment(name, node), f"the attach-detach controller wants {name} on {node}")
        self.api.post(f"volumes/{volume}:attach", {"machine_id": self.machines[node]})
        eventually(lambda: self.is_attached(volume), f"volume {volume} is attached")
        status = {"status": {"attached": True}}
        self.kube.patch(
            VOLUME_ATTACHMENTS, wish["metadata"]["name"], status, type=PatchType.MERGE, subresource="status"
        )

    def is_attached(self, volume: str) -> bool:
        attachment = self.api.get("volumes", volume)["attachment"]
        return attachment is not None and attachment["state"] == "attached"

    # -- pods

    def run(self, name: str, claim: str, node: str, script: str, **source: Any) -> Object:
        """A pod on the node that has the claim at /data and runs a shell script there."""
        container = {
            "name": "c",
            "image": "registry.local/web:1",
            "command": ["sh", "-c", f"cd /data && {script} && exec sleep 3600"],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        spec = {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim, **source}}],
        }
        return self.kube.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, "default"
        )

    def phase(self, name: str) -> str | None:
        try:
            return str(self.kube.get(PODS, name, "default")["status"]["phase"])
        except NotFoundError:
            return None

    def runs(self, name: str) -> None:
        eventually(lambda: self.phase(name) == "Running", f"pod {name} runs; events: {self.events(name)}")

    def delete(self, name: str) -> None:
        self.kube.delete(PODS, name, "default")
        eventually(lambda: self.phase(name) is None, f"pod {name} is gone")

    def events(self, about: str) -> list[str]:
        found = self.kube.list(EVENTS, "default", field_selector=f"involvedObject.name={about}").items
        return [f"{event['reason']}: {event['message']}" for event in found]

    def node(self, name: str) -> Object:
        found: Object = eventually(lambda: self._node(name), f"node {name} registers")
        return found

    def _node(self, name: str) -> Object | None:
        try:
            return self.kube.get(NODES, name)
        except NotFoundError:
            return None

    def registered_drivers(self, node: str) -> Object | None:
        """The CSINode, which a machine makes after its Node."""
        try:
            return self.kube.get(CSI_NODES, node)
        except NotFoundError:
            return None

    def in_use(self, node: str) -> list[str]:
        return self.node(node)["status"].get("volumesInUse") or []


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    site = Site(tmp_path_factory.mktemp("site") / "state")
    try:
        yield Cloud(site)
    finally:
        site.down()


def test_the_driver_is_registered_with_the_machines_id_for_as_long_as_the_node_lives(cloud: Cloud) -> None:
    registered = eventually(lambda: cloud.registered_drivers("one"), "the machine registers its driver")

    assert [(each["name"], each["nodeID"]) for each in registered["spec"]["drivers"]] == [
        (DRIVER, cloud.machines["one"])
    ]
    assert registered["metadata"]["ownerReferences"][0]["uid"] == cloud.node("one")["metadata"]["uid"]


def test_a_volume_follows_its_claim_from_pod_to_pod_and_from_node_to_node(cloud: Cloud) -> None:
    volume = cloud.claim("data")
    unique_name = f"kubernetes.io/csi/{DRIVER}^{volume}"

    cloud.run("writer", "data", "one", "echo written by one > file")
    eventually(lambda: cloud.in_use("one") == [unique_name], "the machine says that it wants the volume")
    assert cloud.phase("writer") == "Pending"
    cloud.attach("data", volume, "one")
    cloud.runs("writer")
    stored = cloud.site.folder.volume(volume) / "file"
    eventually(lambda: text_of(stored) == "written by one\n", "the pod has written")

    cloud.delete("writer")
    eventually(lambda: cloud.in_use("one") == [], "the machine says that it has done with the volume")
    eventually(lambda: cloud.attachment("data", "one") is None, "the attach-detach controller lets go of the volume")
    cloud.api.post(f"volumes/{volume}:detach", {"machine_id": cloud.machines["one"]})
    eventually(lambda: cloud.api.get("volumes", volume)["attachment"] is None, "the volume is detached")

    cloud.run("reader", "data", "two", "cat file > copy && echo and by two >> file")
    cloud.attach("data", volume, "two")
    cloud.runs("reader")
    eventually(lambda: stored.read_text() == "written by one\nand by two\n", "the pod has written too")
    assert (stored.parent / "copy").read_text() == "written by one\n"
    cloud.delete("reader")


def test_a_machine_may_read_what_its_own_pods_claim_and_nothing_else(cloud: Cloud) -> None:
    volume = cloud.claim("private")
    cloud.run("owner", "private", "one", "true")
    cloud.attach("private", volume, "one")
    cloud.runs("owner")
    attachment = cloud.attachment("private", "one")
    assert attachment is not None
    stranger = Kube.from_file(cloud.site.folder.machine(cloud.machines["two"]) / "kubelet.kubeconfig")

    for resource, name, namespace in (
        (PERSISTENT_VOLUME_CLAIMS, "private", "default"),
        (PERSISTENT_VOLUMES, "pv-private", None),
        (VOLUME_ATTACHMENTS, attachment["metadata"]["name"], None),
        (CSI_NODES, "one", None),
    ):
        with pytest.raises(ForbiddenError):
            stranger.get(resource, name, namespace)
    cloud.delete("owner")


def test_a_claim_that_is_read_only_in_the_pod_cannot_be_written(cloud: Cloud, tmp_path: Path) -> None:
    if not asyncio.run(can_mount(tmp_path)):
        pytest.skip("this user may not make mounts")
    volume = cloud.claim("protected")
    folder = cloud.site.folder.volume(volume)
    (folder / "file").write_text("kept\n")

    cloud.run("careless", "protected", "one", "(echo lost > file || true)", readOnly=True)
    cloud.attach("protected", volume, "one")
    cloud.runs("careless")

    pod = cloud.kube.get(PODS, "careless", "default")
    log = cloud.site.folder.machine(cloud.machines["one"]) / "pods" / pod["metadata"]["uid"] / "c.log"
    eventually(lambda: "Read-only" in log.read_text(), "the pod was refused")
    assert (folder / "file").read_text() == "kept\n"
    cloud.delete("careless")


def test_an_unsupported_persistent_volume_is_reported_in_an_event(cloud: Cloud) -> None:
    cloud.claim("foreign", csi=None, hostPath={"path": "/tmp"})

    cloud.run("stranger", "foreign", "one", "true")

    eventually(
        lambda: any("FailedMount" in each and "CSI driver mycloud.io" in each for each in cloud.events("stranger")),
        "an event says why the pod does not start",
    )
    cloud.delete("stranger")


def test_a_volume_that_is_not_attached_in_time_is_reported_in_an_event(cloud: Cloud) -> None:
    volume = cloud.claim("slow")
    cloud.run("patient", "slow", "one", "true")

    eventually(
        lambda: any("FailedMount" in each and volume in each for each in cloud.events("patient")),
        "an event says what the pod waits for",
    )

    cloud.attach("slow", volume, "one")
    cloud.runs("patient")
    cloud.delete("patient")


def test_pods_release_their_volumes_when_their_machine_stops_and_get_them_back_with_it(cloud: Cloud) -> None:
    volume = cloud.claim("left")
    cloud.run("holder", "left", "two", "echo started >> file")
    cloud.attach("left", volume, "two")
    cloud.runs("holder")
    starts = cloud.site.folder.volume(volume) / "file"
    eventually(lambda: text_of(starts) == "started\n", "the pod has written")

    cloud.api.post(f"machines/{cloud.machines['two']}/stop")
    cloud.api.wait_for_state("machines", cloud.machines["two"], ["stopped"], DEADLINE)

    assert cloud.in_use("two") == []
    assert cloud.is_attached(volume)

    cloud.api.post(f"machines/{cloud.machines['two']}/start")
    eventually(lambda: starts.read_text() == "started\n" * 2, "the pod runs again, on its volume")
    assert len(cloud.in_use("two")) == 1
