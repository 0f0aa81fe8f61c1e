"""Rule: no RAM policy of the stack allows more operations, or changes of more resources, than it names."""

from __future__ import annotations

import re
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

from policy.documents import problems, texts, wildcards
from policy.objects import dig, is_judged, schema
from policy.unknowns import Problem, judge

_POLICY = "alicloud:ram/policy:Policy"
_ATTACHMENTS = tuple(
    f"alicloud:ram/{who}PolicyAttachment:{who.capitalize()}PolicyAttachment" for who in ("role", "user", "group")
)
_READ = re.compile(r"\w+:(Describe|Get|List|Query)[\w*]*")
_EVERYTHING = re.compile(r"\*|acs:[^:]*:\*?(:[^:]*)?:\*(/\*)*")
"""All resources of all products, or of one, in every region; the third part is the region."""
_BROAD = re.compile(r"AdministratorAccess|PowerUserAccess|Aliyun\w*FullAccess")
"""Policies that Alibaba Cloud keeps, with every operation of a product, or of all."""


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report wildcards in policies, and attachments of policies that are nothing but one."""
    judged = partial(is_judged, args.get_config(), args.props, args.name)
    if args.resource_type == _POLICY:
        judge([judged], _of_policy(args.props), report)
    elif args.resource_type in _ATTACHMENTS:
        judge([judged], [partial(_of_attachment, args.props)], report)


def _of_policy(props: Mapping[str, Any]) -> Iterator[Problem]:
    # `document` is the property's former name.
    for key in ("policyDocument", "document"):
        yield from problems(dig(props, key), wildcards)
        yield from problems(dig(props, key), _of_every_resource)


def _of_every_resource(index: int, statement: Mapping[str, Any]) -> str | None:
    """Reads of everything are allowed: several have no resource. `wildcards` reports operations without a name."""
    if dig(statement, "Effect") != "Allow" or wildcards(index, statement):
        return None
    if not any(_EVERYTHING.fullmatch(resource) for resource in texts(statement, "Resource")):
        return None
    changes = [action for action in texts(statement, "Action") if not _READ.fullmatch(action)]
    return f"Statement[{index}] allows {', '.join(changes)} on every resource" if changes else None


def _of_attachment(props: Mapping[str, Any]) -> str | None:
    name = str(dig(props, "policyName"))
    if dig(props, "policyType") != "System" or not _BROAD.fullmatch(name):
        return None
    return f"the policy {name} allows everything, of a product or of all"


POLICIES_ARE_NARROW = ResourceValidationPolicy(
    name="ram-policy-avoid-wildcards",
    description=(
        "RAM policies must name the operations that they allow, and where these change something, the resources or at "
        "least the region. With slb:* or every resource a compromised cloud controller manager can delete every load "
        "balancer of the account."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(),
    display_name="RAM policies without wildcards",
    severity=Severity.HIGH,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.3",
        specification="Least privilege",
    ),
    tags=["alicloud", "ram"],
    remediation_steps=(
        "List the operations in use (cloud_controller/clouds/alicloud/permissions.py has those of this project's CCM), "
        "and restrict those that change something by region, resource or tag."
    ),
    url="https://www.alibabacloud.com/help/en/ram/user-guide/policy-overview",
)
