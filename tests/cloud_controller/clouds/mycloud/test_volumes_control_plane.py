"""The volume controller as a whole with a real control plane: real binder, attach-detach controller, and rights."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller import rbac
from cloud_controller.cli.commands import main
from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.clouds.mycloud.names import DRIVER, PROVISIONER
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext
from cloud_controller.controllers.volume import controller as volume
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.controller import VolumeController, VolumeInformers
from cloud_controller.kube import (
    CSI_DRIVERS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Informer,
    Kube,
    NotFoundError,
    Object,
    Resource,
    name,
    uid,
)
from cloud_controller.metrics import Metrics
from cloud_controller.volumes import PV_TAG, ClaimOwner
from local.control_plane.control_plane import ControlPlane
from tests import waiting
from tests.cloud_controller.clouds.mycloud.data_plane import at_work
from tests.cloud_controller.guard import guard
from tests.cloud_controller.rights import user_with

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

CLASSES: dict[str, Object] = {
    "deleted": {"volumeBindingMode": "Immediate"},
    "retained": {"volumeBindingMode": "Immediate", "reclaimPolicy": "Retain"},
    "misspelt": {"volumeBindingMode": "Immediate", "parameters": {"tpye": "standard"}},
}


@pytest.fixture(scope="module", autouse=True)
def _classes(kube: Kube) -> Iterator[None]:
    """The classes and the driver that the program makes."""
    kube.create(CSI_DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True, "podInfoOnMount": False}})
    for class_name, more in CLASSES.items():
        made = {"metadata": {"name": class_name}, "provisioner": PROVISIONER, "allowVolumeExpansion": True, **more}
        kube.create(STORAGE_CLASSES, made)
    yield
    for class_name in CLASSES:
        kube.delete(STORAGE_CLASSES, class_name)
    kube.delete(CSI_DRIVERS, DRIVER)


@pytest.fixture(scope="module")
def daemon(control_plane: ControlPlane, kube: Kube) -> Iterator[Kube]:
    """An identity with the rights that the volume controller is given, and no other."""
    with user_with(control_plane, kube, "volume-controller-test", rbac.rules(["volume"])) as kubeconfig:
        yield Kube.from_kubeconfig(kubeconfig)


@pytest.fixture
def machine(site: MyCloudSite) -> dict[str, Any]:
    return site.machine("worker-0")


@pytest.fixture
def node(kube: Kube, machine: dict[str, Any]) -> Iterator[Object]:
    """An initialised node with a machine behind it."""
    labels = {view.ZONE: machine["zone"], view.REGION: "local"}
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    metadata = {"name": machine["name"], "labels": labels, "annotations": annotations}
    yield kube.create(NODES, {"metadata": metadata, "spec": {"providerID": provider_id(machine)}})
    kube.delete(NODES, machine["name"])


@contextmanager
def running(kube: Kube, site: MyCloudSite) -> Iterator[None]:
    """The controller at work, as one process of it."""
    stop, nodes, storage, cloud = threading.Event(), Informer(kube, NODES), VolumeInformers.of(kube), site.cloud
    context = ControllerContext(kube, cloud, nodes, Metrics(), InstanceSnapshot(cloud.instances), guard(kube))
    controller = VolumeController(context, storage, period=2.0, orphan_delay=1.0)
    for informer in (nodes, *storage):
        informer.start()
    for informer in (nodes, *storage):
        informer.wait_synced(60)
    controller.start(stop)
    try:
        yield
    finally:
        stop.set()
        assert controller.join(60)
        for informer in (nodes, *storage):
            informer.stop()


@pytest.fixture
def controller(kube: Kube, daemon: Kube, site: MyCloudSite, node: Object) -> Iterator[None]:  # noqa: ARG001
    """Cloud and controller at work; what a test leaves goes while they are."""
    with at_work(site), running(daemon, site):
        yield
        for claim in kube.list(PERSISTENT_VOLUME_CLAIMS).items:
            kube.delete(PERSISTENT_VOLUME_CLAIMS, name(claim), "default")
        eventually(lambda: kube.list(PERSISTENT_VOLUME_CLAIMS).items == [], "no claim is left")
        for pv in kube.list(PERSISTENT_VOLUMES).items:
            if view.reclaim_policy(pv) == "Retain":
                kube.delete(PERSISTENT_VOLUMES, name(pv))
        eventually(lambda: kube.list(PERSISTENT_VOLUMES).items == [], "no PersistentVolume is left")


eventually = partial(waiting.eventually, patience=120)
"""A few failures in a row, which a test may ask of the cloud, are a minute's backoff."""


def make_claim(kube: Kube, claim_name: str, storage_class: str = "deleted", size: str = "5Gi", **spec: Any) -> Object:
    body = {
        "metadata": {"name": claim_name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }
    return kube.create(PERSISTENT_VOLUME_CLAIMS, body)


def bound(kube: Kube, claim_name: str) -> Object:
    """The PersistentVolume of the claim, once it has one."""

    def found() -> str | None:
        claim = kube.get(PERSISTENT_VOLUME_CLAIMS, claim_name, "default")
        return claim["spec"].get("volumeName") if claim["status"].get("phase") == "Bound" else None

    return kube.get(PERSISTENT_VOLUMES, str(eventually(found, f"claim {claim_name} is bound")))


def exists(kube: Kube, resource: Resource, obj: Object) -> bool:
    try:
        return uid(kube.get(resource, name(obj), obj["metadata"].get("namespace"))) == uid(obj)
    except NotFoundError:
        return False


def consumer(kube: Kube, node: Object, claim_name: str) -> Object:
    """A pod on the node that uses the claim; nothing runs it."""
    spec = {
        "nodeName": name(node),
        "containers": [{"name": "c", "image": "none"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}],
    }
    return kube.create(PODS, {"metadata": {"name": "consumer", "namespace": "default"}, "spec": spec})


@pytest.mark.usefixtures("controller")
def test_a_retained_volume_stays_when_claim_and_persistent_volume_are_gone(kube: Kube, site: MyCloudSite) -> None:
    make_claim(kube, "kept", "retained")
    pv = bound(kube, "kept")
    eventually(
        lambda: view.PV_FINALIZER not in kube.get(PERSISTENT_VOLUMES, name(pv))["metadata"].get("finalizers", []),
        "the finalizer of a volume to be kept goes",
    )

    kube.delete(PERSISTENT_VOLUME_CLAIMS, "kept", "default")
    eventually(lambda: kube.get(PERSISTENT_VOLUMES, name(pv))["status"]["phase"] == "Released", "it is released")
    kube.delete(PERSISTENT_VOLUMES, name(pv))
    eventually(lambda: not exists(kube, PERSISTENT_VOLUMES, pv), "the PersistentVolume goes")

    # Another volume that is an orphan in earnest shows that the controller has looked, twice.
    claim = make_claim(kube, "gone", "no-such-class")
    orphan = make_by_hand(site, ClaimOwner(site.cluster["id"], uid(claim), "default", "gone"))
    kube.delete(PERSISTENT_VOLUME_CLAIMS, "gone", "default")
    eventually(lambda: not listed(site, orphan), "the orphan goes")
    assert [each["id"] for each in site.client.list("volumes")] == [pv["spec"]["csi"]["volumeHandle"]]


@pytest.mark.usefixtures("controller")
def test_a_persistent_volume_that_is_deleted_before_its_claim_leaks_nothing(kube: Kube, site: MyCloudSite) -> None:
    make_claim(kube, "data")
    pv = bound(kube, "data")

    kube.delete(PERSISTENT_VOLUMES, name(pv))
    kube.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")

    eventually(lambda: not exists(kube, PERSISTENT_VOLUMES, pv), "the PersistentVolume goes")
    eventually(lambda: site.client.list("volumes") == [], "and its volume")


def make_by_hand(site: MyCloudSite, owner: ClaimOwner) -> str:
    """The volume that a controller made before it was killed."""
    body = {"name": "made", "zone": "zone-b", "size_gib": 5, "tags": owner.tags, "client_token": owner.client_token}
    return str(site.client.create("volumes", body)["id"])


def listed(site: MyCloudSite, volume_id: str) -> bool:
    return volume_id in {each["id"] for each in site.client.list("volumes")}


@pytest.mark.usefixtures("controller")
def test_what_is_wrong_is_an_event_at_the_claim(kube: Kube, site: MyCloudSite) -> None:
    claim = make_claim(kube, "wrong", "misspelt")

    def messages() -> list[str]:
        found = [e for e in kube.list(EVENTS).items if e["involvedObject"].get("uid") == uid(claim)]
        return [e["message"] for e in found if e["reason"] == "ProvisioningFailed"]

    assert "did you mean 'type'" in eventually(messages, "an event tells")[0]
    assert site.client.list("volumes") == []


@pytest.mark.usefixtures("controller")
def test_a_persistent_volume_made_by_hand_gets_the_zone_of_its_volume(kube: Kube, site: MyCloudSite) -> None:
    made = site.client.create("volumes", {"name": "by-hand", "zone": "zone-b", "size_gib": 3})
    spec = {
        "capacity": {"storage": "3Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": made["id"]},
    }
    kube.create(PERSISTENT_VOLUMES, {"metadata": {"name": "by-hand"}, "spec": spec})

    eventually(lambda: kube.get(PERSISTENT_VOLUMES, "by-hand")["spec"].get("nodeAffinity"), "it has an affinity")

    pv = kube.get(PERSISTENT_VOLUMES, "by-hand")
    assert pv["spec"]["nodeAffinity"] == view.node_affinity("zone-b")
    assert pv["metadata"]["labels"] == {view.ZONE: "zone-b", view.REGION: "local"}


@pytest.mark.usefixtures("node", "kube")
def test_the_command_line_shows_and_does_what_the_daemon_would(
    control_plane: ControlPlane, site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1))
    kube = Kube.from_kubeconfig(admin)
    (tmp_path / "kubeconfig").write_text(admin)
    (tmp_path / "cloud.conf").write_text(render(Config(site.endpoint, site.controllers_token, site.cluster["id"])))
    where = [f"--cloud-config={tmp_path / 'cloud.conf'}", f"--kubeconfig={tmp_path / 'kubeconfig'}"]
    options = ["--cloud=mycloud", "--controllers=volume", *where]
    make_claim(kube, "data")
    eventually(lambda: volume.plan(volume.observe(kube, site.cloud)).changes, "the claim asks for a volume")

    assert main(["plan", *options]) == 0
    assert "claim/default/data: create a volume of 5 GiB in zone-b" in capsys.readouterr().out
    assert site.client.list("volumes") == []

    with at_work(site):
        assert main(["apply", "--yes", *options]) == 0

    assert bound(kube, "data")["metadata"]["labels"][view.ZONE] == "zone-b"
    (made,) = site.client.list("volumes")
    assert PV_TAG in made["tags"]
    with at_work(site):
        kube.delete(PERSISTENT_VOLUME_CLAIMS, "data", "default")
        (pv,) = kube.list(PERSISTENT_VOLUMES).items
        eventually(lambda: kube.get(PERSISTENT_VOLUMES, name(pv))["status"]["phase"] == "Released", "it is released")
        assert main(["apply", "--yes", *options]) == 0
    assert site.client.list("volumes") == []
