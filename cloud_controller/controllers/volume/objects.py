"""Reads Kubernetes' storage objects, and builds PersistentVolumes: pure functions."""

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
"""Set by kube-controller-manager to request a volume for a claim from a provisioner."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PV_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
"""external-provisioner's finalizer: keeps a PersistentVolume that is deleted before its claim."""

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod")
"""The scheduler enforces ReadWriteOncePod."""
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_GIB = 1024**3
_UNITS: Mapping[str, int] = {
    unit: 1024 ** (power + 1) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
} | {unit: 1000 ** (power + 1) for power, unit in enumerate(("k", "M", "G", "T", "P", "E"))}
_QUANTITY = re.compile(r"(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(?P<unit>[KMGTPE]i|[kMGTPE]|[mun])?")
_PARTS = {"m": 10**3, "u": 10**6, "n": 10**9}

# ---------------------------------------------------------------------------------------------------------- sizes


def size_bytes(quantity: str | int) -> int:
    """A Kubernetes quantity in bytes, rounded up. Raises InvalidConfiguration for an invalid one."""
    match = _QUANTITY.fullmatch(str(quantity))
    try:
        if match is None:
            raise InvalidOperation
        number = Decimal(match["number"])
    except InvalidOperation:
        raise InvalidConfiguration("storage", f"{quantity!r} is not a valid quantity", "for example 10Gi") from None
    unit = match["unit"] or ""
    return math.ceil(number * _UNITS.get(unit, 1) / _PARTS.get(unit, 1))


def size_gib(quantity: str | int) -> int:
    """The quantity in GiB, rounded up, at least 1."""
    return max(1, -(-size_bytes(quantity) // _GIB))


def quantity(gib: int) -> str:
    """The Kubernetes quantity of this many GiB."""
    return f"{gib}Gi"


def requested(claim: Object) -> str:
    """The storage that a claim requests."""
    return str((claim["spec"].get("resources", {}).get("requests") or {}).get("storage", "0"))


def capacity(obj: Object, part: str) -> str:
    """The storage in `spec.capacity` of a PersistentVolume, or in `status.capacity` of a claim."""
    return str((obj.get(part, {}).get("capacity") or {}).get("storage", "0"))


# --------------------------------------------------------------------------------------------------------- claims


def provisioner_of(claim: Object) -> str | None:
    """The provisioner requested for this claim, or None."""
    annotations = claim["metadata"].get("annotations") or {}
    return next((annotations[key] for key in PROVISIONER_ANNOTATIONS if annotations.get(key)), None)


def selected_node(claim: Object) -> str | None:
    """The node that the scheduler has selected for the claim's first consumer."""
    return (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) or None


def pv_name(claim_uid: str) -> str:
    """The name of a claim's PersistentVolume."""
    return f"pvc-{claim_uid}"


def is_deleting(obj: Object) -> bool:
    """Whether the object has a deletion timestamp."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def wanted_gib(claim: Object, largest: int) -> int:
    """The volume size for this claim. Raises InvalidConfiguration if it exceeds the cloud's maximum."""
    if (size := size_gib(requested(claim))) > largest:
        why = f"{requested(claim)} exceeds the maximum volume size"
        raise InvalidConfiguration("spec.resources.requests.storage", why, f"up to {quantity(largest)}")
    return size


def check_claim(claim: Object) -> None:
    """Raise InvalidConfiguration if the claim requests something unsupported."""
    spec = claim["spec"]
    for mode in spec.get("accessModes") or []:
        if mode not in ACCESS_MODES:
            why = f"{mode} is not supported: a volume can be attached to only one node at a time"
            raise InvalidConfiguration("spec.accessModes", why, ", ".join(ACCESS_MODES))
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        raise InvalidConfiguration("spec.volumeMode", f"{spec['volumeMode']} is not supported", "Filesystem")
    for field in ("selector", "dataSource", "dataSourceRef", "volumeAttributesClassName"):
        if spec.get(field):
            raise InvalidConfiguration(f"spec.{field}", "not supported for provisioned volumes", "none")


def check_parameters(storage_class: Object, allowed: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The validated parameters of a StorageClass. Raises InvalidConfiguration, with a hint at the nearest name."""
    given = storage_class.get("parameters") or {}
    where = f"StorageClass {name(storage_class)}: parameters"
    for key, value in sorted(given.items()):
        if key not in allowed:
            nearest = difflib.get_close_matches(key, allowed, n=1, cutoff=0.5)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidConfiguration(f"{where}.{key}", f"unknown parameter{hint}", ", ".join(sorted(allowed)))
        if value not in allowed[key]:
            nearest = difflib.get_close_matches(value, allowed[key], n=1, cutoff=0.5)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidConfiguration(
                f"{where}.{key}", f"invalid value {value!r}{hint}", ", ".join(sorted(allowed[key]))
            )
    return dict(given)


# -------------------------------------------------------------------------------------------------------- topology


def zone_of(node: Object) -> str | None:
    """The node's zone label; None before the node is initialised."""
    return (node["metadata"].get("labels") or {}).get(ZONE) or None


def zones(storage_class: Object, nodes: Iterable[Object]) -> list[str]:
    """The sorted zones of nodes that may run pods and match the class's `allowedTopologies`."""
    nodes = [node for node in nodes if zone_of(node)]
    workers = [node for node in nodes if _CONTROL_PLANE not in node["metadata"]["labels"]]
    terms = storage_class.get("allowedTopologies") or []
    return sorted({str(zone_of(node)) for node in workers or nodes if is_allowed(node, terms)})


def is_allowed(node: Object, terms: Collection[Mapping[str, Any]]) -> bool:
    """Whether the node's labels match one of the terms; always True without terms."""
    labels = node["metadata"].get("labels") or {}
    return not terms or any(
        all(labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or [])
        for term in terms
    )


def choose_zone(claim: Object, among: list[str]) -> str:
    """Choose a zone deterministically; the claims of a StatefulSet (`NAME-0`, `NAME-1`) rotate through the zones.

    Like upstream, which also spreads by name and ordinal.
    """
    match = re.fullmatch(r"(?P<base>.*)-(?P<ordinal>[0-9]{1,9})", name(claim))
    base, ordinal = (match["base"], int(match["ordinal"])) if match else (name(claim), 0)
    return among[(zlib.crc32(f"{namespace(claim)}/{base}".encode()) + ordinal) % len(among)]


# ---------------------------------------------------------------------------------------------- PersistentVolumes


def reclaim_policy(pv: Object) -> str:
    """The reclaim policy: Delete or Retain."""
    return str(pv["spec"].get("persistentVolumeReclaimPolicy", "Retain"))


def is_provisioned_by(pv: Object, provisioner: str) -> bool:
    """Whether this provisioner created it. ONLY THE VOLUMES OF SUCH OBJECTS MAY BE DELETED."""
    return (pv["metadata"].get("annotations") or {}).get(PROVISIONED_BY) == provisioner


def handle(pv: Object) -> str:
    """The id of the PersistentVolume's volume."""
    return str(pv["spec"]["csi"]["volumeHandle"])


def node_affinity(zone: str) -> Object:
    """The node affinity of a volume that only this zone's nodes can use."""
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def persistent_volume(claim: Object, storage_class: Object, volume: Volume, *, driver: str, provisioner: str) -> Object:
    """The PersistentVolume of a volume for this claim, bound to the claim."""
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
