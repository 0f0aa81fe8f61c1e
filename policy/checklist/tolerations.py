"""Rule: the cloud controller manager's pods tolerate the taint that only it can take away."""

from __future__ import annotations

from collections.abc import Sequence
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

from policy.checklist.objects import WORKLOADS, ccm_container, dig, first_known, is_exempt, schema

TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
_VALUE, _EFFECT = "true", "NoSchedule"


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a CCM workload whose pods cannot run on an uninitialised node."""
    if args.resource_type not in WORKLOADS:
        return
    config = args.get_config()
    container = ccm_container(args.props, config)
    if container is None or is_exempt(config, args.props, args.name):
        return
    tolerations = dig(args.props, "spec", "template", "spec", "tolerations")
    count = len(tolerations) if tolerations is not None else 0
    if not first_known(partial(_tolerates, tolerations, index) for index in range(count)):
        report(
            f"container {container}: no toleration fits the taint {TAINT}={_VALUE}:{_EFFECT}; "
            f'add {{key: {TAINT}, value: "{_VALUE}", effect: {_EFFECT}}}',
            None,
        )


def _tolerates(tolerations: Sequence[Any], index: int) -> bool:
    toleration = tolerations[index]
    effect, key = dig(toleration, "effect"), dig(toleration, "key")
    if effect not in (None, "", _EFFECT):
        return False
    if dig(toleration, "operator") == "Exists":
        return key in (None, "", TAINT)
    # Equal is the default: without a value it fits no taint that has one.
    return bool(key == TAINT and dig(toleration, "value") == _VALUE)


CCM_TOLERATES_UNINITIALIZED = ResourceValidationPolicy(
    name="ccm-workload-tolerate-uninitialized",
    description=(
        "A cloud controller manager must tolerate the taint of uninitialised nodes: every node starts with it, only "
        "the manager takes it away, and without the toleration it waits for itself."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=schema(),
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
