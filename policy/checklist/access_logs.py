"""Rule: a public load balancer logs who connects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.checklist.asked import Wanted, of_wanted
from policy.checklist.load_balancers import is_internal
from policy.rules import ADVISORY, LOW, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Public load balancers that could write access logs, and do not."""
    yield from of_wanted(stack, _problems)


def _problems(wanted: Wanted) -> Iterator[Problem]:
    yield partial(problem_if, [partial(_is_public, wanted)], partial(_problem, wanted))


def _is_public(wanted: Wanted) -> bool:
    return not is_internal(wanted.service.props, wanted.cloud)


def _problem(wanted: Wanted) -> str | None:
    missing = wanted.cloud.balancers.unlogged(wanted.asked)
    return f"the public load balancer writes no access logs: {missing}" if missing else None


PUBLIC_BALANCERS_LOG_ACCESS = StackRule(
    "lb-service-log-access",
    problems,
    why=(
        "After an incident, access logs show which clients connected, and when. Without them nothing does: kube-proxy "
        "does not log."
    ),
    level=ADVISORY,
    title="Public load balancers log access",
    severity=LOW,
    sections="5.3",
    judges="A public load balancer that can write access logs does, where its cloud's annotations can switch them on.",
    tags=["security"],
    remedy="Set the annotation that the message names.",
    url=("https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer"),
)
