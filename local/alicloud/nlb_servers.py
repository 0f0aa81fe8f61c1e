"""NLB: the servers of a group."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.alicloud.account import Account, given
from local.alicloud.checks import Range, Rule, Text, require
from local.alicloud.machines import ENI, INSTANCE
from local.alicloud.nlb_groups import AVAILABLE, available, group_of
from local.alicloud.nlb_jobs import GROUP, ILLEGAL, begin, not_found
from local.alicloud.paging import tokened
from local.alicloud.products import NLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

Server = dict[str, Any]

_RULES: Final[dict[str, Rule]] = {
    "Description": Text(r"[\w,.;/@\-]{2,256}", "2 to 256 letters, digits, , . ; / @ _ -"),
    "Port": Range(0, 65535),
    "ServerType": ("Ecs", "Eni", "Ip"),
    "Weight": Range(0, 100),
}


@NLB.action("AddServersToServerGroup")
def add_servers_to_server_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Servers that the group does not have."""
    group = available(account, arguments)
    asked = _asked(account, arguments["Servers"])
    had = {_key(each) for each in group["servers"]}
    added = []
    for each in asked:
        if _key(each) in had:
            message = f"The server {each['ServerId']}:{each.get('Port', 0)} is in the group already."
            raise Refusal(400, "ResourceAlreadyExist.BackendServer", message)
        added.append({"Weight": 100, "Port": 0, "Description": "", **each, **_place(account, each, group)})
    if len(group["servers"]) + len(added) > account.quotas.servers:
        raise Refusal(400, "QuotaExceeded.QuotaInsufficient", f"A group has at most {account.quotas.servers} servers.")
    return _change(account, group, [*group["servers"], *added])


@NLB.action("RemoveServersFromServerGroup")
def remove_servers_from_server_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Servers that the group has."""
    group = available(account, arguments)
    gone = [_key(each) for each in _found(group, _asked(account, arguments["Servers"]))]
    return _change(account, group, [each for each in group["servers"] if _key(each) not in gone])


@NLB.action("UpdateServerGroupServersAttribute")
def update_server_group_servers_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Weights and descriptions of servers that the group has."""
    group = available(account, arguments)
    asked = _asked(account, arguments["Servers"])
    _found(group, asked)
    changes = {_key(each): given(each, "Weight", "Description") for each in asked}
    return _change(account, group, [{**each, **changes.get(_key(each), {})} for each in group["servers"]])


@NLB.action("ListServerGroupServers")
def list_server_group_servers(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of one group; pages by token."""
    if "ServerGroupId" not in arguments:
        raise Refusal(400, "MissingParam.ServerGroupId", "The param of ServerGroupId is missing.")
    group = group_of(account, arguments["ServerGroupId"])
    found: list[Server] = group["servers"]
    for parameter, field in (("ServerIds", "ServerId"), ("ServerIps", "ServerIp")):
        if parameter in arguments:
            found = [each for each in found if each[field] in arguments[parameter]]
    page, fields = tokened(arguments, found, 20, 100)
    shown = [{**each, "ServerGroupId": group["id"], "Status": "Available"} for each in page]
    return {"Servers": shown, "MaxResults": arguments.get("MaxResults", 20), **fields}


def _asked(account: Account, servers: Sequence[Mapping[str, Any]]) -> list[Server]:
    most = account.quotas.nlb_servers_a_call
    if not 1 <= len(servers) <= most:
        raise Refusal(400, ILLEGAL.format("Servers"), f"{len(servers)} servers; a call takes 1 to {most}.")
    for each in servers:
        require(each, _RULES, ILLEGAL)
    if len({_key(each) for each in servers}) != len(servers):
        raise Refusal(400, "DuplicatedParam.Server", "The param of Server is duplicated.")
    return [dict(each) for each in servers]


def _found(group: Object, asked: Sequence[Server]) -> Sequence[Server]:
    had = {_key(each) for each in group["servers"]}
    for each in asked:
        if _key(each) not in had:
            raise not_found("BackendServer", f"{each['ServerId']}:{each.get('Port', 0)}")
    return asked


def _key(server: Mapping[str, Any]) -> tuple[str, str, int, str]:
    # Of an interface with several addresses each is a server; an instance has one.
    address = server.get("ServerIp", "") if server["ServerType"] == "Eni" else ""
    return server["ServerId"], server["ServerType"], server.get("Port", 0), address


def _place(account: Account, server: Server, group: Object) -> dict[str, str]:
    """Its address and zone. Raises Refusal unless the group can have it."""
    kind, name = server["ServerType"], server["ServerId"]
    if (kind == "Ip") != (group["ServerGroupType"] == "Ip"):
        message = f"The ServerType is mismatched for {name} ({kind}) and {group['id']} ({group['ServerGroupType']})."
        raise Refusal(400, "Mismatch.ServerType", message)
    if server.get("Port", 0) == 0 and not group["AnyPortEnabled"]:
        raise Refusal(400, ILLEGAL.format("Port"), "Port must be 1 to 65535: the group has no multi-port forwarding.")
    if kind == "Ip":
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise Refusal(400, "IllegalParam.IP", f"The param of IP is illegal: {name!r}.") from None
        return {"ServerIp": name, "ZoneId": ""}
    found = account.find(INSTANCE if kind == "Ecs" else ENI, name, not_found("BackendServer", name))
    if found["vpc"] != group["VpcId"]:
        raise Refusal(400, "Mismatch.VpcId", f"The VpcId is mismatched for {name} and {group['id']}.")
    if kind == "Ecs":
        primary = account.store.get(ENI, found["enis"][0]) or {"addresses": [""]}
        return {"ServerIp": primary["addresses"][0], "ZoneId": found["zone"]}
    address = server.get("ServerIp", found["addresses"][0])
    if address not in (*found["addresses"], *found["ipv6"]):
        raise Refusal(400, "IllegalParam.IP", f"{name} has no address {address}.")
    return {"ServerIp": address, "ZoneId": found["zone"]}


def _change(account: Account, group: Object, servers: Sequence[Server]) -> dict[str, Any]:
    job = begin(account, GROUP, group["id"], "Configuring", AVAILABLE, servers=list(servers))
    return {"ServerGroupId": group["id"], "JobId": job}
