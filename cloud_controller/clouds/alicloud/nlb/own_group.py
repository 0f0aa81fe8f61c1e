"""The security group that admits the clients of one NLB, and no others.

A load balancer has one only if its Service limits its clients. Nobody else's security group is ever changed: a group is
the load balancer's only if it has its tag.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.cloud import Conflict, NotFound, Postponed
from cloud_controller.clouds.alicloud.nlb.api import Api
from cloud_controller.clouds.alicloud.nlb.memory import LIFETIME
from cloud_controller.clouds.alicloud.nlb.names import LOAD_BALANCER_TAG, part_name
from cloud_controller.clouds.alicloud.nlb.wire import Params, View
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.load_balancers.model import Owner

_FIRST, _LAST = 1, 100
"""Priorities: of the rules that admit clients, and of those that refuse everybody else."""
_MOST = 100
"""Rules in one call."""

Rule = tuple[str, str, int]
"""Policy, source and priority; rules are for every protocol and port."""


@dataclass(frozen=True, slots=True)
class OwnGroup:
    """A load balancer's own group and its rules, each with its ID if the API has shown it."""

    id: str
    rules: Mapping[Rule, str]

    def source_ranges(self, *, dual_stack: bool) -> tuple[str, ...]:
        """The clients that it admits; one more word if it does not refuse everybody else."""
        admitted = sorted(source for policy, source, _ in self.rules if policy == "accept")
        closed = self.rules.keys() >= _rules((), dual_stack=dual_stack)
        return tuple(admitted) if closed else (*admitted, "everybody else")


class OwnGroups:
    """The own groups of all load balancers. Safe to share between threads."""

    def __init__(self, client: Api, vpc_id: str, cache: Cache) -> None:
        self._client = client
        self._vpc_id = vpc_id
        self._cache = cache
        self._ids: Entries[str] = Entries(cache, LIFETIME)
        self._rules: Entries[Mapping[Rule, str]] = Entries(cache, LIFETIME, spread=True)

    def of(self, lb_id: str) -> OwnGroup | None:
        """The load balancer's own group, if it has one."""
        group_id = self._ids.fetch(lb_id, lambda: self._find(lb_id))
        if not group_id:
            return None
        try:
            return OwnGroup(group_id, self._rules.fetch(group_id, lambda: self._read(group_id)))
        except NotFound:
            self._forget(lb_id)
            return None

    def put(self, lb_id: str, ranges: Sequence[str], tags: Mapping[str, str], *, dual_stack: bool) -> OwnGroup:
        """Make the group admit exactly these clients; created if necessary."""
        self._forget(lb_id)
        group = self.of(lb_id) or self._create(lb_id, tags)
        wanted = _rules(ranges, dual_stack=dual_stack)
        with self._cache.changing(group.id):
            # First what is added: no client is locked out meanwhile, and a new group is closed before it is joined.
            for params in _permissions(group.id, wanted - group.rules.keys()):
                self._client.call("ecs", "AuthorizeSecurityGroup", params)
            # By ID: a rule made by hand may be of a form that this controller cannot name.
            for ids in batches(sorted(group.rules[each] for each in group.rules.keys() - wanted), _MOST):
                params = {"SecurityGroupId": group.id, "SecurityGroupRuleId": [*ids], **_token()}
                self._client.call("ecs", "RevokeSecurityGroup", params)
        made = OwnGroup(group.id, dict.fromkeys(wanted, ""))
        self._rules.put(group.id, made.rules, anew=True)
        return made

    def delete(self, lb_id: str) -> None:
        """Delete the group, if there is one. Raises Postponed while the load balancer still uses it."""
        # A list may not show yet what this process has made, and nothing else would find it later.
        ids = {self._ids.get(lb_id) or "", self._find(lb_id)} - {""}
        for group_id in sorted(ids):
            try:
                self._client.call("ecs", "DeleteSecurityGroup", {"SecurityGroupId": group_id})
            except NotFound:
                continue
            except Conflict as error:
                raise Postponed(f"security group {group_id} of load balancer {lb_id} is still in use") from error
        self._forget(lb_id)

    def _create(self, lb_id: str, tags: Mapping[str, str]) -> OwnGroup:
        params = {
            "VpcId": self._vpc_id,
            "SecurityGroupName": part_name(Owner.of_tags(tags), lb_id),
            "SecurityGroupType": "enterprise",
            "Tag": tag_list({**tags, LOAD_BALANCER_TAG: lb_id}),
            **_token(),
        }
        group_id = str(self._client.call("ecs", "CreateSecurityGroup", params)["SecurityGroupId"])
        self._ids.put(lb_id, group_id, anew=True)
        return OwnGroup(group_id, {})

    def _find(self, lb_id: str) -> str:
        params = {"VpcId": self._vpc_id, "Tag": tag_list({LOAD_BALANCER_TAG: lb_id}), "MaxResults": 100}
        found = self._client.pages("ecs", "DescribeSecurityGroups", params, "SecurityGroups.SecurityGroup")
        return min((str(each["SecurityGroupId"]) for each in found), default="")

    def _read(self, group_id: str) -> Mapping[Rule, str]:
        params = {"SecurityGroupId": group_id, "Direction": "ingress", "MaxResults": 1000}
        found = self._client.pages("ecs", "DescribeSecurityGroupAttribute", params, "Permissions.Permission")
        return {_rule(each): str(each["SecurityGroupRuleId"]) for each in found}

    def _forget(self, lb_id: str) -> None:
        group_id = self._ids.get(lb_id)
        self._ids.forget(lb_id)
        if group_id:
            self._rules.forget(group_id)


def _rules(ranges: Sequence[str], *, dual_stack: bool) -> frozenset[Rule]:
    everybody = ("0.0.0.0/0", "::/0") if dual_stack else ("0.0.0.0/0",)
    # Without a rule that refuses, the load balancer admits whom no rule mentions.
    return frozenset([*(("accept", each, _FIRST) for each in ranges), *(("drop", each, _LAST) for each in everybody)])


def _permissions(group_id: str, rules: Iterable[Rule]) -> Iterator[Params]:
    """The parameters of the calls for these rules, those that refuse first."""
    for batch in batches(sorted(rules, key=lambda rule: (-rule[2], rule)), _MOST):
        yield {"SecurityGroupId": group_id, "Permissions": [*map(_permission, batch)], **_token()}


def _permission(rule: Rule) -> Params:
    policy, source, priority = rule
    key = "Ipv6SourceCidrIp" if ":" in source else "SourceCidrIp"
    return {"Policy": policy, "IpProtocol": "ALL", "PortRange": "-1/-1", "Priority": str(priority), key: source}


def _rule(permission: View) -> Rule:
    source = permission.get("SourceCidrIp") or permission.get("Ipv6SourceCidrIp")
    whole = str(permission.get("IpProtocol")).upper() == "ALL"
    # A rule that this controller would not make is told apart, and thus removed.
    what = source if source and whole else permission["SecurityGroupRuleId"]
    return (str(permission.get("Policy")).lower(), str(what), int(permission.get("Priority") or 0))


def _token() -> Params:
    return {"ClientToken": str(uuid.uuid4())}
