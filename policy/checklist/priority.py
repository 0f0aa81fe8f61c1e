"""Rule: the cloud controller manager has a critical priority, so that a full cluster never evicts it for others."""

from __future__ import annotations

from functools import partial

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from policy.objects import ccm_schema, dig
from policy.workloads import check_workload

CLASSES = ("system-cluster-critical", "system-node-critical")


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a CCM whose pods have no critical priority."""
    check_workload(args, report, [partial(_problem, args)])


def _problem(args: ResourceValidationArgs) -> str | None:
    allowed = (*CLASSES, *(args.get_config().get("classes") or ()))
    found = dig(args.props, "spec", "template", "spec", "priorityClassName")
    if found in allowed:
        return None
    return f"{'the priority class is not critical' if found else 'no priority class'}; allowed: {', '.join(allowed)}"


CCM_HAS_PRIORITY = ResourceValidationPolicy(
    name="ccm-workload-set-priority",
    description=(
        "Give a cloud controller manager a critical priority class. Otherwise it stays pending or is evicted where "
        "machines are full, and the new machines that would make room are never initialised."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=ccm_schema(
        classes={
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": "Further priority classes to accept.",
        },
    ),
    display_name="CCM has a critical priority",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="8.1",
        specification="Priority class of the CCM",
    ),
    tags=["availability"],
    remediation_steps="Set priorityClassName: system-cluster-critical in the pod template.",
    url="https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/",
)
