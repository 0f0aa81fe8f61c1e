"""Alibaba Cloud's resources of clusters, machines and networks."""

from __future__ import annotations

from typing import Final

from policy.clouds.interface import Infrastructure

INFRASTRUCTURE: Final = Infrastructure(
    control_planes={"alicloud:cs/managedKubernetes:ManagedKubernetes": "version"},
    machines={
        "alicloud:cs/nodePool:NodePool": (("scalingConfig", "maxSize"), ("desiredSize",)),
        "alicloud:ecs/instance:Instance": (),
        "alicloud:ess/scalingGroup:ScalingGroup": (("maxSize",),),
    },
    networks={
        "alicloud:vpc/ipv4CidrBlock:Ipv4CidrBlock": ("secondaryCidrBlock",),
        "alicloud:vpc/network:Network": ("cidrBlock",),
        "alicloud:vpc/switch:Switch": ("cidrBlock",),
    },
    services={"alicloud:cs/managedKubernetes:ManagedKubernetes": ("serviceCidr",)},
)
