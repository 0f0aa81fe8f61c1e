"""Rule: the cloud controller manager has a critical priority, so that a full cluster never evicts it for others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.objects import dig, put
from policy.rules import ADVISORY, MEDIUM, Remediation, ResourceRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import DAEMONS, IMAGES, LOOK_ALIKES, of_ccm, pod

CLASSES = ("system-cluster-critical", "system-node-critical")


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs whose pods have no critical priority."""
    yield from of_ccm(subject, [partial(_problem, subject)], DAEMONS)


def _problem(subject: Subject) -> str | None:
    allowed = (*CLASSES, *(subject.config.get("classes") or ()))
    found = dig(pod(subject), "priorityClassName")
    if found in allowed or (subject.is_patch and not found):
        return None
    return f"{'the priority class is not critical' if found else 'no priority class'}; allowed: {', '.join(allowed)}"


def _set(subject: Subject) -> bool:
    # Elsewhere a quota may refuse the class; and a class that somebody chose stays.
    if dig(subject.props, "metadata", "namespace") != "kube-system" or dig(pod(subject), "priorityClassName"):
        return False
    put(pod(subject), "priorityClassName", CLASSES[0])
    return True


CCM_HAS_PRIORITY = ResourceRule(
    "ccm-workload-set-priority",
    problems,
    Remediation(f"Sets `{CLASSES[0]}` in kube-system where no class is set.", _set),
    why=(
        "Give a cloud controller manager a critical priority class. Otherwise it stays pending or is evicted where "
        "machines are full, and the new machines that would make room are never initialised."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES, "classes": setting("texts", "Further priority classes to accept.", default=[])},
    title="CCM has a critical priority",
    severity=MEDIUM,
    sections="8.1",
    judges=(
        "The CCM's pods have the priority class `system-cluster-critical` or `system-node-critical`, or a class listed "
        "in the setting `classes`. A patch passes unless it sets another class."
    ),
    tags=["availability"],
    remedy="Set priorityClassName: system-cluster-critical in the pod template.",
    url="https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/",
)
