"""AWS's resources of clusters, machines and networks."""

from __future__ import annotations

from typing import Final

from policy.clouds.interface import Infrastructure

INFRASTRUCTURE: Final = Infrastructure(
    control_planes={"aws:eks/cluster:Cluster": "version"},
    machines={
        "aws:autoscaling/group:Group": (("maxSize",),),
        "aws:ec2/instance:Instance": (),
        "aws:eks/nodeGroup:NodeGroup": (("scalingConfig", "maxSize"),),
    },
    node_versions={"aws:eks/nodeGroup:NodeGroup": "version"},
    networks={
        "aws:ec2/subnet:Subnet": ("cidrBlock",),
        "aws:ec2/vpc:Vpc": ("cidrBlock",),
        "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": ("cidrBlock",),
    },
    services={"aws:eks/cluster:Cluster": ("kubernetesNetworkConfig", "serviceIpv4Cidr")},
)
