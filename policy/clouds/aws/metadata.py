"""Rule: AWS's metadata service requires sessions, and a cloud controller manager that needs it reaches it."""

from __future__ import annotations

from policy.metadata import Metadata, rule

CCM_REACHES_METADATA = rule(
    "aws-ccm-reach-metadata",
    Metadata(
        cloud="aws",
        address="169.254.169.254",
        machines={
            "aws:ec2/instance:Instance": ("metadataOptions",),
            "aws:ec2/launchTemplate:LaunchTemplate": ("metadataOptions",),
        },
        counts_hops=True,
        credentials=frozenset(
            {
                "AWS_ACCESS_KEY_ID",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_ROLE_ARN",
                "AWS_SHARED_CREDENTIALS_FILE",
                "eks.amazonaws.com/role-arn",
            }
        ),
    ),
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html",
)
