"""The ingress rules of security groups as texts, one a rule as AWS counts them, and as the API has them. Pure.

`tcp 80-443 10.0.0.0/8`, `icmp 3-4 0.0.0.0/0` (type and code), `all sg-0123`: protocol, ports, source. A source is a
CIDR, a security group or a prefix list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

MOST_RULES = 60
"""The most ingress rules in a security group (AWS's default quota; each CIDR and port range counts)."""
MOST_GROUPS = 5
"""The most security groups of a load balancer."""

_PORTS = re.compile(r"(-?\d+)-(-?\d+)")
_ALL = "-1"


def rule_texts(permissions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The rules that `IpPermissions` of DescribeSecurityGroups come to, each with its description, or ""."""
    return dict(rule for permission in permissions for rule in _texts(permission))


def ip_permissions(rules: Collection[str], descriptions: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """These rules as AuthorizeSecurityGroupIngress and RevokeSecurityGroupIngress take them."""
    permissions: dict[str, dict[str, Any]] = {}
    for rule in sorted(rules):
        what, source = rule.rsplit(" ", 1)
        permission = permissions.setdefault(what, _permission(what))
        kind, key = _source_kind(source)
        described = {"Description": descriptions[rule]} if descriptions and rule in descriptions else {}
        permission.setdefault(kind, []).append({key: source, **described})
    return list(permissions.values())


def from_group(group_id: str) -> str:
    """The rule that lets in all traffic of what is in this security group."""
    return f"all {group_id}"


def _texts(permission: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    protocol = permission["IpProtocol"]
    what = "all" if protocol == _ALL else protocol
    if permission.get("FromPort") is not None and protocol != _ALL:
        what = f"{what} {permission['FromPort']}-{permission['ToPort']}"
    for kind, key in (
        ("IpRanges", "CidrIp"),
        ("Ipv6Ranges", "CidrIpv6"),
        ("UserIdGroupPairs", "GroupId"),
        ("PrefixListIds", "PrefixListId"),
    ):
        for source in permission.get(kind) or ():
            yield f"{what} {source[key]}", source.get("Description") or ""


def _permission(what: str) -> dict[str, Any]:
    protocol, _, ports = what.partition(" ")
    if protocol == "all":
        return {"IpProtocol": _ALL}
    found = _PORTS.fullmatch(ports)
    if found is None:
        return {"IpProtocol": protocol}
    return {"IpProtocol": protocol, "FromPort": int(found[1]), "ToPort": int(found[2])}


def _source_kind(source: str) -> tuple[str, str]:
    if source.startswith("sg-"):
        return "UserIdGroupPairs", "GroupId"
    if source.startswith("pl-"):
        return "PrefixListIds", "PrefixListId"
    return ("Ipv6Ranges", "CidrIpv6") if ":" in source else ("IpRanges", "CidrIp")
