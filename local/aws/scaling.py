"""Replaces parts of moto's scaling groups that differ from AWS's documentation.

- A group is spread over its subnets (moto: all instances of a step in the first).
- A template may also have user data in its second version (moto: raises an error).
- An instance refresh replaces the existing machines, one after another (moto has none).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from typing import Any
from uuid import uuid4

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.utils import parse_user_data


class _RefreshInProgress(AutoscalingClientError):
    code = "InstanceRefreshInProgress"
    message = "An instance refresh of this group is in progress already"


def to_replace(backend: AutoScalingBackend, not_ready: Container[str]) -> Iterator[str]:
    """The machines to replace now: the next one of each group in a refresh whose machines are all ready."""
    for group in backend.autoscaling_groups.values():
        outdated = _outdated(group)
        if outdated and not any(state.instance.id in not_ready for state in group.instance_states):
            yield outdated[0]


_grow = FakeAutoScalingGroup.replace_autoscaling_group_instances


def _balanced(group: FakeAutoScalingGroup, count_needed: int, propagated_tags: dict[str, str]) -> None:
    all_subnets = group.vpc_zone_identifier
    if not all_subnets:
        _grow(group, count_needed, propagated_tags)
        return
    subnets = all_subnets.split(",")
    try:
        for _ in range(count_needed):
            there = Counter(state.instance.subnet_id for state in group.active_instances())
            group.vpc_zone_identifier = min(subnets, key=lambda subnet: there[subnet])
            _grow(group, 1, dict(propagated_tags))
    finally:
        group.vpc_zone_identifier = all_subnets


_create_version = LaunchTemplate.create_version


def _with_user_data(template: LaunchTemplate, data: dict[str, Any], description: str) -> Any:
    # Those of the first version are decoded already.
    given = data.get("UserData")
    read = {"UserData": parse_user_data(given)} if isinstance(given, str) else {}
    return _create_version(template, {**data, **read}, description)


def _start_instance_refresh(response: AutoScalingResponse) -> ActionResult:
    name = response._get_param("AutoScalingGroupName")
    groups = response.autoscaling_backend.describe_auto_scaling_groups([name])
    if not groups:
        raise ValidationError(f"AutoScalingGroup name not found - {name}")
    group: Any = groups[0]
    if _outdated(group):
        raise _RefreshInProgress
    group.outdated = [state.instance.id for state in group.instance_states]
    return ActionResult({"InstanceRefreshId": str(uuid4())})


def _outdated(group: Any) -> list[str]:
    """The machines that a refresh has still to replace. Stored on the group."""
    there = {state.instance.id for state in group.instance_states}
    return [machine for machine in getattr(group, "outdated", []) if machine in there]


AS_AWS: Mapping[tuple[type, str], Any] = {
    (FakeAutoScalingGroup, "replace_autoscaling_group_instances"): _balanced,
    (LaunchTemplate, "create_version"): _with_user_data,
    (AutoScalingResponse, "start_instance_refresh"): _start_instance_refresh,
}
"""The replacement of each method, or the added method."""
