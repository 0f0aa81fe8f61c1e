"""The status of the Kubernetes clusters: nodes, the leader, pods that are not ready."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.cluster_status import (
    clusters_status,
    leader,
    node_status,
    render,
    services_needing_attention,
    why_not_ready,
)
from local.control_plane.binaries import Binaries
from local.control_plane.control_plane import ControlPlane
from local.control_plane.credentials import write_credentials
from local.ports import unused_address

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def node(ready: str = "True", *taints: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "n"},
        "spec": {"taints": [{"key": taint} for taint in taints]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def pod(phase: str = "Running", *, ready: bool = False, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}, *status.pop("conditions", [])]
    return {"metadata": {"name": "p"}, "status": {"phase": phase, "conditions": conditions, **status}}


def waiting(reason: str) -> dict[str, Any]:
    return {"containerStatuses": [{"state": {"running": {}}}, {"state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    "given, ready, initialized",
    [
        (node(), True, True),
        (node("Unknown"), False, True),
        (node("True", "node.cloudprovider.kubernetes.io/uninitialized"), True, False),
        ({"metadata": {"name": "n"}, "spec": {}, "status": {}}, False, True),
    ],
)
def test_a_node_is_ready_by_its_condition_and_initialized_without_the_taint(
    given: dict[str, Any], ready: bool, initialized: bool
) -> None:
    assert node_status(given) == {"name": "n", "ready": ready, "initialized": initialized}


@pytest.mark.parametrize(
    "spec, holder",
    [
        ({"holderIdentity": "a_1", "renewTime": "2026-11-22T11:59:50.000000Z", "leaseDurationSeconds": 15}, "a_1"),
        ({"holderIdentity": "a_1", "renewTime": "2026-11-22T11:59:40.000000Z", "leaseDurationSeconds": 15}, None),
        ({"holderIdentity": "", "renewTime": "2026-11-22T11:59:50.000000Z", "leaseDurationSeconds": 15}, None),
        ({}, None),
    ],
)
def test_the_leader_holds_a_lease_that_has_not_run_out(spec: dict[str, Any], holder: str | None) -> None:
    assert leader({"spec": spec}, NOW) == holder


@pytest.mark.parametrize(
    "given, reason",
    [
        (pod(ready=True), None),
        (pod("Succeeded"), None),
        (pod("Running", **waiting("CrashLoopBackOff")), "CrashLoopBackOff"),
        (pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
         "Unschedulable"),
        (pod("Failed", containerStatuses=[{"state": {"terminated": {"reason": "Error"}}}]), "Error"),
        (pod("Running"), "Running"),
        ({"metadata": {"deletionTimestamp": "x"}, "status": {}}, "Terminating"),
        ({"metadata": {}, "status": {}}, "Pending"),
    ],
)  # fmt: skip
def test_a_pod_that_is_not_ready_has_a_reason(given: dict[str, Any], reason: str | None) -> None:
    assert why_not_ready(given) == reason


def test_the_status_reports_an_api_server_that_is_down(tmp_path: Path) -> None:
    address = unused_address([6443])
    control_plane = ControlPlane(tmp_path, Binaries({}), address, "10.1.0.0/16", "10.2.0.0/24", "test")
    write_credentials(control_plane._layout)

    (found,) = clusters_status({"c-1": tmp_path / "admin.kubeconfig"})

    assert (found["id"], found["name"]) == ("c-1", "test")
    assert "cannot reach API server" in found["problem"]
    assert render([found])[2].startswith("  the API server does not answer  cannot reach API server https://127.")


def test_the_status_names_only_nodes_and_pods_with_a_problem() -> None:
    nodes = [{"name": f"n-{n}", "ready": n != 1, "initialized": n < 2} for n in range(4)]
    pods = [{"namespace": "default", "name": "web", "reason": "CrashLoopBackOff"}]

    services = [{"namespace": "default", "name": "edge", "reason": "it has no address yet"}]

    cluster = {"nodes": nodes, "leader": None, "pods_not_ready": pods, "services_needing_attention": services}
    lines = render([{"id": "c-1", "name": "test", **cluster}])

    assert [line.strip() for line in lines] == [
        "",
        "in cluster test (c-1)",
        "nodes                         4, of which 3 ready, 2 initialized",
        "n-1: not ready",
        "n-2: not initialized",
        "n-3: not initialized",
        "cloud controller manager      no leader",
        "pods not ready                1",
        "default/web: CrashLoopBackOff",
        "Services that need attention  1",
        "default/edge: it has no address yet",
    ]


def service(name: str, *conditions: dict[str, Any], type: str = "LoadBalancer", address: bool = True) -> dict[str, Any]:
    ingress = {"ingress": [{"ip": "192.0.2.1"}]} if address else {}
    status = {"loadBalancer": ingress, "conditions": [*conditions]}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
        "spec": {"type": type},
        "status": status,
    }


def event(about: str, type: str, message: str, at: int) -> dict[str, Any]:
    involved = {"kind": "Service", "uid": f"uid-{about}"}
    return {"involvedObject": involved, "type": type, "message": message, "lastTimestamp": f"2026-11-22T12:00:0{at}Z"}


def test_a_service_needs_attention_by_its_condition_its_latest_warning_or_for_want_of_an_address() -> None:
    held = {"type": "cloud-controller/AddressChangeHeld", "message": "it keeps its address"}
    services = [
        service("well"),
        service("mended"),
        service("inner", type="ClusterIP", address=False),
        service("held", held),
        service("refused"),
        service("new", address=False),
    ]
    events = [
        event("mended", "Normal", "Ensured load balancer", 2),
        event("mended", "Warning", "Error syncing load balancer", 1),
        event("refused", "Warning", "'x' is not a valid value", 3),
    ]

    assert {each["name"]: each["reason"] for each in services_needing_attention(services, events)} == {
        "held": "it keeps its address",
        "refused": "'x' is not a valid value",
        "new": "it has no address yet",
    }
