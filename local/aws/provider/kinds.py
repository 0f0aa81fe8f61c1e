"""The supported types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local.aws.provider.auto_scaling import Group
from local.aws.provider.eks import Cluster
from local.aws.provider.iam import InstanceProfile, Role
from local.aws.provider.iam_policies import OpenIdConnectProvider, Policy, RolePolicyAttachment
from local.aws.provider.kind import Kind
from local.aws.provider.launch_template import LaunchTemplate
from local.aws.provider.network import InternetGateway, Subnet, Vpc
from local.aws.provider.routing import Route, RouteTable, RouteTableAssociation
from local.aws.provider.security_groups import (
    SecurityGroup,
    SecurityGroupEgressRule,
    SecurityGroupIngressRule,
)

KINDS: Final[Mapping[str, Kind]] = {
    kind.type: kind()
    for kind in (
        Cluster,
        Group,
        InstanceProfile,
        InternetGateway,
        LaunchTemplate,
        OpenIdConnectProvider,
        Policy,
        Role,
        RolePolicyAttachment,
        Route,
        RouteTable,
        RouteTableAssociation,
        SecurityGroup,
        SecurityGroupEgressRule,
        SecurityGroupIngressRule,
        Subnet,
        Vpc,
    )
}

RECORDED: Final = frozenset({"aws:eks/accessEntry:AccessEntry", "aws:eks/addon:Addon"})
"""Types that no simulator implements and nothing else depends on: only recorded."""
