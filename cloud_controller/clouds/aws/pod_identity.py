"""How the CCM's pods assume an IAM role: IRSA, by a token of their ServiceAccount."""

from __future__ import annotations

from cloud_controller.clouds.descriptor import PodIdentity, Text

AUDIENCE = "sts.amazonaws.com"


def pod_identity(role: Text, token_file: str) -> PodIdentity:
    """The identity for the role with this ARN."""
    # EKS's webhook injects the same into pods of an annotated ServiceAccount; written here, it needs no webhook.
    return PodIdentity(
        audience=AUDIENCE,
        annotations={"eks.amazonaws.com/role-arn": role},
        environment={"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": token_file},
    )
