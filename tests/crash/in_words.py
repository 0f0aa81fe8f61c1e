"""What is left at the end of a run, in words that are the same for every run."""

from __future__ import annotations

from cloud_controller.kube import Object
from tests.crash.daemon import Json

_VOLATILE = frozenset({"id", "created_at", "terminated_at", "creationTimestamp", "resourceVersion", "uid"})
_VOLATILE |= {"managedFields", "lastHeartbeatTime", "lastTransitionTime", "generation", "clusterIP", "clusterIPs"}
"""What differs from one run to the next, and says nothing."""


def service_in_words(service: Object) -> Json:
    """What controllers and users say of a Service."""
    metadata, spec = service["metadata"], service["spec"]
    return {
        "name": metadata["name"],
        "finalizers": metadata.get("finalizers") or [],
        "annotations": metadata.get("annotations") or {},
        "deleted": "deletionTimestamp" in metadata,
        "ports": spec["ports"],
        "status": {
            **(service.get("status") or {}),
            "conditions": [kept(each) for each in (service.get("status") or {}).get("conditions") or []],
        },
    }


def node_in_words(node: Object) -> Json:
    """What controllers say of a node."""
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = [kept(each) for each in status.get("conditions") or [] if each["type"] != "Ready"]
    return {
        "name": metadata["name"],
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "spec": node["spec"],
        "addresses": status.get("addresses") or [],
        "conditions": conditions,
    }


def kept(obj: Json) -> Json:
    """The object without what differs from one run to the next."""
    return {key: value for key, value in obj.items() if key not in _VOLATILE}
