"""What Kubernetes' storage objects say, and the PersistentVolume that a new volume gets: pure functions."""

from __future__ import annotations

import difflib
import math
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import Object, name, namespace, uid
from cloud_controller.volumes import Volume

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
PROVISIONER_ANNOTATIONS = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
"""By which kube-controller-manager asks a provisioner for a volume of a claim."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PV_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""external-provisioner's: a PersistentVolume that is deleted before its claim stays until its volume is seen to."""

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod")
"""That only one pod has it is the scheduler's care."""
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_GIB = 1024**3
_UNITS = {unit: 1024 ** (power + 1) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))} | {
    unit: 1000 ** (power + 1) for power, unit in enumerate(("k", "M", "G", "T", "P", "E"))
}
_QUANTITY = re.compile(r"(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(?P<unit>[KMGTPE]i|[kMGTPE]|m)?")

# ---------------------------------------------------------------------------------------------------------- sizes


def size_bytes(quantity: str | int) -> int:
    """Kubernetes' quantity in bytes, rounded up. Raises InvalidConfiguration for what is none."""
    match = _QUANTITY.fullmatch(str(quantity))
    try:
        if match is None:
            raise InvalidOperation
        number = Decimal(match["number"])
    except InvalidOperation:
        raise InvalidConfiguration("storage", f"{quantity!r} is no quantity", "for example 10Gi") from None
    unit = match["unit"]
    return math.ceil(number / 1000 if unit == "m" else number * _UNITS.get(unit or "", 1))


def size_gib(quantity: str | int) -> int:
    """Whole GiB that hold this quantity; a volume has no less than one."""
    return max(1, -(-size_bytes(quantity) // _GIB))


def quantity(gib: int) -> str:
    """GiB in Kubernetes' words."""
    return f"{gib}Gi"


def requested(claim: Object) -> str:
    """The storage that a claim asks for."""
    return str((claim["spec"].get("resources", {}).get("requests") or {}).get("storage", "0"))


def capacity(obj: Object, part: str) -> str:
    """The storage in `spec.capacity` of a PersistentVolume, or in `status.capacity` of a claim."""
    return str((obj.get(part, {}).get("capacity") or {}).get("storage", "0"))


# --------------------------------------------------------------------------------------------------------- claims


def provisioner_of(claim: Object) -> str | None:
    """Who is asked for a volume of this claim; None: nobody, yet."""
    annotations = claim["metadata"].get("annotations") or {}
    return next((annotations[key] for key in PROVISIONER_ANNOTATIONS if annotations.get(key)), None)


def selected_node(claim: Object) -> str | None:
    """The node that the scheduler has chosen for the claim's first consumer."""
    return (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or None


def pv_name(claim_uid: str) -> str:
    """The name of the PersistentVolume that a claim gets."""
    return f"pvc-{claim_uid}"


def is_deleting(obj: Object) -> bool:
    """Whether the object has been deleted and waits for its finalizers."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def wanted_gib(claim: Object, largest: int) -> int:
    """The size of a volume for this claim. Raises InvalidConfiguration where the cloud has none so large."""
    if (size := size_gib(requested(claim))) > largest:
        why = f"{requested(claim)} is asked for, more than the largest volume has"
        raise InvalidConfiguration("spec.resources.requests.storage", why, f"up to {quantity(largest)}")
    return size


def check_claim(claim: Object) -> None:
    """Raise InvalidConfiguration for what no volume of a cloud can give."""
    spec = claim["spec"]
    for mode in spec.get("accessModes") or []:
        if mode not in ACCESS_MODES:
            why = f"{mode} is asked for, and a volume is attached to one node at a time"
            raise InvalidConfiguration("spec.accessModes", why, ", ".join(ACCESS_MODES))
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        raise InvalidConfiguration("spec.volumeMode", f"{spec['volumeMode']} is not offered", "Filesystem")
    for field in ("selector", "dataSource", "dataSourceRef", "volumeAttributesClassName"):
        if spec.get(field):
            raise InvalidConfiguration(f"spec.{field}", "a new volume can't honour it", "none")


def check_parameters(storage_class: Object, allowed: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The parameters of a StorageClass. Raises InvalidConfiguration for an unknown one, with the nearest name."""
    given = storage_class.get("parameters") or {}
    where = f"StorageClass {name(storage_class)}: parameters"
    for key, value in sorted(given.items()):
        if key not in allowed:
            nearest = difflib.get_close_matches(key, allowed, n=1, cutoff=0.5)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidConfiguration(f"{where}.{key}", f"is no parameter{hint}", ", ".join(sorted(allowed)))
        if value not in allowed[key]:
            nearest = difflib.get_close_matches(value, allowed[key], n=1, cutoff=0.5)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidConfiguration(f"{where}.{key}", f"{value!r}{hint}", ", ".join(sorted(allowed[key])))
    return dict(given)


# -------------------------------------------------------------------------------------------------------- topology


def zone_of(node: Object) -> str | None:
    """The zone that the node's label tells; None before the node is initialised."""
    return (node["metadata"].get("labels") or {}).get(ZONE) or None


def zones(storage_class: Object, nodes: Iterable[Object]) -> list[str]:
    """The zones in which nodes are that may run pods and that the class's `allowedTopologies` let in; sorted."""
    nodes = [node for node in nodes if zone_of(node)]
    workers = [node for node in nodes if _CONTROL_PLANE not in node["metadata"]["labels"]]
    terms = storage_class.get("allowedTopologies") or []
    return sorted({str(zone_of(node)) for node in workers or nodes if is_allowed(node, terms)})


def is_allowed(node: Object, terms: Collection[Mapping[str, Any]]) -> bool:
    """Whether one of the terms (none: all is allowed) fits the node's labels."""
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or [])
        for term in terms
    )


def choose_zone(claim: Object, among: list[str]) -> str:
    """The same zone for the same claim each time; the claims of a StatefulSet (`NAME-0`, `NAME-1`) one after another.

    Upstream spreads by name and ordinal too.
    """
    match = re.fullmatch(r"(?P<base>.*)-(?P<ordinal>[0-9]{1,9})", name(claim))
    base, ordinal = (match["base"], int(match["ordinal"])) if match else (name(claim), 0)
    return among[(zlib.crc32(f"{namespace(claim)}/{base}".encode()) + ordinal) % len(among)]


# ---------------------------------------------------------------------------------------------- PersistentVolumes


def reclaim_policy(pv: Object) -> str:
    """What becomes of the volume when its claim is gone: Delete or Retain."""
    return str(pv["spec"].get("persistentVolumeReclaimPolicy", "Retain"))


def is_provisioned_by(pv: Object, provisioner: str) -> bool:
    """Whether it was made by this provisioner: only such a one's volume is ever deleted."""
    return (pv["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == provisioner


def handle(pv: Object) -> str:
    """The id of its volume."""
    return str(pv["spec"]["csi"]["volumeHandle"])


def node_affinity(zone: str) -> Object:
    """Only nodes of this zone can use the volume."""
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def persistent_volume(claim: Object, storage_class: Object, volume: Volume, *, driver: str, provisioner: str) -> Object:
    """The PersistentVolume of a volume that was made for this claim, bound to it from the start."""
    spec: Object = {
        "capacity": {"storage": quantity(volume.size_gib)},
        "accessModes": [*claim["spec"]["accessModes"]],
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": name(storage_class),
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace(claim),
            "name": name(claim),
            "uid": uid(claim),
        },
        "csi": {"driver": driver, "volumeHandle": volume.id},
        "nodeAffinity": node_affinity(volume.zone),
    }
    if options := storage_class.get("mountOptions"):
        spec["mountOptions"] = [*options]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": pv_name(uid(claim)),
            "labels": {ZONE: volume.zone, REGION: volume.region},
            "annotations": {PROVISIONED_BY: provisioner},
            "finalizers": [PV_FINALIZER],
        },
        "spec": spec,
    }
