"""The interface between the volume controller and a cloud: creating, attaching, resizing and deleting volumes.

The zone and region of a `Volume` replace upstream's `PVLabeler`; elsewhere, a cloud's CSI driver does the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cloud_controller.load_balancers.model import CLUSTER_TAG

CLAIM_UID_TAG = "kubernetes.io/claim-uid"
CLAIM_TAG = "kubernetes.io/claim"
"""NAMESPACE/NAME, informative; the UID identifies the claim."""
PV_TAG = "kubernetes.io/persistent-volume"
"""Set once the PersistentVolume exists: from then on, only its reclaim policy decides about the volume."""


class VolumeState(StrEnum):
    """The state of a volume; a deleted one is absent."""

    CREATING = "creating"
    AVAILABLE = "available"
    FAILED = "failed"
    DELETING = "deleting"


class AttachmentState(StrEnum):
    """The state of an attachment."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attachment to the machine with this provider ID."""

    provider_id: str
    state: AttachmentState


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of the cloud; sizes are GiB."""

    id: str
    name: str
    zone: str
    region: str
    size_gib: int
    state: VolumeState
    state_reason: str = ""
    attachments: tuple[Attachment, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def attachment(self, provider_id: str) -> Attachment | None:
        """The attachment to this machine, or None."""
        return next((found for found in self.attachments if found.provider_id == provider_id), None)

    def belongs_to(self, cluster_id: str) -> bool:
        """Whether this cluster's controller created it."""
        return self.tags.get(CLUSTER_TAG) == cluster_id and bool(self.tags.get(CLAIM_UID_TAG))


@dataclass(frozen=True, slots=True)
class ClaimOwner:
    """The claim that a volume belongs to, identified by cluster and UID."""

    cluster_id: str
    uid: str
    namespace: str
    name: str

    @property
    def tags(self) -> dict[str, str]:
        """The volume's tags, set in the create call."""
        return {
            CLUSTER_TAG: self.cluster_id,
            CLAIM_UID_TAG: self.uid,
            CLAIM_TAG: f"{self.namespace}/{self.name}",
        }

    @property
    def client_token(self) -> str:
        """The idempotency token of the claim's volume."""
        return f"{self.cluster_id}-{self.uid}"


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """A volume to create; `parameters`: the StorageClass's, validated against `Volumes.parameters`."""

    name: str
    zone: str
    size_gib: int
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    client_token: str


class Volumes(Protocol):
    """The volumes of one cluster. Every write is idempotent."""

    @property
    def provisioner(self) -> str:
        """The `provisioner` of this cloud's StorageClasses."""
        ...

    @property
    def driver(self) -> str:
        """The CSI driver in PersistentVolumes, and the attacher in VolumeAttachments."""
        ...

    @property
    def parameters(self) -> Mapping[str, Collection[str]]:
        """The allowed StorageClass parameters, each with its allowed values."""
        ...

    @property
    def largest_gib(self) -> int:
        """The maximum size of a volume."""
        ...

    def list(self, ids: Collection[str] | None = None) -> Sequence[Volume]:
        """The volumes with this cluster's tag or, given `ids`, exactly these, whoever created them.

        A VOLUME THAT IS ABSENT FROM THE RESULT COUNTS AS DELETED.
        """
        ...

    def create(self, request: VolumeRequest) -> Volume:
        """Start creating it; the same token again returns the same volume."""
        ...

    def attach(self, id: str, provider_id: str) -> Volume:
        """Start attaching it to the machine. Raises `Conflict`, naming the machine, if it is attached to another."""
        ...

    def detach(self, id: str, provider_id: str) -> Volume | None:
        """Start detaching it from the machine; None if the volume is gone. Not being attached there is a success."""
        ...

    def resize(self, id: str, size_gib: int) -> Volume:
        """Grow it to this size."""
        ...

    def tag(self, id: str, tags: Mapping[str, str]) -> Volume:
        """Set its tags to exactly these."""
        ...

    def delete(self, id: str) -> None:
        """Start deleting it; a missing one is a success."""
        ...
