"""Rule: the calls of Alibaba Cloud's API are recorded by a trail (ActionTrail)."""

from __future__ import annotations

from collections.abc import Iterator

from policy.audit import audited
from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem

_CLUSTERS = ("alicloud:cs/managedKubernetes:ManagedKubernetes", "alicloud:ecs/instance:Instance")
_TRAIL = "alicloud:actiontrail/trail:Trail"


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """A stack with a cluster, but without a trail; trails that are off or record only a part."""
    return audited(stack, "Alibaba Cloud", "alicloud.auditDays", _CLUSTERS, _TRAIL, _problem)


def _problem(trail: Subject) -> str | None:
    if dig(trail.props, "status") == "Disable":
        return "the trail is switched off"
    return "the trail does not record every call (eventRw is not All)" if dig(trail.props, "eventRw") != "All" else None


CALLS_ARE_AUDITED = StackRule(
    "alicloud-cluster-audit-cloud-calls",
    problems,
    why=(
        "Calls of Alibaba Cloud's API must be recorded. Without a trail nobody can tell afterwards who deleted a load "
        "balancer, or what a stolen credential did; Alibaba Cloud itself shows the calls of the last 90 days only."
    ),
    level=ADVISORY,
    title="Calls of Alibaba Cloud's API are audited",
    severity=MEDIUM,
    lines=["11.3.6"],
    settings={
        "trail": setting("string", "The trail of the account or organization, where another stack manages it.", ""),
    },
    judges=(
        "A stack that makes ACK clusters or ECS instances has a trail that is on and records calls of every kind, or "
        "setting `trail` names the one that is managed elsewhere."
    ),
    unseen=(
        "Whether the trail that `trail` names exists; who may read or delete what it has recorded; and selectors that "
        "leave out a part of the calls."
    ),
    tags=["alicloud", "audit"],
    remedy=(
        "Set alicloud.auditDays in the stack's config, which makes a trail with its bucket, or make a trail with "
        "eventRw: All."
    ),
    url="https://www.alibabacloud.com/help/en/actiontrail/user-guide/create-a-single-account-trail",
)
