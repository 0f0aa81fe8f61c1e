"""Rule: tags of a cluster's subnets on AWS name the load balancers that they take."""

from __future__ import annotations

from collections.abc import Mapping
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
from policy.unknowns import judge

_SUBNET = "aws:ec2/subnet:Subnet"
_CLUSTER = "kubernetes.io/cluster/"
_ROLES = ("kubernetes.io/role/elb", "kubernetes.io/role/internal-elb")


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report subnets with a cluster's tag and without a role."""
    if args.resource_type == _SUBNET:
        judged = partial(is_judged, args.get_config(), args.props, args.name)
        judge([judged], [partial(_problem, args.props)], report)


def _problem(props: Mapping[str, Any]) -> str | None:
    tags = dig(props, "tags") or {}
    clusters = [key for key in tags if str(key).startswith(_CLUSTER)]
    if not clusters or any(key in tags and tags[key] in ("", "1") for key in _ROLES):
        return None
    return f"the subnet has the tag {clusters[0]} but neither {_ROLES[0]} nor {_ROLES[1]}"


SUBNETS_HAVE_ROLES = ResourceValidationPolicy(
    name="subnet-tag-load-balancer-role",
    description=(
        "Tag a cluster's subnets on AWS with kubernetes.io/role/elb (public) or kubernetes.io/role/internal-elb "
        "(private). By these tags controllers choose the subnets of a load balancer; without them it may end up in the "
        "wrong one, or in none."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(),
    display_name="Subnets are tagged for load balancers",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.1",
        specification="VPC and subnets are configured",
    ),
    tags=["aws", "network"],
    remediation_steps=(
        'Tag public subnets kubernetes.io/role/elb: "1" and private ones kubernetes.io/role/internal-elb: "1". Remove '
        "the cluster's tag from subnets that no load balancer may use, or exempt them by the resource's name."
    ),
    url="https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html",
)
