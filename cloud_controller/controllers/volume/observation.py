"""The volume controller's observation, and which objects a change affects: pure functions.

Keys, which are also plan targets: `claim/NAMESPACE/NAME`, `pv/NAME`, `attachment/NAME`, `volume/ID`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.controllers.volume import objects as view
from cloud_controller.kube import Object, key, name, uid
from cloud_controller.volumes import (
    CLAIM_TAG,
    CLAIM_UID_TAG,
    PV_TAG,
    AttachmentState,
    Volume,
    VolumeState,
)

VOLUME_ID = "cloud-controller.io/volume-id"
PROVIDER_ID = "cloud-controller.io/provider-id"
"""Annotations of a VolumeAttachment: what to detach, even if the PersistentVolume or Node is gone by then."""

Keys = Collection[str] | None
"""The objects that a plan covers; None: all."""


def attachment_finalizer(driver: str) -> str:
    """The finalizer of a VolumeAttachment, named like external-attacher's."""
    return f"external-attacher/{driver.replace('.', '-')}"


@dataclass(frozen=True)
class VolumeObservation:
    """The cluster's storage objects and nodes, and the cloud's volumes.

    - `confirmed`: ids of orphaned volumes that have been confirmed twice.
    - `deleted_claims`: UIDs of claims whose deletion this process has seen.
    - `deleted_volumes`: ids of volumes that this process has deleted.
    - `anchored`: the cloud shows a volume or a Node's machine of this cluster. Otherwise it does not prove that a
      volume is gone, and what would follow from that is held, unless this process has deleted it.
    - `binding`: the identity of this Kubernetes cluster.
    """

    cluster_id: str
    provisioner: str
    driver: str
    parameters: Mapping[str, Collection[str]]
    largest_gib: int
    claims: tuple[Object, ...] = ()
    pvs: tuple[Object, ...] = ()
    classes: tuple[Object, ...] = ()
    attachments: tuple[Object, ...] = ()
    nodes: tuple[Object, ...] = ()
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()
    deleted_claims: frozenset[str] = frozenset()
    deleted_volumes: frozenset[str] = frozenset()
    binding: Binding = UNBOUND
    anchored: bool = True

    @cached_property
    def claim_by_uid(self) -> Mapping[str, Object]:
        return {uid(claim): claim for claim in self.claims}

    @cached_property
    def pv_by_name(self) -> Mapping[str, Object]:
        """The PersistentVolumes of the driver."""
        return {name(pv): pv for pv in self.pvs if (pv["spec"].get("csi") or {}).get("driver") == self.driver}

    @cached_property
    def pvs_by_volume(self) -> Mapping[str, Sequence[Object]]:
        """A volume has two where somebody made another by hand."""
        found: dict[str, list[Object]] = {}
        for pv in self.pv_by_name.values():
            found.setdefault(view.handle(pv), []).append(pv)
        return found

    @cached_property
    def class_by_name(self) -> Mapping[str, Object]:
        return {name(each): each for each in self.classes}

    @cached_property
    def node_by_name(self) -> Mapping[str, Object]:
        return {name(node): node for node in self.nodes}

    @cached_property
    def own_attachments(self) -> tuple[Object, ...]:
        """The VolumeAttachments of the driver."""
        return tuple(each for each in self.attachments if each["spec"].get("attacher") == self.driver)

    @cached_property
    def attached_pvs(self) -> frozenset[str | None]:
        return frozenset(pv_of(each) for each in self.own_attachments)

    @cached_property
    def volume_by_claim(self) -> Mapping[str, Volume]:
        """This cluster's volumes, by claim UID."""
        own = (volume for volume in self.volumes.values() if self.owns(volume))
        return {volume.tags[CLAIM_UID_TAG]: volume for volume in own}

    def owns(self, volume: Volume) -> bool:
        """Whether this cluster's controller created the volume."""
        return volume.belongs_to(self.cluster_id) and self.binding.foreign_uid(volume.tags) is None

    def is_gone(self, volume_id: str) -> bool:
        """Whether a volume that the cloud does not show is certainly gone."""
        return self.anchored or volume_id in self.deleted_volumes

    def is_provisioning(self, claim: Object) -> bool:
        """Whether the claim requests a volume of this cloud and has none yet."""
        return (
            not claim["spec"].get("volumeName")
            and not view.is_deleting(claim)
            and view.provisioner_of(claim) == self.provisioner
            and view.pv_name(uid(claim)) not in self.pv_by_name
        )

    def bound_pv(self, claim: Object) -> Object | None:
        """The driver's PersistentVolume that the claim is bound to, or None."""
        pv = self.pv_by_name.get(claim["spec"].get("volumeName") or "")
        if pv is None or claim.get("status", {}).get("phase") != "Bound" or view.is_deleting(claim):
            return None
        return pv if (pv["spec"].get("claimRef") or {}).get("uid") == uid(claim) else None

    def is_removable(self, pv: Object) -> bool:
        """Whether the PersistentVolume and its volume are to be deleted."""
        if view.reclaim_policy(pv) != "Delete" or not view.is_provisioned_by(pv, self.provisioner):
            return False
        phase = pv.get("status", {}).get("phase")
        if phase == "Released":
            return True
        # Deleted by hand before any claim was bound. An existing claim keeps it, whatever the phase.
        claim = (pv["spec"].get("claimRef") or {}).get("uid")
        return view.is_deleting(pv) and phase in ("Available", "Failed") and claim not in self.claim_by_uid

    def instance(self, attachment: Object) -> tuple[str | None, str | None]:
        """A VolumeAttachment's volume id and provider ID: from its annotations, else from its PV and Node."""
        noted = attachment["metadata"].get("annotations") or {}
        pv = self.pv_by_name.get(pv_of(attachment) or "")
        node = self.node_by_name.get(attachment["spec"]["nodeName"])
        return (
            noted.get(VOLUME_ID) or (view.handle(pv) if pv else None),
            noted.get(PROVIDER_ID) or (node["spec"].get("providerID") if node else None),
        )


def pv_of(attachment: Object) -> str | None:
    """The name of the attachment's PersistentVolume."""
    found = attachment["spec"].get("source", {}).get("persistentVolumeName")
    return None if found is None else str(found)


def related(observation: VolumeObservation, changed: Collection[str]) -> frozenset[str]:
    """The keys that these changes may affect. Changes may also be `node/NAME` and `class/NAME`."""
    keys = set(changed)
    wider = any(each.startswith(("node/", "class/")) for each in changed)
    for claim in observation.claims:
        pvs = {f"pv/{claim['spec'].get('volumeName')}", f"pv/{view.pv_name(uid(claim))}"}
        if pvs & keys or (wider and observation.is_provisioning(claim)):
            keys.add(f"claim/{key(claim)}")
    for attachment in observation.own_attachments:
        if {f"pv/{pv_of(attachment)}", f"node/{attachment['spec']['nodeName']}"} & keys:
            keys.add(f"attachment/{name(attachment)}")
    for volume in observation.volumes.values():
        if f"claim/{volume.tags.get(CLAIM_TAG)}" in keys:
            keys.add(f"volume/{volume.id}")
    return frozenset(keys)


def to_read(observation: VolumeObservation, keys: Keys) -> set[str]:
    """The ids of the volumes whose current state a plan for these objects needs."""
    ids: set[str | None] = set()
    for attachment in chosen(observation.own_attachments, "attachment", keys):
        volume_id, provider_id = observation.instance(attachment)
        known = observation.volumes.get(volume_id or "")
        found = known.attachment(provider_id or "") if known else None
        settled = found is not None and found.state is AttachmentState.ATTACHED and is_attached(attachment)
        if not settled or view.is_deleting(attachment):
            ids.add(volume_id)
    for pv in chosen(observation.pv_by_name.values(), "pv", keys):
        if observation.is_removable(pv) or view.handle(pv) not in observation.volumes:
            ids.add(view.handle(pv))
    for claim in chosen(observation.claims, "claim", keys):
        made = observation.volume_by_claim.get(uid(claim))
        if observation.is_provisioning(claim) and made:
            ids.add(made.id)
        bound = observation.bound_pv(claim)
        if bound and wants_growth(claim, bound):
            ids.add(view.handle(bound))
    for volume in observation.volumes.values():
        if keys is not None and f"volume/{volume.id}" in keys:
            ids.add(volume.id)
    return {each for each in ids if each}


def rests_on_absence(observation: VolumeObservation) -> bool:
    """Whether a plan deletes a PersistentVolume, or releases an attachment, only because the cloud shows no volume."""
    removed = (view.handle(pv) for pv in observation.pv_by_name.values() if observation.is_removable(pv))
    released = (observation.instance(each)[0] for each in observation.own_attachments if view.is_deleting(each))
    explained = observation.volumes.keys() | observation.deleted_volumes
    return any(each not in explained for each in (*removed, *released))


def strays(observation: VolumeObservation, keys: Keys = None) -> list[Volume]:
    """This cluster's volumes that have no PersistentVolume and no waiting claim."""
    return [
        volume
        for volume in observation.volumes.values()
        if (keys is None or f"volume/{volume.id}" in keys)
        and volume.belongs_to(observation.cluster_id)
        and volume.id not in observation.pvs_by_volume
        and not _is_awaited(observation.claim_by_uid.get(volume.tags[CLAIM_UID_TAG]))
    ]


def may_be_orphan(volume: Volume) -> bool:
    """Whether a stray volume may be deleted: only if it never had a PersistentVolume.

    A VOLUME THAT HAD ONE MAY HOLD RETAINED DATA, or its objects may be missing because the cluster was restored from an
    older backup: it is reported and kept.
    """
    return PV_TAG not in volume.tags and volume.state is not VolumeState.DELETING


def _is_awaited(claim: Object | None) -> bool:
    return claim is not None and not view.is_deleting(claim) and not claim["spec"].get("volumeName")


def leaving(
    volumes: Iterable[Volume], pvs: Iterable[Object], claims: Iterable[Object]
) -> tuple[list[Volume], list[str]]:
    """The volumes that the controller still has to delete, and the claims that still hold one.

    Retained volumes, and volumes that outlived their PersistentVolume, are neither.
    """
    alive = {uid(claim): key(claim) for claim in claims if not view.is_deleting(claim)}
    # Of several policies for one volume, Retain comes last, and counts.
    by_policy = sorted((pv for pv in pvs if pv["spec"].get("csi")), key=view.reclaim_policy)
    policies = {view.handle(pv): view.reclaim_policy(pv) for pv in by_policy}
    waiting, held = [], []
    for volume in volumes:
        if policies.get(volume.id, "Retain" if PV_TAG in volume.tags else "Delete") == "Delete":
            claim = alive.get(volume.tags[CLAIM_UID_TAG])
            if claim is None:
                waiting.append(volume)
            else:
                held.append(claim)
    return waiting, sorted(held)


def is_attached(attachment: Object) -> bool:
    """Whether `status.attached` is set."""
    return bool(attachment.get("status", {}).get("attached"))


def wants_growth(claim: Object, pv: Object) -> bool:
    """Whether a claim requests more than its PersistentVolume has."""
    return view.size_bytes(view.requested(claim)) > view.size_bytes(view.capacity(pv, "spec"))


def chosen(objects: Iterable[Object], kind: str, keys: Keys) -> list[Object]:
    """The objects that the keys name."""
    return [obj for obj in objects if keys is None or f"{kind}/{key(obj)}" in keys]
