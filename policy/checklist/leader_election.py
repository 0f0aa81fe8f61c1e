"""Rule: where several cloud controller managers can run at once, they elect a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from policy.objects import dig
from policy.rules import CRITICAL, MANDATORY, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import IMAGES, Container, ccm_name, containers, flag, of_ccm

_FLAG = "--leader-elect"
# What Go's parser of booleans takes for false. It is on by default, in every manager built on Kubernetes' own.
_FALSE = frozenset({"0", "f", "false"})


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs that run without the lease although another one can run beside them."""
    yield from of_ccm(subject, _of_containers(subject))


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject):
        conditions: list[Callable[[], object]] = [
            partial(_is_off, container),
            partial(ccm_name, container, subject.config),
        ]
        yield partial(problem_if, conditions, partial(_problem, subject, container))


def _is_off(container: Container) -> bool:
    return (flag(container(), _FLAG) or "").lower() in _FALSE


def _problem(subject: Subject, container: Container) -> str | None:
    several = _several(subject.kind.rpartition("/")[2], dig(subject.props, "spec"))
    return several and f"container {dig(container(), 'name')}: {_FLAG} is false, but {several}"


def _several(kind: str, spec: Any) -> str | None:
    """Why more than one can run at a time; None if only one can."""
    if kind == "DaemonSet":
        return "a DaemonSet runs one on each of its nodes"
    replicas = dig(spec, "replicas")
    count = 1 if replicas is None else int(replicas)
    if count > 1:
        return "there are several replicas"
    if kind == "Deployment" and count and dig(spec, "strategy", "type") != "Recreate":
        return "an update starts the new pod before the old one has ended (strategy Recreate waits)"
    return None


CCM_ELECTS_LEADER = ResourceRule(
    "ccm-workload-elect-leader",
    problems,
    why=(
        "Cloud controller managers that run side by side must elect a leader. Without the lease each of them creates "
        "load balancers and routes, and they undo each other's work."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="CCM replicas elect a leader",
    severity=CRITICAL,
    lines=["11.1.8"],
    sections="8.1",
    judges=(
        "A CCM that may run more than once does not set `--leader-elect=false` (in command or arguments, also as "
        "two words; the last one counts; the default is on). It may run more than once as a DaemonSet, with two or "
        "more replicas, and as a Deployment of one whose update starts the new pod before the old one has ended. A "
        "Deployment of one with strategy `Recreate` and a StatefulSet of one run alone. The rule does not resolve "
        "values from the environment (`$(NAME)`)."
    ),
    tags=["availability"],
    remedy=(
        f"Remove {_FLAG}=false, or set {_FLAG}=true (and let the ServiceAccount get, create and update leases). To run "
        "a single replica, use a Deployment of one replica with strategy Recreate, or a StatefulSet of one."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/leases/",
)
