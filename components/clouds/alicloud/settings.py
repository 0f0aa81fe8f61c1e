"""The settings of a cluster on Alibaba Cloud, and the tags that all of its resources share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Literal, NotRequired, TypedDict, cast

import pulumi

from cloud_controller.load_balancers.model import CLUSTER_TAG

from ..common.ranges import overlap_problem

REGION = re.compile(r"[a-z]{2}(-[a-z]+)+(-[0-9]+)?")

NAME_ON_ACK = "cloud-controller"
"""Of our CCM's objects in a cluster of ACK, whose own are called `cloud-controller-manager`."""
DOCTOR_ON_ACK = f"{NAME_ON_ACK}-doctor"

DEFAULT_VPC_CIDR = "10.0.0.0/16"
DEFAULT_POD_CIDR = "172.20.0.0/16"
DEFAULT_SERVICE_CIDR = "172.21.0.0/20"
AUDIT_PREFIX = "audit-"
LONGEST_TRAIL = 36
"""ActionTrail's limit: the prefix, and the cluster's name."""
RESERVED = IPv4Network("100.64.0.0/10")
"""Alibaba Cloud's own services have these addresses, CLB's health checks among them: no network may use them."""
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))


class AlicloudIdentityArgs(TypedDict):
    """What the role of the CCM's ServiceAccount is made of, in a cluster that is there already."""

    oidc_provider: str
    """The ARN of the cluster's OIDC provider in RAM."""
    oidc_issuer: str
    """The URL of the issuer of the cluster's tokens."""
    cluster_name: str
    """Begins the role's name."""
    region: str
    """The region of what the role may change."""
    controllers: Sequence[str]
    """The controllers that the CCM runs: the role may do what they call, and no more."""


class AlicloudClusterArgs(TypedDict):
    """The settings of a cluster on Alibaba Cloud. Plain values: they decide which resources exist."""

    region: str
    """Such as cn-hangzhou."""
    control_plane: Literal["ack", "ecs"]
    """`ack`: Alibaba Cloud runs it (ACK). `ecs`: a pool of role `control-plane` does, behind an internal NLB."""
    kubernetes_version: str
    """On ACK the full version, such as 1.34.1-aliyun.1; else the minor version, such as 1.36."""
    vpc_cidr: NotRequired[str]
    """A private IPv4 range from /10 to /16; 10.0.0.0/16 if not given."""
    pod_cidr: NotRequired[str]
    """The range of the pods, where a route controller leads them to their nodes; else they have VPC addresses."""
    service_cidr: NotRequired[str]
    """The range of Services' cluster IPs; 172.21.0.0/20 if not given."""
    public_api: NotRequired[bool]
    """ACK: whether the API server has a public address, too; False if not given."""
    api_sources: NotRequired[Sequence[str]]
    """ECS: who reaches the API server from networks joined to the VPC, as IPv4 ranges; nobody if not given."""
    image: NotRequired[str]
    """ECS: the id of the machines' image, Alibaba Cloud Linux 3."""
    kms_instance: NotRequired[str]
    """ECS: the KMS instance that keeps what machines exchange."""
    kms_key: NotRequired[str]
    """ECS: the key of that instance which encrypts it."""
    controllers: NotRequired[Sequence[str]]
    """The controllers that the CCM runs: its role may do what they call, and no more."""
    doctor: NotRequired[bool]
    """Whether `cloud-controller doctor` runs in the cluster: on ACK with a role that may do what they read."""
    autoscaling: NotRequired[Mapping[str, int]]
    """ACK: by pool, the most machines that the cluster autoscaler may make; the pool's count is the fewest."""
    control_plane_egress: NotRequired[Sequence[str]]
    """ECS: IPv4 ranges that machines of the control plane reach besides the VPC and, on port 443, everything."""
    log_days: NotRequired[int]
    """ACK: for how many days SLS keeps the control plane's logs; 30 if not given."""
    audit_days: NotRequired[int]
    """For how many days the account's calls of the cloud's API are kept; the program makes no trail if not given."""


def checked_settings(settings: Mapping[str, Any]) -> AlicloudClusterArgs:
    """The settings as `ClusterArgs` has checked them already."""
    return cast("AlicloudClusterArgs", settings)


def is_zone(region: str, zone: str) -> bool:
    """Whether it is a zone of the region: `cn-hangzhou-h`, `eu-central-1a`."""
    return re.fullmatch(rf"{re.escape(region)}-?[a-z]", zone) is not None


def range_problem(vpc: str, pods: str | None, services: str) -> tuple[str, str, str] | None:
    """Of IPv4 ranges the first that does not fit: its setting's name, the range, and why; None if all do."""
    of_vpc = IPv4Network(vpc)
    if not (10 <= of_vpc.prefixlen <= 16 and any(of_vpc.subnet_of(block) for block in _PRIVATE)):
        return "vpc_cidr", vpc, f"allowed: a range from /10 to /16 of one of {', '.join(map(str, _PRIVATE))}"
    for key, cidr in (("pod_cidr", pods), ("service_cidr", services)):
        if cidr is not None and IPv4Network(cidr).overlaps(RESERVED):
            return key, cidr, f"overlaps {RESERVED}, which Alibaba Cloud uses itself; allowed: another range"
    return overlap_problem(vpc, pods, services)


def tags(name: str, cluster_id: pulumi.Input[str] | None = None) -> dict[str, pulumi.Input[str]]:
    """The tags of a resource: what people find it by, whose stack's it is, and the cluster that a machine joins."""
    of_cluster = {CLUSTER_TAG: cluster_id} if cluster_id is not None else {}
    return {
        "Name": name,
        "pulumi.com/project": pulumi.get_project(),
        "pulumi.com/stack": pulumi.get_stack(),
        **of_cluster,
    }
