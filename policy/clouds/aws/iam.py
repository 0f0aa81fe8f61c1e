"""Rule: no IAM policy of the stack allows every operation of an AWS service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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

from policy.objects import dig, is_judged, schema
from policy.unknowns import Problem, judge

_POLICIES = tuple(
    f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}" for kind in ("policy", "rolePolicy", "userPolicy", "groupPolicy")
)


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report statements that allow `*`, `SERVICE:*`, or everything but something."""
    if args.resource_type in _POLICIES:
        judge([partial(is_judged, args.get_config(), args.props, args.name)], _problems(args.props), report)


def _problems(props: Mapping[str, Any]) -> Iterator[Problem]:
    document = dig(props, "policy")
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return  # AWS reports what is wrong with it.
    statements = dig(document, "Statement")
    for index, statement in enumerate([statements] if isinstance(statements, Mapping) else statements or ()):
        yield partial(_problem, index, statement)


def _problem(index: int, statement: Mapping[str, Any]) -> str | None:
    if dig(statement, "Effect") != "Allow":
        return None
    if dig(statement, "NotAction"):
        return f"Statement[{index}] allows everything but its NotAction"
    actions = dig(statement, "Action")
    wild = [action for action in ([actions] if isinstance(actions, str) else actions or ()) if _is_wild(str(action))]
    return f"Statement[{index}] allows {', '.join(wild)}" if wild else None


def _is_wild(action: str) -> bool:
    """`ec2:Describe*` is narrower than its service; `ec2:*`, `ec2:**` and `*` are not."""
    return not action.partition(":")[2].strip("*")


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
