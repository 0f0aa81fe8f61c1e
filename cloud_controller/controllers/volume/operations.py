"""The operations of volume plans, as data.

Each is idempotent, and a crash after it is safe: the next plan continues from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloud_controller.kube import Object
from cloud_controller.volumes import Volume, VolumeRequest


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """Create the volume of a claim."""

    claim: Object
    request: VolumeRequest


@dataclass(frozen=True, slots=True)
class CreatePersistentVolume:
    """Create the PersistentVolume that binds the volume to its claim."""

    claim: Object
    pv: Object


@dataclass(frozen=True, slots=True)
class ReselectNode:
    """Clear the claim's selected node, so that the scheduler selects another one."""

    claim: Object


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Delete the volume of a released PersistentVolume with reclaim policy Delete."""

    volume: Volume
    pv: Object


@dataclass(frozen=True, slots=True)
class DiscardVolume:
    """Delete a volume without PersistentVolume; `claim`: the claim that still waits for another one, if any."""

    volume: Volume
    claim: Object | None = None


@dataclass(frozen=True, slots=True)
class TagVolume:
    """Add tags to the volume: the name of its PersistentVolume, and the UID of its Kubernetes cluster."""

    volume: Volume
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetTopology:
    """Add missing labels and the missing node affinity (None: it exists) to a PersistentVolume."""

    pv: Object
    labels: Mapping[str, str]
    node_affinity: Object | None


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Add the provisioner's finalizer to a PersistentVolume, or remove it."""

    pv: Object
    present: bool


@dataclass(frozen=True, slots=True)
class DeletePersistentVolume:
    """Delete the PersistentVolume of a deleted volume."""

    pv: Object


@dataclass(frozen=True, slots=True)
class AttachVolume:
    """Attach in the cloud, after recording in the VolumeAttachment what will have to be detached."""

    attachment: Object
    volume_id: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class SetAttached:
    """Set `status.attached`, for the kubelet and the scheduler."""

    attachment: Object


@dataclass(frozen=True, slots=True)
class SetAttachError:
    """Set `status.attachError`."""

    attachment: Object
    message: str


@dataclass(frozen=True, slots=True)
class DetachVolume:
    """Detach in the cloud; `attachment`: its VolumeAttachment, if there is one."""

    attachment: Object | None
    volume_id: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class ReleaseAttachment:
    """Remove the VolumeAttachment's finalizer, because the volume is detached."""

    attachment: Object


@dataclass(frozen=True, slots=True)
class ResizeVolume:
    """Grow the volume."""

    claim: Object
    volume: Volume
    size_gib: int


@dataclass(frozen=True, slots=True)
class SetCapacity:
    """Write the volume's size to its PersistentVolume."""

    pv: Object
    size: str


@dataclass(frozen=True, slots=True)
class SetClaimCapacity:
    """Write the size to the claim, which completes the resize."""

    claim: Object
    size: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing to carry out: the problem is reported in a Warning event of the object."""

    obj: Object
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to carry out: the cloud is still working, and is polled again soon."""
