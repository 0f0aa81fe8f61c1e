"""The settings of a cluster on AWS, and the tags that all of its resources share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Literal, NotRequired, TypedDict, cast

import pulumi

from ..common.ranges import overlap_problem

CLUSTER_TAG = "kubernetes.io/cluster/"
"""Before the cluster's id: the key of the tag by which controllers find what is a cluster's."""
OWNED = "owned"
POD_CIDR_TAG = "cloud-controller/pod-cidr"
NETWORK_TAG = "cloud-controller/network"
"""On a cluster of EKS: the VPC's range and the zones with which it was made, and which it keeps."""

ZONE_LETTERS = "abcdefg"
"""How names of zones end. No region goes beyond `f`; a VPC is cut into parts for so many."""
ZONE = re.compile(rf"[a-z]{{2}}(-[a-z]+)+-[0-9]+[{ZONE_LETTERS}]")
"""The name of a zone of a region; local zones, with neither EKS nor NAT gateways, are called otherwise."""

DEFAULT_VPC_CIDR = "10.0.0.0/16"
DEFAULT_POD_CIDR = "100.64.0.0/16"
"""Outside of every VPC: a route table has no routes of parts of its own VPC (002 §2.3.2)."""
DEFAULT_SERVICE_CIDR = "172.20.0.0/16"
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
"""EKS takes the range of Services only from these."""


class AwsNetworkArgs(TypedDict):
    """A VPC that is there already."""

    vpc_id: str
    """Its id."""
    subnets: Mapping[str, str]
    """The subnets of the machines, by zone."""
    load_balancer_subnets: NotRequired[Mapping[str, str]]
    """Further subnets, by zone."""


class AwsIdentityArgs(TypedDict):
    """What the role of the CCM's ServiceAccount is made of, in a cluster that is there already."""

    oidc_provider: str
    """The ARN of the cluster's OIDC provider in IAM."""
    cluster_id: str
    """The cluster whose resources the role may change."""
    cluster_name: str
    """Begins the role's name."""
    controllers: Sequence[str]
    """The controllers that the CCM runs: the role may do what they call, and no more."""
    ccm: Literal["ours", "vendor"]
    """Whose CCM runs."""


class AwsClusterArgs(TypedDict):
    """The settings of a cluster on AWS. Plain values: they decide which resources exist."""

    control_plane: Literal["eks", "ec2"]
    """`eks`: AWS runs it. `ec2`: pools of role `control-plane` do, behind an internal Network Load Balancer."""
    nodes: Literal["eks", "asg"]
    """`eks`: managed node groups. `asg`: launch templates and auto-scaling groups of the program's own."""
    kubernetes_version: str
    """Such as 1.36."""
    network: NotRequired[AwsNetworkArgs]
    """The VPC, if it is there already; nothing in it is changed."""
    vpc_cidr: NotRequired[str]
    """An IPv4 range from /16 to /20; 10.0.0.0/16 if not given. With `network`, which needs it, the VPC's."""
    pod_cidr: NotRequired[str]
    """The range of the pods, where a route controller leads them to their nodes; else they have VPC addresses."""
    service_cidr: NotRequired[str]
    """The range of Services' cluster IPs; 172.20.0.0/16 if not given."""
    node_subnets: NotRequired[Literal["private", "public"]]
    """`private` (default): nodes reach the internet by NAT gateways and are not reached from there."""
    internal_endpoints: NotRequired[bool]
    """Whether the VPC has addresses of its own for the APIs that the CCM calls; each costs by the hour and zone."""
    api_sources: NotRequired[Sequence[str]]
    """Who reaches the API server from outside of the VPC, as IPv4 ranges; nobody if not given."""
    ccm: NotRequired[Literal["ours", "vendor"]]
    """Whose CCM runs, for its role: `ours` (default), or AWS's own."""
    controllers: NotRequired[Sequence[str]]
    """The controllers that the CCM runs: its role may do what they call, and no more."""
    doctor: NotRequired[bool]
    """Whether `cloud-controller doctor` runs in the cluster: on EKS with a role that may do what they read."""
    control_plane_egress: NotRequired[Sequence[str]]
    """EC2: IPv4 ranges that machines of the control plane reach besides the cluster and, on port 443, everything."""
    log_days: NotRequired[int]
    """EKS: for how many days CloudWatch keeps the control plane's logs; for ever if not given."""
    audit_days: NotRequired[int]
    """For how many days the account's calls of AWS's API are kept; the program makes no trail if not given."""


def checked_settings(settings: Mapping[str, Any]) -> AwsClusterArgs:
    """The settings as `ClusterArgs` has checked them already."""
    return cast("AwsClusterArgs", settings)


def range_problem(vpc: str, pods: str | None, services: str, *, made: bool = True) -> tuple[str, str, str] | None:
    """Of IPv4 ranges the first that does not fit: its setting's name, the range, and why; None if all do.

    `made`: the program makes the VPC and cuts its range into subnets.
    """
    of_vpc, of_services = IPv4Network(vpc), IPv4Network(services)
    if made and not 16 <= of_vpc.prefixlen <= 20:
        return "vpc_cidr", vpc, "allowed: an IPv4 range from /16 to /20"
    problem = overlap_problem(vpc, pods, services)
    if problem and problem[0] == "pod_cidr":
        return problem
    if not (12 <= of_services.prefixlen <= 24 and any(of_services.subnet_of(block) for block in _PRIVATE)):
        blocks = ", ".join(map(str, _PRIVATE))
        return "service_cidr", services, f"allowed: a range from /12 to /24 of one of {blocks}"
    return problem


def tags(name: str, cluster: str | None = None, **more: str) -> dict[str, str]:
    """The tags of a resource: what people find it by, whose stack's it is, and the cluster's mark where it has one."""
    marks = {f"{CLUSTER_TAG}{cluster}": OWNED} if cluster else {}
    return {
        "Name": name,
        "pulumi.com/project": pulumi.get_project(),
        "pulumi.com/stack": pulumi.get_stack(),
        **marks,
        **more,
    }
