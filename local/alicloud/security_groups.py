"""ECS: security groups and their inbound rules."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import Rule, Text, require, tags_of
from local.alicloud.machines import ENI, SECURITY_GROUP, VPC
from local.alicloud.nlb_jobs import BALANCER
from local.alicloud.paging import tokened
from local.alicloud.products import ECS
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

_MOST_RULES: Final = 200
_MOST_A_CALL: Final = 100
_RULES: Final[dict[str, Rule]] = {
    "SecurityGroupName": Text(
        r"[A-Za-z\u4e00-\u9fff][\w.:\-]{1,127}", "2 to 128 letters, digits, . _ : -, a letter first"
    ),
    "SecurityGroupType": ("normal", "enterprise"),
}
_RULES_OF_RULES: Final[dict[str, Rule]] = {
    "Policy": ("accept", "drop"),
    "IpProtocol": Text(r"(?i)tcp|udp|icmp|icmpv6|gre|all", "TCP, UDP, ICMP, ICMPv6, GRE, ALL, in any case"),
    "Priority": Text("[1-9][0-9]?|100", "1 to 100"),
}
_KEY: Final = ("IpProtocol", "PortRange", "Policy", "Priority", "SourceCidrIp", "Ipv6SourceCidrIp")


@ECS.action("CreateSecurityGroup")
def create_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Without rules."""
    require(arguments, _RULES, "Invalid{}")
    vpc = arguments["VpcId"]
    account.find(VPC, vpc, Refusal(404, "InvalidVpcId.NotFound", f"There is no VPC {vpc}."))
    new = account.new_id("sg")
    body = {
        "id": new,
        "vpc": vpc,
        "name": arguments.get("SecurityGroupName", ""),
        "type": arguments.get("SecurityGroupType", "normal"),
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        "rules": [],
        "made": account.now(),
    }
    account.store.put(SECURITY_GROUP, new, body)
    return {"SecurityGroupId": new}


@ECS.action("DescribeSecurityGroupAttribute")
def describe_security_group_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The rules; there are only inbound ones."""
    group, direction = _group(account, arguments), arguments.get("Direction", "all")
    page, fields = tokened(arguments, group.get("rules", []) if direction != "egress" else [], 500, 1000)
    token = {"NextToken": fields["NextToken"]} if "NextToken" in fields else {}
    return {
        "SecurityGroupId": group["id"],
        "VpcId": group["vpc"],
        "RegionId": account.region,
        "Permissions": {"Permission": [{**each, "Direction": "ingress"} for each in page]},
        **token,
    }


@ECS.action("AuthorizeSecurityGroup")
def authorize_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Rules that the group has already stay."""
    group, asked = _group(account, arguments), _asked(arguments["Permissions"])
    had = group.get("rules", [])
    keys = {_key(each) for each in had}
    new = [each for each in asked if _key(each) not in keys]
    rules = [*had, *({**each, "SecurityGroupRuleId": account.new_id("sgr")} for each in new)]
    if len(rules) > _MOST_RULES:
        raise Refusal(403, "AuthorizationLimitExceed", "The limit of authorization records in the group is reached.")
    account.fill(SECURITY_GROUP, group["id"], rules=rules)
    return {}


@ECS.action("RevokeSecurityGroup")
def revoke_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ID or by what the rules say; those that the group does not have are no matter."""
    group, ids = _group(account, arguments), arguments.get("SecurityGroupRuleId", [])
    if not ids and "Permissions" not in arguments:
        raise Refusal(400, "MissingParameter", "SecurityGroupRuleId or Permissions is needed.")
    gone = {_key(each) for each in _asked(arguments.get("Permissions", []))}
    rules = [
        each for each in group.get("rules", []) if _key(each) not in gone and each["SecurityGroupRuleId"] not in ids
    ]
    account.fill(SECURITY_GROUP, group["id"], rules=rules)
    return {}


@ECS.action("DeleteSecurityGroup")
def delete_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Refused while a load balancer or an interface is in it."""
    group = _group(account, arguments)
    if any(group["id"] in each["groups"] for kind in (BALANCER, ENI) for each in account.store.all(kind)):
        raise Refusal(403, "DependencyViolation", "There is still instance(s) in the specified security group.")
    account.store.remove(SECURITY_GROUP, group["id"])
    return {}


def _group(account: Account, arguments: Arguments) -> Object:
    asked = arguments["SecurityGroupId"]
    missing = Refusal(404, "InvalidSecurityGroupId.NotFound", f"There is no security group {asked}.")
    return account.find(SECURITY_GROUP, asked, missing)


def _asked(permissions: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    if len(permissions) > _MOST_A_CALL:
        raise Refusal(400, "InvalidParam.Permissions", f"{len(permissions)} rules, more than {_MOST_A_CALL}.")
    for each in permissions:
        require(each, _RULES_OF_RULES, "Invalid{}")
        if ("SourceCidrIp" in each) == ("Ipv6SourceCidrIp" in each):
            raise Refusal(400, "InvalidParam.SourceIp", "A rule has one of SourceCidrIp and Ipv6SourceCidrIp.")
        _require_cidr(each)
    return [{name: str(each.get(name, "")) for name in _KEY} for each in permissions]


def _require_cidr(rule: Mapping[str, Any]) -> None:
    name = "SourceCidrIp" if "SourceCidrIp" in rule else "Ipv6SourceCidrIp"
    version = 4 if name == "SourceCidrIp" else 6
    try:
        if ipaddress.ip_network(rule[name], strict=False).version != version:
            raise ValueError
    except ValueError:
        message = f"The parameter {name} is not valid: {rule[name]!r}."
        raise Refusal(400, "InvalidParam.SourceIp", message) from None


def _key(rule: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(rule[name] for name in _KEY)
