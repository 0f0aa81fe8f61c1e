"""Who may do what in Alibaba Cloud: roles of the CCM, of doctor and of machines, each with the least rights.

The CCM's policy is made of the operations that its controllers really call (`permissions.statements`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_alicloud as alicloud

from cloud_controller import manifests
from cloud_controller.clouds.alicloud.permissions import statements
from cloud_controller.clouds.alicloud.pod_identity import AUDIENCE

from ..common.dependencies import with_what_it_needs
from ..common.doctor import ROLE_OF_DOCTOR
from .settings import tags

Statement = Mapping[str, Any]


def allow(actions: Sequence[str], resources: Sequence[str]) -> Statement:
    """A statement of a policy."""
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def role_of_machines(name: str, allowed: Collection[Statement], opts: pulumi.ResourceOptions) -> pulumi.Output[str]:
    """The name of a role that ECS instances take; what uses it is made after its policy."""
    trust = {"Action": "sts:AssumeRole", "Effect": "Allow", "Principal": {"Service": ["ecs.aliyuncs.com"]}}
    return _role(name, document([trust]), allowed, opts)[1]


@dataclass(frozen=True)
class OidcProvider:
    """A cluster's OIDC provider in RAM; `issuer`: the URL of the issuer of its tokens."""

    arn: pulumi.Input[str]
    issuer: pulumi.Input[str]


def role_of_account(
    cluster_name: str,
    provider: OidcProvider,
    account: str,
    region: str,
    controllers: Collection[str],
    opts: pulumi.ResourceOptions,
    *,
    reads: bool = False,
) -> pulumi.Output[str]:
    """The ARN of a role that only the CCM's ServiceAccount `account` may take (RRSA: RAM roles for service accounts).

    It may do what these controllers call. `reads`: only what they read, and only doctor's ServiceAccount may take it.
    """
    subject = f"system:serviceaccount:{manifests.NAMESPACE}:{account}"

    def trust(known: list[str]) -> str:
        believed = {"oidc:iss": known[1], "oidc:aud": AUDIENCE, "oidc:sub": subject}
        statement = {
            "Action": "sts:AssumeRole",
            "Effect": "Allow",
            "Principal": {"Federated": [known[0]]},
            "Condition": {"StringEquals": believed},
        }
        return document([statement])

    name = f"{cluster_name}-{ROLE_OF_DOCTOR if reads else manifests.NAME}"
    trusted = pulumi.Output.all(provider.arn, provider.issuer).apply(trust)
    return _role(name, trusted, statements(region, controllers, reads=reads), opts)[0]


def _role(
    name: str,
    trust: pulumi.Input[str],
    allowed: Collection[Statement],
    opts: pulumi.ResourceOptions,
) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
    """The ARN and the name of a role with these rights."""
    role = alicloud.ram.Role(name, role_name=name, assume_role_policy_document=trust, tags=tags(name), opts=opts)
    if not allowed:
        return role.arn, role.role_name
    policy = alicloud.ram.Policy(
        name,
        policy_name=name,
        policy_document=document(allowed),
        # RAM keeps five versions of a policy, and refuses a sixth.
        rotate_strategy="DeleteOldestNonDefaultVersionWhenLimitExceeded",
        tags=tags(name),
        opts=opts,
    )
    attached = alicloud.ram.RolePolicyAttachment(
        name, role_name=role.role_name, policy_name=policy.policy_name, policy_type="Custom", opts=opts
    )
    return with_what_it_needs(role.arn, [attached]), with_what_it_needs(role.role_name, [attached])


def document(statements: Collection[Statement]) -> str:
    """A RAM policy document as text; equal documents are equal texts."""
    return json.dumps({"Version": "1", "Statement": [dict(each) for each in statements]}, sort_keys=True)
