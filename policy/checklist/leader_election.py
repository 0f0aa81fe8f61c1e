"""Rule: where several cloud controller managers can run at once, they elect a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from policy.objects import ccm_schema, dig
from policy.unknowns import Problem, problem_if
from policy.workloads import Container, ccm_name, check_workload, containers, flag

_FLAG = "--leader-elect"
# What Go's parser of booleans takes for false. It is on by default, in every manager built on Kubernetes' own.
_FALSE = frozenset({"0", "f", "false"})


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a CCM that runs without the lease although another one can run beside it."""
    check_workload(args, report, _problems(args))


def _problems(args: ResourceValidationArgs) -> Iterator[Problem]:
    config = args.get_config()
    for container in containers(args.props):
        conditions: list[Callable[[], object]] = [partial(_is_off, container), partial(ccm_name, container, config)]
        yield partial(problem_if, conditions, partial(_problem, args, container))


def _is_off(container: Container) -> bool:
    return (flag(container(), _FLAG) or "").lower() in _FALSE


def _problem(args: ResourceValidationArgs, container: Container) -> str | None:
    several = _several(args.resource_type.rpartition(":")[2], dig(args.props, "spec"))
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


CCM_ELECTS_LEADER = ResourceValidationPolicy(
    name="ccm-workload-elect-leader",
    description=(
        "Cloud controller managers that run side by side must elect a leader. Without the lease each of them creates "
        "load balancers and routes, and they undo each other's work."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=ccm_schema(),
    display_name="CCM replicas elect a leader",
    severity=Severity.CRITICAL,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="8.1, 11.1",
        specification="Leader election enabled",
    ),
    tags=["availability"],
    remediation_steps=(
        f"Remove {_FLAG}=false, or set {_FLAG}=true (and let the ServiceAccount get, create and update leases). To run "
        "a single replica, use a Deployment of one replica with strategy Recreate, or a StatefulSet of one."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/leases/",
)
