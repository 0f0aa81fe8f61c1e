"""The controllers' IAM permissions: every operation that this cloud calls, its callers and its resources, in one table.

Reads cannot be restricted to resources. Writes are allowed on resources with the cluster's tag; creations must set
it in the same call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration

Statement = dict[str, Any]

CONTROLLERS = ("node", "node-lifecycle", "route", "service")
_ROUTE = ("route",)
_SERVICE = ("service",)
_NOBODY = ()
"""Operations that need no permission, or that users' programs call with their own (`cluster_access`)."""

_ACTIONS = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "service-quotas": "servicequotas"}
"""IAM's names of services, where they differ from boto3's."""
_READ = re.compile(r"[a-z0-9]+:(Describe|Get)\w+")


class When(Enum):
    """The condition of a permission."""

    ALWAYS = "always"
    TAGGED = "to what carries the cluster's tag"
    TAGGING = "where it gets the cluster's tag in the same call"
    FORWARDING = "to what carries the cluster's tag, and only so that it may forward what is not for its own address"
    BY_CREATION = "as a part of a creation that gives it the cluster's tag"


@dataclass(frozen=True, slots=True)
class Right:
    """Operations of a service (boto3's names), the controllers that call them, and the resources.

    `on`: resources as in an ARN after the account; "" for all. `doctor`: only `cloud-controller doctor` calls them,
    where it examines these controllers.
    """

    service: str
    operations: tuple[str, ...]
    controllers: tuple[str, ...]
    when: When = When.ALWAYS
    on: tuple[str, ...] = ("",)
    doctor: bool = False

    @property
    def actions(self) -> Iterator[str]:
        """IAM's names of the operations."""
        for operation in self.operations:
            yield f"{_ACTIONS.get(self.service, self.service)}:{operation}"


_GROUP = "security-group/*"
_BALANCING = ("loadbalancer/*", "targetgroup/*", "listener/net/*")
"""All in one statement, though each operation concerns only one kind: a policy has at most 6,144 characters."""

RIGHTS: tuple[Right, ...] = (
    Right("sts", ("GetCallerIdentity",), _NOBODY),
    Right("eks", ("DescribeCluster",), _NOBODY),
    Right(
        "ec2",
        ("DescribeAvailabilityZones", "DescribeInstanceTopology", "DescribeInstances"),
        # Of every controller: machines tell whose account it is.
        CONTROLLERS,
    ),
    # Fargate's nodes, and the security groups of pods.
    Right("ec2", ("DescribeNetworkInterfaces",), CONTROLLERS),
    Right("ec2", ("DescribeSubnets",), CONTROLLERS),
    Right("ec2", ("DescribeRouteTables",), (*_ROUTE, *_SERVICE)),
    Right("ec2", ("DescribeAddresses",), _SERVICE),
    Right("service-quotas", ("GetServiceQuota",), _ROUTE),
    Right("ec2", ("CreateRoute", "DeleteRoute"), _ROUTE, When.TAGGED, ("route-table/*",)),
    Right("ec2", ("ModifyInstanceAttribute",), _ROUTE, When.FORWARDING, ("instance/*",)),
    # Security groups of load balancers, and the rule that lets their traffic into the nodes' groups.
    Right("ec2", ("DescribeSecurityGroups",), _SERVICE),
    Right(
        "ec2",
        ("AuthorizeSecurityGroupIngress", "CreateTags", "DeleteSecurityGroup", "RevokeSecurityGroupIngress"),
        _SERVICE,
        When.TAGGED,
        (_GROUP,),
    ),
    Right("ec2", ("CreateSecurityGroup",), _SERVICE, When.TAGGING, (_GROUP,)),
    Right("ec2", ("CreateSecurityGroup",), _SERVICE, When.ALWAYS, ("vpc/*",)),
    Right("ec2", ("CreateTags",), _SERVICE, When.BY_CREATION, (_GROUP,)),
    # IAM has one name for both.
    Right("elb", ("DescribeAccountLimits",), _SERVICE, doctor=True),
    Right("elbv2", ("DescribeAccountLimits",), _SERVICE, doctor=True),
    # Network load balancers.
    Right(
        "elbv2",
        (
            "DescribeListenerAttributes",
            "DescribeListenerCertificates",
            "DescribeListeners",
            "DescribeLoadBalancerAttributes",
            "DescribeLoadBalancers",
            "DescribeTags",
            "DescribeTargetGroupAttributes",
            "DescribeTargetGroups",
            "DescribeTargetHealth",
        ),
        _SERVICE,
    ),
    Right("elbv2", ("CreateLoadBalancer", "CreateTargetGroup"), _SERVICE, When.TAGGING, _BALANCING),
    Right("elbv2", ("AddTags",), _SERVICE, When.BY_CREATION, _BALANCING),
    Right(
        "elbv2",
        (
            "AddListenerCertificates",
            "AddTags",
            "CreateListener",
            "DeleteListener",
            "DeleteLoadBalancer",
            "DeleteTargetGroup",
            "DeregisterTargets",
            "ModifyListener",
            "ModifyListenerAttributes",
            "ModifyLoadBalancerAttributes",
            "ModifyTargetGroup",
            "ModifyTargetGroupAttributes",
            "RegisterTargets",
            "RemoveListenerCertificates",
            "RemoveTags",
            "SetIpAddressType",
            "SetSecurityGroups",
            "SetSubnets",
        ),
        _SERVICE,
        When.TAGGED,
        _BALANCING,
    ),
    # Classic load balancers.
    Right(
        "elb",
        ("DescribeInstanceHealth", "DescribeLoadBalancerAttributes", "DescribeLoadBalancers", "DescribeTags"),
        _SERVICE,
    ),
    Right("elb", ("CreateLoadBalancer",), _SERVICE, When.TAGGING, _BALANCING),
    Right("elb", ("AddTags",), _SERVICE, When.BY_CREATION, _BALANCING),
    Right(
        "elb",
        (
            "AddTags",
            "ApplySecurityGroupsToLoadBalancer",
            "AttachLoadBalancerToSubnets",
            "ConfigureHealthCheck",
            "CreateLoadBalancerListeners",
            "CreateLoadBalancerPolicy",
            "DeleteLoadBalancer",
            "DeleteLoadBalancerListeners",
            "DeregisterInstancesFromLoadBalancer",
            "DetachLoadBalancerFromSubnets",
            "ModifyLoadBalancerAttributes",
            "RegisterInstancesWithLoadBalancer",
            "RemoveTags",
            "SetLoadBalancerListenerSSLCertificate",
            "SetLoadBalancerPoliciesForBackendServer",
            "SetLoadBalancerPoliciesOfListener",
        ),
        _SERVICE,
        When.TAGGED,
        _BALANCING,
    ),
)
"""Every operation that this cloud calls; a test compares it with the code, in both directions."""

ON_OUR_BEHALF = Right(
    "ec2",
    (
        "DescribeAccountAttributes",
        "DescribeAddresses",
        "DescribeInstances",
        "DescribeInternetGateways",
        "DescribeSecurityGroups",
        "DescribeSubnets",
        "DescribeVpcs",
        "GetSecurityGroupsForVpc",
    ),
    _SERVICE,
)
"""The operations that Elastic Load Balancing calls with the caller's permissions when it creates load balancers and
registers targets (user guide, page "API permissions", without ClassicLink, which AWS retired).
`GetSecurityGroupsForVpc` is not on that page, but in AWS's managed policies ElasticLoadBalancingFullAccess and
AmazonEKSLoadBalancingPolicy."""

_CREATIONS = {
    "ec2": ("ec2:CreateAction", ["CreateSecurityGroup"]),
    "elasticloadbalancing": (
        "elasticloadbalancing:CreateAction",
        ["CreateListener", "CreateLoadBalancer", "CreateTargetGroup"],
    ),
}


def actions(controllers: Collection[str] = CONTROLLERS) -> list[str]:
    """IAM's names of the operations that these controllers call, or that AWS calls with their permissions."""
    rights = [right for right in (*RIGHTS, ON_OUR_BEHALF) if {*right.controllers} & {*controllers} and not right.doctor]
    return sorted({action for right in rights for action in right.actions})


def statements(
    controllers: Collection[str],
    cluster_id: str,
    *,
    partition: str = "aws",
    reads: bool = False,
    doctor: bool = False,
) -> list[Statement]:
    """The least-privilege IAM statements for a daemon that runs these controllers for this cluster.

    `partition`: `aws`, `aws-cn` or `aws-us-gov`. `reads`: only what `cloud-controller doctor` calls: what the
    controllers read, and quotas. `doctor`: doctor has the daemon's credential, so quotas too. Raises
    InvalidConfiguration for an unknown controller.
    """
    for name in controllers:
        if name not in CONTROLLERS:
            raise InvalidConfiguration("controllers", f"{name!r} is not a controller on AWS", ", ".join(CONTROLLERS))
    if reads:
        # Whatever runs, doctor looks at nodes' machines.
        looked_at = {*controllers, "node"}
        called = {action for right in RIGHTS if {*right.controllers} & looked_at for action in right.actions}
        return [_allow(sorted(filter(_READ.fullmatch, called)), ["*"], {})]
    granted: dict[tuple[str, When, tuple[str, ...]], set[str]] = {}
    for right in (*RIGHTS, ON_OUR_BEHALF):
        if {*right.controllers} & {*controllers} and (doctor or not right.doctor):
            service = next(right.actions).partition(":")[0]
            of = service if right.when is not When.ALWAYS or right.on != ("",) else ""
            granted.setdefault((of, right.when, right.on), set()).update(right.actions)
    found = [
        _allow(sorted(actions), _arns(service, on, partition), _condition(when, service, cluster_id))
        for (service, when, on), actions in granted.items()
    ]
    return [*found, *([_linked_role(partition)] if "service" in controllers else [])]


def _arns(service: str, on: Collection[str], partition: str) -> list[str]:
    return [f"arn:{partition}:{service}:*:*:{resource}" if resource else "*" for resource in on]


def _condition(when: When, service: str, cluster_id: str) -> Mapping[str, Any]:
    tag = f"kubernetes.io/cluster/{cluster_id}"
    match when:
        case When.ALWAYS:
            return {}
        case When.TAGGED:
            return {"Null": {f"aws:ResourceTag/{tag}": "false"}}
        case When.FORWARDING:
            # Any other attribute, as user data or security groups, lacks this key: a role must be nobody's way into a
            # machine. EC2's user guide, "ec2:Attribute condition key": the name of the attribute, of one with a value.
            checked = {"ec2:Attribute/SourceDestCheck": "false"}
            return {"Null": {f"aws:ResourceTag/{tag}": "false"}, "StringEqualsIgnoreCase": checked}
        case When.TAGGING:
            return {"Null": {f"aws:RequestTag/{tag}": "false"}}
        case When.BY_CREATION:
            # Without this, the permission could tag other clusters' resources, and then delete them.
            key, creations = _CREATIONS[service]
            return {"Null": {f"aws:RequestTag/{tag}": "false"}, "StringEquals": {key: creations}}


def _linked_role(partition: str) -> Statement:
    """Not called by the controller: AWS creates this service-linked role with an account's first load balancer."""
    service = "elasticloadbalancing.amazonaws.com"
    return _allow(
        ["iam:CreateServiceLinkedRole"],
        [f"arn:{partition}:iam::*:role/aws-service-role/{service}/AWSServiceRoleForElasticLoadBalancing"],
        {"StringEquals": {"iam:AWSServiceName": service}},
    )


def _allow(actions: list[str], resources: list[str], condition: Mapping[str, Any]) -> Statement:
    found: Statement = {"Effect": "Allow", "Action": actions, "Resource": resources}
    return found | ({"Condition": dict(condition)} if condition else {})
