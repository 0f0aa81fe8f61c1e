"""How the CCM's pods assume a RAM role: RRSA, by a token of their ServiceAccount."""

from __future__ import annotations

from cloud_controller.clouds.descriptor import PodIdentity, Text

AUDIENCE = "sts.aliyuncs.com"
"""The audience that ACK gives the tokens, and the one of an identity provider in RAM."""


def pod_identity(role: Text, token_file: str) -> PodIdentity:
    """The identity for the role with this ARN. The pod's environment must also name the identity provider."""
    return PodIdentity(
        audience=AUDIENCE,
        annotations={"pod-identity.alibabacloud.com/role-arn": role},
        environment={"ALIBABA_CLOUD_ROLE_ARN": role, "ALIBABA_CLOUD_OIDC_TOKEN_FILE": token_file},
    )
