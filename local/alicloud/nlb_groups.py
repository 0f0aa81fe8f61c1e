"""NLB: server groups, with their health check and scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from local.alicloud.account import Account, given
from local.alicloud.checks import Range, Rule, Text, has_tags, require, shown_tags, tags_of
from local.alicloud.machines import VPC
from local.alicloud.nlb_balancers import NAME, at_most
from local.alicloud.nlb_jobs import GROUP, ILLEGAL, LISTENER, begin, begin_removal, not_found, require_status
from local.alicloud.paging import tokened
from local.alicloud.products import NLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

AVAILABLE: Final = "Available"
_RULES: Final[dict[str, Rule]] = {
    "AddressIPVersion": ("ipv4", "DualStack"),
    "ConnectionDrainTimeout": Range(0, 900),
    # TCPSSL is not in the SDK's documentation; Alibaba's own controller sends it.
    "Protocol": ("TCP", "UDP", "TCP_UDP", "TCPSSL"),
    "Scheduler": ("Wrr", "Wlc", "rr", "sch", "tch", "qch"),
    "ServerGroupName": NAME,
    "ServerGroupType": ("Instance", "Ip"),
}
_CHECK_RULES: Final[dict[str, Rule]] = {
    "HealthCheckConnectPort": Range(0, 65535),
    "HealthCheckConnectTimeout": Range(1, 300),
    "HealthCheckDomain": Text(r"\$SERVER_IP|[A-Za-z0-9.\-]{1,80}", "$SERVER_IP or 1 to 80 letters, digits, - ."),
    "HealthCheckExp": Text(r"[A-Za-z0-9]{1,512}", "1 to 512 letters and digits"),
    "HealthCheckHttpVersion": ("HTTP1.0", "HTTP1.1"),
    "HealthCheckInterval": Range(1, 300),
    "HealthCheckReq": Text(r"[A-Za-z0-9]{1,512}", "1 to 512 letters and digits"),
    "HealthCheckType": ("TCP", "HTTP", "UDP"),
    "HealthCheckUrl": Text(r"/[\w\-/.%?#&]{0,79}", "1 to 80 characters, / first"),
    "HealthyThreshold": Range(2, 10),
    "HttpCheckMethod": ("GET", "HEAD"),
    "UnhealthyThreshold": Range(2, 10),
}
_HTTP_CODES: Final = ("http_2xx", "http_3xx", "http_4xx", "http_5xx")
_CHECK: Final[dict[str, Any]] = {
    "HealthCheckConnectPort": 0,
    "HealthCheckConnectTimeout": 5,
    "HealthCheckEnabled": True,
    "HealthCheckInterval": 5,
    "HealthyThreshold": 2,
    "UnhealthyThreshold": 2,
}
_CHECK_OF_HTTP: Final[dict[str, Any]] = {
    "HealthCheckDomain": "$SERVER_IP",
    "HealthCheckHttpCode": ["http_2xx"],
    "HealthCheckHttpVersion": "HTTP1.0",
    "HealthCheckUrl": "/",
    "HttpCheckMethod": "GET",
}
_DEFAULTS: Final[dict[str, Any]] = {
    "AddressIPVersion": "ipv4",
    "AnyPortEnabled": False,
    "ConnectionDrainEnabled": False,
    "ConnectionDrainTimeout": 10,
    "PreserveClientIpEnabled": True,
    "Protocol": "TCP",
    "Scheduler": "Wrr",
    "ServerGroupType": "Instance",
}
_CHANGEABLE: Final = (
    *("ConnectionDrainEnabled", "ConnectionDrainTimeout", "IpVersionAffinityMode", "PreserveClientIpEnabled"),
    *("Scheduler", "ServerGroupName"),
)


@NLB.action("CreateServerGroup", "HealthCheckConfig")
def create_server_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """It is Creating, then Available."""
    require(arguments, _RULES, ILLEGAL)
    vpc = arguments["VpcId"]
    account.find(VPC, vpc, not_found("Vpc", vpc))
    group = {name: arguments.get(name, default) for name, default in _DEFAULTS.items()}
    _require_scheduler(group["Scheduler"], group["Protocol"])
    check = {"HealthCheckType": "UDP" if group["Protocol"] == "UDP" else "TCP", **_CHECK}
    new = account.new_id("sgp")
    body = {
        **group,
        "id": new,
        "status": "",
        "VpcId": vpc,
        "ServerGroupName": arguments["ServerGroupName"],
        "IpVersionAffinityMode": arguments.get("IpVersionAffinityMode", "NonAffinity"),
        "ResourceGroupId": arguments.get("ResourceGroupId", "rg-default"),
        "HealthCheck": _check(check, arguments.get("HealthCheckConfig", {})),
        "servers": [],
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
    }
    account.store.put(GROUP, new, body)
    return {"ServerGroupId": new, "JobId": begin(account, GROUP, new, "Creating", AVAILABLE)}


@NLB.action("ListServerGroups")
def list_server_groups(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids, names (at most 20), tags, VPC, type; pages by token."""
    found = account.store.all(GROUP)
    for parameter, field in (("ServerGroupIds", "id"), ("ServerGroupNames", "ServerGroupName")):
        if parameter in arguments:
            wanted = at_most(arguments[parameter], 20, parameter)
            found = [each for each in found if each[field] in wanted]
    for name in ("ServerGroupType", "VpcId", "ResourceGroupId"):
        if name in arguments:
            found = [each for each in found if each[name] == arguments[name]]
    asked = arguments.get("Tag", [])
    if len(asked) > 10:
        raise Refusal(400, ILLEGAL.format("Tag"), f"{len(asked)} tags, more than 10.")
    found = [each for each in found if has_tags(each["tags"], asked)]
    page, fields = tokened(arguments, found, 20, 100)
    shown = [_shown(account, each) for each in page]
    return {"ServerGroups": shown, "MaxResults": arguments.get("MaxResults", 20), **fields}


@NLB.action("UpdateServerGroupAttribute")
def update_server_group_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """What a group has beside servers; not its protocol, type and VPC."""
    require(arguments, _RULES, ILLEGAL)
    group = available(account, arguments)
    changes = given(arguments, *_CHANGEABLE)
    _require_scheduler({**group, **changes}["Scheduler"], group["Protocol"])
    check = _check(group["HealthCheck"], arguments.get("HealthCheckConfig", {}))
    job = begin(account, GROUP, group["id"], "Configuring", AVAILABLE, **changes, HealthCheck=check)
    return {"ServerGroupId": group["id"], "JobId": job}


@NLB.action("DeleteServerGroup")
def delete_server_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Refused while a listener uses it."""
    group = available(account, arguments)
    if _listeners(account, group["id"]):
        raise Refusal(400, "ResourceInUse.ServerGroup", "The specified resource of ServerGroup is in use.")
    return {"JobId": begin_removal(account, GROUP, group["id"], "Configuring")}


def group_of(account: Account, id: str) -> Object:
    """The group with this id."""
    return account.find(GROUP, id, not_found("serverGroup", id))


def available(account: Account, arguments: Arguments) -> Object:
    """The group that a request is to change. Raises Refusal unless it is Available."""
    return require_status("serverGroup", group_of(account, arguments["ServerGroupId"]), AVAILABLE)


def _listeners(account: Account, group: str) -> list[Object]:
    return [each for each in account.store.all(LISTENER) if each["ServerGroupId"] == group]


def _check(before: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The health check with the changes. Raises Refusal."""
    require(asked, _CHECK_RULES, ILLEGAL)
    for code in asked.get("HealthCheckHttpCode", []):
        if code not in _HTTP_CODES:
            message = f"{code!r} is not one of {', '.join(_HTTP_CODES)}."
            raise Refusal(400, ILLEGAL.format("HealthCheckHttpCode"), message)
    kind = asked.get("HealthCheckType", before["HealthCheckType"])
    if kind != "UDP" and asked.get("HealthCheckInterval", 1) > 50:
        raise Refusal(400, ILLEGAL.format("HealthCheckInterval"), f"It is 1 to 50 for a check of type {kind}.")
    return {**(_CHECK_OF_HTTP if kind == "HTTP" else {}), **before, **asked}


def _require_scheduler(scheduler: str, protocol: str) -> None:
    if scheduler == "qch" and protocol != "UDP":
        raise Refusal(400, ILLEGAL.format("Scheduler"), "qch is for server groups of UDP.")


def _shown(account: Account, group: Object) -> dict[str, Any]:
    named = (*_DEFAULTS, "HealthCheck", "IpVersionAffinityMode", "ResourceGroupId", "ServerGroupName", "VpcId")
    return {
        **{name: group[name] for name in named},
        "ServerGroupId": group["id"],
        "ServerGroupStatus": group["status"],
        "ServerCount": len(group["servers"]),
        "RegionId": account.region,
        "RelatedLoadBalancerIds": sorted({each["balancer"] for each in _listeners(account, group["id"])}),
        "Tags": shown_tags(group["tags"], "Key", "Value"),
    }
