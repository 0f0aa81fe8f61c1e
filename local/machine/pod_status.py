"""A pod's status as a kubelet reports it, computed from its containers' states. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

_WAITING_TO_START: Object = {"waiting": {"reason": "ContainerCreating"}}


@dataclass(slots=True)
class ContainerState:
    """The known state of one container; `state` and `last_state` as Kubernetes writes them."""

    name: str
    image: str
    state: Object = field(default_factory=lambda: dict(_WAITING_TO_START))
    last_state: Object = field(default_factory=dict)
    restart_count: int = 0
    ready: bool = False
    started: bool = False
    container_id: str = ""


def timestamp(seconds: float) -> str:
    """Kubernetes' form of a time: RFC 3339, UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """Kubernetes' MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def should_restart(policy: str, exit_code: int) -> bool:
    """Whether an ended container is started again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def terminated(exit_code: int, signal: int | None, started: float, finished: float, container_id: str) -> Object:
    """The `terminated` state of a container that ran from `started` to `finished` (Unix times)."""
    details: Object = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "startedAt": timestamp(started),
        "finishedAt": timestamp(finished),
        "containerID": container_id,
    }
    if signal is not None:
        details["signal"] = signal
    return {"terminated": details}


def pod_phase(restart_policy: str, containers: Sequence[ContainerState], *, stopped: bool = False) -> str:
    """The phase of a pod; `stopped`: its containers ended for good (the pod is being deleted)."""
    running = sum("running" in c.state for c in containers)
    ended = [
        (c.state.get("terminated") or c.last_state["terminated"])
        for c in containers
        if "terminated" in c.state or ("waiting" in c.state and "terminated" in c.last_state)
    ]
    if running + len(ended) < len(containers):
        return "Pending"
    if running:
        return "Running"
    all_succeeded = all(end["exitCode"] == 0 for end in ended)
    if not stopped and (restart_policy == "Always" or (restart_policy == "OnFailure" and not all_succeeded)):
        return "Running"
    return "Succeeded" if all_succeeded else "Failed"


def pod_status(
    pod: Object,
    containers: Sequence[ContainerState],
    *,
    pod_ip: str | None,
    host_ip: str,
    start_time: str,
    now: str,
    stopped: bool = False,
    previous: Sequence[Object] = (),
) -> Object:
    """The pod's status as posted; `previous` are the conditions posted last, whose transition times are kept.

    Conditions of others (PodScheduled, readiness gates) are not part of it: a strategic merge keeps them.
    """
    phase = pod_phase(pod["spec"].get("restartPolicy", "Always"), containers, stopped=stopped)
    status: Object = {
        "phase": phase,
        "startTime": start_time,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "observedGeneration": pod["metadata"].get("generation", 0),
        "conditions": _with_times(_conditions(pod, containers, phase, has_address=pod_ip is not None), previous, now),
        "containerStatuses": [_container_status(c) for c in sorted(containers, key=lambda c: c.name)],
    }
    if pod_ip is not None:
        status["podIP"] = pod_ip
        status["podIPs"] = [{"ip": pod_ip}]
    return status


def status_patch(pod: Object, status: Object) -> Object:
    """The strategic merge patch that posts `status`, for this pod and no later one of its name."""
    body = dict(status)
    for key in ("podIPs", "hostIPs"):
        if key in body:  # else an old address would stay beside the new one: these lists merge by address
            body[key] = [*body[key], {"$patch": "replace"}]
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": body}


def is_reported(pod: Object, status: Object) -> bool:
    """Whether the object has the posted status: others write too (pods of a lost node are marked unready)."""
    current = pod.get("status") or {}
    conditions = {c["type"]: c["status"] for c in current.get("conditions") or []}
    return current.get("phase") == status["phase"] and all(
        conditions.get(c["type"]) == c["status"] for c in status["conditions"]
    )


def _container_status(container: ContainerState) -> Object:
    status: Object = {
        "name": container.name,
        "image": container.image,
        "imageID": container.image if container.container_id else "",
        "ready": container.ready,
        "started": container.started,
        "restartCount": container.restart_count,
        "state": container.state,
        "lastState": container.last_state,
    }
    if container.container_id:
        status["containerID"] = container.container_id
    return status


def _conditions(pod: Object, containers: Sequence[ContainerState], phase: str, *, has_address: bool) -> list[Object]:
    unready = sorted(c.name for c in containers if not c.ready)
    over = phase in ("Succeeded", "Failed")
    if over:
        reason = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    else:
        reason = {"reason": "ContainersNotReady", "message": f"containers with unready status: {_words(unready)}"}
    containers_ready = not unready and not over
    closed_gates = _closed_gates(pod)
    ready = containers_ready and not closed_gates
    if containers_ready and closed_gates:
        gates = f"the status of pod readiness gates {_words(closed_gates)} is not True"
        ready_reason = {"reason": "ReadinessGatesNotReady", "message": gates}
    else:
        ready_reason = reason
    return [
        _condition("PodReadyToStartContainers", has_address and not over, {}),
        _condition("Initialized", True, {"reason": "PodCompleted"} if phase == "Succeeded" else {}),
        _condition("ContainersReady", containers_ready, reason),
        _condition("Ready", ready, ready_reason),
    ]


def _condition(kind: str, value: bool, reason: Object) -> Object:
    """A condition; its reason is set only if it is not true (or is a completed pod's)."""
    said = reason if not value or reason.get("reason") == "PodCompleted" else {}
    return {"type": kind, "status": "True" if value else "False", "reason": None, "message": None, **said}


def _closed_gates(pod: Object) -> list[str]:
    conditions = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or []}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    return [gate for gate in gates if conditions.get(gate) != "True"]


def _with_times(conditions: list[Object], previous: Sequence[Object], now: str) -> list[Object]:
    before = {condition["type"]: condition for condition in previous}
    for condition in conditions:
        old = before.get(condition["type"], {})
        unchanged = old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old.get("lastTransitionTime", now) if unchanged else now
    return conditions


def _words(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"
