"""Rule: the cloud controller manager's pods tolerate the taint that only it removes."""

from __future__ import annotations

from collections.abc import Callable
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

from policy.objects import ccm_schema, dig, each
from policy.unknowns import first_known
from policy.workloads import ccm_container, check_workload

TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
_VALUE, _EFFECT = "true", "NoSchedule"


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a CCM workload whose pods cannot run on an uninitialised node."""
    check_workload(args, report, [partial(_problem, args)])


def _problem(args: ResourceValidationArgs) -> str | None:
    tolerations = each(dig(args.props, "spec", "template", "spec", "tolerations"))
    if first_known(partial(_tolerates, toleration) for toleration in tolerations):
        return None
    return (
        f"container {ccm_container(args.props, args.get_config())}: no toleration matches the taint "
        f'{TAINT}={_VALUE}:{_EFFECT}; add {{key: {TAINT}, value: "{_VALUE}", effect: {_EFFECT}}}'
    )


def _tolerates(given: Callable[[], Any]) -> bool:
    toleration = given()
    effect, key = dig(toleration, "effect"), dig(toleration, "key")
    if effect not in (None, "", _EFFECT):
        return False
    if dig(toleration, "operator") == "Exists":
        return key in (None, "", TAINT)
    # Equal is the default: without a value it matches no taint that has one.
    return bool(key == TAINT and dig(toleration, "value") == _VALUE)


CCM_TOLERATES_UNINITIALIZED = ResourceValidationPolicy(
    name="ccm-workload-tolerate-uninitialized",
    description=(
        "A cloud controller manager must tolerate the taint of uninitialised nodes. Every node starts with it and only "
        "the manager removes it, so without the toleration it waits for itself."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=ccm_schema(),
    display_name="CCM tolerates uninitialised nodes",
    severity=Severity.CRITICAL,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="8.1",
        specification="Tolerations of the CCM's DaemonSet",
    ),
    tags=["bootstrap"],
    remediation_steps=(
        f'Add the toleration {{key: {TAINT}, value: "true", effect: NoSchedule}} to the pod template, and those for '
        "the control plane's taint and for not-ready nodes."
    ),
    url="https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/",
)
