"""What the CCM's manifests have on AWS besides: a role that its ServiceAccount takes (IRSA)."""

from __future__ import annotations

from cloud_controller.manifests import TOKEN_FILE, CloudParts, PodIdentity, Text

AUDIENCE = "sts.amazonaws.com"


def _identity(role: Text) -> PodIdentity:
    # EKS's webhook would give pods of an annotated ServiceAccount the same; written here, it needs none.
    return PodIdentity(
        audience=AUDIENCE,
        annotations={"eks.amazonaws.com/role-arn": role},
        environment={"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": TOKEN_FILE},
    )


PARTS = CloudParts(not_offered={"volume": "AWS's volumes are the EBS CSI driver's"}, identity=_identity)
