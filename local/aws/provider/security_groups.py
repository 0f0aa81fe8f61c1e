"""Security groups and their rules, each a resource of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, Deadline
from local.aws.provider.ec2 import Ec2Kind, arn, until_deleted
from local.aws.provider.kind import Change, Creation, find_or_make, made_by, present, tag_outputs
from local.plugins.provider import OutcomeUnknown, ProviderError
from local.plugins.values import PropertyMap, Value


class SecurityGroup(Ec2Kind):
    """A group without inline rules: the inputs `ingress` and `egress` are not supported."""

    type = "aws:ec2/securityGroup:SecurityGroup"
    noun, describe, items, ids = "security-group", "describe_security_groups", "SecurityGroups", "GroupIds"
    inputs = frozenset({"name", "namePrefix", "description", "vpcId", "revokeRulesOnDelete", "tags"})
    replaces = frozenset({"name", "namePrefix", "description", "vpcId"})
    write_only = frozenset({"namePrefix", "revokeRulesOnDelete"})
    defaults: ClassVar[Mapping[str, Value]] = {"description": "Managed by Pulumi", "revokeRulesOnDelete": False}
    autonamed = True
    timeout = 900

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        made = find_or_make(
            lambda: str(
                api.call(
                    "ec2",
                    "create_security_group",
                    GroupName=inputs["name"],
                    Description=inputs["description"],
                    TagSpecifications=self.tagged(creation),
                    **present(VpcId=inputs.get("vpcId")),
                )["GroupId"]
            ),
            lambda: self.made_before(api, creation),
            "InvalidGroup.Duplicate",
        )
        try:
            group = self.found(api, made) or {}
            # AWS allows all egress by default; here only rules allow it.
            if egress := group.get("IpPermissionsEgress"):
                api.call("ec2", "revoke_security_group_egress", GroupId=made, IpPermissions=egress)
        except ProviderError as error:
            # No update would distinguish this rule from the declared ones: the create has to be repeated.
            raise OutcomeUnknown(f"{made} still allows all egress: {error}") from None
        return made

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        group = self.found(api, id)
        if group is None:
            return None
        return {
            "arn": group.get("SecurityGroupArn") or arn(api, group, "security-group", id),
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group.get("VpcId", ""),
            "ownerId": group.get("OwnerId", ""),
            "region": api.region,
            **tag_outputs(group.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        if outputs.get("revokeRulesOnDelete"):
            group = self.found(api, id) or {}
            for operation, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
                if rules := group.get(key):
                    api.call("ec2", f"revoke_security_group_{operation}", GroupId=id, IpPermissions=rules)
        # Network interfaces being deleted, and groups that refer to it, hold it for a while.
        until_deleted(deadline, f"{id} to be unused", lambda: api.call("ec2", "delete_security_group", GroupId=id))


_SOURCES: Final = {
    "cidrIpv4": "CidrIpv4",
    "cidrIpv6": "CidrIpv6",
    "prefixListId": "PrefixListId",
    "referencedSecurityGroupId": "ReferencedGroupId",
}


class _Rule(Ec2Kind):
    """One rule of a security group, with one source."""

    noun, describe, items, ids = (
        "security-group-rule",
        "describe_security_group_rules",
        "SecurityGroupRules",
        "SecurityGroupRuleIds",
    )
    inputs = frozenset({"securityGroupId", "ipProtocol", "fromPort", "toPort", "description", "tags", *_SOURCES})
    required = frozenset({"securityGroupId", "ipProtocol"})
    replaces = frozenset({"securityGroupId"})
    egress: bool

    def replaced_by(self, olds: PropertyMap, news: PropertyMap) -> frozenset[str]:
        # The kind of a rule's source cannot change.
        return self.replaces if _kind_of(olds) == _kind_of(news) else self.replaces | frozenset(_SOURCES)

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs
        direction = "egress" if self.egress else "ingress"

        def authorize() -> str:
            answer = api.call(
                "ec2",
                f"authorize_security_group_{direction}",
                GroupId=inputs["securityGroupId"],
                IpPermissions=[_permission(inputs)],
                TagSpecifications=self.tagged(creation),
            )
            return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

        return find_or_make(authorize, lambda: self._left(api, creation), "InvalidPermission.Duplicate")

    def _left(self, api: Api, creation: Creation) -> str | None:
        filters = [{"Name": "group-id", "Values": [creation.inputs["securityGroupId"]]}]
        rules = api.all("ec2", self.describe, self.items, Filters=filters)
        ours = (r for r in rules if made_by(r.get("Tags"), creation.token) and r["IsEgress"] is self.egress)
        return next((str(r["SecurityGroupRuleId"]) for r in ours), None)

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        rule = self.found(api, id)
        if rule is None:
            return None
        ported = rule["IpProtocol"] != "-1"
        group = (rule.get("ReferencedGroupInfo") or {}).get("GroupId")
        return {
            "arn": arn(api, {"OwnerId": rule.get("GroupOwnerId", "")}, "security-group-rule", id),
            "securityGroupId": rule["GroupId"],
            "securityGroupRuleId": id,
            "ipProtocol": rule["IpProtocol"],
            "region": api.region,
            **present(
                fromPort=rule.get("FromPort") if ported else known.get("fromPort"),
                toPort=rule.get("ToPort") if ported else known.get("toPort"),
                description=rule.get("Description") or None,
                cidrIpv4=rule.get("CidrIpv4"),
                cidrIpv6=rule.get("CidrIpv6"),
                prefixListId=rule.get("PrefixListId"),
                referencedSecurityGroupId=group,
            ),
            **tag_outputs(rule.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        if change.changed - {"tags"}:
            news = change.news
            ported = news["ipProtocol"] != "-1"
            rule = present(
                IpProtocol=news["ipProtocol"],
                FromPort=int(news["fromPort"]) if ported and "fromPort" in news else -1,
                ToPort=int(news["toPort"]) if ported and "toPort" in news else -1,
                Description=news.get("description"),
                **{theirs: news.get(ours) for ours, theirs in _SOURCES.items()},
            )
            api.call(
                "ec2",
                "modify_security_group_rules",
                GroupId=news["securityGroupId"],
                SecurityGroupRules=[{"SecurityGroupRuleId": id, "SecurityGroupRule": rule}],
            )
        self.change_tags(api, id, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del deadline
        direction = "egress" if self.egress else "ingress"
        group = outputs["securityGroupId"]
        api.call("ec2", f"revoke_security_group_{direction}", GroupId=group, SecurityGroupRuleIds=[id])


class SecurityGroupIngressRule(_Rule):
    """Allowed incoming traffic."""

    type = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    egress = False


class SecurityGroupEgressRule(_Rule):
    """Allowed outgoing traffic."""

    type = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    egress = True


def _kind_of(rule: PropertyMap) -> set[str]:
    return {key for key in _SOURCES if rule.get(key)}


def _permission(rule: PropertyMap) -> dict[str, Any]:
    """The rule in the older form of EC2's API, which creates it."""
    about = present(Description=rule.get("description"))
    sources = {
        "cidrIpv4": ("IpRanges", "CidrIp"),
        "cidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
        "prefixListId": ("PrefixListIds", "PrefixListId"),
        "referencedSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    }
    permission: dict[str, Any] = {"IpProtocol": rule["ipProtocol"]}
    if rule["ipProtocol"] != "-1":
        permission |= {
            theirs: int(rule[ours]) for ours, theirs in (("fromPort", "FromPort"), ("toPort", "ToPort")) if ours in rule
        }
    for ours, (holder, name) in sources.items():
        if rule.get(ours):
            permission[holder] = [{name: rule[ours], **about}]
    return permission
