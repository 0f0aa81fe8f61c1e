"""What AWS bills by the hour, and where its policies are."""

from __future__ import annotations

from typing import Final

from policy.clouds.interface import Billed, Meaning

MEANING: Final = Meaning(
    billed={
        "aws:ec2/eip:Eip": Billed("address"),
        "aws:ec2/instance:Instance": Billed("node", ("instanceType",)),
        "aws:ec2/natGateway:NatGateway": Billed("NAT gateway"),
        # The machine's type is its launch template's.
        "aws:autoscaling/group:Group": Billed("node", count=("desiredCapacity",)),
        "aws:eks/cluster:Cluster": Billed("control plane", ("version",)),
        "aws:eks/nodeGroup:NodeGroup": Billed("node", ("instanceTypes", 0), ("scalingConfig", "desiredSize")),
        "aws:lb/loadBalancer:LoadBalancer": Billed("load balancer", ("loadBalancerType",)),
    },
    documents={
        "aws:iam/policy:Policy": ("policy",),
        "aws:iam/rolePolicy:RolePolicy": ("policy",),
        "aws:iam/userPolicy:UserPolicy": ("policy",),
        "aws:iam/groupPolicy:GroupPolicy": ("policy",),
    },
    attached={
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ("policyArn", "role"),
        "aws:iam/userPolicyAttachment:UserPolicyAttachment": ("policyArn", "user"),
    },
)
