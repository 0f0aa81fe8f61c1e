"""The target groups of network load balancers, each a pool of the model.

A target group's protocol, target type and address family never change, so the pool's name contains them. Its own
port has no effect, because every target has a port.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.attributes import DEFAULT_SUCCESS_CODES, target_group_defaults
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.tags import from_tag_list, tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.common.refused_members import named_in, send_fit
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import HealthCheck, Owner, Pool

TARGETS_A_CALL = 100
"""The most targets in one call."""

_FOR_LIFE = ("protocol", "target_type", "ip_address_type")
_NO_TARGETS = frozenset({"Target.NotRegistered", "Target.DeregistrationInProgress"})
"""The reasons of targets that AWS still lists though they are no longer registered."""
_UNFIT = frozenset({"unhealthy", "unhealthy.draining", "unavailable"})
_MOST_OUTSIDE = 5
"""The most refused addresses outside the VPC that a call drops one by one; more of them mean another pod network."""
_UNUSED_PORT = 80
"""A target group's own port while it has no target to take it from."""


class TargetGroups:
    """Idempotent calls for target groups, which are given by ARN. Safe to share between threads."""

    def __init__(self, api: Api, vpc_state: VpcState) -> None:
        self._api = api
        self._vpc_state = vpc_state

    # -------------------------------------------------------------------------------------------------------- reads

    def all(self) -> Iterator[dict[str, Any]]:
        """All target groups of the region, as AWS describes them."""
        return self._api.pages("elbv2", "DescribeTargetGroups", "TargetGroups", PageSize=400)

    def attributes(self, arn: str) -> dict[str, str]:
        """The attributes that AWS returns."""
        return from_tag_list(self._api.call("elbv2", "DescribeTargetGroupAttributes", TargetGroupArn=arn)["Attributes"])

    def health(self, arn: str) -> dict[Member, bool | None]:
        """The registered targets, each with whether it passes its health check; None: unknown or not checked."""
        answer = self._api.call("elbv2", "DescribeTargetHealth", TargetGroupArn=arn)
        return {
            _member(each["Target"]): _fit(each["TargetHealth"].get("State", ""))
            for each in answer["TargetHealthDescriptions"]
            if each["TargetHealth"].get("Reason") not in _NO_TARGETS
        }

    # ------------------------------------------------------------------------------------------------------- writes

    def create(self, name: str, pool: Pool, vpc_id: str, tags: Mapping[str, str]) -> str:
        """Create it without targets, or apply these settings to an existing one with this name and owner; returns
        its ARN."""
        params = {
            "Name": name,
            "VpcId": vpc_id,
            "Protocol": pool.attributes["protocol"],
            "Port": pool.members[0].port if pool.members else _UNUSED_PORT,
            "TargetType": pool.attributes["target_type"],
            "IpAddressType": pool.attributes.get("ip_address_type") or "ipv4",
            "Tags": tag_list(tags),
            **_check_params(pool.health_check),
        }
        try:
            # AWS returns the existing target group for an identical creation.
            made = self._api.call("elbv2", "CreateTargetGroup", idempotent=True, **params)
        except Conflict as error:
            if error_code(error) != "DuplicateTargetGroupName":
                raise
            arn = self._taken_over(name, tags)
            self.change(arn, pool, None)
            return arn
        arn = str(made["TargetGroups"][0]["TargetGroupArn"])
        defaults = target_group_defaults(str(pool.attributes["protocol"]), str(pool.attributes["target_type"]))
        self._write_attributes(arn, {k: v for k, v in settable(pool).items() if defaults.get(k) != v})
        return arn

    def change(self, arn: str, pool: Pool, before: Pool | None) -> None:
        """Apply the pool's settings where they differ from `before`; its targets stay."""
        if before is None or before.health_check != pool.health_check:
            self._api.call("elbv2", "ModifyTargetGroup", TargetGroupArn=arn, **_check_params(pool.health_check))
        known = settable(before) if before else {}
        self._write_attributes(arn, {k: v for k, v in settable(pool).items() if known.get(k) != v})

    def exchange(
        self, arn: str, added: Sequence[Member], removed: Sequence[Member] = ()
    ) -> list[Callable[[], dict[Member, CloudError]]]:
        """The calls that register and deregister these targets; all may run concurrently.

        Each returns the targets that AWS refuses, such as stopped machines, and why. Missing targets are ignored.
        """
        return [
            *(partial(self._register, arn, part) for part in batches(added, TARGETS_A_CALL)),
            *(partial(self._deregister, arn, part) for part in batches(removed, TARGETS_A_CALL)),
        ]

    def delete(self, arn: str) -> bool:
        """Delete it; True if it is gone, False if it is still in use."""
        try:
            self._api.call("elbv2", "DeleteTargetGroup", TargetGroupArn=arn)
        except NotFound:
            return True
        except Conflict as error:
            if error_code(error) != "ResourceInUse":
                raise
            return False
        return True

    # ----------------------------------------------------------------------------------------------------- helpers

    def _taken_over(self, name: str, tags: Mapping[str, str]) -> str:
        group = self._api.call("elbv2", "DescribeTargetGroups", Names=[name])["TargetGroups"][0]
        arn = str(group["TargetGroupArn"])
        answer = self._api.call("elbv2", "DescribeTags", ResourceArns=[arn])["TagDescriptions"]
        owner = Owner.of_tags(tags)
        if owner is None or not owner.owns(from_tag_list(answer[0]["Tags"])):
            raise Conflict(f"target group {name} ({arn}) exists, but does not have the tags of {owner}")
        return arn

    def _write_attributes(self, arn: str, attributes: Mapping[str, str]) -> None:
        if attributes:
            listed = tag_list(attributes)
            self._api.call("elbv2", "ModifyTargetGroupAttributes", TargetGroupArn=arn, Attributes=listed)

    def _register(self, arn: str, members: Sequence[Member]) -> dict[Member, CloudError]:
        outside = 0

        def refuses(error: CloudError) -> bool:
            # AWS names all machines; of addresses outside of the VPC (by a ValidationError) the first.
            nonlocal outside
            outside += isinstance(error, InvalidConfiguration)
            few = isinstance(error, InvalidConfiguration) and outside <= _MOST_OUTSIDE
            return error_code(error) == "InvalidTarget" or (few and bool(named_in(error, members, _names)))

        def send(members: Sequence[Member]) -> None:
            self._api.call("elbv2", "RegisterTargets", TargetGroupArn=arn, Targets=self._targets(members))

        return send_fit([members], send, refuses, _names, lambda member: member)

    def _deregister(self, arn: str, members: Sequence[Member]) -> dict[Member, CloudError]:
        try:
            self._api.call("elbv2", "DeregisterTargets", TargetGroupArn=arn, Targets=self._targets(members))
        except Conflict as error:
            if error_code(error) != "InvalidTarget":
                raise
            present = self.health(arn).keys() & {*members}
            if present:
                rest = self._targets(sorted(present))
                self._api.call("elbv2", "DeregisterTargets", TargetGroupArn=arn, Targets=rest)
        return {}

    def _targets(self, members: Iterable[Member]) -> list[dict[str, Any]]:
        """AWS requires zone "all" for addresses outside the VPC."""
        facts = self._vpc_state.facts()
        found: list[dict[str, Any]] = []
        for member in members:
            nowhere = {"AvailabilityZone": "all"} if facts.is_outside(member.address) else {}
            found.append({"Id": member.address, "Port": member.port, **nowhere})
        return found


# ------------------------------------------------------------------------------------------------- the API's objects


def settable(pool: Pool) -> dict[str, str]:
    """The attributes of the target group that a pool is, which can be changed."""
    return {key: str(value) for key, value in pool.attributes.items() if key not in _FOR_LIFE and value is not None}


def with_defaults(pool: Pool) -> dict[str, Value | None]:
    """The attributes of a new target group that was made for this pool."""
    defaults = target_group_defaults(str(pool.attributes["protocol"]), str(pool.attributes["target_type"]))
    return {**defaults, **pool.attributes}


def pool_of(name: str, group: Mapping[str, Any], attributes: Mapping[str, str], members: Iterable[Member]) -> Pool:
    """The pool that a target group, as AWS describes it, is."""
    protocol, target_type = str(group["Protocol"]), str(group["TargetType"])
    for_life = {
        "protocol": protocol,
        "target_type": target_type,
        "ip_address_type": group.get("IpAddressType") or "ipv4",
    }
    # Attributes that AWS omits have their defaults.
    all_attributes = {**target_group_defaults(protocol, target_type), **attributes, **for_life}
    return Pool(name, check_of(group), tuple(members), all_attributes)


def check_of(group: Mapping[str, Any]) -> HealthCheck:
    """The health check of a target group as AWS describes it."""
    protocol, port = str(group["HealthCheckProtocol"]), group.get("HealthCheckPort")
    by_http = protocol in ("HTTP", "HTTPS")
    return HealthCheck(
        protocol=protocol,
        port=int(port) if port and str(port).isdecimal() else None,
        path=(group.get("HealthCheckPath") or "/") if by_http else None,
        success_codes=((group.get("Matcher") or {}).get("HttpCode") or DEFAULT_SUCCESS_CODES) if by_http else None,
        interval_seconds=int(group["HealthCheckIntervalSeconds"]),
        timeout_seconds=int(group["HealthCheckTimeoutSeconds"]),
        healthy_threshold=int(group["HealthyThresholdCount"]),
        unhealthy_threshold=int(group["UnhealthyThresholdCount"]),
    )


def _check_params(check: HealthCheck) -> dict[str, Any]:
    params: dict[str, Any] = {
        "HealthCheckProtocol": check.protocol,
        "HealthCheckPort": "traffic-port" if check.port is None else str(check.port),
        "HealthCheckIntervalSeconds": check.interval_seconds,
        "HealthCheckTimeoutSeconds": check.timeout_seconds,
        "HealthyThresholdCount": check.healthy_threshold,
        "UnhealthyThresholdCount": check.unhealthy_threshold,
    }
    if check.path is not None:
        params["HealthCheckPath"] = check.path
    if check.success_codes is not None:
        params["Matcher"] = {"HttpCode": check.success_codes}
    return params


def _member(target: Mapping[str, Any]) -> Member:
    address = sys.intern(str(target["Id"]))  # Each node is a target of many groups.
    return Member(address, int(target["Port"]), address)


def _fit(state: str) -> bool | None:
    if state == "healthy":
        return True
    return False if state in _UNFIT else None


def _names(member: Member) -> tuple[str, ...]:
    return (member.address,)
