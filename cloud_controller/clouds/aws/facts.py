"""What builds know of the cluster's VPC: its subnets and security groups, and those that Services name. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG
from cloud_controller.load_balancers.pods import parsed_address

SHARED_GROUP_TAG = "cloud-controller/shared-by-load-balancers"
"""The tag of the security group that all load balancers of a cluster share."""

UPSTREAM_GROUP_PREFIX = "k8s-elb-"
"""The name prefix of the groups that upstream creates for classic load balancers."""

_UPSTREAM_MANAGED = re.compile(r"k8s-[0-9A-Za-z]{1,8}-[0-9A-Za-z]{1,8}-[0-9a-f]{10}")
"""The names of the groups that upstream creates for network load balancers since 1.35 (`NLBSecurityGroupMode =
Managed`)."""

_REGIONAL_ZONE = re.compile(r"[a-z]+(-[a-z]+)+-\d+[a-z]")
"""us-east-1a, us-gov-west-1b; not us-west-2-lax-1a (Local Zone) or us-east-1-wl1-bos-wlz-1 (Wavelength Zone)."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet of the VPC. `public`: its route table has a route to an internet gateway."""

    id: str
    zone: str
    cidr: str | None
    ipv6_cidr: str | None = None
    public: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    free_addresses: int | None = None
    """The number of free IPv4 addresses; None: unknown."""

    @property
    def in_regional_zone(self) -> bool:
        """Whether network and classic load balancers can be in this zone; in Local Zones they cannot."""
        return _REGIONAL_ZONE.fullmatch(self.zone) is not None


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group with the cluster's tag.

    `ingress` are its rules as texts of `ip_permissions`, `described` the rules with a description.
    """

    id: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    ingress: frozenset[str] = frozenset()
    described: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_service(self) -> bool:
        """Whether it was created for a Service's load balancer."""
        return SERVICE_UID_TAG in self.tags

    @property
    def managed_by_upstream(self) -> bool:
        """Whether upstream created it for a network load balancer that is not adopted yet."""
        return not self.of_service and not self.shared and _UPSTREAM_MANAGED.fullmatch(self.name) is not None

    @property
    def shared(self) -> bool:
        """Whether it is the group that all load balancers of the cluster share."""
        return SHARED_GROUP_TAG in self.tags


@dataclass(frozen=True)
class Facts:
    """The VPC at one moment: all its subnets, and the security groups with the cluster's tag."""

    vpc_id: str
    subnets: tuple[Subnet, ...] = ()
    groups: tuple[SecurityGroup, ...] = ()

    @cached_property
    def ranges(self) -> tuple[str, ...]:
        """The addresses of all subnets, in as few ranges as possible."""
        v4 = collapse_addresses(IPv4Network(subnet.cidr) for subnet in self.subnets if subnet.cidr)
        v6 = collapse_addresses(IPv6Network(subnet.ipv6_cidr) for subnet in self.subnets if subnet.ipv6_cidr)
        return tuple(str(each) for each in (*v4, *v6))

    def is_outside(self, address: str) -> bool:
        """Whether this is an IP address in no subnet of the VPC."""
        # Cached: every reconcile checks all pods of a Service.
        if address not in self._outside:
            parsed = parsed_address(address)
            self._outside[address] = parsed is not None and not any(parsed in each for each in self._networks)
        return self._outside[address]

    @cached_property
    def _outside(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(each) for each in self.ranges)

    @cached_property
    def node_groups(self) -> tuple[SecurityGroup, ...]:
        """The nodes' groups: those with the cluster's tag that were not created for load balancers."""
        return tuple(
            group
            for group in self.groups
            if not (group.of_service or group.shared or group.managed_by_upstream)
            and not group.name.startswith(UPSTREAM_GROUP_PREFIX)
        )

    @cached_property
    def shared_groups(self) -> tuple[SecurityGroup, ...]:
        """The groups marked as the one that all load balancers of the cluster share."""
        return tuple(group for group in self.groups if group.shared)

    @cached_property
    def front_groups(self) -> Mapping[str, Sequence[SecurityGroup]]:
        """The groups created for load balancers, by load balancer ID; including upstream's for classic ones."""
        found: defaultdict[str, list[SecurityGroup]] = defaultdict(list)
        for group in self.groups:
            if group.of_service and LOAD_BALANCER_TAG in group.tags:
                found[group.tags[LOAD_BALANCER_TAG]].append(group)
            elif group.name.startswith(UPSTREAM_GROUP_PREFIX) and CLUSTER_TAG not in group.tags:
                found[group.name.removeprefix(UPSTREAM_GROUP_PREFIX)].append(group)
        return dict(found)


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """The facts for builds.

    - `group_tags`: tags of named security groups, if the administrator's list needs them.
    - `address_tags`: tags of named elastic IPs.
    - `pod_groups`: security groups by pod address, for pods with their own network interface.
    """

    vpc: Facts
    group_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pod_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    address_tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
