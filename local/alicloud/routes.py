"""VPC: route tables and their entries, in batches."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from local.alicloud.account import Account, given
from local.alicloud.machines import ENI, INSTANCE, ROUTE, ROUTE_TABLE, VPC, VSWITCH
from local.alicloud.paging import numbered, tokened
from local.alicloud.products import VPC as PRODUCT
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

DUPLICATE: Final = "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"
_NEXT_HOPS: Final = {"Instance": INSTANCE, "NetworkInterface": ENI}
"""The kinds that are simulated."""


@PRODUCT.action("DescribeRouteTableList")
def describe_route_table_list(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By id, VPC, kind and router."""
    found = account.store.all(ROUTE_TABLE)
    for parameter, field in (("RouteTableId", "id"), ("VpcId", "vpc"), ("RouteTableType", "kind")):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    if "RouterId" in arguments:
        found = [each for each in found if _router(account, each) == arguments["RouterId"]]
    if arguments.get("RouterType", "VRouter") != "VRouter":
        found = []
    page, fields = numbered(arguments, found, 10, 50)
    shown = [
        {
            "RouteTableId": each["id"],
            "RouteTableType": each["kind"],
            "VpcId": each["vpc"],
            "RouterId": _router(account, each),
            "RouterType": "VRouter",
            "AssociateType": "VSwitch",
            "Status": "Available",
            "VSwitchIds": {"VSwitchId": _subnets(account, each)},
            "CreationTime": each["made"],
        }
        for each in page
    ]
    return {"RouterTableList": {"RouterTableListType": shown}, **fields}


@PRODUCT.action("DescribeRouteEntryList")
def describe_route_entry_list(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of one table, by destination, next hop, kind and id; the system's own among them."""
    table = _table(account, arguments["RouteTableId"])
    found = [*_system_entries(account, table), *_entries(account, table["id"])]
    for parameter, field in (
        ("DestinationCidrBlock", "cidr"),
        ("NextHopId", "hop"),
        ("NextHopType", "hop_kind"),
        ("RouteEntryType", "kind"),
        ("RouteEntryId", "id"),
        ("RouteEntryName", "name"),
    ):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    if "DestCidrBlockList" in arguments:
        found = [each for each in found if each["cidr"] in arguments["DestCidrBlockList"]]
    if "IpVersion" in arguments:
        found = [each for each in found if _version(each["cidr"]) == arguments["IpVersion"]]
    page, fields = tokened(arguments, found, 50, 500, "MaxResult")
    return {"RouteEntrys": {"RouteEntry": [_entry(each) for each in page]}, **fields}


@PRODUCT.action("CreateRouteEntries")
def create_route_entries(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Each entry succeeds or fails on its own."""
    asked = _batch(account, arguments["RouteEntries"])
    for each in asked:
        _table(account, each["RouteTableId"])
    made, failed = [], []
    for each in asked:
        try:
            made.append(_create(account, each, each.get("Name", "")))
        except Refusal as refusal:
            code = DUPLICATE if refusal.code == "InvalidCIDRBlock.Duplicate" else refusal.code
            failed.append(
                {
                    "DstCidrBlock": each["DstCidrBlock"],
                    "NextHop": each["NextHop"],
                    "FailedCode": code,
                    "FailedMessage": f"{refusal.message}, entry.cidrBlock={each['DstCidrBlock']}",
                }
            )
    counts = {"SuccessCount": len(made), "FailedCount": len(failed)}
    return {"RouteEntryIds": made, "FailedRouteEntries": failed, **counts}


@PRODUCT.action("DeleteRouteEntries")
def delete_route_entries(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Each entry succeeds or fails on its own."""
    asked, failed = _batch(account, arguments.get("RouteEntries", [])), []
    for each in asked:
        try:
            _delete(
                account, each["RouteTableId"], each.get("RouteEntryId"), each.get("DstCidrBlock"), each.get("NextHop")
            )
        except Refusal as refusal:
            why = {"FailedCode": refusal.code, "FailedMessage": refusal.message}
            failed.append({**given(each, "DstCidrBlock", "NextHop", "RouteEntryId"), **why})
    return {"SuccessCount": len(asked) - len(failed), "FailedCount": len(failed), "FailedRouteEntries": failed}


def _create(account: Account, wanted: Mapping[str, Any], name: str) -> str:
    table = _table(account, wanted["RouteTableId"])
    cidr = _network(wanted["DstCidrBlock"])
    if wanted["NextHopType"] not in _NEXT_HOPS:
        raise Refusal(501, "NotSimulated", f"the stand-in has no next hops of type {wanted['NextHopType']}")
    hop = account.store.get(_NEXT_HOPS[wanted["NextHopType"]], wanted["NextHop"])
    if hop is None or hop["vpc"] != table["vpc"]:
        raise Refusal(404, "InvalidNextHopId.NotFound", "Specified next hop does not exist.")
    taken = _entries(account, table["id"])
    if any(each["cidr"] == str(cidr) for each in taken):
        raise Refusal(400, "InvalidCIDRBlock.Duplicate", "Specified CIDR block is already exists")
    for each in _system_entries(account, table):
        own = ipaddress.ip_network(each["cidr"])
        if cidr.version == own.version and cidr.subnet_of(own):  # type: ignore[arg-type]
            raise Refusal(400, "InvalidCidrBlock", "Specified CIDR block is not valid: it is within a vSwitch's")
    if len(taken) >= account.quotas.custom_routes:
        raise Refusal(400, "QuotaExceeded", "Route entry quota exceeded in this route table.")
    new = account.new_id("rte")
    body = {
        "id": new,
        "table": table["id"],
        "cidr": str(cidr),
        "hop": wanted["NextHop"],
        "name": name,
        "kind": "Custom",
    }
    account.store.put(ROUTE, new, body | {"hop_kind": wanted["NextHopType"]})
    return new


def _delete(account: Account, table: str, id: str | None, cidr: str | None, hop: str | None) -> None:
    _table(account, table)
    if id is None and cidr is None:
        raise Refusal(400, "MissingParam.RouteEntryId", "RouteEntryId or DstCidrBlock is mandatory for this action.")
    for each in _entries(account, table):
        if id in (None, each["id"]) and cidr in (None, each["cidr"]) and hop in (None, each["hop"]):
            account.store.remove(ROUTE, each["id"])
            return
    raise _no_entry()


def _batch(account: Account, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = account.quotas.routes_a_call
    if not 1 <= len(asked) <= most:
        raise Refusal(400, "InvalidParameter.RouteEntries", f"{len(asked)} route entries; a call takes 1 to {most}.")
    return asked


def _table(account: Account, id: str) -> Object:
    missing = Refusal(404, "InvalidRouteTableId.NotFound", "Specified route table does not exist.")
    return account.find(ROUTE_TABLE, id, missing)


def _no_entry() -> Refusal:
    return Refusal(404, "InvalidRouteEntry.NotFound", "The specified route entry does not exist.")


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(cidr)
    except ValueError:
        raise Refusal(400, "InvalidCidrBlock.Malformed", "Specified CIDR block is not valid.") from None


def _entries(account: Account, table: str) -> list[Object]:
    return [each for each in account.store.all(ROUTE) if each["table"] == table]


def _subnets(account: Account, table: Object) -> list[str]:
    if table["kind"] != "System":
        return []
    return [each["id"] for each in account.store.all(VSWITCH) if each["vpc"] == table["vpc"]]


def _system_entries(account: Account, table: Object) -> list[Object]:
    subnets = [each for each in account.store.all(VSWITCH) if each["vpc"] == table["vpc"]]
    return [
        {
            "id": "",
            "table": table["id"],
            "cidr": each["cidr"],
            "hop": "",
            "hop_kind": "local",
            "name": "",
            "kind": "System",
        }
        for each in subnets
    ]


def _entry(entry: Object) -> dict[str, Any]:
    return {
        "RouteEntryId": entry["id"],
        "RouteEntryName": entry["name"],
        "RouteTableId": entry["table"],
        "DestinationCidrBlock": entry["cidr"],
        "IpVersion": _version(entry["cidr"]),
        "Type": entry["kind"],
        "Status": "Available",
        "NextHops": {
            "NextHop": [{"NextHopId": entry["hop"], "NextHopType": entry["hop_kind"], "Enabled": 1, "Weight": 0}]
        },
    }


def _version(cidr: str) -> str:
    return f"IPv{ipaddress.ip_network(cidr).version}"


def _router(account: Account, table: Object) -> str:
    vpc = account.store.get(VPC, table["vpc"])
    return "" if vpc is None else str(vpc["router"])
