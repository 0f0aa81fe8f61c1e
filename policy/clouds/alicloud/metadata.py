"""Rule: Alibaba Cloud's metadata service requires sessions, and a cloud controller manager that needs it reaches it."""

from __future__ import annotations

from policy.metadata import Metadata, rule

CCM_REACHES_METADATA = rule(
    "alicloud-ccm-reach-metadata",
    Metadata(
        cloud="alicloud",
        address="100.100.100.200",
        machines={
            "alicloud:cs/nodePool:NodePool": ("instanceMetadataOptions",),
            "alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate": (),
            "alicloud:ecs/instance:Instance": (),
        },
        # ECS has the option and does not enforce it.
        counts_hops=False,
        credentials=frozenset(
            {
                "ACCESS_KEY_ID",
                "ALIBABA_CLOUD_ACCESS_KEY_ID",
                "ALIBABA_CLOUD_ROLE_ARN",
                "pod-identity.alibabacloud.com/role-name",
            }
        ),
    ),
    "https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata",
)
