"""Rule: no IAM policy of the stack allows every operation of an AWS service."""

from __future__ import annotations

from collections.abc import Iterator

from policy.documents import of_statements, wildcards
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem

_POLICIES = tuple(
    f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}" for kind in ("policy", "rolePolicy", "userPolicy", "groupPolicy")
)


def problems(subject: Subject) -> Iterator[Problem]:
    """Statements that allow `*`, `SERVICE:*`, or everything but something."""
    if subject.kind in _POLICIES:
        yield from of_statements(dig(subject.props, "policy"), wildcards)


POLICIES_WITHOUT_WILDCARDS = ResourceRule(
    "iam-policy-avoid-wildcards",
    problems,
    why=(
        "IAM policies must name the operations that they allow. With elasticloadbalancing:* a compromised cloud "
        "controller manager can delete every load balancer of the account, and use whatever AWS adds later."
    ),
    level=ADVISORY,
    title="IAM policies without wildcards",
    severity=HIGH,
    lines=["11.3.3"],
    judges=(
        "No IAM policy of the stack allows `*` or `SERVICE:*`, nor everything except something (`NotAction`). "
        "`ec2:Describe*` is allowed, and so is resource `*`, because most of AWS's read operations cannot be "
        "narrowed down. The rule does not read policies that AWS manages."
    ),
    tags=["aws", "iam"],
    remedy=(
        "List the operations in use (cloud_controller/clouds/aws/permissions.py has those of this project's CCM), and "
        "restrict those that change something by the cluster's tag."
    ),
    url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
)
