"""Rule: where several cloud controller managers can run at once, they elect a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from policy.command_lines import flag
from policy.objects import dig
from policy.rules import CRITICAL, MANDATORY, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import DAEMONS, IMAGES, Container, containers, is_ccm, of_ccm

FLAG = "--leader-elect"
# What Go's parser of booleans takes for false. It is on by default, in every manager built on Kubernetes' own.
FALSE = frozenset({"0", "f", "false"})


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs that run without the lease although another one can run beside them."""
    yield from of_ccm(subject, _of_containers(subject), DAEMONS)


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject):
        conditions: list[Callable[[], object]] = [
            partial(_is_off, container),
            partial(is_ccm, subject, container),
        ]
        yield partial(problem_if, conditions, partial(_problem, subject, container))


def _is_off(container: Container) -> bool:
    return (flag(container(), FLAG) or "").lower() in FALSE


def _problem(subject: Subject, container: Container) -> str | None:
    several = why_several(subject)
    return several and f"container {dig(container(), 'name')}: {FLAG} is false, but {several}"


def why_several(subject: Subject) -> str | None:
    """Why more than one of a workload's pods can run at a time; None if only one can."""
    kind, spec = subject.kind.rpartition("/")[2], dig(subject.props, "spec")
    if kind == "Pod":
        return None
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
        "A CCM that may run more than once does not set `--leader-elect=false` (in command or arguments, also as two "
        "words; the last one counts; the default is on). It may run more than once as a DaemonSet, with two or more "
        "replicas, and as a Deployment of one replica whose update starts the new pod before the old one has ended. A "
        "Pod, a Deployment of one with strategy `Recreate`, and a ReplicaSet or StatefulSet of one run alone."
    ),
    unseen=(
        "Two workloads with one replica each, an autoscaler that adds replicas, and a variable (`$(NAME)`) whose value "
        "comes from a ConfigMap or a Secret. `ccm-config-elect-leader` judges files of options."
    ),
    tags=["availability"],
    remedy=(
        f"Remove {FLAG}=false, or set {FLAG}=true (and let the ServiceAccount get, create and update leases). To run "
        "a single replica, use a Deployment of one replica with strategy Recreate, or a StatefulSet of one."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/leases/",
)
