"""What is done to claims and attachments while the manager is killed or loses answers.

kube-controller-manager sleeps, so that the order of calls is the manager's alone: binding, releasing and attaching are
asked for here as it would ask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cloud_controller.clouds.mycloud.names import DRIVER, PROVISIONER
from cloud_controller.controllers.volume import objects as view
from cloud_controller.kube import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    NotFoundError,
    Object,
    PatchType,
    Resource,
    name,
    uid,
)
from cloud_controller.volumes import PV_TAG
from tests.crash.daemon import PATIENCE
from tests.crash.environment import Environment, Json, Manager, until
from tests.crash.trial import Scenario
from tests.words import said

SPACE = "default"
CLASS = "crash-test"


@dataclass
class VolumeRun:
    """One run of one scenario: a claim and an attachment under names that nobody had before, and a node."""

    manager: Manager
    machine: Json
    number: int = field(init=False)

    def __post_init__(self) -> None:
        self.number = next(self.environment.names)

    @property
    def environment(self) -> Environment:
        """The manager's."""
        return self.manager.environment

    # ------------------------------------------------------------------------------------------------ what others do

    def ask(self) -> None:
        """A claim whose consumer's node has been chosen."""
        annotations = {view.PROVISIONER_ANNOTATIONS[0]: PROVISIONER, view.SELECTED_NODE: self.machine["name"]}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "5Gi"}},
        }
        metadata = {"name": self.claim_name, "namespace": SPACE, "annotations": annotations}
        self.environment.kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": spec})

    def bind(self) -> None:
        """What the binder writes."""
        pv = self.pv()
        self._patch(PERSISTENT_VOLUME_CLAIMS, self.claim_name, {"spec": {"volumeName": name(pv)}})
        status = {"phase": "Bound", "capacity": pv["spec"]["capacity"], "accessModes": ["ReadWriteOnce"]}
        self._patch(PERSISTENT_VOLUME_CLAIMS, self.claim_name, {"status": status}, "status")
        self._patch(PERSISTENT_VOLUMES, name(pv), {"status": {"phase": "Bound"}}, "status")

    def grow(self) -> None:
        """More is asked for."""
        more = {"spec": {"resources": {"requests": {"storage": "7Gi"}}}}
        self._patch(PERSISTENT_VOLUME_CLAIMS, self.claim_name, more)

    def attach(self) -> None:
        """What the attach-detach controller asks for."""
        source = {"persistentVolumeName": name(self.pv())}
        spec = {"attacher": DRIVER, "nodeName": self.machine["name"], "source": source}
        self.environment.kube.create(VOLUME_ATTACHMENTS, {"metadata": {"name": self.attachment_name}, "spec": spec})

    def detach(self) -> None:
        """It asks for the end of it."""
        self.environment.kube.delete(VOLUME_ATTACHMENTS, self.attachment_name)

    def release(self) -> None:
        """The claim goes, and the binder says so."""
        pv = name(self.pv())
        self._remove(PERSISTENT_VOLUME_CLAIMS, self.claim_name, "kubernetes.io/pvc-protection")
        self._remove_finalizer(PERSISTENT_VOLUMES, pv, "kubernetes.io/pv-protection")
        self._patch(PERSISTENT_VOLUMES, pv, {"status": {"phase": "Released"}}, "status")

    def retain(self) -> None:
        """Somebody wants to keep the data."""
        policy = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
        self._patch(PERSISTENT_VOLUMES, name(self.pv()), policy)

    # -------------------------------------------------------------------------------------------------- what came out

    def pv(self) -> Object:
        """The claim's PersistentVolume; raises NotFoundError."""
        return self.environment.kube.get(PERSISTENT_VOLUMES, view.pv_name(uid(self._claim())))

    def provisioned(self) -> bool:
        """Whether the claim has its PersistentVolume, and the volume says so."""
        try:
            self.pv()
        except NotFoundError:
            return False
        return all(PV_TAG in volume["tags"] for volume in self.volumes())

    def attached(self) -> bool:
        """Whether kubelets may mount it."""
        found = self._objects(VOLUME_ATTACHMENTS)
        return bool(found) and all((each.get("status") or {}).get("attached") for each in found)

    def detached(self) -> bool:
        """Whether nothing is left of it."""
        return not self._objects(VOLUME_ATTACHMENTS)

    def grown(self) -> bool:
        """Whether the claim tells its new size."""
        return bool(view.capacity(self._claim(), "status") == "7Gi")

    def removed(self) -> bool:
        """Whether neither PersistentVolume nor volume is left."""
        return not self._objects(PERSISTENT_VOLUMES) and not self.volumes()

    def retained(self) -> bool:
        """Whether the PersistentVolume may go without its volume."""
        return view.PV_FINALIZER not in (self.pv()["metadata"].get("finalizers") or [])

    def volumes(self) -> list[Json]:
        """All of the account."""
        return self.environment.cloud.list("volumes")

    def snapshot(self) -> Json:
        """See `trial.Run.snapshot`."""
        kept = ("name", "labels", "annotations", "finalizers")
        objects = [
            {
                "kind": resource.kind,
                "deleted": "deletionTimestamp" in each["metadata"],
                "metadata": {field: each["metadata"].get(field) for field in kept},
                "spec": each["spec"],
                "status": {key: value for key, value in (each.get("status") or {}).items() if "Time" not in key},
            }
            for resource in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS)
            for each in self._objects(resource)
        ]
        volumes = [{**volume, "created_at": ""} for volume in self.volumes()]
        words = {self.machine["id"]: "MACHINE", self.machine["name"]: "NODE", self.claim_name: "CLAIM"}
        words |= {self.attachment_name: "ATTACHMENT"} | {volume["id"]: "VOLUME" for volume in volumes}
        words |= {uid(each): "UID" for each in self._objects(PERSISTENT_VOLUME_CLAIMS)}
        return {"objects": said(objects, words), "volumes": said(volumes, words)}

    def clean(self) -> None:
        """See `trial.Run.clean`; without the manager, which deletes nothing that is retained."""
        self.manager.kill()
        self.force()

    def force(self) -> None:
        """See `trial.Run.force`."""
        cloud = self.environment.cloud
        for resource in (VOLUME_ATTACHMENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES):
            for each in self._objects(resource):
                self._remove(resource, name(each), *(each["metadata"].get("finalizers") or []))
        for volume in self.volumes():
            cloud.post(f"volumes/{volume['id']}:detach", {"machine_id": self.machine["id"]})
            until(lambda: not any(each["attachment"] for each in self.volumes()), "it is detached")
            cloud.delete("volumes", volume["id"])
            cloud.wait_until_gone("volumes", volume["id"], PATIENCE)

    # -------------------------------------------------------------------------------------------------------- helpers

    @property
    def claim_name(self) -> str:
        return f"data-{self.number}x"

    @property
    def attachment_name(self) -> str:
        return f"csi-{self.number}x"

    def _claim(self) -> Object:
        return self.environment.kube.get(PERSISTENT_VOLUME_CLAIMS, self.claim_name, SPACE)

    def _objects(self, resource: Resource) -> list[Object]:
        return self.environment.kube.list(resource).items

    def _patch(self, resource: Resource, obj_name: str, patch: Any, subresource: str | None = None) -> None:
        space = SPACE if resource.namespaced else None
        self.environment.kube.patch(resource, obj_name, patch, space, type=PatchType.MERGE, subresource=subresource)

    def _remove(self, resource: Resource, obj_name: str, *finalizers: str) -> None:
        with contextlib.suppress(NotFoundError):
            self.environment.kube.delete(resource, obj_name, SPACE if resource.namespaced else None)
            for finalizer in finalizers:
                self._remove_finalizer(resource, obj_name, finalizer)

    def _remove_finalizer(self, resource: Resource, obj_name: str, finalizer: str) -> None:
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}}
        space = SPACE if resource.namespaced else None
        self.environment.kube.patch(resource, obj_name, patch, space, type=PatchType.STRATEGIC)


def storage_class(environment: Environment) -> None:
    """The class of all claims."""
    more = {"volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True}
    environment.kube.create(STORAGE_CLASSES, {"metadata": {"name": CLASS}, "provisioner": PROVISIONER, **more})


def machine(environment: Environment) -> Json:
    """A machine with a process of its own, for no other can have volumes, and its node, initialised."""
    body = {
        "name": f"real-{next(environment.names)}",
        "subnet_id": environment.subnet["id"],
        "cluster_id": environment.cluster["id"],
        "type": "m1.small",
        "role": "worker",
        "register_provider_id": True,
    }
    made = environment.cloud.create("machines", body)
    made = environment.cloud.wait_for_state("machines", made["id"], ["running"], PATIENCE)

    def node() -> Object | None:
        try:
            return environment.kube.get(NODES, made["name"])
        except NotFoundError:
            return None

    until(node, "its node registers")
    labels = {view.ZONE: made["zone"], view.REGION: made["region"]}
    environment.kube.patch(NODES, made["name"], {"metadata": {"labels": labels}}, type=PatchType.MERGE)
    return made


def _nothing(_: VolumeRun) -> None:
    pass


def _always(_: VolumeRun) -> bool:
    return True


def _bound(run: VolumeRun) -> None:
    run.ask()
    until(run.provisioned, "the claim is provisioned")
    run.bind()


def _attached(run: VolumeRun) -> None:
    _bound(run)
    run.attach()


VOLUME_SCENARIOS: Sequence[Scenario[VolumeRun]] = (
    Scenario("volume deleted", _bound, _always, VolumeRun.release, VolumeRun.removed),
    Scenario("claim provisioned", _nothing, _always, VolumeRun.ask, VolumeRun.provisioned),
    Scenario("volume attached", _bound, _always, VolumeRun.attach, VolumeRun.attached),
    Scenario("volume detached", _attached, VolumeRun.attached, VolumeRun.detach, VolumeRun.detached),
    Scenario("volume resized", _bound, _always, VolumeRun.grow, VolumeRun.grown),
    Scenario("volume retained", _bound, _always, VolumeRun.retain, VolumeRun.retained),
)
