"""Rule: the trust policies of the stack's RAM roles name who may take them."""

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

_WORDS = Words(prefix="acs", every_account=re.compile(r"acs:ram::\*:\w+"))


def problems(subject: Subject) -> Iterator[Problem]:
    """Statements of trust policies that are for too many."""
    if subject.kind == "alicloud:ram/role:Role":
        # `document` is the property's former name.
        for key in ("assumeRolePolicyDocument", "document"):
            yield from of_statements(dig(subject.props, key), partial(too_open, _WORDS), where=key)


ROLES_LIMIT_TRUST = ResourceRule(
    "ram-role-limit-trust",
    problems,
    why=(
        "A trust policy must name who may take the role. With principal * everyone with an account of Alibaba Cloud "
        "gets its credentials; without a condition on the token's subject every pod of the cluster does."
    ),
    level=MANDATORY,
    title="RAM roles trust only who is named",
    severity=HIGH,
    lines=["11.3.1", "11.3.3"],
    judges=(
        "No trust policy of a role has principal `*` (or `acs:ram::*:root`) without a condition on the principal or "
        "its source, nor `NotPrincipal`. One for tokens of an OIDC provider (RRSA) has a condition on the subject "
        "(`oidc:sub`) that is not for every ServiceAccount of the cluster or of a namespace, nor for one name in every "
        "namespace. A document that is not valid JSON, or has a key twice, is reported."
    ),
    unseen="Other accounts that are named. The deprecated `ramUsers` and `services`, which name principals.",
    tags=["alicloud", "ram"],
    remedy=(
        "Name the service, the account or the role as Principal. For a ServiceAccount, set Condition StringEquals "
        "oidc:sub to system:serviceaccount:NAMESPACE:NAME, with oidc:iss and oidc:aud."
    ),
    url="https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/use-rrsa-to-authorize-pods-to-access-different-cloud-services",
)
