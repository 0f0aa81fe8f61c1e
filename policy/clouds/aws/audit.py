"""Rule: the calls of AWS's API are recorded by a trail (CloudTrail)."""

from __future__ import annotations

from collections.abc import Iterator

from policy.audit import audited
from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem

_CLUSTERS = ("aws:eks/cluster:Cluster", "aws:ec2/launchTemplate:LaunchTemplate")
_TRAIL = "aws:cloudtrail/trail:Trail"


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """A stack with a cluster, but without a trail; trails that are off or record only a part."""
    return audited(stack, "AWS", "aws.auditDays", _CLUSTERS, _TRAIL, _problem)


def _problem(trail: Subject) -> str | None:
    if dig(trail.props, "enableLogging") is False:
        return "the trail is switched off"
    return "the trail records one region only" if dig(trail.props, "isMultiRegionTrail") is not True else None


CALLS_ARE_AUDITED = StackRule(
    "aws-cluster-audit-cloud-calls",
    problems,
    why=(
        "Calls of AWS's API must be recorded. Without a trail nobody can tell afterwards who deleted a load "
        "balancer, or what a stolen credential did; AWS itself shows the calls of the last 90 days only."
    ),
    level=ADVISORY,
    reports_good="stacks whose organization records the calls in an event data store",
    title="Calls of AWS's API are audited",
    severity=MEDIUM,
    lines=["11.3.6"],
    settings={
        "trail": setting("string", "The trail of the account or organization, where another stack manages it.", ""),
    },
    judges=(
        "A stack that makes EKS clusters or launch templates has a trail that is on and records all regions, or "
        "setting `trail` names the one that is managed elsewhere."
    ),
    unseen=(
        "Whether the trail that `trail` names exists; who may read or delete what it has recorded; and selectors that "
        "leave out a part of the calls."
    ),
    tags=["aws", "audit"],
    remedy=(
        "Set aws.auditDays in the stack's config, which makes a trail with its bucket, or make a trail with "
        "isMultiRegionTrail."
    ),
    url="https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-create-and-update-a-trail.html",
)
