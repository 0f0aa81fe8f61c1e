"""The pods' network on EKS: the VPC CNI, which enforces NetworkPolicies only if its configuration says so."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from .settings import tags


def make(name: str, cluster: aws.eks.Cluster, opts: pulumi.ResourceOptions) -> None:
    """Take over the CNI that EKS installs, as an add-on (EKS user guide, "Restrict Pod network traffic")."""
    full = f"{name}-vpc-cni"
    aws.eks.Addon(
        full,
        cluster_name=cluster.name,
        addon_name="vpc-cni",
        configuration_values=json.dumps({"enableNetworkPolicy": "true"}),
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="PRESERVE",
        # Nodes need it until the end.
        preserve=True,
        tags=tags(full),
        opts=opts,
    )
