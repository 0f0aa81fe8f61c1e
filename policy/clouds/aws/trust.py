"""Rule: the trust policies of the stack's IAM roles name who may take them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from policy.documents import of_statements
from policy.objects import dig
from policy.rules import HIGH, MANDATORY, ResourceRule
from policy.subjects import Subject
from policy.trust import Words, too_open
from policy.unknowns import Problem

_WORDS = Words(prefix="aws", every_account=re.compile(r"arn:[\w-]*:iam::\*:\w+"))


def problems(subject: Subject) -> Iterator[Problem]:
    """Statements of trust policies that are for too many."""
    if subject.kind == "aws:iam/role:Role":
        yield from of_statements(
            dig(subject.props, "assumeRolePolicy"), partial(too_open, _WORDS), where="assumeRolePolicy"
        )


ROLES_LIMIT_TRUST = ResourceRule(
    "iam-role-limit-trust",
    problems,
    why=(
        "A trust policy must name who may take the role. With principal * everyone with an AWS account gets its "
        "credentials; without a condition on the token's subject every pod of the cluster does."
    ),
    level=MANDATORY,
    title="IAM roles trust only who is named",
    severity=HIGH,
    lines=["11.3.1", "11.3.3"],
    judges=(
        "No trust policy of a role has principal `*`, or the `*` of accounts, without a condition on the principal or "
        "its source (`aws:PrincipalOrgID` and the like), nor `NotPrincipal`. One for tokens of an OIDC provider (IRSA) "
        "has a condition on the subject (`ISSUER:sub`) that is not for every ServiceAccount of the cluster or of a "
        "namespace, nor for one name in every namespace. A document that is not valid JSON, or has a key twice, is "
        "reported."
    ),
    unseen="Other accounts that are named. Conditions on the subject that are wide in another way, such as `repo:*`.",
    tags=["aws", "iam"],
    remedy=(
        "Name the service, the account or the role as Principal. For a ServiceAccount, set Condition StringEquals "
        "ISSUER:sub to system:serviceaccount:NAMESPACE:NAME, and ISSUER:aud to sts.amazonaws.com."
    ),
    url="https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html",
)
