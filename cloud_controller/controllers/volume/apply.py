"""Carries out the operations of a volume plan, in an order that is safe against a crash after any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cloud_controller import apply
from cloud_controller.cloud import Cloud, CloudError, InvalidConfiguration, Throttled
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.observation import PROVIDER_ID, VOLUME_ID, attachment_finalizer
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
    SetAttachError,
    SetCapacity,
    SetClaimCapacity,
    SetFinalizer,
    SetTopology,
    TagVolume,
)
from cloud_controller.events import Events
from cloud_controller.kube import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    Object,
    PatchType,
    Resource,
    name,
    namespace,
    uid,
)
from cloud_controller.volumes import CLAIM_UID_TAG, Volume, Volumes


def volumes_of(cloud: Cloud) -> Volumes:
    """The cloud's volumes. Raises `InvalidConfiguration` if the cloud does not support volumes."""
    if cloud.volumes is None:
        why = f"cloud {cloud.provider_name} does not support volumes"
        raise InvalidConfiguration("controllers", why, "every controller but volume")
    return cloud.volumes


# --------------------------------------------------------------------------------------------------------- claims


@apply.performs(CreateVolume)
def create_volume(operation: CreateVolume, run: apply.Run) -> Volume:
    """The token makes a retry after a lost response safe; the tags let a restarted process find the volume."""
    driver = volumes_of(run.cloud).driver
    run.events.normal(operation.claim, "Provisioning", f"{driver} is creating a volume in {operation.request.zone}")
    with _reporting(run.events, operation.claim, "ProvisioningFailed"):
        return volumes_of(run.cloud).create(operation.request)


@apply.performs(CreatePersistentVolume)
def create_persistent_volume(operation: CreatePersistentVolume, run: apply.Run) -> None:
    """The name contains the claim's UID, so there is never a second one."""
    try:
        run.kube.create(PERSISTENT_VOLUMES, operation.pv)
    except AlreadyExistsError:
        return
    message = f"Successfully provisioned volume {name(operation.pv)}"
    run.events.normal(operation.claim, "ProvisioningSucceeded", message)


@apply.performs(ReselectNode)
def reselect_node(operation: ReselectNode, run: apply.Run) -> None:
    """Without the annotation, kube-scheduler selects a node again."""
    patch = {"metadata": {"annotations": {view.SELECTED_NODE: None}}}
    _patch(run, PERSISTENT_VOLUME_CLAIMS, operation.claim, patch)


@apply.performs(ResizeVolume)
def resize_volume(operation: ResizeVolume, run: apply.Run) -> Volume:
    """Resize in the cloud first, so that the sizes in Kubernetes are never too large."""
    with _reporting(run.events, operation.claim, "VolumeResizeFailed"):
        return volumes_of(run.cloud).resize(operation.volume.id, operation.size_gib)


@apply.performs(SetClaimCapacity)
def set_claim_capacity(operation: SetClaimCapacity, run: apply.Run) -> None:
    """The last step of a resize."""
    patch = {"status": {"capacity": {"storage": operation.size}}}
    if _patch(run, PERSISTENT_VOLUME_CLAIMS, operation.claim, patch, subresource="status"):
        run.events.normal(operation.claim, "VolumeResizeSuccessful", f"Resized volume to {operation.size}")


# ----------------------------------------------------------------------------------------------- PersistentVolumes


@apply.performs(TagVolume)
def tag_volume(operation: TagVolume, run: apply.Run) -> Volume:
    """Add the tags and keep all others."""
    return volumes_of(run.cloud).tag(operation.volume.id, {**operation.volume.tags, **operation.tags})


@apply.performs(SetTopology)
def set_topology(operation: SetTopology, run: apply.Run) -> None:
    """Does what upstream's PVLabeler did."""
    patch: dict[str, Any] = {"metadata": {"labels": dict(operation.labels)}}
    if operation.node_affinity is not None:
        patch["spec"] = {"nodeAffinity": operation.node_affinity}
    _patch(run, PERSISTENT_VOLUMES, operation.pv, patch)


@apply.performs(SetFinalizer)
def set_finalizer(operation: SetFinalizer, run: apply.Run) -> None:
    """Keeps the finalizers of other controllers."""
    _patch_finalizer(run, PERSISTENT_VOLUMES, operation.pv, view.PV_FINALIZER, present=operation.present)


@apply.performs(SetCapacity)
def set_capacity(operation: SetCapacity, run: apply.Run) -> None:
    """Comes before the claim's: a claim must never show more than its volume."""
    _patch(run, PERSISTENT_VOLUMES, operation.pv, {"spec": {"capacity": {"storage": operation.size}}})


@apply.performs(DeleteVolume)
def delete_volume(operation: DeleteVolume, run: apply.Run) -> None:
    """Delete the volume; the PersistentVolume stays until the cloud reports that it is gone.

    DATA IS LOST, so this reads the PersistentVolume first: the cache may lag, and its policy may be Retain by now.
    """
    pv = operation.pv
    present = _present_pv(run, name(pv))
    if present is None or present["metadata"]["resourceVersion"] != pv["metadata"]["resourceVersion"]:
        raise _changed(f"PersistentVolume {name(pv)} has changed; volume {operation.volume.id} is not deleted")
    with _reporting(run.events, pv, "VolumeFailedDelete"):
        volumes_of(run.cloud).delete(operation.volume.id)


@apply.performs(DiscardVolume)
def discard_volume(operation: DiscardVolume, run: apply.Run) -> None:
    """Delete the volume, unless it has a PersistentVolume that the cache does not show yet."""
    volume = operation.volume
    present = _present_pv(run, view.pv_name(volume.tags[CLAIM_UID_TAG]))
    if present and (present["spec"].get("csi") or {}).get("volumeHandle") == volume.id:
        raise _changed(f"PersistentVolume {name(present)} now uses volume {volume.id}; it is not deleted")
    with _reporting(run.events, operation.claim, "VolumeFailedDelete"):
        volumes_of(run.cloud).delete(volume.id)


@apply.performs(DeletePersistentVolume)
def delete_persistent_volume(operation: DeletePersistentVolume, run: apply.Run) -> None:
    """Delete first, then remove the finalizer, so that it never exists without finalizer."""
    pv = operation.pv
    if not view.is_deleting(pv):
        try:
            run.kube.delete(PERSISTENT_VOLUMES, name(pv), uid=uid(pv))
        except (NotFoundError, ConflictError):  # Gone, or another one has the name.
            return
    _patch_finalizer(run, PERSISTENT_VOLUMES, pv, view.PV_FINALIZER, present=False)


# --------------------------------------------------------------------------------------------- VolumeAttachments


@apply.performs(AttachVolume)
def attach_volume(operation: AttachVolume, run: apply.Run) -> Volume | None:
    """Store finalizer and ids first, so that it can be detached even after its PV and Node are gone."""
    attachment, volumes = operation.attachment, volumes_of(run.cloud)
    noted = {VOLUME_ID: operation.volume_id, PROVIDER_ID: operation.provider_id}
    finalizer = attachment_finalizer(volumes.driver)
    metadata = attachment["metadata"]
    present = metadata.get("annotations") or {}
    if finalizer not in (metadata.get("finalizers") or []) or noted.items() - present.items():
        patch = {"metadata": {"finalizers": [finalizer], "annotations": noted}}
        if not _patch(run, VOLUME_ATTACHMENTS, attachment, patch, PatchType.STRATEGIC):
            return None
    try:
        return volumes.attach(operation.volume_id, operation.provider_id)
    except Throttled:
        raise
    except CloudError as error:
        _set_attach_error(attachment, str(error), run)
        raise


@apply.performs(SetAttached)
def set_attached(operation: SetAttached, run: apply.Run) -> None:
    """Tells the kubelet that it can mount the volume."""
    status = {"attached": True, "attachError": None}
    _patch(run, VOLUME_ATTACHMENTS, operation.attachment, {"status": status}, subresource="status")


@apply.performs(SetAttachError)
def set_attach_error(operation: SetAttachError, run: apply.Run) -> None:
    """kube-controller-manager reports the error on the pod."""
    _set_attach_error(operation.attachment, operation.message, run)


@apply.performs(DetachVolume)
def detach_volume(operation: DetachVolume, run: apply.Run) -> Volume | None:
    """Detach; the finalizer stays until the cloud reports that nothing is attached."""
    try:
        return volumes_of(run.cloud).detach(operation.volume_id, operation.provider_id)
    except Throttled:
        raise
    except CloudError as error:
        if operation.attachment is not None:
            status = {"detachError": _error(str(error))}
            _patch(run, VOLUME_ATTACHMENTS, operation.attachment, {"status": status}, subresource="status")
        raise


@apply.performs(ReleaseAttachment)
def release_attachment(operation: ReleaseAttachment, run: apply.Run) -> None:
    """Remove the finalizer, so that the volume can be attached to another node."""
    finalizer = attachment_finalizer(volumes_of(run.cloud).driver)
    _patch_finalizer(run, VOLUME_ATTACHMENTS, operation.attachment, finalizer, present=False)


# --------------------------------------------------------------------------------------------------------- helpers


def _present_pv(run: apply.Run, pv_name: str) -> Object | None:
    """The PersistentVolume from the API server, not from the cache."""
    try:
        return run.kube.get(PERSISTENT_VOLUMES, pv_name)
    except NotFoundError:
        return None


def _changed(message: str) -> ConflictError:
    return ConflictError(409, "Conflict", message)


@contextmanager
def _reporting(events: Events, obj: Object | None, reason: str) -> Iterator[None]:
    """Report cloud errors, except throttling, in an event of the object, if there is one."""
    try:
        yield
    except Throttled:
        raise
    except CloudError as error:
        if obj is not None:
            events.warning(obj, reason, str(error))
        raise


def _patch(
    run: apply.Run,
    resource: Resource,
    obj: Object,
    patch: Mapping[str, Any],
    type: PatchType = PatchType.MERGE,
    *,
    subresource: str | None = None,
) -> bool:
    """Patch this object; False if it is gone. Raises for another object with its name."""
    # UIDs are immutable: the API server rejects the patch for another object with the same name.
    with_uid = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid(obj)}}
    try:
        run.kube.patch(resource, name(obj), with_uid, namespace(obj), type=type, subresource=subresource)
    except NotFoundError:
        return False
    return True


def _patch_finalizer(run: apply.Run, resource: Resource, obj: Object, finalizer: str, *, present: bool) -> None:
    field = "finalizers" if present else "$deleteFromPrimitiveList/finalizers"
    _patch(run, resource, obj, {"metadata": {field: [finalizer]}}, PatchType.STRATEGIC)


def _set_attach_error(attachment: Object, message: str, run: apply.Run) -> None:
    if (attachment.get("status", {}).get("attachError") or {}).get("message") == message:
        return
    status = {"attached": False, "attachError": _error(message)}
    _patch(run, VOLUME_ATTACHMENTS, attachment, {"status": status}, subresource="status")


def _error(message: str) -> dict[str, str]:
    return {"time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "message": message}
