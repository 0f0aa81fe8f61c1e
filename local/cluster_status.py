"""The state of a site's clusters for `status`: nodes, the CCM's leader, what is wrong with pods and Services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cloud_controller.kube import EVENTS, LEASES, NODES, PODS, SERVICES, ApiError, Kube, KubeconfigError, NotFoundError
from local.cluster_access import cluster_name
from local.status_text import section

Json = Mapping[str, Any]

ANSWER_SECONDS = 5.0
UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
LEASE_NAMESPACE, LEASE_NAME = "kube-system", "cloud-controller-manager"
ADDRESS_CHANGE_HELD = "cloud-controller/AddressChangeHeld"


def clusters_status(kubeconfigs: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The state of each cluster, or a `problem` where its API server does not answer."""
    found = []
    for folder, path in kubeconfigs.items():
        try:
            kubeconfig = path.read_text()
        except FileNotFoundError:
            continue  # deleted meanwhile
        cluster = {"id": folder, "name": cluster_name(kubeconfig)}
        try:
            with (
                closing(Kube.from_kubeconfig(kubeconfig)) as patient,
                closing(patient.with_timeout(ANSWER_SECONDS)) as kube,
            ):
                found.append({**cluster, **_status(kube)})
        except (ApiError, KubeconfigError) as error:
            found.append({**cluster, "problem": str(error)})
    return found


def _status(kube: Kube) -> dict[str, Any]:
    try:
        lease = kube.get(LEASES, LEASE_NAME, LEASE_NAMESPACE)
    except NotFoundError:
        lease = {}
    unready = ((pod, why_not_ready(pod)) for pod in kube.list(PODS).items)
    return {
        "nodes": [node_status(node) for node in kube.list(NODES).items],
        "leader": leader(lease, datetime.now(UTC)),
        "pods_not_ready": [
            {"namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"], "reason": reason}
            for pod, reason in unready
            if reason is not None
        ],
        "services_needing_attention": services_needing_attention(kube.list(SERVICES).items, kube.list(EVENTS).items),
    }


def services_needing_attention(services: Sequence[Json], events: Sequence[Json]) -> list[dict[str, str]]:
    """The Services of type LoadBalancer with a problem, and what it is: their condition, or their latest warning."""
    latest: dict[str, Json] = {}
    for event in sorted(events, key=lambda each: str(each.get("lastTimestamp"))):
        if event["involvedObject"].get("kind") == "Service":
            latest[event["involvedObject"].get("uid", "")] = event
    found = []
    for service in services:
        metadata, status = service["metadata"], service.get("status") or {}
        if service["spec"].get("type") != "LoadBalancer":
            continue
        held = [each["message"] for each in status.get("conditions") or [] if each["type"] == ADDRESS_CHANGE_HELD]
        event = latest.get(metadata["uid"], {})
        warned = [event["message"]] if event.get("type") == "Warning" else []
        missing = [] if (status.get("loadBalancer") or {}).get("ingress") else ["it has no address yet"]
        if problems := [*held, *warned, *missing]:
            found.append({"namespace": metadata["namespace"], "name": metadata["name"], "reason": problems[0]})
    return found


def node_status(node: Json) -> dict[str, Any]:
    """Whether a node is ready, and whether a cloud controller manager has initialised it."""
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions") or []}
    taints = [each["key"] for each in node["spec"].get("taints") or []]
    return {
        "name": node["metadata"]["name"],
        "ready": conditions.get("Ready") == "True",
        "initialized": UNINITIALIZED_TAINT not in taints,
    }


def leader(lease: Json, now: datetime) -> str | None:
    """The holder of the cloud controller managers' Lease; None if it has none or has expired."""
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return None
    ends = datetime.fromisoformat(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return str(spec["holderIdentity"]) if now < ends else None


def why_not_ready(pod: Json) -> str | None:
    """Why a pod is not ready; None if it is ready or has succeeded."""
    status = pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    if status.get("phase") == "Succeeded" or conditions.get("Ready", {}).get("status") == "True":
        return None
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        if reason := (state.get("waiting") or state.get("terminated") or {}).get("reason"):
            return str(reason)
    scheduled = conditions.get("PodScheduled", {})
    return str(scheduled["reason"]) if scheduled.get("status") == "False" else str(status.get("phase") or "Pending")


def render(clusters: Sequence[Json]) -> list[str]:
    """The lines of a status for people; they name only the nodes and pods with a problem."""
    return [line for each in clusters for line in section(f"in cluster {each['name']} ({each['id']})", _rows(each))]


def _rows(cluster: Json) -> list[list[str]]:
    if "problem" in cluster:
        return [["the API server does not answer", cluster["problem"]]]
    nodes, pods, services = cluster["nodes"], cluster["pods_not_ready"], cluster["services_needing_attention"]
    ready, initialized = (sum(each[key] for each in nodes) for key in ("ready", "initialized"))
    troubled = [
        ["", f"{node['name']}: {', '.join(f'not {key}' for key in ('ready', 'initialized') if not node[key])}"]
        for node in nodes
        if not (node["ready"] and node["initialized"])
    ]
    return [
        ["nodes", f"{len(nodes)}, of which {ready} ready, {initialized} initialized"],
        *troubled,
        ["cloud controller manager", cluster["leader"] or "no leader"],
        ["pods not ready", str(len(pods) or "none")],
        *(["", f"{each['namespace']}/{each['name']}: {each['reason']}"] for each in pods),
        ["Services that need attention", str(len(services) or "none")],
        *(["", f"{each['namespace']}/{each['name']}: {each['reason']}"] for each in services),
    ]
