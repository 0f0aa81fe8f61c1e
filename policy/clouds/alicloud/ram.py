"""Rule: no RAM policy of the stack allows more operations, or changes of more resources, than it names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from policy.documents import Statement, allows, of_statements, texts, wildcards
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if

_POLICIES: Final = {
    # `document` is the property's former name.
    "alicloud:ram/policy:Policy": ("policyDocument", "document"),
    "alicloud:resourcemanager/policy:Policy": ("policyDocument",),
}
_ATTACHMENTS: Final = {
    *(f"alicloud:ram/{who}PolicyAttachment:{who.capitalize()}PolicyAttachment" for who in ("role", "user", "group")),
    "alicloud:resourcemanager/policyAttachment:PolicyAttachment",
}
_READ = re.compile(r"\w+:(Describe|Get|List|Query)[\w*]*")
_EVERYTHING = re.compile(r"\*|acs:[^:]*:\*?(:[^:]*)?:\*(/\*)*")
"""All resources of all products, or of one, in every region; the third part is the region."""
_BROAD = re.compile(r"AdministratorAccess|PowerUserAccess|Aliyun\w*FullAccess")
"""Policies that Alibaba Cloud keeps, with every operation of a product, or of all."""


def problems(subject: Subject) -> Iterator[Problem]:
    """Wildcards in policies, and attachments of policies that are nothing but one."""
    if subject.kind in _POLICIES:
        for key in _POLICIES[subject.kind]:
            yield from of_statements(dig(subject.props, key), wildcards, _of_every_resource)
    elif subject.kind in _ATTACHMENTS:
        yield partial(problem_if, [partial(_is_system, subject.props)], partial(_of_attachment, subject.props))


def _of_every_resource(statement: Statement) -> str | None:
    """Reads of everything are allowed: several have no resource. `wildcards` reports operations without a name."""
    if not allows(statement) or wildcards(statement):
        return None
    if not any(_EVERYTHING.fullmatch(resource) for resource in texts(statement, "Resource")):
        return None
    changes = [action for action in texts(statement, "Action") if not _READ.fullmatch(action)]
    return f"allows {', '.join(changes)} on every resource" if changes else None


def _is_system(props: Mapping[str, Any]) -> bool:
    return bool(dig(props, "policyType") == "System")


def _of_attachment(props: Mapping[str, Any]) -> str | None:
    name = str(dig(props, "policyName"))
    return f"the policy {name} allows everything, of a product or of all" if _BROAD.fullmatch(name) else None


POLICIES_ARE_NARROW = ResourceRule(
    "ram-policy-avoid-wildcards",
    problems,
    why=(
        "RAM policies must name the operations that they allow, and where these change something, the resources or at "
        "least the region. With slb:* or every resource a compromised cloud controller manager can delete every load "
        "balancer of the account."
    ),
    level=ADVISORY,
    title="RAM policies without wildcards",
    severity=HIGH,
    lines=["11.3.3"],
    judges=(
        "No RAM policy of the stack allows `*` or `PRODUCT:*` (in any case, also `PRODUCT:?*`), a product by a "
        "wildcard, everything except something (`NotAction`, `NotResource`), or changes of every resource (`*`, "
        "`acs:*:*:*:*`), such as `ram:PassRole`; reads of every resource are allowed. No role, user or group gets a "
        "policy of Alibaba Cloud's own that allows everything (`AdministratorAccess`, `PowerUserAccess`, "
        "`Aliyun…FullAccess`), by RAM or the resource manager. A policy document that is not valid JSON, or has a key "
        "twice, is reported."
    ),
    unseen="Wildcards within an operation's name (`slb:Delete*`) on named resources.",
    tags=["alicloud", "ram"],
    remedy=(
        "List the operations in use (cloud_controller/clouds/alicloud/permissions.py has those of this project's CCM), "
        "and restrict those that change something by region, resource or tag."
    ),
    url="https://www.alibabacloud.com/help/en/ram/user-guide/policy-overview",
)
