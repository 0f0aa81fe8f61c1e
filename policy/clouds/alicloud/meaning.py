"""What Alibaba Cloud bills by the hour, and where its policies are."""

from __future__ import annotations

from typing import Final

from policy.clouds.interface import Billed, Meaning

MEANING: Final = Meaning(
    billed={
        "alicloud:cs/managedKubernetes:ManagedKubernetes": Billed("control plane", ("clusterSpec",)),
        "alicloud:cs/nodePool:NodePool": Billed("node", ("instanceTypes", 0), ("desiredSize",)),
        "alicloud:ecs/eipAddress:EipAddress": Billed("address"),
        "alicloud:ecs/instance:Instance": Billed("node", ("instanceType",)),
        "alicloud:nlb/loadBalancer:LoadBalancer": Billed("load balancer", ("addressType",)),
        "alicloud:slb/applicationLoadBalancer:ApplicationLoadBalancer": Billed("load balancer", ("loadBalancerSpec",)),
        "alicloud:vpc/natGateway:NatGateway": Billed("NAT gateway", ("natType",)),
    },
    documents={"alicloud:ram/policy:Policy": ("policyDocument", "document")},
    attached={
        "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment": ("policyName", "roleName"),
        "alicloud:ram/userPolicyAttachment:UserPolicyAttachment": ("policyName", "userName"),
    },
)
