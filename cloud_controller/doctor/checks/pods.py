"""Whether the CCM's pods run: scheduled, started, ready, and not restarting again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from cloud_controller.doctor.checks.leader import holder
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object
from cloud_controller.kube.resources import key

_MANY_RESTARTS = 5
_RECENTLY = timedelta(hours=1)


def _run(seen: Seen) -> Iterator[Finding]:
    target = seen.target
    workload = seen.workload()
    if workload is None:
        # Where the cloud runs the CCM, only its lease is seen.
        if holder(seen.lease(), seen.now) is None:
            yield Finding(
                what=f"there is no DaemonSet or Deployment {target.namespace}/{target.workload}",
                evidence=(f"Lease {target.namespace}/{target.lease} is not held either",),
                remedy="install the CCM (docs/install.md), or name its workload with --workload",
            )
        return
    pods = seen.pods()
    wanted = _wanted(workload)
    if not pods:
        yield Finding(
            subject=_subject(workload),
            what=f"it has no pods, of {wanted} wanted",
            evidence=_warnings(seen, workload) or (f"status: {_short(workload.get('status') or {})}",),
            remedy="nothing runs the CCM: "
            + ("scale it up" if not wanted else "see why no pod is created or scheduled"),
        )
    for pod in pods:
        yield from _of_pod(seen, pod)
    ready = sum(1 for pod in pods if is_ready(pod))
    if pods and len(pods) < wanted:
        yield Finding(
            subject=_subject(workload),
            what=f"{len(pods)} of {wanted} pods exist",
            evidence=_warnings(seen, workload) or (f"{ready} of {wanted} are ready",),
            remedy=f"kubectl describe {_subject(workload).replace('/', ' -n ', 1)} says why the rest is missing",
            severity=Severity.WARNING,
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
                    evidence=_ended(last),
                    remedy=f"read why it ended: kubectl logs --previous -n {pod['metadata']['namespace']} "
                    f"{pod['metadata']['name']}",
                    severity=Severity.WARNING,
                )
        return
    reason, evidence, remedy = _why_not_ready(pod)
    yield Finding(
        subject=f"pod/{key(pod)}",
        what=f"it is not ready: {reason}",
        evidence=(*evidence, *_warnings(seen, pod)),
        remedy=remedy,
    )


def _why_not_ready(pod: Object) -> tuple[str, tuple[str, ...], str]:
    """The reason, what shows it, and what to do."""
    logs = f"kubectl logs -n {pod['metadata']['namespace']} {pod['metadata']['name']}"
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
        if "Image" in why:
            remedy = f"correct the image {container.get('image')!r}, or give the node access to its registry"
            return why, (str(waiting.get("message") or ""),), remedy
        if why == "CreateContainerConfigError" or why == "ContainerCreating":
            return why, (str(waiting.get("message") or ""),), "create the Secret or ConfigMap that the pod mounts"
        if why:
            return why, _ended(last), f"correct what its last line names: {logs} --previous"
    ready = conditions.get("Ready") or {}
    started = f"phase {pod['status'].get('phase') or 'Pending'}"
    return started, (str(ready.get("message") or ""),), f"ask it what it waits for: {logs}"


def is_ready(pod: Object) -> bool:
    """Whether the pod has condition Ready."""
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


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
    after=frozenset({"api-server", "cloud-config", "cloud-api"}),
)
