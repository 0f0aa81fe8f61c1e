"""The mycloud volume of a pod's PersistentVolumeClaim, and Kubernetes' names for it. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from local.mycloud.machine.sources import MissingSourceError, NotYetError

Object = dict[str, Any]

CSI_DRIVER = "mycloud.io"
_VOLUME_ID = re.compile(r"vol-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A volume by its id in mycloud, and the pod's access to it."""

    id: str
    read_only: bool

    @property
    def unique_name(self) -> str:
        """The volume's name in a node's `volumesInUse` and `volumesAttached`."""
        return f"kubernetes.io/csi/{CSI_DRIVER}^{self.id}"

    def attachment_name(self, node_name: str) -> str:
        """The VolumeAttachment that kube-controller-manager makes for this volume and a node."""
        return "csi-" + hashlib.sha256(f"{self.id}{CSI_DRIVER}{node_name}".encode()).hexdigest()


def bound_volume_name(claim: Object) -> str:
    """The PersistentVolume that the claim is bound to. Raises NotYetError while there is none."""
    name = claim["spec"].get("volumeName")
    if not name or (claim.get("status") or {}).get("phase") != "Bound":
        raise NotYetError(f"persistentvolumeclaim {claim['metadata']['name']} is not bound")
    return str(name)


def claimed_volume(claim: Object, volume: Object) -> ClaimedVolume:
    """The volume of the claim's PersistentVolume. Raises MissingSourceError for one that a machine cannot use."""
    name, spec = volume["metadata"]["name"], volume["spec"]
    if (spec.get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
        raise MissingSourceError(f"persistentvolume {name} is not bound to claim {claim['metadata']['name']}")
    csi = spec.get("csi") or {}
    if csi.get("driver") != CSI_DRIVER:
        raise MissingSourceError(f"persistentvolume {name}: a machine supports only volumes of CSI driver {CSI_DRIVER}")
    if spec.get("volumeMode") == "Block":
        raise MissingSourceError(f"persistentvolume {name}: volumeMode Block is not supported")
    if not _VOLUME_ID.fullmatch(csi["volumeHandle"]):
        raise MissingSourceError(f"persistentvolume {name}: {csi['volumeHandle']!r} is not a volume id")
    return ClaimedVolume(csi["volumeHandle"], bool(csi.get("readOnly")))


def is_attached(node: Object, volume: ClaimedVolume) -> bool:
    """Whether the attach-detach controller reports the volume as attached on the node."""
    attached = (node.get("status") or {}).get("volumesAttached") or []
    return any(each["name"] == volume.unique_name for each in attached)


def is_done(attachment: Object | None) -> bool:
    """Whether a VolumeAttachment is complete and not being deleted."""
    if attachment is None or "deletionTimestamp" in attachment["metadata"]:
        return False
    return bool((attachment.get("status") or {}).get("attached"))
