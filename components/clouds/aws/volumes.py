"""Volumes on EKS: the EBS CSI driver, an add-on that EKS neither installs by itself nor gives any rights.

Its rights are the narrowest that AWS keeps for it (AWS managed policies, AmazonEBSCSIDriverEKSClusterScopedPolicy): on
volumes and snapshots whose tag `ebs.csi.aws.com/cluster-name` is the role's tag `eks-cluster-name`, and on machines of
the cluster. The add-on tags what it makes from version 1.58 on (kubernetes-sigs/aws-ebs-csi-driver, issue 2918).
"""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_aws as aws

from ..common.dependencies import with_what_it_needs
from . import iam
from .settings import tags

POLICY: Final = "AmazonEBSCSIDriverEKSClusterScopedPolicy"
SERVICE_ACCOUNT: Final = "system:serviceaccount:kube-system:ebs-csi-controller-sa"
MACHINE_TAG: Final = "ebs.csi.aws.com/cluster-name"
"""By it the policy lets the driver attach volumes to a machine; those of managed node groups have EKS's own tag."""


def make(
    name: str, cluster: aws.eks.Cluster, issuer: aws.iam.OpenIdConnectProvider, opts: pulumi.ResourceOptions
) -> None:
    """The driver, in the version that is EKS's default for the cluster's Kubernetes.

    It is made as soon as the cluster is there: it becomes ACTIVE when the first machines have joined.
    """
    full = f"{name}-ebs-csi-driver"
    role = iam.service_account_role(full, issuer, SERVICE_ACCOUNT, opts, **{"eks-cluster-name": name})
    attached = iam.attach(full, role, POLICY, opts)
    aws.eks.Addon(
        full,
        cluster_name=cluster.name,
        addon_name="aws-ebs-csi-driver",
        service_account_role_arn=with_what_it_needs(role.arn, [attached]),
        tags=tags(full),
        opts=opts,
    )
