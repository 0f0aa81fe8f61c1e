"""The status reported of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from local.machine.pod_status import (
    ContainerState,
    is_reported,
    pod_phase,
    pod_status,
    should_restart,
    status_patch,
    terminated,
)

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
RUNNING = {"running": {"startedAt": NOW}}


def container(state: dict[str, Any] | None = None, *, ready: bool = False, name: str = "c", last: Any = None) -> Any:
    made = ContainerState(name=name, image="registry.local/web:1", ready=ready, last_state=last or {})
    if state is not None:
        made.state = state
    return made


def ended(code: int) -> dict[str, Any]:
    return terminated(code, None, 0, 1, "process://1")


def status(*containers: ContainerState, pod: Any = None, previous: Any = (), now: str = NOW, **more: Any) -> Any:
    made = pod or {"metadata": {"name": "p", "uid": "u"}, "spec": {}}
    return pod_status(
        made, containers, pod_ip="10.20.0.2", host_ip="10.17.0.5", start_time=NOW, now=now, previous=previous, **more
    )


def conditions(reported: Any) -> dict[str, str]:
    return {c["type"]: c["status"] for c in reported["conditions"]}


@pytest.mark.parametrize(
    ("policy", "containers", "phase"),
    [
        ("Always", [container()], "Pending"),
        ("Always", [container(RUNNING), container()], "Pending"),
        ("Always", [container(RUNNING), container(ended(1))], "Running"),
        ("Always", [container(ended(0))], "Running"),
        ("Always", [container({"waiting": {"reason": "CrashLoopBackOff"}}, last=ended(1))], "Running"),
        ("OnFailure", [container(ended(1))], "Running"),
        ("OnFailure", [container(ended(0))], "Succeeded"),
        ("Never", [container(ended(0)), container(ended(3))], "Failed"),
        ("Never", [container(ended(0))], "Succeeded"),
    ],
)
def test_a_pods_phase_follows_from_its_containers_and_restart_policy(
    policy: str, containers: list[ContainerState], phase: str
) -> None:
    assert pod_phase(policy, containers) == phase


def test_a_pod_whose_containers_were_stopped_for_good_has_ended_whatever_its_policy() -> None:
    assert pod_phase("Always", [container(ended(143))], stopped=True) == "Failed"
    assert pod_phase("Always", [container(ended(0))], stopped=True) == "Succeeded"


def test_a_pod_is_ready_when_all_its_containers_are() -> None:
    assert conditions(status(container(RUNNING, ready=True)))["Ready"] == "True"

    unready = status(container(RUNNING, ready=True), container(RUNNING, name="d"))

    assert conditions(unready)["Ready"] == conditions(unready)["ContainersReady"] == "False"
    [ready] = [c for c in unready["conditions"] if c["type"] == "Ready"]
    assert ready["message"] == "containers with unready status: [d]"


def test_a_readiness_gate_that_is_not_true_keeps_the_pod_unready() -> None:
    spec = {"readinessGates": [{"conditionType": "lb"}]}
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": {"conditions": []}}

    closed = status(container(RUNNING, ready=True), pod=pod)
    pod["status"] = {"conditions": [{"type": "lb", "status": "True"}]}
    opened = status(container(RUNNING, ready=True), pod=pod)

    assert (conditions(closed)["ContainersReady"], conditions(closed)["Ready"]) == ("True", "False")
    assert conditions(opened)["Ready"] == "True"


def test_only_a_changed_condition_of_a_pod_gets_a_new_transition_time() -> None:
    before = status(container(RUNNING))
    after = status(container(RUNNING, ready=True), previous=before["conditions"], now=LATER)

    times = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}
    assert (times["Initialized"], times["Ready"]) == (NOW, LATER)


def test_a_pod_marked_unready_by_others_is_reported_again() -> None:
    reported = status(container(RUNNING, ready=True))
    pod: dict[str, Any] = {"status": {**reported, "conditions": [dict(c) for c in reported["conditions"]]}}
    assert is_reported(pod, reported)

    pod["status"]["conditions"][-1]["status"] = "False"

    assert not is_reported(pod, reported)


def test_a_new_address_replaces_the_old_one_instead_of_joining_it() -> None:
    patch = status_patch({"metadata": {"uid": "u"}}, status(container(RUNNING)))

    assert patch["metadata"] == {"uid": "u"}
    assert patch["status"]["podIPs"] == [{"ip": "10.20.0.2"}, {"$patch": "replace"}]


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_restart_policy_decides_whether_an_ended_container_starts_again(
    policy: str, code: int, again: bool
) -> None:
    assert should_restart(policy, code) is again
