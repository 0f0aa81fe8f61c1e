"""Volumes: creation, attachment, resizing and deletion, inside one transaction of the store.

Nothing here touches a disk: the lifecycle carries out the records.
"""

from __future__ import annotations

from local.mycloud import quotas
from local.mycloud.errors import Conflict, InvalidParameter
from local.mycloud.filters import Filter
from local.mycloud.models.common import State, now
from local.mycloud.models.compute import MachineRecord
from local.mycloud.models.volumes import Attachment, CreateVolume, ResizeVolume, Volume
from local.mycloud.schema import new_id
from local.mycloud.store import Session


def create_volume(session: Session, request: CreateVolume) -> Volume:
    """An empty, unattached volume."""
    if made := session.made_with(Volume, request):
        return made
    quotas.require(session, "volumes", session.count(Volume))
    volume = Volume(
        id=new_id(Volume),
        name=request.name,
        tags=request.tags,
        state=State.CREATING,
        created_at=now(),
        zone=request.zone,
        size_gib=request.size_gib,
        type=request.type,
    )
    session.add(volume)
    session.store_token(volume, request)
    return volume


def attach_volume(session: Session, id: str, machine_id: str) -> Volume:
    """Begin to attach; a volume that is, or is being, attached to this machine is left as it is."""
    volume = session.get(Volume, id)
    machine = session.referenced(MachineRecord, machine_id, "machine_id")
    if volume.state != State.AVAILABLE:
        raise Conflict(f"volume {id} is {volume.state.value}; only an available one can be attached")
    if (attachment := volume.attachment) is not None:
        if attachment.machine_id == machine_id and attachment.state != "detaching":
            return volume
        raise Conflict(f"volume {id} is {attachment.state} {_toward(attachment)} machine {attachment.machine_id}")
    if machine.simulated:
        raise Conflict(f"machine {machine_id} is simulated and cannot use a volume", field="machine_id")
    if machine.zone != volume.zone:
        raise Conflict(f"volume {id} is in {volume.zone}, machine {machine_id} in {machine.zone}", field="machine_id")
    if machine.state != State.RUNNING:
        raise Conflict(f"machine {machine_id} is {machine.state.value}; volumes are attached to running ones")
    volume.attachment = Attachment(machine_id=machine_id, state="attaching")
    session.save(volume)
    return volume


def detach_volume(session: Session, id: str, machine_id: str) -> Volume:
    """Begin to detach; a volume that is not attached to this machine is left as it is."""
    volume = session.get(Volume, id)
    attachment = volume.attachment
    if attachment is not None and attachment.machine_id == machine_id and attachment.state != "detaching":
        attachment.state = "detaching"
        session.save(volume)
    return volume


def resize_volume(session: Session, id: str, request: ResizeVolume) -> Volume:
    """Let a volume grow, attached or not; its present size is a success."""
    volume = session.get(Volume, id)
    if volume.state == State.DELETING:
        raise Conflict(f"volume {id} is being deleted")
    if request.size_gib < volume.size_gib:
        raise InvalidParameter(
            f"volume {id} has {volume.size_gib} GiB and cannot shrink to {request.size_gib}",
            field="size_gib",
            allowed=f"{volume.size_gib} to 1024",
        )
    if request.size_gib != volume.size_gib:
        volume.size_gib = request.size_gib
        session.save(volume)
    return volume


def delete_volume(session: Session, id: str) -> Volume:
    """Begin the deletion; raises `Conflict` while it is attached."""
    volume = session.get(Volume, id)
    if (attachment := volume.attachment) is not None:
        raise Conflict(f"volume {id} is {attachment.state} {_toward(attachment)} machine {attachment.machine_id}")
    volume.state = State.DELETING
    session.save(volume)
    return volume


def release_volumes(session: Session, machine_id: str) -> None:
    """Detach everything from a machine that is gone, and remove its view of them."""
    for volume in session.query(Volume, Filter(machine_id=machine_id)):
        volume.attachment = None
        session.save(volume)


def _toward(attachment: Attachment) -> str:
    return "from" if attachment.state == "detaching" else "to"
