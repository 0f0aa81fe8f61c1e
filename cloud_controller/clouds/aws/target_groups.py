"""The target groups of network load balancers: each is a pool of the model. Calls, and what they are made of.

Protocol, target type and address family are a target group's for life, so a pool's name holds them; its own port means
nothing, for every target has one of its own.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.attributes import DEFAULT_SUCCESS_CODES, target_group_defaults
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.tags import from_tag_list, tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import HealthCheck, Owner, Pool

_log = logging.getLogger(__name__)

TARGETS_A_CALL = 100
"""Targets that AWS takes at once."""

_FOR_LIFE = ("protocol", "target_type", "ip_address_type")
_NO_TARGETS = frozenset({"Target.NotRegistered", "Target.DeregistrationInProgress"})
"""Why AWS still tells of what is no target any more."""
_UNFIT = frozenset({"unhealthy", "unhealthy.draining", "unavailable"})
_MOST_OUTSIDE = 5
"""Addresses outside of the VPC that a call goes without, one by one; more, and the pods have another network."""
_UNUSED_PORT = 80
"""A target group's own port, where there is no target yet to take it from."""


class TargetGroups:
    """The calls, each idempotent; safe to share between threads. Groups are named by ARN."""

    def __init__(self, api: Api, vpc_state: VpcState) -> None:
        self._api = api
        self._vpc_state = vpc_state

    # -------------------------------------------------------------------------------------------------------- reads

    def all(self) -> Iterator[dict[str, Any]]:
        """All of the region, as AWS describes them."""
        return self._api.pages("elbv2", "DescribeTargetGroups", "TargetGroups", PageSize=400)

    def attributes(self, arn: str) -> dict[str, str]:
        """Those that AWS tells."""
        return from_tag_list(self._api.call("elbv2", "DescribeTargetGroupAttributes", TargetGroupArn=arn)["Attributes"])

    def health(self, arn: str) -> dict[Member, bool | None]:
        """The registered targets, each with whether it passes its check; None: nobody knows yet, or needs to."""
        answer = self._api.call("elbv2", "DescribeTargetHealth", TargetGroupArn=arn)
        return {
            _member(each["Target"]): _fit(each["TargetHealth"].get("State", ""))
            for each in answer["TargetHealthDescriptions"]
            if each["TargetHealth"].get("Reason") not in _NO_TARGETS
        }

    # ------------------------------------------------------------------------------------------------------- writes

    def create(self, name: str, pool: Pool, vpc_id: str, tags: Mapping[str, str]) -> str:
        """Make it without targets, or take the one of this name and owner and give it these settings; its ARN."""
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
            # AWS answers the same creation with the same target group.
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
        """Give it the settings of the pool, as far as they are not those of `before`; its targets stay."""
        if before is None or before.health_check != pool.health_check:
            self._api.call("elbv2", "ModifyTargetGroup", TargetGroupArn=arn, **_check_params(pool.health_check))
        known = settable(before) if before else {}
        self._write_attributes(arn, {k: v for k, v in settable(pool).items() if known.get(k) != v})

    def exchange(
        self, arn: str, added: Sequence[Member], removed: Sequence[Member] = ()
    ) -> list[Callable[[], list[Member]]]:
        """The calls that make these its targets, and those not any more; none need wait for another.

        Each answers those that AWS does not take, as it takes no stopped machine; the log says why. Targets that are
        gone already do not matter.
        """
        return [
            *(partial(self._register, arn, part) for part in _chunks(added)),
            *(partial(self._deregister, arn, part) for part in _chunks(removed)),
        ]

    def delete(self, arn: str) -> bool:
        """Delete it, or learn that it is gone already; False: it is still in use."""
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

    def _register(self, arn: str, members: Sequence[Member]) -> list[Member]:
        refused: list[Member] = []
        while members:
            try:
                self._api.call("elbv2", "RegisterTargets", TargetGroupArn=arn, Targets=self._targets(members))
            except (Conflict, InvalidConfiguration) as error:
                # One that it does not take, and AWS takes none of the call; it names them, or (addresses outside of the
                # VPC, by a ValidationError) the first of them.
                named = _named(error, members)
                if not named or (isinstance(error, InvalidConfiguration) and len(refused) >= _MOST_OUTSIDE):
                    raise
                _log.warning("targets not registered target_group=%s: %s", arn, error)
                refused += named
                members = [member for member in members if member not in named]
            else:
                break
        return refused

    def _deregister(self, arn: str, members: Sequence[Member]) -> list[Member]:
        try:
            self._api.call("elbv2", "DeregisterTargets", TargetGroupArn=arn, Targets=self._targets(members))
        except Conflict as error:
            if error_code(error) != "InvalidTarget":
                raise
            present = self.health(arn).keys() & {*members}
            if present:
                rest = self._targets(sorted(present))
                self._api.call("elbv2", "DeregisterTargets", TargetGroupArn=arn, Targets=rest)
        return []

    def _targets(self, members: Iterable[Member]) -> list[dict[str, Any]]:
        """Of an address outside of the VPC, AWS wants to be told that it is in no zone."""
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
    # Where AWS is silent, it is the default.
    all_attributes = {**target_group_defaults(protocol, target_type), **attributes, **for_life}
    return Pool(name, check_of(group), tuple(members), all_attributes)


def check_of(group: Mapping[str, Any]) -> HealthCheck:
    """The health check of a target group as AWS describes it."""
    protocol, port = str(group["HealthCheckProtocol"]), group.get("HealthCheckPort")
    by_http = protocol in ("HTTP", "HTTPS")
    return HealthCheck(
        protocol=protocol,
        port=int(port) if port and str(port).isdigit() else None,
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


def _chunks(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    return (members[start : start + TARGETS_A_CALL] for start in range(0, len(members), TARGETS_A_CALL))


def _member(target: Mapping[str, Any]) -> Member:
    address = sys.intern(str(target["Id"]))  # Each node is a target of many groups.
    return Member(address, int(target["Port"]), address)


def _fit(state: str) -> bool | None:
    if state == "healthy":
        return True
    return False if state in _UNFIT else None


def _named(error: CloudError, members: Iterable[Member]) -> list[Member]:
    words = {word.rstrip(".:") for word in re.findall(r"[0-9A-Za-z:.-]+", str(error))}
    return [member for member in members if member.address in words]
