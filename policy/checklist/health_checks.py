"""Rule: load balancers check the health of their backends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from policy.checklist.load_balancers import UNCHECKED, marked, marks_of, marks_setting, of_balanced
from policy.clouds.interface import Mark
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem


def problems(subject: Subject) -> Iterator[Problem]:
    """LoadBalancer Services with an annotation that switches the health check off."""
    marks = [*UNCHECKED, *marks_of(subject.config.get("offAnnotations"))]
    yield from of_balanced(subject, partial(_problem, subject, marks))


def _problem(subject: Subject, marks: Iterable[Mark]) -> str | None:
    off = marked(subject.props, marks)
    return f"the health check is switched off by annotation {off}" if off else None


BALANCERS_CHECK_HEALTH = ResourceRule(
    "lb-service-check-health",
    problems,
    why=(
        "A load balancer must check the health of its backends. Otherwise it keeps sending connections to a machine "
        "that is broken or drained, and they fail."
    ),
    level=ADVISORY,
    settings={
        "offAnnotations": marks_setting("Further annotations that switch the health check off: values by name."),
    },
    title="Load balancers check health",
    severity=MEDIUM,
    sections="2.2",
    judges=(
        "No annotation switches a load balancer's health check off, as far as the clouds' descriptors know them; "
        "`offAnnotations` adds more."
    ),
    tags=["availability"],
    remedy=(
        "Remove the annotation: the cloud then checks by TCP, or asks the node's proxy with externalTrafficPolicy "
        "Local. For UDP, name a port that answers, if the cloud has an annotation for that."
    ),
    url="https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/",
)
