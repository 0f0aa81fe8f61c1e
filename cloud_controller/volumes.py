"""A volume as the controllers see it, and what a cloud must offer to make, attach, resize and delete volumes.

Upstream's `PVLabeler` is the zone and region of a `Volume`; the rest is what a cloud's storage driver does there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cloud_controller.load_balancers.model import CLUSTER_TAG

CLAIM_UID_TAG = "kubernetes.io/claim-uid"
CLAIM_TAG = "kubernetes.io/claim"
"""NAMESPACE/NAME, for people; the UID is the identity."""
PV_TAG = "kubernetes.io/persistent-volume"
"""Set once the PersistentVolume stands: from then on nobody but that object's reclaim policy ends the volume."""


class VolumeState(StrEnum):
    """The life of a volume; one that is deleted is absent."""

    CREATING = "creating"
    AVAILABLE = "available"
    FAILED = "failed"
    DELETING = "deleting"


class AttachmentState(StrEnum):
    """How far a volume is on its way to a machine, or from it."""

    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a volume is; `provider_id` is the machine's, as nodes carry it."""

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
        """How it stands to this machine; None: not at all."""
        return next((found for found in self.attachments if found.provider_id == provider_id), None)

    def belongs_to(self, cluster_id: str) -> bool:
        """Whether this cluster's controller made it."""
        return self.tags.get(CLUSTER_TAG) == cluster_id and bool(self.tags.get(CLAIM_UID_TAG))


@dataclass(frozen=True, slots=True)
class ClaimOwner:
    """The claim that a volume is made for. Identity is cluster and UID."""

    cluster_id: str
    uid: str
    namespace: str
    name: str

    @property
    def tags(self) -> dict[str, str]:
        """What the volume carries from the create call on."""
        return {
            CLUSTER_TAG: self.cluster_id,
            CLAIM_UID_TAG: self.uid,
            CLAIM_TAG: f"{self.namespace}/{self.name}",
        }

    @property
    def client_token(self) -> str:
        """The idempotency token of the claim's one volume."""
        return f"{self.cluster_id}-{self.uid}"


@dataclass(frozen=True, slots=True)
class VolumeRequest:
    """What is to be made; `parameters` are the StorageClass's, checked against `Volumes.parameters`."""

    name: str
    zone: str
    size_gib: int
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    client_token: str


class Volumes(Protocol):
    """The volumes of one cluster. Every write may be repeated."""

    @property
    def provisioner(self) -> str:
        """What a StorageClass of this cloud names as its `provisioner`."""
        ...

    @property
    def driver(self) -> str:
        """The CSI driver's name in PersistentVolumes, and the attacher of VolumeAttachments."""
        ...

    @property
    def parameters(self) -> Mapping[str, Collection[str]]:
        """The parameters that a StorageClass may give, and the values of each."""
        ...

    @property
    def largest_gib(self) -> int:
        """The size of the largest volume."""
        ...

    def list(self, ids: Collection[str] | None = None) -> Sequence[Volume]:
        """Those with this cluster's tag; or exactly these, whoever made them.

        An id that is absent from the answer is one that the cloud says does not exist.
        """
        ...

    def create(self, request: VolumeRequest) -> Volume:
        """Begin to make it; the same token again answers the same volume."""
        ...

    def attach(self, id: str, provider_id: str) -> Volume:
        """Begin to attach it to the machine. Raises `Conflict`, naming where, if it is attached elsewhere."""
        ...

    def detach(self, id: str, provider_id: str) -> Volume | None:
        """Begin to detach it from the machine; None where the volume is gone. Not attached there: a success."""
        ...

    def resize(self, id: str, size_gib: int) -> Volume:
        """Let it grow to this size."""
        ...

    def tag(self, id: str, tags: Mapping[str, str]) -> Volume:
        """Give it exactly these tags."""
        ...

    def delete(self, id: str) -> None:
        """Begin to delete it; one that is gone is a success."""
        ...
