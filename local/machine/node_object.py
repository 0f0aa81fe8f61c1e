"""A kubelet's description of its machine: the Node that it registers and the status that it posts. Pure."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from local.machine.config import MachineConfig

Object = dict[str, Any]

UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"
CONTROLLER_MANAGED_ATTACH = "volumes.kubernetes.io/controller-managed-attach-detach"
PROVIDED_NODE_IP = "alpha.kubernetes.io/provided-node-ip"
ZONE_LABEL = "topology.kubernetes.io/zone"
WEBSOCKETS_FEATURE = "ExtendWebSocketsToKubelet"
"""Makes the API server forward WebSockets; for other kubelets it uses SPDY."""

KUBELET_VERSION = "v1.37.2"
"""The release of the imitated kubelet: the version of the control plane (tools/go.mod)."""

# What the admission plugin NodeRestriction lets a kubelet set in Kubernetes' own label domains.
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_OWN_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAINS = ("kubernetes.io", "k8s.io")

# Others (the route controller) post these, so they are kept.
_FOREIGN_CONDITIONS = frozenset({"NetworkUnavailable"})

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def may_set_label(key: str) -> bool:
    """Whether NodeRestriction lets a kubelet set this label on its node."""
    domain, slash, _ = key.partition("/")
    if not slash or not _within(domain, _RESTRICTED_DOMAINS):
        return True
    if _within(domain, ("node-restriction.kubernetes.io",)):
        return False
    return key in _OWN_LABELS or _within(domain, _OWN_LABEL_DOMAINS)


def node_labels(config: MachineConfig) -> tuple[dict[str, str], list[str]]:
    """The labels that the kubelet registers, and the keys of those that it may not set."""
    arch = _architecture()
    own = {"kubernetes.io/hostname": config.node_name, "kubernetes.io/os": "linux", "kubernetes.io/arch": arch}
    allowed = {key: value for key, value in config.node_labels.items() if may_set_label(key)}
    return {**allowed, **own}, sorted(set(config.node_labels) - set(allowed))


def new_node(config: MachineConfig, now: str) -> Object:
    """The Node as a kubelet with an external cloud provider and --node-ip registers it: tainted."""
    taints = [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}, *config.taints]
    if config.role == "control-plane":
        # From the start (--register-with-taints), so that no workload is scheduled before an administrator's label.
        taints.append({"key": CONTROL_PLANE_TAINT, "effect": "NoSchedule"})
    spec: Object = {"taints": taints}
    if config.provider_id:
        spec["providerID"] = config.provider_id
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": config.node_name,
            "labels": node_labels(config)[0],
            "annotations": _annotations(config),
        },
        "spec": spec,
        "status": node_status(config, {}, now),
    }


def registration_patch(config: MachineConfig, node: Object) -> Object | None:
    """What a rebooted kubelet corrects on its existing Node (merge patch), or None.

    Foreign labels and annotations, taints (whoever set or removed them) and a provider ID stay as they are.
    """
    metadata = node.get("metadata", {})
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    wanted_labels, _ = node_labels(config)
    patch: Object = {}
    changed = {key: value for key, value in wanted_labels.items() if labels.get(key) != value}
    if changed:
        patch["labels"] = changed
    if any(annotations.get(key) != value for key, value in _annotations(config).items()):
        patch["annotations"] = _annotations(config)
    return {"metadata": patch} if patch else None


def csi_node(config: MachineConfig, node: Object) -> Object:
    """What a CSI driver would register: itself, and the machine's id. The object is deleted with the Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": config.node_name, "uid": node["metadata"]["uid"]}
    drivers = [{"name": config.csi_driver, "nodeID": config.id, "topologyKeys": [ZONE_LABEL]}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": config.node_name, "ownerReferences": [owner]},
        "spec": {"drivers": drivers if config.csi_driver else []},
    }


def node_status(config: MachineConfig, node: Object, now: str, volumes_in_use: Sequence[str] = ()) -> Object:
    """The status that the kubelet posts, given the current Node (addresses from the cloud are kept)."""
    status = node.get("status") or {}
    size = config.machine_type
    resources = {"cpu": str(size.cpus), "memory": size.memory, "pods": str(size.pods)}
    return {
        "capacity": resources,
        "allocatable": resources,
        "addresses": status.get("addresses") or _first_addresses(config),
        "conditions": _conditions(status.get("conditions") or [], now),
        "nodeInfo": _node_info(config),
        "volumesInUse": list(volumes_in_use),
        "declaredFeatures": [WEBSOCKETS_FEATURE],
    }


def status_patch(node: Object, wanted: Object) -> Object:
    """The part of `wanted` that differs from the Node: omitted fields cannot undo what others write meanwhile.

    Empty if nothing is new; heartbeat times alone are not: the Lease replaces them.
    """
    status = node.get("status") or {}
    patch = {
        key: wanted[key]
        for key in ("capacity", "allocatable", "addresses", "nodeInfo", "declaredFeatures")
        if status.get(key) != wanted[key] and not _includes(status.get(key), wanted[key])
    }
    if (status.get("volumesInUse") or []) != wanted["volumesInUse"]:
        patch["volumesInUse"] = wanted["volumesInUse"]
    actual = {c["type"]: (c.get("status"), c.get("reason"), c.get("message")) for c in status.get("conditions") or []}
    if any(actual.get(c["type"]) != (c["status"], c["reason"], c["message"]) for c in wanted["conditions"]):
        patch["conditions"] = wanted["conditions"]
    return patch


def _first_addresses(config: MachineConfig) -> list[Object]:
    """As with --node-ip: logs and exec work before a cloud controller manager has done anything."""
    return [
        {"type": "InternalIP", "address": config.address},
        {"type": "Hostname", "address": config.node_name},
    ]


def _annotations(config: MachineConfig) -> dict[str, str]:
    # The attach-detach controller attaches volumes, not this machine.
    return {PROVIDED_NODE_IP: config.address, CONTROLLER_MANAGED_ATTACH: "true"}


def _conditions(previous: list[Object], now: str) -> list[Object]:
    before = {condition["type"]: condition for condition in previous if condition["type"] not in _FOREIGN_CONDITIONS}
    conditions = []
    for kind, value, reason, message in _HEALTHY:
        old = before.get(kind, {})
        since = old.get("lastTransitionTime", now) if old.get("status") == value else now
        conditions.append(
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since,
            }
        )
    return conditions


def _node_info(config: MachineConfig) -> Object:
    return {
        "machineID": config.id,
        "systemUUID": config.id,
        "bootID": config.id,
        "kernelVersion": platform.release(),
        "osImage": "local machine",
        "containerRuntimeVersion": "process://1",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": _architecture(),
    }


def _architecture() -> str:
    """The machine's architecture in Go's (and so Kubernetes') terms."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _includes(actual: Any, wanted: Any) -> bool:
    """Whether an object includes all of `wanted`: the API server adds fields of its own (swap in nodeInfo)."""
    return isinstance(actual, dict) and isinstance(wanted, dict) and wanted.items() <= actual.items()


def _within(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith("." + parent) for parent in parents)
