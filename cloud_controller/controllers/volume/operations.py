"""The steps that lead claims, PersistentVolumes and VolumeAttachments to what they ask for, as data.

Each is idempotent and safe to be the last one before a crash: the next plan goes on from what it left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloud_controller.kube import Object
from cloud_controller.volumes import Volume, VolumeRequest


@dataclass(frozen=True, slots=True)
class CreateVolume:
    """Make the volume of a claim."""

    claim: Object
    request: VolumeRequest


@dataclass(frozen=True, slots=True)
class CreatePersistentVolume:
    """Hand the volume to its claim."""

    claim: Object
    pv: Object


@dataclass(frozen=True, slots=True)
class SelectNodeAnew:
    """Take the claim's node back, so that the scheduler chooses another one."""

    claim: Object


@dataclass(frozen=True, slots=True)
class DeleteVolume:
    """Delete the volume of a PersistentVolume that is released and keeps nothing."""

    volume: Volume
    pv: Object


@dataclass(frozen=True, slots=True)
class DiscardVolume:
    """Delete a volume that no PersistentVolume stands for; `claim` is the one that gets another, if it still waits."""

    volume: Volume
    claim: Object | None = None


@dataclass(frozen=True, slots=True)
class TagVolume:
    """Add these tags to the volume: that its PersistentVolume exists, and which Kubernetes cluster it belongs to."""

    volume: Volume
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SetTopology:
    """Give a PersistentVolume the labels and the node affinity that it lacks (None: it has one)."""

    pv: Object
    labels: Mapping[str, str]
    node_affinity: Object | None


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Put the provisioner's finalizer on a PersistentVolume, or take it off."""

    pv: Object
    present: bool


@dataclass(frozen=True, slots=True)
class DeletePersistentVolume:
    """Remove the PersistentVolume whose volume is gone."""

    pv: Object


@dataclass(frozen=True, slots=True)
class AttachVolume:
    """Attach in the cloud, after noting at the VolumeAttachment what will have to be detached."""

    attachment: Object
    volume_id: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class SetAttached:
    """Tell kubelet and scheduler that the volume is there."""

    attachment: Object


@dataclass(frozen=True, slots=True)
class SetAttachError:
    """Tell why it is not."""

    attachment: Object
    message: str


@dataclass(frozen=True, slots=True)
class DetachVolume:
    """Detach in the cloud; `attachment` is the VolumeAttachment that asked for it, if one did."""

    attachment: Object | None
    volume_id: str
    provider_id: str


@dataclass(frozen=True, slots=True)
class ReleaseAttachment:
    """Let the VolumeAttachment go: nothing is attached any more."""

    attachment: Object


@dataclass(frozen=True, slots=True)
class ResizeVolume:
    """Let the volume grow."""

    claim: Object
    volume: Volume
    size_gib: int


@dataclass(frozen=True, slots=True)
class SetCapacity:
    """Write the volume's size at its PersistentVolume."""

    pv: Object
    size: str


@dataclass(frozen=True, slots=True)
class SetClaimCapacity:
    """Write the size at the claim, which ends its resize."""

    claim: Object
    size: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing to carry out: what is wrong is told as a warning at the object."""

    obj: Object
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to carry out: the cloud is at work, and is asked again soon."""
