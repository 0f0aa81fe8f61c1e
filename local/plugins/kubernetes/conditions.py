"""When an object counts as ready, by kind. Pure: judges one object, as `kubectl rollout status` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an object. `failed`: waiting will not make it ready."""

    ready: bool
    message: str = ""
    failed: bool = False


READY = Progress(True)
Judge = Callable[[Object], Progress]


def judge_of(api_version: str, kind: str) -> Judge | None:
    """The readiness judge of this type; None: its objects are ready once stored."""
    return _JUDGES.get((api_version.partition("/")[0] if "/" in api_version else "", kind))


def judge_endpoints(slices: Iterable[Object]) -> Progress:
    """Whether a Service's EndpointSlices have at least one ready address."""
    for item in slices:
        for endpoint in item.get("endpoints") or []:
            if endpoint.get("conditions", {}).get("ready", True) and endpoint.get("addresses"):
                return READY
    return Progress(False, "no ready pod matches the Service's selector")


def needs_endpoints(service: Object) -> bool:
    """Whether a Service needs a ready pod: it selects pods and has a cluster IP."""
    spec = service.get("spec", {})
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def _deployment(obj: Object) -> Progress:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if not _is_observed(obj):
        return Progress(False, "the controller has not observed the change yet")
    if spec.get("paused"):
        return READY
    progressing = condition_of(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Progress(False, str(progressing.get("message", "progress deadline exceeded")), failed=True)
    wanted = spec.get("replicas", 1)
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    if updated < wanted:
        return Progress(False, f"{updated} of {wanted} replicas updated{_replica_failure(obj)}")
    if total > updated:
        return Progress(False, f"{total - updated} old replicas still exist")
    available = status.get("availableReplicas", 0)
    if available < updated:
        return Progress(False, f"{available} of {updated} replicas available")
    return READY


def _daemon_set(obj: Object) -> Progress:
    status = obj.get("status", {})
    if not _is_observed(obj):
        return Progress(False, "the controller has not observed the change yet")
    wanted = status.get("desiredNumberScheduled", 0)
    updated = status.get("updatedNumberScheduled", 0)
    if obj["spec"].get("updateStrategy", {}).get("type") != "OnDelete" and updated < wanted:
        return Progress(False, f"{updated} of {wanted} pods updated")
    available = status.get("numberAvailable", 0)
    if available < wanted:
        return Progress(False, f"{available} of {wanted} pods available")
    return READY


def _stateful_set(obj: Object) -> Progress:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    if not _is_observed(obj):
        return Progress(False, "the controller has not observed the change yet")
    wanted = spec.get("replicas", 1)
    ready = status.get("readyReplicas", 0)
    if ready < wanted:
        return Progress(False, f"{ready} of {wanted} replicas ready")
    on_delete = spec.get("updateStrategy", {}).get("type") == "OnDelete"
    if not on_delete and status.get("updateRevision") != status.get("currentRevision"):
        return Progress(False, f"{status.get('updatedReplicas', 0)} of {wanted} replicas updated")
    return READY


def _service(obj: Object) -> Progress:
    if obj.get("spec", {}).get("type") != "LoadBalancer":
        return READY
    if obj.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return READY
    return Progress(False, "no load balancer address yet")


def _namespace(obj: Object) -> Progress:
    phase = obj.get("status", {}).get("phase")
    return READY if phase == "Active" else Progress(False, f"phase {phase}")


def _claim(obj: Object) -> Progress:
    phase = obj.get("status", {}).get("phase")
    return READY if phase == "Bound" else Progress(False, f"phase {phase}", failed=phase == "Lost")


def _pod(obj: Object) -> Progress:
    phase = obj.get("status", {}).get("phase")
    if phase == "Succeeded" or condition_of(obj, "Ready").get("status") == "True":
        return READY
    return Progress(False, f"phase {phase}", failed=phase == "Failed")


def _job(obj: Object) -> Progress:
    if condition_of(obj, "Complete").get("status") == "True" or obj.get("spec", {}).get("suspend"):
        return READY
    failed = condition_of(obj, "Failed")
    if failed.get("status") == "True":
        return Progress(False, str(failed.get("message", "the job failed")), failed=True)
    wanted = obj.get("spec", {}).get("completions", 1)
    return Progress(False, f"{obj.get('status', {}).get('succeeded', 0)} of {wanted} pods completed")


def _definition(obj: Object) -> Progress:
    if condition_of(obj, "Established").get("status") == "True":
        return READY
    names = condition_of(obj, "NamesAccepted")
    return Progress(False, str(names.get("message", "not established yet")), failed=names.get("status") == "False")


def _is_observed(obj: Object) -> bool:
    return bool(obj.get("status", {}).get("observedGeneration", 0) >= obj["metadata"].get("generation", 0))


def condition_of(obj: Object, type: str) -> Mapping[str, Any]:
    """The object's condition of this type, case-insensitive as in kubectl; {} if it has none."""
    conditions = obj.get("status", {}).get("conditions") or []
    return next((c for c in conditions if str(c.get("type")).lower() == type.lower()), {})


def _replica_failure(obj: Object) -> str:
    message = condition_of(obj, "ReplicaFailure").get("message")
    return f": {message}" if message else ""


_JUDGES: dict[tuple[str, str], Judge] = {
    ("", "Namespace"): _namespace,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
}
