"""Rule: tags of a cluster's subnets on AWS name the load balancers that they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem

_SUBNET = "aws:ec2/subnet:Subnet"
_CLUSTER = "kubernetes.io/cluster/"
_ROLES = ("kubernetes.io/role/elb", "kubernetes.io/role/internal-elb")


def problems(subject: Subject) -> Iterator[Problem]:
    """Subnets with a cluster's tag and without a role."""
    if subject.kind == _SUBNET:
        yield partial(_problem, subject.props)


def _problem(props: Mapping[str, Any]) -> str | None:
    tags = dig(props, "tags") or {}
    clusters = [key for key in tags if str(key).startswith(_CLUSTER)]
    if not clusters or any(key in tags and tags[key] in ("", "1") for key in _ROLES):
        return None
    return f"the subnet has the tag {clusters[0]} but neither {_ROLES[0]} nor {_ROLES[1]}"


SUBNETS_HAVE_ROLES = ResourceRule(
    "subnet-tag-load-balancer-role",
    problems,
    why=(
        "Tag a cluster's subnets on AWS with kubernetes.io/role/elb (public) or kubernetes.io/role/internal-elb "
        "(private). By these tags controllers choose the subnets of a load balancer; without them it may end up in the "
        "wrong one, or in none."
    ),
    level=ADVISORY,
    title="Subnets are tagged for load balancers",
    severity=MEDIUM,
    lines=["11.1.4"],
    judges=(
        "Subnets with a cluster's tag also carry `kubernetes.io/role/elb` or `kubernetes.io/role/internal-elb` "
        "(`1`, or empty)."
    ),
    tags=["aws", "network"],
    remedy=(
        'Tag public subnets kubernetes.io/role/elb: "1" and private ones kubernetes.io/role/internal-elb: "1". Remove '
        "the cluster's tag from subnets that no load balancer may use, or exempt them by the resource's name."
    ),
    url="https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html",
)
