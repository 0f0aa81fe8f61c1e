"""AWS's own cloud controller manager (cloud-provider-aws), where a stack runs it instead of ours.

What it may do is written down here from its documentation ("prerequisites"; that lacks what load balancing looks at in
its caller's name); ours is worked out of its calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from cloud_controller import rbac
from cloud_controller.clouds.aws.permissions import ON_OUR_BEHALF
from cloud_controller.clouds.aws.versions import IMAGE
from cloud_controller.rbac import PolicyRule, Rules

from ... import inputs
from ..interface import VendorManager

NAMES = {
    "node": "cloud-node-controller",
    "node-lifecycle": "cloud-node-lifecycle-controller",
    "route": "node-route-controller",
    "service": "service-lb-controller",
}
"""Upstream's names of the controllers."""

_READ = ("get", "list", "watch")
_Table = Mapping[tuple[str, str], Sequence[str]]
"""By API group and resource: verbs."""

_OF_ALL: _Table = {
    ("", "nodes"): _READ,
    ("", "events"): ("create", "update", "patch"),
    ("authentication.k8s.io", "tokenreviews"): ("create",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
}
_OF: Mapping[str, _Table] = {
    "node": {("", "nodes"): (*_READ, "update", "patch"), ("", "nodes/status"): ("patch",)},
    "node-lifecycle": {("", "nodes"): (*_READ, "patch", "delete")},
    "route": {("", "nodes/status"): ("patch",)},
    "service": {("", "services"): (*_READ, "update", "patch"), ("", "services/status"): ("update", "patch")},
}
_EC2_OF_ALL = ("DescribeInstances", "DescribeInstanceTopology", "DescribeAvailabilityZones", "DescribeRegions")
_EC2: Mapping[str, Sequence[str]] = {
    "node": ("CreateTags", "DeleteTags"),
    "node-lifecycle": (),
    "route": ("DescribeRouteTables", "CreateRoute", "DeleteRoute", "ModifyInstanceAttribute", "DescribeSubnets"),
    "service": (
        "DescribeRouteTables",
        "CreateSecurityGroup",
        "DeleteSecurityGroup",
        "AuthorizeSecurityGroupIngress",
        "RevokeSecurityGroupIngress",
        "CreateTags",
    ),
}
_BALANCING = (
    "AddTags",
    "ApplySecurityGroupsToLoadBalancer",
    "AttachLoadBalancerToSubnets",
    "ConfigureHealthCheck",
    "CreateListener",
    "CreateLoadBalancer",
    "CreateLoadBalancerListeners",
    "CreateLoadBalancerPolicy",
    "CreateTargetGroup",
    "DeleteListener",
    "DeleteLoadBalancer",
    "DeleteLoadBalancerListeners",
    "DeleteTargetGroup",
    "DeregisterInstancesFromLoadBalancer",
    "DeregisterTargets",
    "DescribeListeners",
    "DescribeLoadBalancerAttributes",
    "DescribeLoadBalancerPolicies",
    "DescribeLoadBalancers",
    "DescribeTags",
    "DescribeTargetGroupAttributes",
    "DescribeTargetGroups",
    "DescribeTargetHealth",
    "DetachLoadBalancerFromSubnets",
    "ModifyListener",
    "ModifyLoadBalancerAttributes",
    "ModifyTargetGroup",
    "ModifyTargetGroupAttributes",
    "RegisterInstancesWithLoadBalancer",
    "RegisterTargets",
    "SetLoadBalancerPoliciesForBackendServer",
    "SetLoadBalancerPoliciesOfListener",
)


def make(
    version: str,
    controllers: Sequence[str],
    *,
    cluster_name: pulumi.Input[str],
    cluster_cidr: pulumi.Input[str],
    config_file: str,
) -> VendorManager:
    """Its image, flags and rights. `controllers`: our names. Raises WrongInput for one that it does not have."""
    for controller in controllers:
        if controller not in NAMES:
            raise inputs.WrongInput(
                "controllers", f"AWS's controller manager has no {controller!r}; allowed: {', '.join(NAMES)}"
            )
    routes = "route" in controllers
    arguments: list[pulumi.Input[str]] = [
        "--cloud-provider=aws",
        f"--cloud-config={config_file}",
        f"--controllers={','.join(NAMES[controller] for controller in controllers)}",
        pulumi.Output.concat("--cluster-name=", cluster_name),
        pulumi.Output.concat("--cluster-cidr=", cluster_cidr),
        f"--configure-cloud-routes={_flag(routes)}",
        f"--allocate-node-cidrs={_flag(routes)}",
        "--use-service-account-credentials=false",
        f"--leader-elect-resource-name={rbac.LEASE_NAME}",
    ]
    verbs: dict[tuple[str, str], dict[str, None]] = {}
    for table in (_OF_ALL, *(_OF[controller] for controller in controllers)):
        for resource, allowed in table.items():
            verbs.setdefault(resource, {}).update(dict.fromkeys(allowed))
    cluster = tuple(PolicyRule((group,), (resource,), tuple(allowed)) for (group, resource), allowed in verbs.items())
    leases = ("coordination.k8s.io",), ("leases",)
    namespaced = (
        PolicyRule(*leases, ("create",)),
        PolicyRule(*leases, ("get", "update"), (rbac.LEASE_NAME,)),
        # By which API servers it believes who reads its metrics; its cache lists and watches the one object.
        PolicyRule(("",), ("configmaps",), _READ, ("extension-apiserver-authentication",)),
    )
    return VendorManager(f"{IMAGE}:{version}", arguments, Rules(cluster, namespaced))


def statements(controllers: Sequence[str]) -> list[dict[str, Any]]:
    """IAM statements of what it calls. Its resources carry its tags, but its documentation grants them all."""
    actions = {f"ec2:{name}" for name in _EC2_OF_ALL}
    actions |= {f"ec2:{name}" for controller in controllers for name in _EC2.get(controller, ())}
    if "service" in controllers:
        actions |= {f"elasticloadbalancing:{name}" for name in _BALANCING} | {*ON_OUR_BEHALF.actions}
        actions.add("kms:DescribeKey")
    found: list[dict[str, Any]] = [{"Effect": "Allow", "Action": sorted(actions), "Resource": "*"}]
    if "service" in controllers:
        # The first load balancer of an account needs it once.
        found.append(
            {
                "Effect": "Allow",
                "Action": ["iam:CreateServiceLinkedRole"],
                "Resource": "*",
                "Condition": {"StringEquals": {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}},
            }
        )
    return found


def _flag(value: bool) -> str:
    return "true" if value else "false"
