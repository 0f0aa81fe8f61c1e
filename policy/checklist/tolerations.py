"""Rule: the cloud controller manager's pods tolerate the taint that only it removes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from policy.objects import dig, each, items, put
from policy.rules import ADVISORY, CRITICAL, Remediation, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import DAEMONS, IMAGES, LOOK_ALIKES, ccm_container, of_ccm, pod

TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
_VALUE, _EFFECT = "true", "NoSchedule"


def problems(subject: Subject) -> Iterator[Problem]:
    """CCM workloads whose pods cannot run on an uninitialised node."""
    yield from of_ccm(subject, [partial(_problem, subject)], DAEMONS)


def _problem(subject: Subject) -> str | None:
    tolerations = dig(pod(subject), "tolerations")
    if subject.is_patch and tolerations is None:
        return None
    if first_known(partial(_tolerates, toleration) for toleration in each(tolerations)):
        return None
    return (
        f"container {ccm_container(subject)}: no toleration matches the taint "
        f'{TAINT}={_VALUE}:{_EFFECT}; add {{key: {TAINT}, value: "{_VALUE}", effect: {_EFFECT}}}'
    )


def _tolerates(given: Callable[[], Any]) -> bool:
    toleration = given()
    effect, key, operator = (dig(toleration, field) for field in ("effect", "key", "operator"))
    if effect not in (None, "", _EFFECT):
        return False
    if operator == "Exists":
        return key in (None, "", TAINT)
    # Equal is the default: without a value it matches no taint that has one.
    return bool(operator in (None, "", "Equal") and key == TAINT and dig(toleration, "value") == _VALUE)


def _add(subject: Subject) -> bool:
    spec = pod(subject)
    added = {"key": TAINT, "value": _VALUE, "effect": _EFFECT}
    put(spec, "tolerations", [*items(dig(spec, "tolerations")), added])
    return True


CCM_TOLERATES_UNINITIALIZED = ResourceRule(
    "ccm-workload-tolerate-uninitialized",
    problems,
    Remediation("Adds the toleration.", _add),
    why=(
        "A cloud controller manager must tolerate the taint of uninitialised nodes. Every node starts with it and only "
        "the manager removes it, so without the toleration it waits for itself."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="CCM tolerates uninitialised nodes",
    severity=CRITICAL,
    sections="8.1",
    judges=(
        "The CCM tolerates `node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule`. A toleration with this "
        "key but without a value (`operator` is then `Equal`) does not match. A patch passes unless it replaces the "
        "tolerations."
    ),
    tags=["bootstrap"],
    remedy=(
        f'Add the toleration {{key: {TAINT}, value: "true", effect: NoSchedule}} to the pod template, and those for '
        "the control plane's taint and for not-ready nodes."
    ),
    url="https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/",
)
