"""Whatever people and crashes do to claims, in any order: plans come to rest, data is kept, nothing is left over."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.observation import (
    VolumeObservation,
    attachment_finalizer,
    may_be_orphan,
    strays,
)
from cloud_controller.controllers.volume.operations import (
    AttachVolume,
    CreatePersistentVolume,
    CreateVolume,
    DeletePersistentVolume,
    DeleteVolume,
    DetachVolume,
    DiscardVolume,
    ReleaseAttachment,
    ReselectNode,
    ResizeVolume,
    SetAttached,
    SetCapacity,
    SetClaimCapacity,
    SetFinalizer,
    TagVolume,
)
from cloud_controller.controllers.volume.plan import plan
from cloud_controller.kube import Object
from cloud_controller.volumes import CLAIM_UID_TAG, Attachment, AttachmentState, Volume, VolumeState

PROVISIONER, DRIVER, CLUSTER = "cloud.example/volume", "cloud.example", "c-1"
NODES: dict[str, Object] = {
    name: {"metadata": {"name": name, "labels": {view.ZONE: zone}}, "spec": {"providerID": f"cloud://{name}"}}
    for name, zone in (("n0", "zone-a"), ("n1", "zone-b"))
}
CLASS: Object = {
    "metadata": {"name": "disks"},
    "provisioner": PROVISIONER,
    "allowVolumeExpansion": True,
    "volumeBindingMode": "WaitForFirstConsumer",
}
ROUNDS = 30


@dataclass
class World:
    """A cluster and its cloud as simple as can be; binder and protection of what is in use are part of it."""

    claims: dict[str, Object] = field(default_factory=dict)
    pvs: dict[str, Object] = field(default_factory=dict)
    attachments: dict[str, Object] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    retained: set[str] = field(default_factory=set)
    made: int = 0

    # ------------------------------------------------------------------------------------------------ what people do

    def ask(self, number: int) -> None:
        self.made += 1
        annotations = {view.PROVISIONER_ANNOTATIONS[0]: PROVISIONER, view.SELECTED_NODE: f"n{number % 2}"}
        metadata = {"name": f"d{number}", "namespace": "s", "uid": f"u{self.made}", "annotations": annotations}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disks",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self.claims.setdefault(f"d{number}", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def withdraw(self, number: int) -> None:
        claim = self.claims.get(f"d{number}")
        used = {pv_name(each) for each in self.attachments.values() if not view.is_deleting(each)}
        if claim and claim["spec"].get("volumeName") not in used:
            del self.claims[f"d{number}"]

    def move(self, number: int) -> None:
        claim = self.claims.get(f"d{number}")
        if claim and not claim["spec"].get("volumeName"):
            claim["metadata"]["annotations"][view.SELECTED_NODE] = f"n{(number + 1) % 2}"

    def grow(self, number: int) -> None:
        claim = self.claims.get(f"d{number}")
        if claim and claim["spec"].get("volumeName"):
            claim["spec"]["resources"]["requests"]["storage"] = "3Gi"

    def retain(self, number: int) -> None:
        if pv := self._pv(number):
            pv["spec"]["persistentVolumeReclaimPolicy"] = "Retain"
            self.retained.add(view.handle(pv))

    def delete_pv(self, number: int) -> None:
        if pv := self._pv(number):
            pv["metadata"]["deletionTimestamp"] = "now"

    def attach(self, number: int) -> None:
        claim = self.claims.get(f"d{number}")
        if claim and claim["spec"].get("volumeName"):
            pv = claim["spec"]["volumeName"]
            zone = self.pvs[pv]["metadata"]["labels"][view.ZONE]
            node = next(name for name, each in NODES.items() if view.zone_of(each) == zone)
            spec = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": pv}}
            self.attachments.setdefault(f"a-{pv}", {"metadata": {"name": f"a-{pv}"}, "spec": spec})

    def detach(self, number: int) -> None:
        for each in self.attachments.values():
            if pv_name(each) == (self.claims.get(f"d{number}") or {"spec": {}})["spec"].get("volumeName"):
                each["metadata"]["deletionTimestamp"] = "now"

    def _pv(self, number: int) -> Object | None:
        return self.pvs.get((self.claims.get(f"d{number}") or {"spec": {}})["spec"].get("volumeName") or "")

    # ----------------------------------------------------------------------------------------- what the cluster does

    def tick(self) -> None:
        """Binder, and the API server's part in deletions."""
        for pv in self.pvs.values():
            ref = pv["spec"]["claimRef"]
            claim = self.claims.get(ref["name"])
            if claim is None or claim["metadata"]["uid"] != ref["uid"]:
                pv["status"] = {"phase": "Released"}
            elif pv.get("status", {}).get("phase") != "Bound":
                pv["status"] = {"phase": "Bound"}
                claim["spec"]["volumeName"] = pv["metadata"]["name"]
                claim["status"] = {"phase": "Bound", "capacity": dict(pv["spec"]["capacity"])}
        for objects in (self.pvs, self.attachments):
            for key, obj in [*objects.items()]:
                bound = obj.get("status", {}).get("phase") == "Bound"
                if view.is_deleting(obj) and not obj["metadata"].get("finalizers") and not bound:
                    del objects[key]

    # --------------------------------------------------------------------------------------- what the controller does

    def observe(self, confirmed: frozenset[str] = frozenset()) -> VolumeObservation:
        seen = copy.deepcopy(self)
        return VolumeObservation(
            CLUSTER,
            PROVISIONER,
            DRIVER,
            {},
            1024,
            tuple(seen.claims.values()),
            tuple(seen.pvs.values()),
            (CLASS,),
            tuple(seen.attachments.values()),
            tuple(NODES.values()),
            seen.volumes,
            confirmed,
            deleted_claims=frozenset(volume.tags[CLAIM_UID_TAG] for volume in seen.volumes.values()),
        )

    def carry_out(self, operation: Any) -> None:
        match operation:
            case CreateVolume(request=request):
                made = f"vol-{request.client_token}-{len(self.volumes)}"
                zone, size, tags = request.zone, request.size_gib, request.tags
                self.volumes[made] = Volume(made, request.name, zone, "r", size, VolumeState.AVAILABLE, tags=tags)
            case CreatePersistentVolume(pv=pv):
                self.pvs.setdefault(pv["metadata"]["name"], copy.deepcopy(pv))
            case TagVolume(volume=volume, tags=added):
                self._change(volume.id, tags={**volume.tags, **added})
            case SetFinalizer(pv=pv, present=present):
                metadata = self.pvs[pv["metadata"]["name"]]["metadata"]
                metadata["finalizers"] = [view.PV_FINALIZER] if present else []
            case SetCapacity(pv=pv, size=size):
                self.pvs[pv["metadata"]["name"]]["spec"]["capacity"] = {"storage": size}
            case SetClaimCapacity(claim=claim, size=size):
                self.claims[claim["metadata"]["name"]]["status"]["capacity"] = {"storage": size}
            case ResizeVolume(volume=volume, size_gib=size):
                self._change(volume.id, size_gib=size)
            case ReselectNode(claim=claim):
                del self.claims[claim["metadata"]["name"]]["metadata"]["annotations"][view.SELECTED_NODE]
            case AttachVolume(attachment=attachment, volume_id=id, provider_id=machine):
                held = self.attachments[attachment["metadata"]["name"]]
                held["metadata"]["finalizers"] = [attachment_finalizer(DRIVER)]
                self._change(id, attachments=(Attachment(machine, AttachmentState.ATTACHED),))
            case SetAttached(attachment=attachment):
                self.attachments[attachment["metadata"]["name"]]["status"] = {"attached": True}
            case DetachVolume(volume_id=id):
                self._change(id, attachments=())
            case ReleaseAttachment(attachment=attachment):
                self.attachments[attachment["metadata"]["name"]]["metadata"]["finalizers"] = []
            case DeleteVolume(volume=volume) | DiscardVolume(volume=volume):
                assert volume.id not in self.retained, "data that somebody wanted to keep is lost"
                assert not self.volumes[volume.id].attachments, "it is in use"
                holders = [claim["spec"].get("volumeName") for claim in self.claims.values()]
                assert not {name for name, pv in self.pvs.items() if view.handle(pv) == volume.id} & {*holders}
                del self.volumes[volume.id]
            case DeletePersistentVolume(pv=pv):
                metadata = self.pvs[pv["metadata"]["name"]]["metadata"]
                metadata.update(deletionTimestamp="now", finalizers=[])
            case _:
                raise AssertionError(f"nobody expected {operation}")

    def _change(self, id: str, **changes: Any) -> None:
        self.volumes[id] = replace(self.volumes[id], **changes)

    def work(self, steps: int | None = None) -> bool:
        """One pass of the controller, killed after so many steps; whether there was anything to do."""
        suspects = strays(self.observe())
        confirmed = frozenset(volume.id for volume in suspects if may_be_orphan(volume))
        changes = plan(self.observe(confirmed)).changes
        for action in changes[:steps]:
            self.carry_out(action.operation)
        self.tick()
        return bool(changes)


def pv_name(attachment: Object) -> str:
    return str(attachment["spec"]["source"]["persistentVolumeName"])


PEOPLE = (World.ask, World.withdraw, World.move, World.grow, World.retain, World.delete_pv, World.attach, World.detach)
WORK = st.tuples(st.just(World.work), st.sampled_from([None, None, None, 0, 1, 2]))
EVENTS = st.one_of(st.tuples(st.sampled_from(PEOPLE), st.integers(0, 1)), WORK)
ASKED = [(World.ask, 0), (World.work, None), (World.work, None), (World.work, None)]
"""So that most histories have something to be about."""


@given(st.sampled_from([[], ASKED]), st.lists(EVENTS, min_size=15, max_size=40))
def test_every_history_of_volumes_converges_to_what_the_claims_request(
    before: list[tuple[Any, Any]], history: list[tuple[Any, Any]]
) -> None:
    world = World()
    for event, argument in [*before, *history]:
        event(world, argument)
        world.tick()

    rounds = 0
    while world.work():
        rounds += 1
        assert rounds < ROUNDS, f"the plans do not come to rest: {plan(world.observe())}"

    named = {view.handle(pv) for pv in world.pvs.values()}
    assert named <= world.volumes.keys(), "a PersistentVolume without its volume"
    assert world.volumes.keys() - named <= world.retained, "a volume that is nobody's"
    assert world.retained <= world.volumes.keys(), "data that somebody wanted to keep is lost"
    bound = {claim["spec"]["volumeName"] for claim in world.claims.values()}
    stuck = [pv for name, pv in world.pvs.items() if view.is_deleting(pv) and name not in bound]
    assert stuck == [], "a finalizer without its controller"
    for claim in world.claims.values():
        pv = world.pvs[claim["spec"]["volumeName"]]
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        assert claim["status"]["capacity"]["storage"] == pv["spec"]["capacity"]["storage"] == wanted
    for attachment in world.attachments.values():
        assert attachment["status"]["attached"]
    attached = {view.handle(world.pvs[pv_name(each)]) for each in world.attachments.values()}
    assert {volume.id for volume in world.volumes.values() if volume.attachments} == attached
