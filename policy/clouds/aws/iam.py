"""Rule: no IAM policy of the stack allows every operation of an AWS service."""

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

from policy.documents import problems, wildcards
from policy.objects import dig, is_judged, schema
from policy.unknowns import judge

_POLICIES = tuple(
    f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}" for kind in ("policy", "rolePolicy", "userPolicy", "groupPolicy")
)


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report statements that allow `*`, `SERVICE:*`, or everything but something."""
    if args.resource_type in _POLICIES:
        judged = partial(is_judged, args.get_config(), args.props, args.name)
        judge([judged], problems(dig(args.props, "policy"), wildcards), report)


POLICIES_WITHOUT_WILDCARDS = ResourceValidationPolicy(
    name="iam-policy-avoid-wildcards",
    description=(
        "IAM policies must name the operations that they allow. With elasticloadbalancing:* a compromised cloud "
        "controller manager can delete every load balancer of the account, and use whatever AWS adds later."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(),
    display_name="IAM policies without wildcards",
    severity=Severity.HIGH,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.3",
        specification="Least privilege",
    ),
    tags=["aws", "iam"],
    remediation_steps=(
        "List the operations in use (cloud_controller/clouds/aws/permissions.py has those of this project's CCM), and "
        "restrict those that change something by the cluster's tag."
    ),
    url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
)
