"""Who may do what in AWS: roles of the control plane, of nodes, of the CCM and of doctor, each with the least rights.

The CCM's policy is made of the operations that its controllers really call (`cloud_controller.clouds.aws.permissions`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from cloud_controller import manifests
from cloud_controller.clouds.aws.permissions import statements
from cloud_controller.clouds.aws.pod_identity import AUDIENCE

from ... import inputs
from ..common.dependencies import with_what_it_needs
from ..common.doctor import ROLE_OF_DOCTOR
from . import vendor_manager
from .settings import AwsClusterArgs, AwsIdentityArgs, tags

MANAGED = "arn:aws:iam::aws:policy/"
"""Before the name of a policy that AWS keeps itself."""
EKS_CONTROL_PLANE = ("AmazonEKSClusterPolicy",)
EKS_NODE = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
NODE = ("AmazonEC2ContainerRegistryPullOnly",)


def role_of_service(
    name: str, service: str, managed: Sequence[str], opts: pulumi.ResourceOptions
) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
    """A role that an AWS service takes (`ec2`, `eks`), with policies that AWS keeps."""
    trust = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = aws.iam.Role(name, assume_role_policy=document([trust]), tags=tags(name), opts=opts)
    return role, [attach(name, role, policy, opts) for policy in managed]


def attach(name: str, role: aws.iam.Role, managed: str, opts: pulumi.ResourceOptions) -> aws.iam.RolePolicyAttachment:
    """Give the role `name` a policy that AWS keeps."""
    return aws.iam.RolePolicyAttachment(
        f"{name}-{managed}", role=role.name, policy_arn=f"{MANAGED}{managed}", opts=opts
    )


def instance_profile(name: str, role: aws.iam.Role, opts: pulumi.ResourceOptions) -> aws.iam.InstanceProfile:
    """What makes an instance's role of a role."""
    return aws.iam.InstanceProfile(name, role=role.name, tags=tags(name), opts=opts)


def ccm_policy(
    name: str,
    role: aws.iam.Role,
    settings: AwsClusterArgs | AwsIdentityArgs,
    cluster: str,
    opts: pulumi.ResourceOptions,
    *,
    reads: bool = False,
    doctor: bool = False,
) -> pulumi.Resource:
    """Give a role what the CCM's controllers call, or only what they read; returned is what a pod needs besides the
    role itself. `doctor`: `cloud-controller doctor` takes the CCM's role. Raises WrongInput for a doctor of AWS's CCM.
    """
    controllers = settings.get("controllers", ())
    if settings.get("ccm") == "vendor":
        if reads:
            path = "identity.ccm" if "oidc_provider" in settings else "settings.ccm"
            raise inputs.WrongInput(path, "'vendor'; allowed with doctor: 'ours', the only CCM that doctor examines")
        granted = vendor_manager.statements(controllers)
    else:
        granted = statements(controllers, cluster, reads=reads, doctor=doctor)
    policy = aws.iam.Policy(
        name,
        description=f"What the cloud controller manager's controllers {'read' if reads else 'call'}",
        policy=document(granted),
        tags=tags(name),
        opts=opts,
    )
    return aws.iam.RolePolicyAttachment(name, role=role.name, policy_arn=policy.arn, opts=opts)


def existing_cluster_role(
    identity: AwsIdentityArgs, account: str, opts: pulumi.ResourceOptions, *, reads: bool
) -> pulumi.Output[str]:
    """`role_of_account` in a cluster that is there already."""
    arn = identity["oidc_provider"]
    provider = OidcProvider(arn, arn.partition(":oidc-provider/")[2])
    name, cluster = identity["cluster_name"], identity["cluster_id"]
    return role_of_account(name, provider, account, identity, cluster, opts, reads=reads)


def role_of_account(
    cluster_name: str,
    provider: OidcProvider | aws.iam.OpenIdConnectProvider,
    account: str,
    settings: AwsClusterArgs | AwsIdentityArgs,
    cluster: str,
    opts: pulumi.ResourceOptions,
    *,
    reads: bool = False,
) -> pulumi.Output[str]:
    """The ARN of a role that only the CCM's ServiceAccount `account` may assume; `reads`: only doctor's may."""
    full = f"{cluster_name}-{ROLE_OF_DOCTOR if reads else manifests.NAME}"
    role = service_account_role(full, provider, f"system:serviceaccount:{manifests.NAMESPACE}:{account}", opts)
    return with_what_it_needs(role.arn, [ccm_policy(full, role, settings, cluster, opts, reads=reads)])


@dataclass(frozen=True)
class OidcProvider:
    """An OIDC provider in IAM; `url`: that of the cluster's issuer."""

    arn: pulumi.Input[str]
    url: pulumi.Input[str]


def service_account_role(
    name: str,
    provider: OidcProvider | aws.iam.OpenIdConnectProvider,
    account: str,
    opts: pulumi.ResourceOptions,
    **marks: str,
) -> aws.iam.Role:
    """A role that only this ServiceAccount may assume (IRSA: IAM roles for service accounts); `marks`: further tags."""

    def trust(values: list[str]) -> str:
        arn, url = values
        issuer = url.removeprefix("https://")
        return document(
            [
                {
                    "Effect": "Allow",
                    "Principal": {"Federated": arn},
                    "Action": "sts:AssumeRoleWithWebIdentity",
                    "Condition": {"StringEquals": {f"{issuer}:sub": account, f"{issuer}:aud": AUDIENCE}},
                }
            ]
        )

    policy = pulumi.Output.all(provider.arn, provider.url).apply(trust)
    return aws.iam.Role(name, assume_role_policy=policy, tags=tags(name, **marks), opts=opts)


def document(statements: Sequence[Mapping[str, Any]]) -> str:
    """An IAM policy document as text; equal documents are equal texts."""
    return json.dumps({"Version": "2012-10-17", "Statement": [dict(each) for each in statements]}, sort_keys=True)
