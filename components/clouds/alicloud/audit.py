"""The record of calls of Alibaba Cloud's API (ActionTrail), in a bucket that outlives the stack (seed 002 §11.3)."""

from __future__ import annotations

import pulumi
import pulumi_alicloud as alicloud

from ..common.dependencies import with_what_it_needs
from .settings import AUDIT_PREFIX, tags


def make(name: str, days: int, opts: pulumi.ResourceOptions) -> None:
    """A trail of the account's calls in all regions, each kept for `days`.

    ActionTrail writes by a role that it makes itself (AliyunServiceRoleForActionTrail). A destroy ends the trail and
    leaves its bucket.
    """
    full = f"{name}-audit"
    kept = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True))
    bucket = alicloud.oss.Bucket(
        full,
        server_side_encryption_rule={"sse_algorithm": "AES256"},
        versioning={"status": "Enabled"},
        lifecycle_rules=[
            {
                "id": "expire",
                "enabled": True,
                "prefix": "",
                "expirations": [{"days": days}],
                # What expires, and what somebody deletes or overwrites, is kept as long again.
                "noncurrent_version_expirations": [{"days": days}],
            }
        ],
        tags=tags(full),
        opts=kept,
    )
    blocked = alicloud.oss.BucketPublicAccessBlock(full, bucket=bucket.id, block_public_access=True, opts=kept)
    alicloud.actiontrail.Trail(
        full,
        trail_name=f"{AUDIT_PREFIX}{name}",
        oss_bucket_name=with_what_it_needs(bucket.id, [blocked]),
        event_rw="All",
        trail_region="All",
        opts=opts,
    )
