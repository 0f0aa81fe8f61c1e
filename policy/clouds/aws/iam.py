"""Rule: no IAM policy of the stack allows every operation of an AWS service, nor to take any role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from policy.documents import Statement, allows, matches, of_statements, texts, wildcards
from policy.objects import dig, each
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, collect, known


def _type(kind: str) -> str:
    return f"aws:iam/{kind}:{kind[0].upper()}{kind[1:]}"


_POLICIES: Final = {_type(kind) for kind in ("policy", "rolePolicy", "userPolicy", "groupPolicy")}
_ROLE: Final = _type("role")
_ATTACHMENTS: Final = {
    **{
        _type(kind): "policyArn"
        for kind in ("rolePolicyAttachment", "userPolicyAttachment", "groupPolicyAttachment", "policyAttachment")
    },
    **{_type(f"{who}PolicyAttachmentsExclusive"): "policyArns" for who in ("role", "user", "group")},
}
"""What gives somebody a policy, with the property that names it."""
_BROAD = re.compile(
    r"arn:[\w-]+:iam::aws:policy/([\w-]+/)*"
    r"([\w-]*(AdministratorAccess|PowerUserAccess|FullAccess)[\w-]*|(System|Network|Database)Administrator)"
)
"""Policies that AWS keeps, with every operation of a service, or of all."""
_TAKES_ROLES: Final = (
    "iam:AddUserToGroup",
    "iam:AttachGroupPolicy",
    "iam:AttachRolePolicy",
    "iam:AttachUserPolicy",
    "iam:CreateAccessKey",
    "iam:CreateLoginProfile",
    "iam:CreatePolicyVersion",
    "iam:PassRole",
    "iam:PutGroupPolicy",
    "iam:PutRolePolicy",
    "iam:PutUserPolicy",
    "iam:SetDefaultPolicyVersion",
    "iam:UpdateAssumeRolePolicy",
    "iam:UpdateLoginProfile",
    "sts:AssumeRole",
)
"""Operations that are enough to take more rights, where they are not for certain resources."""
_EVERY = re.compile(r"\*+|arn:[^:]*:iam::[^:]*:([\w-]+/)?\*+")


def problems(subject: Subject) -> Iterator[Problem]:
    """Statements that allow too much, and attachments of policies that are nothing but that."""
    if subject.kind in _POLICIES:
        yield from of_statements(dig(subject.props, "policy"), wildcards, _takes_roles)
    elif subject.kind in _ATTACHMENTS:
        yield from _attached(subject, _ATTACHMENTS[subject.kind])
    elif subject.kind == _ROLE:
        yield from _attached(subject, "managedPolicyArns")
        for index, inline in enumerate(each(dig(subject.props, "inlinePolicies"))):
            yield from of_statements(dig(inline(), "policy"), wildcards, _takes_roles, where=f"inlinePolicies[{index}]")


def _takes_roles(statement: Statement) -> str | None:
    if not allows(statement) or wildcards(statement) or not any(map(_EVERY.fullmatch, texts(statement, "Resource"))):
        return None
    found = [
        action for action in texts(statement, "Action") if any(matches(action, operation) for operation in _TAKES_ROLES)
    ]
    return f"allows {', '.join(found)} on every resource, enough to take any right" if found else None


def _attached(subject: Subject, key: str) -> Iterator[Problem]:
    """An ARN that a preview does not know is that of a policy that is made with it, and judged by itself."""
    names, _ = known(collect(_names(subject, key)))
    for name in names:
        if _BROAD.fullmatch(str(name)):
            yield partial(_allows_everything, str(name))


def _names(subject: Subject, key: str) -> Iterator[Callable[[], Any]]:
    found = dig(subject.props, key)
    if isinstance(found, str):
        yield lambda: found
    yield from each(found)


def _allows_everything(arn: str) -> str:
    return f"the policy {arn.partition('policy/')[2]} allows everything, of a service or of all"


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
        "No IAM policy of the stack, inline policies of roles too, allows `*`, `SERVICE:*` (in any case, also "
        "`SERVICE:?*`), a service by a wildcard (`e*:Describe*`), or everything except something (`NotAction`, "
        "`NotResource`); none allows `iam:PassRole`, `sts:AssumeRole` and other operations that are enough to take "
        "any right on every resource. `ec2:Describe*` is allowed, and so is resource `*`, because most of AWS's read "
        "operations cannot be narrowed down. Nobody gets a policy of AWS's own that allows everything "
        "(`AdministratorAccess`, `PowerUserAccess`, `…FullAccess`), by any type of attachment or `managedPolicyArns`. "
        "A policy document that is not valid JSON, or has a key twice, is reported."
    ),
    unseen=(
        "Wildcards within an operation's name (`ec2:Delete*`). Policies of other AWS managed names, and of IAM "
        "Identity Center. An ARN of a policy that a preview does not know: it is that of a policy that the update "
        "makes, and is judged by itself. Resources of Pulumi's provider `aws-native`."
    ),
    tags=["aws", "iam"],
    remedy=(
        "List the operations in use (cloud_controller/clouds/aws/permissions.py has those of this project's CCM), and "
        "restrict those that change something by the cluster's tag."
    ),
    url="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
)
