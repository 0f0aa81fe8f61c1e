"""Plans claims, PersistentVolumes, VolumeAttachments and volumes: pure functions.

Each object gets only the next one or two operations; the following ones are planned once these are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.instance_snapshot import NOT_ANCHORED
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.observation import (
    VOLUME_ID,
    Keys,
    VolumeObservation,
    attachment_finalizer,
    chosen,
    is_attached,
    may_be_orphan,
    pv_of,
    strays,
    wants_growth,
)
from cloud_controller.controllers.volume.operations import (
    AttachVolume,
    CreatePersistentVolume,
    CreateVolume,
    DeletePersistentVolume,
    DeleteVolume,
    DetachVolume,
    DiscardVolume,
    Refuse,
    ReleaseAttachment,
    ReselectNode,
    ResizeVolume,
    SetAttached,
    SetAttachError,
    SetCapacity,
    SetClaimCapacity,
    SetFinalizer,
    SetTopology,
    TagVolume,
    Wait,
)
from cloud_controller.kube import Object, key, name, namespace, uid
from cloud_controller.load_balancers.model import CLUSTER_UID_TAG
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan, hold
from cloud_controller.volumes import (
    CLAIM_TAG,
    CLAIM_UID_TAG,
    PV_TAG,
    AttachmentState,
    ClaimOwner,
    Volume,
    VolumeRequest,
    VolumeState,
)


def plan(observation: VolumeObservation, keys: Keys = None) -> Plan:
    """The next operations for these objects, grouped by kind."""
    found: list[Iterable[Action]] = [
        *(_attachment(observation, each) for each in chosen(observation.own_attachments, "attachment", keys)),
        *(_claim(observation, each) for each in chosen(observation.claims, "claim", keys)),
        *(_pv(observation, each) for each in chosen(observation.pv_by_name.values(), "pv", keys)),
        *(_stray(observation, each) for each in strays(observation, keys)),
    ]
    return Plan.of(
        sorted(chain.from_iterable(found), key=lambda action: (_ORDER.index(type(action.operation)), action.target))
    )


# --------------------------------------------------------------------------------------------------------- claims


def _claim(observation: VolumeObservation, claim: Object) -> Iterator[Action]:
    if observation.is_provisioning(claim):
        try:
            yield from _provision(observation, claim)
        except InvalidConfiguration as error:
            yield _refused("claim", claim, "cannot provision", "ProvisioningFailed", str(error))
    elif bound := observation.bound_pv(claim):
        try:
            yield from _resize(observation, claim, bound)
        except InvalidConfiguration as error:
            yield _refused("claim", claim, "cannot resize", "VolumeResizeFailed", str(error))


def _provision(observation: VolumeObservation, claim: Object) -> Iterator[Action]:
    target = f"claim/{key(claim)}"
    class_name = claim["spec"].get("storageClassName") or ""
    storage_class = observation.class_by_name.get(class_name)
    if storage_class is None or storage_class.get("provisioner") != observation.provisioner:
        why = f"{class_name!r} is not a StorageClass with provisioner {observation.provisioner}"
        raise InvalidConfiguration("spec.storageClassName", why)
    made = observation.volume_by_claim.get(uid(claim))
    if made is not None and made.state is VolumeState.AVAILABLE and _fits(observation, claim, made):
        pv = view.persistent_volume(
            claim, storage_class, made, driver=observation.driver, provisioner=observation.provisioner
        )
        change = FieldChange("spec.volumeName", None, name(pv))
        summary = f"bind volume {made.id} in {made.zone}"
        yield Action(ActionKind.CREATE, target, summary, (change,), operation=CreatePersistentVolume(claim, pv))
    elif made is not None and made.state in (VolumeState.CREATING, VolumeState.DELETING):
        yield _waits(target, f"volume {made.id} is {made.state}")
    elif made is not None and PV_TAG in made.tags:
        why = f"volume {made.id}, which already had a PersistentVolume, is {made.state}: {made.state_reason}"
        yield _refused("claim", claim, "cannot provision", "ProvisioningFailed", why)
    elif made is not None:
        why = made.state_reason or f"it is {made.state} in {made.zone}"
        summary = f"delete unusable volume {made.id}"
        yield Action(ActionKind.DELETE, target, summary, reason=why, operation=DiscardVolume(made, claim))
    elif (zone := _zone(observation, claim, storage_class)) is None:
        yield from _without_zone(observation, claim, storage_class)
    else:
        yield _create(observation, claim, storage_class, zone)


def _create(observation: VolumeObservation, claim: Object, storage_class: Object, zone: str) -> Action:
    view.check_claim(claim)
    owner = ClaimOwner(observation.cluster_id, uid(claim), str(namespace(claim)), name(claim))
    request = VolumeRequest(
        name=view.pv_name(uid(claim)),
        zone=zone,
        size_gib=view.wanted_gib(claim, observation.largest_gib),
        parameters=view.check_parameters(storage_class, observation.parameters),
        tags=owner.tags | observation.binding.tags,
        client_token=owner.client_token,
    )
    changes = (FieldChange("zone", None, zone), FieldChange("size_gib", None, request.size_gib))
    summary = f"create a volume of {request.size_gib} GiB in {zone}"
    return Action(ActionKind.CREATE, f"claim/{key(claim)}", summary, changes, operation=CreateVolume(claim, request))


def _waits_for_consumer(storage_class: Object) -> bool:
    return bool(storage_class.get("volumeBindingMode") == "WaitForFirstConsumer")


def _zone(observation: VolumeObservation, claim: Object, storage_class: Object) -> str | None:
    """The zone for the volume; None while it is unknown."""
    selected = view.selected_node(claim)
    if selected:
        node = observation.node_by_name.get(selected)
        return view.zone_of(node) if node else None
    if _waits_for_consumer(storage_class):
        return None
    among = view.zones(storage_class, observation.nodes)
    return view.choose_zone(claim, among) if among else None


def _fits(observation: VolumeObservation, claim: Object, volume: Volume) -> bool:
    """Whether the consumer's node, if one is selected, can use this volume; an earlier node may have had another zone.

    A volume that had a PersistentVolume before (the cluster was restored from an older backup) holds the claim's data,
    so it is always used.
    """
    if PV_TAG in volume.tags:
        return True
    node = observation.node_by_name.get(view.selected_node(claim) or "")
    return node is None or view.zone_of(node) in (None, volume.zone)


def _without_zone(observation: VolumeObservation, claim: Object, storage_class: Object) -> Iterator[Action]:
    target, selected = f"claim/{key(claim)}", view.selected_node(claim)
    if selected and selected not in observation.node_by_name:
        change = FieldChange(f"metadata.annotations[{view.SELECTED_NODE}]", selected, None)
        summary = "let the scheduler select another node"
        reason = f"node {selected} is gone"
        yield Action(ActionKind.UPDATE, target, summary, (change,), reason, operation=ReselectNode(claim))
    elif selected:
        yield _idle(target, f"node {selected} is not initialised: it has no label {view.ZONE}")
    elif not _waits_for_consumer(storage_class):
        where = f"StorageClass {name(storage_class)}: allowedTopologies"
        there = ", ".join(view.zones({}, observation.nodes))
        raise InvalidConfiguration(
            where, f"no node matches; nodes are in {there}" if there else "no node has a zone yet"
        )


def _resize(observation: VolumeObservation, claim: Object, pv: Object) -> Iterator[Action]:
    target, has = f"claim/{key(claim)}", view.capacity(pv, "spec")
    if wants_growth(claim, pv):
        storage_class = observation.class_by_name.get(claim["spec"].get("storageClassName") or "", {})
        volume = observation.volumes.get(view.handle(pv))
        if not storage_class.get("allowVolumeExpansion"):
            raise InvalidConfiguration("spec.storageClassName", "the StorageClass does not allow volume expansion")
        if volume is None:
            raise InvalidConfiguration("spec.volumeName", f"volume {view.handle(pv)} does not exist")
        wanted = view.wanted_gib(claim, observation.largest_gib)
        if volume.size_gib < wanted:
            change = FieldChange("size_gib", volume.size_gib, wanted)
            summary = f"grow volume {volume.id} to {wanted} GiB"
            operation = ResizeVolume(claim, volume, wanted)
            yield Action(ActionKind.UPDATE, target, summary, (change,), operation=operation)
        else:
            size = view.quantity(volume.size_gib)
            change = FieldChange("spec.capacity.storage", has, size)
            summary = f"set the size of volume {volume.id}"
            yield Action(ActionKind.UPDATE, f"pv/{name(pv)}", summary, (change,), operation=SetCapacity(pv, size))
    elif view.size_bytes(shown := view.capacity(claim, "status")) < view.size_bytes(has):
        change = FieldChange("status.capacity.storage", shown, has)
        if view.size_gib(view.requested(claim)) < view.size_gib(has):
            why = f"{view.requested(claim)} is requested, but the volume already has {has} and cannot shrink"
            yield _refused("claim", claim, "cannot shrink", "VolumeResizeFailed", why)
        summary = f"set capacity to {has}"
        yield Action(ActionKind.UPDATE, target, summary, (change,), operation=SetClaimCapacity(claim, has))


# ----------------------------------------------------------------------------------------------- PersistentVolumes


def _pv(observation: VolumeObservation, pv: Object) -> Iterator[Action]:
    target, volume = f"pv/{name(pv)}", observation.volumes.get(view.handle(pv))
    ours = view.is_provisioned_by(pv, observation.provisioner)
    if observation.is_removable(pv):
        yield from _remove(observation, pv, volume)
        return
    yield from _topology(pv, volume)
    handed_over = volume is None or not observation.owns(volume) or PV_TAG in volume.tags
    if ours and volume is not None and (tags := _missing_tags(observation, pv, volume)):
        changes = tuple(FieldChange(f"tags[{tag}]", volume.tags.get(tag), value) for tag, value in tags.items())
        summary = f"tag volume {volume.id} as owned by this object"
        yield Action(ActionKind.UPDATE, target, summary, changes, operation=TagVolume(volume, tags))
    present = view.PV_FINALIZER in (pv["metadata"].get("finalizers") or [])
    if ours and view.reclaim_policy(pv) == "Delete" and not present and not view.is_deleting(pv):
        yield _finalizer(pv, present=True)
    elif ours and view.reclaim_policy(pv) != "Delete" and present and handed_over:
        yield _finalizer(pv, present=False)


def _missing_tags(observation: VolumeObservation, pv: Object, volume: Volume) -> dict[str, str]:
    """The missing tags of this PersistentVolume's volume."""
    if not observation.owns(volume):
        return {}
    # Tag the cluster's UID only if an existing claim, or --moved-from-cluster, proves the ownership.
    moved = volume.tags.get(CLUSTER_UID_TAG, "") == observation.binding.moved_from
    proven = moved or volume.tags[CLAIM_UID_TAG] in observation.claim_by_uid
    wanted = {PV_TAG: volume.tags.get(PV_TAG, name(pv)), **(observation.binding.tags if proven else {})}
    return {tag: value for tag, value in wanted.items() if volume.tags.get(tag) != value}


def _topology(pv: Object, volume: Volume | None) -> Iterator[Action]:
    present = pv["metadata"].get("labels") or {}
    lacks_labels = view.ZONE not in present or view.REGION not in present
    lacks_affinity = not pv["spec"].get("nodeAffinity")
    if view.is_deleting(pv) or not (lacks_labels or lacks_affinity):
        return
    if volume is None:
        why = f"volume {view.handle(pv)} does not exist"
        yield _refused("pv", pv, "cannot set zone", "VolumeNotFound", why)
        return
    facts = {view.ZONE: volume.zone, view.REGION: volume.region}
    labels = {label: value for label, value in facts.items() if label not in present}
    affinity = view.node_affinity(volume.zone) if lacks_affinity else None
    changes = [FieldChange(f"metadata.labels[{label}]", None, value) for label, value in labels.items()]
    if affinity:
        changes.append(FieldChange("spec.nodeAffinity", None, volume.zone))
    operation = SetTopology(pv, labels, affinity)
    yield Action(ActionKind.UPDATE, f"pv/{name(pv)}", f"set zone {volume.zone}", tuple(changes), operation=operation)


def _remove(observation: VolumeObservation, pv: Object, volume: Volume | None) -> Iterator[Action]:
    target, why = f"pv/{name(pv)}", "its claim is gone, and its reclaim policy is Delete"
    if name(pv) in observation.attached_pvs:
        yield _idle(target, "a VolumeAttachment still holds it")
    elif volume is None:
        summary = f"delete PersistentVolume: volume {view.handle(pv)} is gone"
        deletion = Action(ActionKind.DELETE, target, summary, reason=why, operation=DeletePersistentVolume(pv))
        sure = observation.is_gone(view.handle(pv))
        yield from [deletion] if sure else hold([deletion], uid(pv), NOT_ANCHORED)
    elif not observation.owns(volume):
        message = f"volume {volume.id} does not have this cluster's tags and is not deleted"
        yield _refused("pv", pv, "keep", "VolumeFailedDelete", message)
    elif users := [each for each in observation.pvs_by_volume[volume.id] if not observation.is_removable(each)]:
        message = f"volume {volume.id} is also that of PersistentVolume {name(users[0])} and is not deleted"
        yield _refused("pv", pv, "keep", "VolumeFailedDelete", message)
    elif volume.attachments:
        first = volume.attachments[0]
        if first.state is AttachmentState.DETACHING:
            yield _waits(target, f"volume {volume.id} is being detached")
        else:
            summary = f"detach volume {volume.id}, which has no VolumeAttachment"
            operation = DetachVolume(None, volume.id, first.provider_id)
            yield Action(ActionKind.UPDATE, target, summary, reason=why, operation=operation)
    elif volume.state is VolumeState.DELETING:
        yield _waits(target, f"volume {volume.id} is being deleted")
    else:
        summary = f"delete volume {volume.id}"
        yield Action(ActionKind.DELETE, target, summary, reason=why, operation=DeleteVolume(volume, pv))


def _finalizer(pv: Object, *, present: bool) -> Action:
    before, after = (None, view.PV_FINALIZER) if present else (view.PV_FINALIZER, None)
    change = FieldChange("metadata.finalizers", before, after)
    summary = "add finalizer" if present else "remove finalizer"
    return Action(ActionKind.UPDATE, f"pv/{name(pv)}", summary, (change,), operation=SetFinalizer(pv, present))


# --------------------------------------------------------------------------------------------------- VolumeAttachments


def _attachment(observation: VolumeObservation, attachment: Object) -> Iterator[Action]:
    target = f"attachment/{name(attachment)}"
    volume_id, provider_id = observation.instance(attachment)
    volume = observation.volumes.get(volume_id or "")
    found = volume.attachment(provider_id or "") if volume else None
    held = attachment_finalizer(observation.driver) in (attachment["metadata"].get("finalizers") or [])
    if view.is_deleting(attachment):
        if not held:
            return
        if found is None or volume is None or provider_id is None:
            summary = "release: the volume is detached"
            release = Action(ActionKind.UPDATE, target, summary, operation=ReleaseAttachment(attachment))
            doubt = _doubt(observation, volume_id, volume, provider_id)
            yield from hold([release], uid(attachment), doubt) if doubt else [release]
        elif found.state is AttachmentState.DETACHING:
            yield _waits(target, f"volume {volume.id} is being detached")
        else:
            summary = f"detach volume {volume.id} from {attachment['spec']['nodeName']}"
            detach = DetachVolume(attachment, volume.id, provider_id)
            yield Action(ActionKind.UPDATE, target, summary, operation=detach)
    elif why := _hindrance(observation, attachment, volume_id, volume, provider_id):
        yield from _attach_error(attachment, why)
    elif found is not None and found.state is not AttachmentState.ATTACHED:
        yield _waits(target, f"volume {volume_id} is {found.state}")
    elif found is None or not held:
        summary = f"attach volume {volume_id} to {attachment['spec']['nodeName']}"
        operation = AttachVolume(attachment, str(volume_id), str(provider_id))
        yield Action(ActionKind.UPDATE, target, summary, operation=operation)
    elif not is_attached(attachment):
        change = FieldChange("status.attached", False, True)
        yield Action(ActionKind.UPDATE, target, "mark as attached", (change,), operation=SetAttached(attachment))


def _doubt(
    observation: VolumeObservation, volume_id: str | None, volume: Volume | None, provider_id: str | None
) -> str | None:
    """Why the volume of an attachment may still be attached although that is not seen; None if it is not."""
    if volume_id is None:
        return f"neither annotation {VOLUME_ID} nor a PersistentVolume names its volume, which may still be attached"
    if volume is None:
        return None if observation.is_gone(volume_id) else NOT_ANCHORED
    if provider_id is None and volume.attachments:
        where = volume.attachments[0].provider_id
        return f"nothing names its machine any more, and volume {volume_id} is still attached to {where}"
    return None


def _hindrance(
    observation: VolumeObservation,
    attachment: Object,
    volume_id: str | None,
    volume: Volume | None,
    provider_id: str | None,
) -> str | None:
    node = attachment["spec"]["nodeName"]
    if volume_id is None:
        return f"PersistentVolume {pv_of(attachment)} does not exist or is not of driver {observation.driver}"
    if volume is None:
        return f"volume {volume_id} does not exist"
    if provider_id is None:
        return f"node {node} does not exist or has no provider ID"
    return None


def _attach_error(attachment: Object, why: str) -> Iterator[Action]:
    target = f"attachment/{name(attachment)}"
    if (attachment.get("status", {}).get("attachError") or {}).get("message") == why:
        yield _idle(target, why)
    else:
        change = FieldChange("status.attachError", None, why)
        operation = SetAttachError(attachment, why)
        yield Action(ActionKind.UPDATE, target, "report attach error", (change,), operation=operation)


# ---------------------------------------------------------------------------------------------------------- volumes


def _stray(observation: VolumeObservation, volume: Volume) -> Iterator[Action]:
    target, claim = f"volume/{volume.id}", volume.tags.get(CLAIM_TAG, "?")
    if volume.state is VolumeState.DELETING:
        return
    if foreign := observation.binding.foreign_uid(volume.tags):
        yield _idle(target, f"it belongs to the Kubernetes cluster with UID {foreign}")
        return
    if not may_be_orphan(volume):
        why = f"PersistentVolume {volume.tags[PV_TAG]} is gone, but its data must be kept"
        yield _idle(target, why)
        return
    why = f"claim {claim} is gone, and it never had a PersistentVolume"
    deletion = Action(ActionKind.DELETE, target, "delete", reason=why, operation=DiscardVolume(volume))
    if volume.tags[CLAIM_UID_TAG] not in observation.deleted_claims | observation.claim_by_uid.keys():
        # Claims that vanish without a deletion indicate a lost or restored etcd.
        yield from hold([deletion], volume.id, f"{why}; its deletion was not seen")
    elif volume.id in observation.confirmed:
        yield deletion
    else:
        yield _idle(target, f"claim {claim} seems to be gone; deleted once that is confirmed twice")


# ---------------------------------------------------------------------------------------------------------- actions


def _refused(kind: str, obj: Object, summary: str, reason: str, message: str) -> Action:
    operation = Refuse(obj, reason, message)
    return Action(ActionKind.IGNORE, f"{kind}/{key(obj)}", summary, reason=message, operation=operation)


def _waits(target: str, why: str) -> Action:
    return Action(ActionKind.IGNORE, target, "wait", reason=why, operation=Wait())


def _idle(target: str, why: str) -> Action:
    return Action(ActionKind.IGNORE, target, "leave unchanged", reason=why)


_ORDER = (
    ReleaseAttachment,
    DetachVolume,
    AttachVolume,
    SetAttached,
    SetAttachError,
    CreatePersistentVolume,
    CreateVolume,
    ReselectNode,
    TagVolume,
    SetTopology,
    SetFinalizer,
    ResizeVolume,
    SetCapacity,
    SetClaimCapacity,
    DeleteVolume,
    DiscardVolume,
    DeletePersistentVolume,
    Refuse,
    Wait,
    type(None),
)
"""Order of operations: those that unblock others come first."""
