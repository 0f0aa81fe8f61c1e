"""The volume behind a pod's PersistentVolumeClaim, and Kubernetes' names for it. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from local.machine.sources import MissingSourceError, NotYetError

Object = dict[str, Any]

_VOLUME_ID = re.compile(r"vol-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A volume of the cloud, and how the claim lets a pod use it."""

    driver: str
    """The cloud's CSI driver."""
    id: str
    """The cloud's id."""
    read_only: bool

    @property
    def unique_name(self) -> str:
        """The volume in a node's `volumesInUse` and `volumesAttached`."""
        return f"kubernetes.io/csi/{self.driver}^{self.id}"

    def attachment_name(self, node_name: str) -> str:
        """The VolumeAttachment that kube-controller-manager makes for this volume and a node."""
        return "csi-" + hashlib.sha256(f"{self.id}{self.driver}{node_name}".encode()).hexdigest()


def bound_volume_name(claim: Object) -> str:
    """The PersistentVolume that the claim is bound to. Raises NotYetError while there is none."""
    name = claim["spec"].get("volumeName")
    if not name or (claim.get("status") or {}).get("phase") != "Bound":
        raise NotYetError(f"persistentvolumeclaim {claim['metadata']['name']} is not bound")
    return str(name)


def claimed_volume(claim: Object, volume: Object, driver: str | None) -> ClaimedVolume:
    """The cloud's volume behind a claim's PersistentVolume. Raises MissingSourceError if a machine cannot have it.

    `driver`: the CSI driver whose volumes machines can have.
    """
    name, spec = volume["metadata"]["name"], volume["spec"]
    if (spec.get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
        raise MissingSourceError(f"persistentvolume {name} is not bound to claim {claim['metadata']['name']}")
    csi = spec.get("csi") or {}
    if driver is None or csi.get("driver") != driver:
        allowed = f"only volumes of CSI driver {driver}" if driver else "no volumes"
        raise MissingSourceError(f"persistentvolume {name}: machines of this cloud can have {allowed}")
    if spec.get("volumeMode") == "Block":
        raise MissingSourceError(f"persistentvolume {name}: volumeMode Block is not supported")
    if not _VOLUME_ID.fullmatch(csi["volumeHandle"]):
        raise MissingSourceError(f"persistentvolume {name}: {csi['volumeHandle']!r} is not a volume id")
    return ClaimedVolume(driver, csi["volumeHandle"], bool(csi.get("readOnly")))


def is_attached(node: Object, volume: ClaimedVolume) -> bool:
    """Whether the attach-detach controller reports the volume as attached on the node."""
    attached = (node.get("status") or {}).get("volumesAttached") or []
    return any(each["name"] == volume.unique_name for each in attached)


def is_done(attachment: Object | None) -> bool:
    """Whether a VolumeAttachment is complete and not being deleted."""
    if attachment is None or "deletionTimestamp" in attachment["metadata"]:
        return False
    return bool((attachment.get("status") or {}).get("attached"))
