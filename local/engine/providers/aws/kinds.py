"""The supported types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local.engine.providers.aws.auto_scaling import Group
from local.engine.providers.aws.eks import Cluster
from local.engine.providers.aws.iam import InstanceProfile, Role
from local.engine.providers.aws.iam_policies import OpenIdConnectProvider, Policy, RolePolicyAttachment
from local.engine.providers.aws.kind import Kind
from local.engine.providers.aws.launch_template import LaunchTemplate
from local.engine.providers.aws.network import InternetGateway, Subnet, Vpc
from local.engine.providers.aws.routing import Route, RouteTable, RouteTableAssociation
from local.engine.providers.aws.security_groups import (
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
