"""The cached state of the cluster's VPC: its subnets, and the cluster's security groups.

One batch of reads fills it for a lifetime. Changes of security groups by this process update it, so that they need
no new read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.facts import Facts, SecurityGroup, Subnet
from cloud_controller.clouds.aws.ip_permissions import rule_texts
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.clouds.common.cache import LAG, Cache, Entries

LIFETIME = 600.0
"""Seconds for which the state stays valid unless the caller asks for newer state."""

_NO_LONGER = ("disassociating", "disassociated", "failing", "failed")

_THE_VPC = "VPC"
"""The only ID of this kind of entry."""


class VpcState:
    """The cached facts of one VPC. Concurrent callers share one read. Safe to share between threads."""

    def __init__(self, api: Api, cluster_tag: str, vpc_id: str | None, cache: Cache) -> None:
        """`vpc_id` None: the VPC of the subnets that have this tag key."""
        self._api = api
        self._cluster_tag = cluster_tag
        self._vpc_id = vpc_id
        self.changing_nodes = threading.RLock()
        """Hold this lock while changing rules of the nodes' groups, which many load balancers share."""
        self._facts: Entries[Facts] = Entries(cache, LIFETIME)
        self._changed: Entries[SecurityGroup | None] = Entries(cache, LAG)
        self._lock = cache.lock

    @property
    def cluster_tag(self) -> str:
        """The key of the tag on all the cluster's resources."""
        return self._cluster_tag

    def facts(self, max_age: float | None = None) -> Facts:
        """The facts, at most `max_age` seconds old (default: the lifetime).

        Raises the errors of `cloud_controller.cloud`; InvalidConfiguration unless exactly one VPC is found.
        """
        return self._facts.fetch(_THE_VPC, self._read, max_age, self._with_own_changes)

    def forget(self, group_id: str) -> None:
        """Read everything again at the next call of `facts`: AWS reports that this security group does not exist."""
        with self._lock:
            self._facts.forget(_THE_VPC)
            self._changed.forget(group_id)

    def changed(self, group_id: str, group: SecurityGroup | None) -> None:
        """Record a security group that this process created or changed, or (None) deleted."""
        with self._lock:
            self._changed.put(group_id, group, anew=True)
            if (facts := self._facts.get(_THE_VPC)) is not None:
                self._facts.put(_THE_VPC, _with_group(facts, group_id, group))

    def _read(self) -> Facts:
        facts = read_facts(self._api, self._cluster_tag, self._vpc_id)
        self._vpc_id = facts.vpc_id
        return facts

    def _with_own_changes(self, facts: Facts, read_at: float) -> Facts:
        for group_id, group in self._changed.fresh(read_at).items():
            facts = _with_group(facts, group_id, group)
        return facts


def read_facts(api: Api, cluster_tag: str, vpc_id: str | None) -> Facts:
    """Read the facts: three calls, and one more if the VPC must be found by its tagged subnets."""
    vpc_id = vpc_id or found_vpc(api, cluster_tag)
    of_vpc = {"Name": "vpc-id", "Values": [vpc_id]}
    tagged = {"Name": "tag-key", "Values": [cluster_tag]}
    subnets = [*api.pages("ec2", "DescribeSubnets", "Subnets", Filters=[of_vpc])]
    tables = [*api.pages("ec2", "DescribeRouteTables", "RouteTables", Filters=[of_vpc])]
    groups = [*api.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=[of_vpc, tagged])]
    public = _public_subnets(tables, [subnet["SubnetId"] for subnet in subnets])
    return Facts(
        vpc_id,
        tuple(_subnet(subnet, subnet["SubnetId"] in public) for subnet in subnets),
        tuple(security_group(group) for group in groups),
    )


def security_group(group: Mapping[str, Any]) -> SecurityGroup:
    """A security group from DescribeSecurityGroups."""
    rules = rule_texts(group.get("IpPermissions") or ())
    described = {rule: what for rule, what in rules.items() if what}
    return SecurityGroup(group["GroupId"], group["GroupName"], tags_of(group), frozenset(rules), described)


def found_vpc(api: Api, cluster_tag: str) -> str:
    """The VPC of the subnets with this tag. Raises InvalidConfiguration unless there is exactly one."""
    tagged = [{"Name": "tag-key", "Values": [cluster_tag]}]
    found = sorted({str(subnet["VpcId"]) for subnet in api.pages("ec2", "DescribeSubnets", "Subnets", Filters=tagged)})
    if len(found) != 1:
        whose = f"subnets of {' and '.join(found)} have" if found else "no subnet has"
        why = f"not set, and {whose} the tag {cluster_tag}"
        raise InvalidConfiguration("cloud config: [Global] VPC", why, "the ID of the cluster's VPC")
    return found[0]


def _subnet(subnet: Mapping[str, Any], public: bool) -> Subnet:
    return Subnet(
        id=subnet["SubnetId"],
        zone=subnet["AvailabilityZone"],
        cidr=subnet.get("CidrBlock"),
        ipv6_cidr=next(_ipv6_cidrs(subnet), None),
        public=public,
        tags=tags_of(subnet),
        free_addresses=subnet.get("AvailableIpAddressCount"),
    )


def _ipv6_cidrs(subnet: Mapping[str, Any]) -> Iterator[str]:
    for association in subnet.get("Ipv6CidrBlockAssociationSet") or ():
        if association.get("Ipv6CidrBlockState", {}).get("State") not in _NO_LONGER:
            yield association["Ipv6CidrBlock"]


def _public_subnets(tables: Sequence[Mapping[str, Any]], subnet_ids: Sequence[str]) -> frozenset[str]:
    """The subnets whose route table has a route to an internet gateway; without an own table, the main one applies."""
    own: dict[str, bool] = {}
    main = False
    for table in tables:
        leads_out = any(str(route.get("GatewayId", "")).startswith("igw-") for route in table.get("Routes") or ())
        for association in table.get("Associations") or ():
            if association.get("Main"):
                main = leads_out
            elif "SubnetId" in association:
                own[association["SubnetId"]] = leads_out
    return frozenset(subnet for subnet in subnet_ids if own.get(subnet, main))


def _with_group(facts: Facts, group_id: str, group: SecurityGroup | None) -> Facts:
    others = tuple(each for each in facts.groups if each.id != group_id)
    return replace(facts, groups=others if group is None else (*others, group))
