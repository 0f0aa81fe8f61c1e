"""CLB: access control lists."""

from __future__ import annotations

import ipaddress
import json
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import has_tags, require, shown_tags, tags_of
from local.alicloud.clb_balancers import INVALID, LISTENER
from local.alicloud.paging import numbered
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

ACL: Final = "access control list"


@SLB.action("CreateAccessControlList")
def create_access_control_list(account: Account, arguments: Arguments) -> dict[str, Any]:
    """An empty list."""
    require(arguments, {"AddressIPVersion": ("ipv4", "ipv6")}, INVALID)
    new = account.new_id("acl")
    body = {
        "id": new,
        "name": arguments["AclName"],
        "ip_version": arguments.get("AddressIPVersion", "ipv4"),
        "resource_group": arguments.get("ResourceGroupId", "rg-default"),
        "entries": {},
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        "made": account.now(),
    }
    account.store.put(ACL, new, body)
    return {"AclId": new}


@SLB.action("DescribeAccessControlLists")
def describe_access_control_lists(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By name and tags; pages by number."""
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in account.store.all(ACL) if has_tags(each["tags"], tags)]
    for parameter, field in (("AclName", "name"), ("AddressIPVersion", "ip_version")):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    page, fields = numbered(arguments, found, 50, 50)
    return {"Acls": {"Acl": [_shown(each) for each in page]}, "Count": len(page), **fields}


@SLB.action("DescribeAccessControlListAttribute")
def describe_access_control_list_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One list with its entries and the listeners that use it."""
    acl = acl_of(account, arguments["AclId"])
    entries = [{"AclEntryIP": cidr, "AclEntryComment": comment} for cidr, comment in acl["entries"].items()]
    size = arguments.get("PageSize", 50)
    begin = (arguments.get("Page", 1) - 1) * size
    users = [
        {
            "LoadBalancerId": each["balancer"],
            "ListenerPort": each["port"],
            "Protocol": each["protocol"],
            "AclType": each["AclType"],
        }
        for each in _users(account, acl["id"])
    ]
    return {
        **_shown(acl),
        "AclEntrys": {"AclEntry": entries[begin : begin + size]},
        "TotalAclEntry": len(entries),
        "RelatedListeners": {"RelatedListener": users},
    }


@SLB.action("AddAccessControlListEntry")
def add_access_control_list_entry(account: Account, arguments: Arguments) -> dict[str, Any]:
    """At most 50 in a call; one that is there already stays as it is."""
    acl = acl_of(account, arguments.get("AclId", ""))
    added = _entries(account, arguments.get("AclEntrys", "[]"))
    account.fill(ACL, acl["id"], entries={**added, **acl["entries"]})
    return {}


@SLB.action("RemoveAccessControlListEntry")
def remove_access_control_list_entry(account: Account, arguments: Arguments) -> dict[str, Any]:
    """At most 50 in a call."""
    acl = acl_of(account, arguments["AclId"])
    gone = _entries(account, arguments.get("AclEntrys", "[]"))
    account.fill(ACL, acl["id"], entries={cidr: text for cidr, text in acl["entries"].items() if cidr not in gone})
    return {}


@SLB.action("DeleteAccessControlList")
def delete_access_control_list(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Refused while a listener uses it."""
    acl = acl_of(account, arguments["AclId"])
    if _users(account, acl["id"]):
        raise Refusal(400, "AclInUsed", "The specified acl is in use.")
    account.store.remove(ACL, acl["id"])
    return {}


def acl_of(account: Account, id: str) -> Object:
    """The list with this id."""
    return account.find(ACL, id, Refusal(404, "AclNotExist", f"The specified acl does not exist: {id!r}."))


def _entries(account: Account, text: str) -> dict[str, str]:
    """Comments by CIDR, of JSON such as `[{"entry": "10.0.0.0/8", "comment": "a"}]`."""
    try:
        asked = json.loads(text)
        entries = {str(ipaddress.ip_network(each["entry"])): str(each.get("comment", "")) for each in asked}
    except (ValueError, TypeError, KeyError, AttributeError):
        message = "AclEntrys must be a JSON list of objects with entry (a CIDR block) and comment."
        raise Refusal(400, "InvalidParameter.AclEntrys", message) from None
    if len(entries) > account.quotas.acl_entries_a_call:
        raise Refusal(
            400, "AclEntryOverLimit", f"{len(entries)} entries; a call takes {account.quotas.acl_entries_a_call}."
        )
    return entries


def _users(account: Account, acl: str) -> list[Object]:
    return [each for each in account.store.all(LISTENER) if each["AclStatus"] == "on" and each["AclId"] == acl]


def _shown(acl: Object) -> dict[str, Any]:
    return {
        "AclId": acl["id"],
        "AclName": acl["name"],
        "AddressIPVersion": acl["ip_version"],
        "ResourceGroupId": acl["resource_group"],
        "CreateTime": acl["made"],
        "Tags": {"Tag": shown_tags(acl["tags"])},
    }
