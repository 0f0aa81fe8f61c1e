"""Whether the CCM's pods run: scheduled, started, ready, and not restarting again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from cloud_controller.doctor.checks.leader import leader_of
from cloud_controller.doctor.checks.nodes import age
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.pod_http import is_ready, is_up
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import PODS, Object, key, name

_MANY_RESTARTS = 5
_RECENTLY = timedelta(hours=1)
_CAUSES = frozenset({"api-server", "cloud-config", "cloud-api", "cloud-rights", "kubernetes-rights", "egress"})


def _run(seen: Seen) -> Iterator[Finding]:
    target = seen.target
    workload = seen.workload()
    if workload is None:
        # Where the cloud runs the CCM, only its lease is seen.
        if leader_of(seen) is None:
            yield Finding(
                what=f"there is no DaemonSet or Deployment {target.namespace}/{target.workload}",
                evidence=(f"Lease {target.namespace}/{seen.lease_name()} is not held either",),
                remedy="install the CCM (docs/install.md), or name its workload with --workload",
            )
        return
    pods = seen.running_pods()
    wanted = _wanted(workload)
    if not pods:
        yield _no_pods(seen, workload, wanted)
    for pod in pods:
        yield from _of_pod(seen, pod)
    ready = sum(1 for pod in pods if is_ready(pod))
    if pods and len(pods) < wanted:
        yield Finding(
            subject=_subject(workload),
            what=f"{len(pods)} of {wanted} pods exist",
            evidence=_warnings(seen, workload) or (f"{ready} of {wanted} are ready",),
            remedy=f"see why the rest is missing: {_describe(workload)}",
            severity=Severity.WARNING,
        )


def _no_pods(seen: Seen, workload: Object, wanted: int) -> Finding:
    selector = workload["spec"]["template"]["spec"].get("nodeSelector")
    evidence = _warnings(seen, workload) or (f"status: {_short(workload.get('status') or {})}",)
    if wanted:
        remedy = f"see why no pod is created: {_describe(workload)}"
    elif workload["kind"] == "Deployment":
        remedy = f"scale it up: kubectl scale -n {seen.target.namespace} deployment {name(workload)} --replicas=2"
    else:
        remedy = "correct its node selector and tolerations, or label the control-plane nodes so that they match"
        labels = ", ".join(f"{label}={value}" for label, value in (selector or {}).items())
        matching = [
            node for node in seen.nodes() if (selector or {}).items() <= (node["metadata"].get("labels") or {}).items()
        ]
        evidence = (f"{len(matching)} of {len(seen.nodes())} nodes match its node selector {labels or '(none)'}",)
    return Finding(
        subject=_subject(workload),
        what=f"it has no pods, of {wanted} wanted, so nothing runs the CCM",
        evidence=evidence,
        remedy=remedy,
    )


def _of_pod(seen: Seen, pod: Object) -> Iterator[Finding]:
    if is_ready(pod):
        restarted = [each for each in _containers(pod) if each.get("restartCount", 0) >= _MANY_RESTARTS]
        for container in restarted:
            last = (container.get("lastState") or {}).get("terminated") or {}
            if seen.now - _time(last.get("finishedAt")) < _RECENTLY:
                yield Finding(
                    subject=f"pod/{key(pod)}",
                    what=f"it restarted {container['restartCount']} times, the last time within the hour",
                    evidence=(*_ended(last), *_last_line(seen, pod, container)),
                    remedy=f"read why it ended: {_logs(pod)} --previous",
                    severity=Severity.WARNING,
                )
        return
    if age(seen, pod) < seen.grace and _is_starting(pod):
        return
    reason, evidence, remedy = _why_not_ready(seen, pod)
    yield Finding(
        subject=f"pod/{key(pod)}",
        what=f"it is not ready: {reason}",
        evidence=(*filter(None, evidence), *_warnings(seen, pod)),
        remedy=remedy,
        # A pod that runs says itself what it lacks.
        follows_from=_CAUSES | {"daemon-health"} if is_up(pod) else None,
    )


def _is_starting(pod: Object) -> bool:
    """Whether nothing has failed yet."""
    states = [each.get("state") or {} for each in _containers(pod)]
    reasons = {(state.get("waiting") or {}).get("reason") for state in states}
    ended = any("terminated" in state for state in states) or any(each.get("lastState") for each in _containers(pod))
    unscheduled = ("PodScheduled", "False") in {
        (each["type"], each["status"]) for each in pod["status"].get("conditions") or ()
    }
    return not ended and not unscheduled and reasons <= {None, "ContainerCreating", "PodInitializing"}


def _why_not_ready(seen: Seen, pod: Object) -> tuple[str, tuple[str, ...], str]:
    """The reason, what shows it, and what to do."""
    conditions = {each["type"]: each for each in pod["status"].get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return (
            f"not scheduled ({scheduled.get('reason')})",
            (str(scheduled.get("message") or ""),),
            "make room on a node, or correct the pod's node selector, affinity, tolerations or requests",
        )
    for container in _containers(pod):
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        last = (container.get("lastState") or {}).get("terminated") or ended
        why = str(waiting.get("reason") or ended.get("reason") or "")
        said = (str(waiting.get("message") or ""),)
        if "Image" in why:
            return why, said, f"correct the image {container.get('image')!r}, or give the node access to its registry"
        if why == "CreateContainerConfigError":
            return why, said, "create the Secret or ConfigMap that the container's environment names"
        if why == "ContainerCreating":
            return why, said, "correct what the event names: a Secret or volume that the pod mounts, or its network"
        if why:
            evidence = (*_ended(last), *_last_line(seen, pod, container))
            return why, evidence, f"correct what its last line names: {_logs(pod)} --previous"
    ready = conditions.get("Ready") or {}
    started = f"phase {pod['status'].get('phase') or 'Pending'}"
    return started, (str(ready.get("message") or ""),), f"ask it what it waits for: {_logs(pod)}"


def _wanted(workload: Object) -> int:
    if workload["kind"] == "Deployment":
        return int(workload["spec"].get("replicas", 1))
    return int((workload.get("status") or {}).get("desiredNumberScheduled", 0))


def _containers(pod: Object) -> list[Mapping[str, Any]]:
    return list(pod["status"].get("containerStatuses") or ())


def _ended(last: Mapping[str, Any]) -> tuple[str, ...]:
    if not last:
        return ()
    said = str(last.get("message") or "").strip()
    return (f"it ended with exit code {last.get('exitCode')} ({last.get('reason')})", *((said,) if said else ()))


def _last_line(seen: Seen, pod: Object, container: Mapping[str, Any]) -> tuple[str, ...]:
    """The last line of its log before it ended. The log is a further right; without it, the rest still counts."""
    path = PODS.path(pod["metadata"]["namespace"], name(pod), "log")
    try:
        said = seen.raw(path, container=str(container["name"]), previous="true", tailLines="1")
    except Unreadable:
        return ()
    line = said.decode(errors="replace").strip()
    return (f"its last line: {line}",) if line else ()


def _logs(pod: Object) -> str:
    return f"kubectl logs -n {pod['metadata']['namespace']} {name(pod)}"


def _describe(workload: Object) -> str:
    return f"kubectl describe -n {workload['metadata']['namespace']} {workload['kind'].lower()} {name(workload)}"


def _warnings(seen: Seen, obj: Object) -> tuple[str, ...]:
    found = [event for event in seen.events(obj) if event.get("type") == "Warning"]
    return tuple(f"event {event.get('reason')}: {event.get('message')}" for event in found[:1])


def _subject(workload: Object) -> str:
    return f"{workload['kind'].lower()}/{key(workload)}"


def _short(status: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in status.items() if isinstance(value, int)) or "empty"


def _time(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.min.replace(tzinfo=datetime.now().astimezone().tzinfo)


CHECK = Check(
    name="ccm-pods",
    holds="every pod of the CCM runs and is ready",
    why="while no pod of the CCM runs, new nodes stay tainted, load balancers do not follow their Services, and "
    "machines that are gone keep their nodes",
    lines=("11.2.1", "11.4.1", "10.1.1"),
    page="runbooks/ccm-pods.md",
    run=_run,
    after=_CAUSES,
)
