"""What lies around the load balancers of a cluster: its VPC, the subnets there, and the cluster's security groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cloud_controller.load_balancer import SERVICE_UID_TAG

SHARED_GROUP_TAG = "cloud-controller/shared-by-load-balancers"
"""On the one security group that all load balancers of a cluster are in."""

UPSTREAM_GROUP_PREFIX = "k8s-elb-"
"""What the names of groups begin with that the Go controller made for classic load balancers of the same cluster."""

_REGIONAL_ZONE = re.compile(r"[a-z]+(-[a-z]+)+-\d+[a-z]")
"""us-east-1a, us-gov-west-1b; not us-west-2-lax-1a (a local zone), nor us-east-1-wl1-bos-wlz-1 (a wavelength zone)."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet of the VPC. `public`: its route table leads to an internet gateway."""

    id: str
    zone: str
    cidr: str
    ipv6_cidr: str | None = None
    public: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_regional_zone(self) -> bool:
        """Whether load balancers of the network and the classic kind can be here; in local zones they can't."""
        return _REGIONAL_ZONE.fullmatch(self.zone) is not None


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group that carries the cluster's tag.

    `ingress` are its rules as texts, one a source: `tcp 80-443 10.0.0.0/8`, `icmp 3-4 0.0.0.0/0`, `all 0-0 sg-0123`.
    """

    id: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    ingress: frozenset[str] = frozenset()

    @property
    def of_service(self) -> bool:
        """Whether it was made for the load balancer of a Service."""
        return SERVICE_UID_TAG in self.tags

    @property
    def shared(self) -> bool:
        """Whether it is the one that all load balancers of the cluster are in."""
        return SHARED_GROUP_TAG in self.tags


@dataclass(frozen=True, slots=True)
class Facts:
    """The VPC as AWS told it at one moment; `groups` are those with the cluster's tag, `subnets` all there are."""

    vpc_id: str
    subnets: tuple[Subnet, ...] = ()
    groups: tuple[SecurityGroup, ...] = ()

    @property
    def node_groups(self) -> tuple[SecurityGroup, ...]:
        """The groups of the machines: those with the cluster's tag that were not made for load balancers."""
        return tuple(
            group
            for group in self.groups
            if not (group.of_service or group.shared or group.name.startswith(UPSTREAM_GROUP_PREFIX))
        )
