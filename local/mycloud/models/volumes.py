"""Volumes and their attachments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.mycloud.models.common import CloudObject, Create, Strict, Zone

VolumeSize = Annotated[int, Field(ge=1, le=1024)]


class Attachment(BaseModel):
    """Where a volume is: the machine sees it while it is `attached`."""

    machine_id: str
    state: Literal["attaching", "attached", "detaching"]


class Volume(CloudObject):
    """A disk in a zone, which one machine at a time may have."""

    zone: str
    size_gib: int
    type: str
    attachment: Attachment | None = None


class CreateVolume(Create):
    zone: Zone
    size_gib: VolumeSize
    type: Literal["standard"] = "standard"


class AttachVolume(Strict):
    """The machine to attach a volume to, or to detach it from."""

    machine_id: str


class ResizeVolume(Strict):
    size_gib: VolumeSize
