"""The record of calls of AWS's API (CloudTrail), in a bucket that outlives the stack (seed 002 §11.3)."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws

from ..common.dependencies import with_what_it_needs
from . import iam
from .settings import tags


def make(name: str, of_cluster: pulumi.Output[str], days: int, opts: pulumi.ResourceOptions) -> None:
    """A trail of the account's calls in all regions, each kept for `days`; `of_cluster`: an ARN of the cluster's.

    A destroy ends the trail and leaves its bucket.
    """
    full = f"{name}-audit"
    kept = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True))
    bucket = aws.s3.Bucket(full, tags=tags(full), opts=kept)
    blocked = aws.s3.BucketPublicAccessBlock(
        full,
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=kept,
    )
    aws.s3.BucketServerSideEncryptionConfiguration(
        full,
        bucket=bucket.id,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
        opts=kept,
    )
    versioned = aws.s3.BucketVersioning(
        full, bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=kept
    )
    aws.s3.BucketLifecycleConfiguration(
        full,
        bucket=bucket.id,
        rules=[
            {
                "id": "expire",
                "status": "Enabled",
                "filter": {},
                "expiration": {"days": days},
                # What expires, and what somebody deletes or overwrites, is kept as long again.
                "noncurrent_version_expiration": {"noncurrent_days": days},
            }
        ],
        opts=pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(depends_on=[versioned])),
    )
    facts = pulumi.Output.all(bucket.arn, of_cluster)
    policy = aws.s3.BucketPolicy(
        full,
        bucket=bucket.id,
        policy=facts.apply(lambda known: iam.document(_statements(full, known[0], known[1]))),
        # AWS refuses two changes of a bucket's access at the same time.
        opts=pulumi.ResourceOptions.merge(kept, pulumi.ResourceOptions(depends_on=[blocked])),
    )
    aws.cloudtrail.Trail(
        full,
        name=full,
        # AWS makes no trail whose bucket it may not write to.
        s3_bucket_name=with_what_it_needs(bucket.id, [policy]),
        is_multi_region_trail=True,
        include_global_service_events=True,
        enable_log_file_validation=True,
        tags=tags(full),
        opts=opts,
    )


def _statements(trail: str, bucket: str, of_cluster: str) -> list[dict[str, Any]]:
    """Only this trail writes, and nothing goes unencrypted (CloudTrail user guide, "S3 bucket policy")."""
    _, partition, _, region, account, _ = of_cluster.split(":", 5)
    source = {"aws:SourceArn": f"arn:{partition}:cloudtrail:{region}:{account}:trail/{trail}"}
    service = {"Service": "cloudtrail.amazonaws.com"}
    return [
        {
            "Effect": "Allow",
            "Principal": service,
            "Action": "s3:GetBucketAcl",
            "Resource": bucket,
            "Condition": {"StringEquals": source},
        },
        {
            "Effect": "Allow",
            "Principal": service,
            "Action": "s3:PutObject",
            "Resource": f"{bucket}/AWSLogs/{account}/*",
            "Condition": {"StringEquals": {**source, "s3:x-amz-acl": "bucket-owner-full-control"}},
        },
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [bucket, f"{bucket}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    ]
