"""Creates, changes and deletes this controller's security groups, without waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound, Throttled, Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.errors import error_code
from cloud_controller.clouds.aws.facts import SecurityGroup
from cloud_controller.clouds.aws.ip_permissions import MOST_RULES, ip_permissions
from cloud_controller.clouds.aws.security_rules import changes
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState, security_group
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG
from cloud_controller.retries import RetryPolicy, call

_IN_USE = ("DependencyViolation", "InvalidGroup.InUse")
_OTHERWISE = ("InvalidPermission.Duplicate", "InvalidPermission.NotFound")
"""The group's rules differ from the cached ones."""

_GONE = "InvalidGroup.NotFound"

_LOOK = 60.0
"""Seconds between two checks of the references to a group that is still in use."""

_LONG = 600.0
"""Seconds for which a group may be in use before an event reports it: network interfaces take minutes to be deleted."""

_SOON = RetryPolicy(deadline=10.0, attempts=5)
"""The retries while EC2, which is eventually consistent, does not know a new group. The queue's would cost more calls
(docs/architecture.md)."""


@dataclass(slots=True)
class _Refused:
    """A group whose deletion AWS refuses: since when, and when to check its references again."""

    since: float
    next_look: float = 0.0


class SecurityGroupCalls:
    """Changes of security groups, recorded in the VPC state. Safe to share between threads."""

    def __init__(self, api: Api, vpc_state: VpcState, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._vpc_state = vpc_state
        self._clock = clock
        self._refused: dict[str, _Refused] = {}

    def create(self, name: str, description: str, tags: Mapping[str, str]) -> SecurityGroup:
        """Create the group without rules, or take an existing one with this name and these owner's tags.

        Raises InvalidConfiguration if a group of another owner has this name.
        """
        vpc_id = self._vpc_state.facts().vpc_id
        marked = tag_list(tags)
        try:
            made = self._api.call(
                "ec2",
                "CreateSecurityGroup",
                idempotent=True,
                GroupName=name,
                Description=description,
                VpcId=vpc_id,
                TagSpecifications=[{"ResourceType": "security-group", "Tags": marked}],
            )
        except Conflict as error:
            if error_code(error) != "InvalidGroup.Duplicate":
                raise
            group = self._taken_over(vpc_id, name, tags)
        else:
            group = SecurityGroup(made["GroupId"], name, dict(tags))
        self._vpc_state.changed(group.id, group)
        return group

    def change(self, group: SecurityGroup, ingress: Set[str], tags: Mapping[str, str]) -> SecurityGroup:
        """Set exactly these rules, and add these tags; return the changed group."""
        try:
            group = self._with_rules(group, ingress)
        except CloudError as error:
            if error_code(error) not in _OTHERWISE:
                raise
            group = self._with_rules(self._told(group), ingress)
        return self.tag(group, tags)

    def tag(self, group: SecurityGroup, tags: Mapping[str, str]) -> SecurityGroup:
        """Add these tags; return the changed group."""
        lacking = {key: value for key, value in tags.items() if group.tags.get(key) != value}
        if lacking:
            self._api.call("ec2", "CreateTags", idempotent=True, Resources=[group.id], Tags=tag_list(lacking))
            group = replace(group, tags={**group.tags, **lacking})
            self._vpc_state.changed(group.id, group)
        return group

    def allow(self, group: SecurityGroup, rule: str) -> None:
        """Add one rule to a group with other owners' rules; an existing rule is a success."""
        if rule in group.ingress:
            return
        try:
            self._authorize(group, frozenset([rule]))
        except CloudError as error:
            if error_code(error) != "InvalidPermission.Duplicate":
                raise
        self._vpc_state.changed(group.id, replace(group, ingress=group.ingress | {rule}))

    def forbid(self, group: SecurityGroup, rule: str) -> None:
        """Remove one rule from a group with other owners' rules; a missing rule is a success."""
        if rule not in group.ingress:
            return
        try:
            self._revoke(group, frozenset([rule]))
        except CloudError as error:
            if error_code(error) != "InvalidPermission.NotFound":
                raise
        self._vpc_state.changed(group.id, replace(group, ingress=group.ingress - {rule}))

    def exchange(self, group: SecurityGroup, added: Mapping[str, str], removed: Set[str]) -> None:
        """Add rules with these descriptions to a group with other owners' rules, and remove others."""
        try:
            self._exchange(group, added, removed)
        except CloudError as error:
            if error_code(error) not in _OTHERWISE:
                raise
            group = self._told(group)
            lacking = {rule: what for rule, what in added.items() if rule not in group.ingress}
            self._exchange(group, lacking, removed & group.ingress)

    def _exchange(self, group: SecurityGroup, added: Mapping[str, str], removed: Set[str]) -> None:
        if added:
            self._authorize(group, added.keys(), added)
        if removed:
            self._revoke(group, removed)
        ingress = (group.ingress | added.keys()) - removed
        described = {rule: what for rule, what in {**group.described, **added}.items() if rule not in removed}
        changed = replace(group, ingress=ingress, described=described)
        if changed != group:
            self._vpc_state.changed(group.id, changed)

    def delete(self, group: SecurityGroup) -> bool:
        """Delete the group; True if it is gone, False if it is still in use.

        Removes rules in the cluster's own groups that refer to it. Raises Conflict with AWS's reason if other
        groups' rules refer to it, or if it is in use for longer than a load balancer's deletion takes.
        """
        refusal = self._refusal(group)
        if refusal is not None:
            self._release(group, refusal)
        return refusal is None

    def delete_unused(self, group: SecurityGroup) -> None:
        """Delete the group unless it is in use."""
        self._refusal(group)

    def _refusal(self, group: SecurityGroup) -> CloudError | None:
        try:
            self._api.call("ec2", "DeleteSecurityGroup", idempotent=True, GroupId=group.id)
        except NotFound:
            pass
        except CloudError as error:
            if error_code(error) not in _IN_USE:
                raise
            return error
        self._refused.pop(group.id, None)
        self._vpc_state.changed(group.id, None)
        return None

    def _release(self, group: SecurityGroup, refusal: CloudError) -> None:
        now = self._clock()
        refused = self._refused.setdefault(group.id, _Refused(now))
        if now < refused.next_look:
            return
        refused.next_look = now + _LOOK
        foreign = []
        for direction, found in self._referring(group):
            own = direction == "ingress" and self._vpc_state.cluster_tag in found.tags
            if own:
                self._revoke(found, {rule for rule in found.ingress if rule.rpartition(" ")[2] == group.id})
                self._vpc_state.forget(found.id)
            else:
                foreign.append(f"{direction} rules of {found.id} ({found.name})")
        what = f"security group {group.id} ({group.name}) cannot be deleted: {refusal}"
        if foreign:
            raise Conflict(f"{what}; remove the {', '.join(foreign)} that refer to it") from refusal.__cause__
        if now >= refused.since + _LONG:
            minutes = round((now - refused.since) / 60)
            raise Conflict(f"{what}, for {minutes} minutes; check which resources use it") from refusal.__cause__

    def _referring(self, group: SecurityGroup) -> Iterator[tuple[str, SecurityGroup]]:
        """The groups in the VPC whose rules refer to this one."""
        of_vpc = {"Name": "vpc-id", "Values": [self._vpc_state.facts().vpc_id]}
        for direction, name in (("ingress", "ip-permission.group-id"), ("egress", "egress.ip-permission.group-id")):
            filters = [of_vpc, {"Name": name, "Values": [group.id]}]
            for each in self._api.pages("ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters):
                if each["GroupId"] != group.id:
                    yield direction, security_group(each)

    def _with_rules(self, group: SecurityGroup, ingress: Set[str]) -> SecurityGroup:
        for kind, rules in changes(group.ingress, ingress, MOST_RULES):
            if kind == "add":
                self._authorize(group, rules)
                group = replace(group, ingress=group.ingress | rules)
            else:
                self._revoke(group, rules)
                group = replace(group, ingress=group.ingress - rules)
            self._vpc_state.changed(group.id, group)
        return group

    def _authorize(self, group: SecurityGroup, rules: Set[str], descriptions: Mapping[str, str] | None = None) -> None:
        self._on(group, "AuthorizeSecurityGroupIngress", rules, descriptions)

    def _revoke(self, group: SecurityGroup, rules: Set[str]) -> None:
        self._on(group, "RevokeSecurityGroupIngress", rules, group.described)

    def _on(
        self, group: SecurityGroup, operation: str, rules: Set[str], descriptions: Mapping[str, str] | None = None
    ) -> None:
        permissions = ip_permissions(rules, descriptions)

        def once(_: int) -> CloudError | None:
            try:
                self._api.call("ec2", operation, idempotent=True, GroupId=group.id, IpPermissions=permissions)
            except NotFound as error:
                if error_code(error) != _GONE:
                    raise
                # A new group is not visible everywhere at once.
                raise Unavailable(str(error)) from error.__cause__
            except (Throttled, Unavailable) as error:
                return error  # The client has already retried.
            return None

        try:
            if error := call(once, _SOON, idempotent=True):
                raise error
        except Unavailable as error:
            if error_code(error) != _GONE:
                raise
            self._vpc_state.forget(group.id)
            raise Unavailable(
                f"security group {group.id} ({group.name}) was deleted; the controller reads the security groups again"
            ) from error

    def _told(self, group: SecurityGroup) -> SecurityGroup:
        answer = self._api.call("ec2", "DescribeSecurityGroups", GroupIds=[group.id])
        found = security_group(answer["SecurityGroups"][0])
        # It may be as wanted already: then no change follows that would record it.
        self._vpc_state.changed(found.id, found)
        return found

    def _taken_over(self, vpc_id: str, name: str, tags: Mapping[str, str]) -> SecurityGroup:
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "group-name", "Values": [name]}]
        found = self._api.call("ec2", "DescribeSecurityGroups", Filters=filters)["SecurityGroups"]
        if not found:
            raise Unavailable(f"security group {name} exists, but AWS does not list it yet; the controller retries")
        group = security_group(found[0])
        if any(group.tags.get(key) != tags.get(key) for key in (CLUSTER_TAG, SERVICE_UID_TAG)):
            why = f"{group.id} in {vpc_id} has this name, but not this cluster's tags"
            raise InvalidConfiguration(f"security group {name}", why, "no other security group with this name")
        return group
