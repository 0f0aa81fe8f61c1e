"""CLB: load balancers themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from local.alicloud.account import Account, as_text
from local.alicloud.checks import ON_OFF, Range, Rule, Text, has_tags, require, shown_tags, tags_of
from local.alicloud.machines import EIP, VPC, VSWITCH, free_address, public_address, take_address
from local.alicloud.paging import numbered
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

CLB, LISTENER, GROUP, EXTENSION = "clb", "clb listener", "vserver group", "domain extension"

INVALID: Final = "InvalidParameter"
SPECS: Final = ("slb.s1.small", "slb.s2.small", "slb.s2.medium", "slb.s3.small", "slb.s3.medium", "slb.s3.large")
_NAME: Final = Text(r"[A-Za-z\u4e00-\u9fff][\w.\-/]{0,79}", "1 to 80 letters, digits, . _ - /, a letter first")
_REASON: Final = Text(r"[A-Za-z\u4e00-\u9fff][\w.\-]{0,79}", "1 to 80 letters, digits, . _ -, a letter first")
_RULES: Final[dict[str, Rule]] = {
    "AddressIPVersion": ("ipv4", "ipv6"),
    "AddressType": ("internet", "intranet"),
    "Bandwidth": Range(1, 5120),
    "DeleteProtection": ON_OFF,
    "InstanceChargeType": ("PayBySpec", "PayByCLCU"),
    "InternetChargeType": ("paybytraffic", "paybybandwidth"),
    "LoadBalancerName": _NAME,
    "LoadBalancerSpec": SPECS,
    "ModificationProtectionReason": _REASON,
    "ModificationProtectionStatus": ("NonProtection", "ConsoleProtection"),
    "PayType": ("PayOnDemand",),
}
_UNLIMITED: Final = 5120
"""The bandwidth that the cloud shows where traffic is paid."""


# Bandwidth and LoadBalancerSpec are not used where another way of paying is chosen, as the SDK's documentation says.
@SLB.action("CreateLoadBalancer", "Bandwidth", "LoadBalancerSpec", "PayType", "VpcId", "ModificationProtectionReason")
def create_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """An intranet one needs a vSwitch; one that is paid by specification needs a specification."""
    require(arguments, _RULES, INVALID)
    if len(account.store.all(CLB)) >= account.quotas.load_balancers:
        raise Refusal(
            400, "InsufficientCapacity", "There is insufficient capacity available for the requested instance."
        )
    vswitch = arguments.get("VSwitchId", "")
    kind = arguments.get("AddressType", "intranet" if vswitch else "internet")
    charge = arguments.get("InstanceChargeType", "PayBySpec")
    traffic = arguments.get("InternetChargeType", "paybytraffic")
    _require_fitting(kind, charge, traffic, arguments)
    vpc, address, zone = _place(account, kind, vswitch, arguments)
    tags = tags_of(arguments.get("Tag", []), account.quotas.tags)
    protection = arguments.get("ModificationProtectionStatus", "NonProtection")
    new = account.new_id("lb")
    body = {
        "id": new,
        "name": arguments.get("LoadBalancerName", new),
        "address": address,
        "address_type": kind,
        "ip_version": arguments.get("AddressIPVersion", "ipv4"),
        "vpc": vpc,
        "vswitch": vswitch,
        "bandwidth": arguments.get("Bandwidth", _UNLIMITED) if traffic == "paybybandwidth" else _UNLIMITED,
        "traffic": traffic,
        "charge": charge,
        "spec": "" if charge == "PayByCLCU" else arguments["LoadBalancerSpec"],
        "master_zone": arguments.get("MasterZoneId", zone),
        "slave_zone": arguments.get("SlaveZoneId", f"{account.region}-b"),
        "resource_group": arguments.get("ResourceGroupId", "rg-default"),
        "delete_protection": arguments.get("DeleteProtection", "off"),
        "protection": protection,
        "reason": arguments.get("ModificationProtectionReason", "") if protection == "ConsoleProtection" else "",
        "tags": tags,
        "made": account.clock(),
        "settles": 0.0,
    }
    account.store.put(CLB, new, body)
    shown = _shown(account, body)
    names = ("LoadBalancerId", "LoadBalancerName", "Address", "AddressIPVersion", "NetworkType", "VpcId", "VSwitchId")
    return {**{name: shown[name] for name in names}, "ResourceGroupId": body["resource_group"]}


@SLB.action("DescribeLoadBalancers")
def describe_load_balancers(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids and names (at most 10, separated by commas), tags, address, VPC; pages by number."""
    asked = [*arguments.get("Tag", []), *older_tags(arguments.get("Tags", "[]"))]
    found = [_shown(account, each) for each in account.store.all(CLB) if has_tags(each["tags"], asked)]
    for name in ("LoadBalancerId", "LoadBalancerName"):
        if name in arguments:
            wanted = _at_most_ten(arguments[name].split(","), name)
            found = [each for each in found if each[name] in wanted]
    for name in (
        *("Address", "AddressType", "AddressIPVersion", "InternetChargeType", "LoadBalancerStatus", "MasterZoneId"),
        *("NetworkType", "PayType", "ResourceGroupId", "SlaveZoneId", "VSwitchId", "VpcId"),
    ):
        if name in arguments:
            found = [each for each in found if each[name] == arguments[name]]
    if "PageSize" in arguments and "PageNumber" not in arguments:
        raise Refusal(400, "MissingPageNumber", "PageNumber is mandatory for this action, with PageSize.")
    page, fields = numbered(arguments, found, 50, 100)
    return {"LoadBalancers": {"LoadBalancer": page}, **fields}


@SLB.action("DescribeLoadBalancerAttribute")
def describe_load_balancer_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One load balancer with its ports."""
    balancer = balancer_of(account, arguments)
    listeners = listeners_of(account, balancer["id"])
    ports = [
        {
            "ListenerPort": each["port"],
            "ListenerProtocol": each["protocol"],
            "Description": each["Description"],
            "ListenerForward": each["config"].get("ListenerForward", "off"),
            **({"ForwardPort": each["config"]["ForwardPort"]} if each["config"].get("ForwardPort") else {}),
        }
        for each in listeners
    ]
    return {
        **_shown(account, balancer),
        "ListenerPorts": {"ListenerPort": sorted({each["port"] for each in listeners})},
        "ListenerPortsAndProtocol": {"ListenerPortAndProtocol": ports},
        "BackendServers": {"BackendServer": []},
    }


@SLB.action("DeleteLoadBalancer")
def delete_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Listeners, server groups and domain extensions go with it."""
    balancer = ready(account, balancer_of(account, arguments))
    if balancer["delete_protection"] == "on":
        raise Refusal(
            400,
            "OperationDenied.DeleteProtectionIsOn",
            "The loadbalancer can not be deleted due to DeleteProtection is enabled.",
        )
    for kind in (LISTENER, GROUP, EXTENSION):
        for each in account.store.all(kind):
            if each["balancer"] == balancer["id"]:
                account.store.remove(kind, each["id"])
    if balancer["vswitch"]:
        free_address(account, balancer["vswitch"], balancer["address"])
    for eip in account.store.all(EIP):
        if eip["instance"] == balancer["id"]:
            account.fill(EIP, eip["id"], instance="", kind="")
    account.store.remove(CLB, balancer["id"])
    return {}


@SLB.action("SetLoadBalancerDeleteProtection")
def set_load_balancer_delete_protection(account: Account, arguments: Arguments) -> dict[str, Any]:
    """On or off."""
    require(arguments, _RULES, INVALID)
    return _set(account, arguments, delete_protection=arguments["DeleteProtection"])


@SLB.action("SetLoadBalancerModificationProtection")
def set_load_balancer_modification_protection(account: Account, arguments: Arguments) -> dict[str, Any]:
    """It holds the console back, not the API. Taking it off clears the reason."""
    require(arguments, _RULES, INVALID)
    status, reason = arguments["ModificationProtectionStatus"], arguments.get("ModificationProtectionReason", "")
    return _set(account, arguments, protection=status, reason=reason if status == "ConsoleProtection" else "")


@SLB.action("SetLoadBalancerName")
def set_load_balancer_name(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Its name."""
    require(arguments, _RULES, INVALID)
    return _set(account, arguments, name=arguments["LoadBalancerName"])


@SLB.action("ModifyLoadBalancerInternetSpec", "AutoPay")
def modify_load_balancer_internet_spec(account: Account, arguments: Arguments) -> dict[str, Any]:
    """How its traffic is paid, and its bandwidth."""
    require(arguments, _RULES, INVALID)
    balancer = balancer_of(account, arguments)
    if balancer["address_type"] == "intranet":
        raise Refusal(400, "ActionNotAllowed", "The action is not allowed for an intranet load balancer.")
    traffic = arguments.get("InternetChargeType", balancer["traffic"])
    if balancer["charge"] == "PayByCLCU" and traffic != "paybytraffic":
        raise _not_for_clcu()
    bandwidth = arguments.get("Bandwidth", balancer["bandwidth"])
    return _set(account, arguments, traffic=traffic, bandwidth=bandwidth if traffic == "paybybandwidth" else _UNLIMITED)


@SLB.action("ModifyLoadBalancerInstanceSpec", "AutoPay")
def modify_load_balancer_instance_spec(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The specification of one that is paid by specification."""
    require(arguments, _RULES, INVALID)
    if balancer_of(account, arguments)["charge"] != "PayBySpec":
        raise Refusal(400, "ActionNotAllowed", "The load balancer is not paid by specification.")
    return _set(account, arguments, spec=arguments["LoadBalancerSpec"])


@SLB.action("ModifyLoadBalancerInstanceChargeType", "Bandwidth", "LoadBalancerSpec", "InternetChargeType")
def modify_load_balancer_instance_charge_type(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Only to PayByCLCU, as the SDK's documentation says; there is no way back."""
    require(arguments, {"InstanceChargeType": ("PayByCLCU",), "InternetChargeType": ("paybytraffic",)}, INVALID)
    charge = arguments["InstanceChargeType"]
    return _set(account, arguments, charge=charge, spec="", traffic="paybytraffic", bandwidth=_UNLIMITED)


def balancer_of(account: Account, arguments: Arguments) -> Object:
    """The load balancer that a request names."""
    asked = arguments["LoadBalancerId"]
    missing = Refusal(404, "InvalidLoadBalancerId.NotFound", f"The specified LoadBalancerId does not exist: {asked}.")
    return account.find(CLB, asked, missing)


def ready(account: Account, balancer: Object) -> Object:
    """The load balancer, which is about to be changed. Raises Refusal while an earlier change settles."""
    if account.clock() < balancer["settles"]:
        message = "A previous configuration of the load balancer is pending; please try again later."
        raise Refusal(409, "BackendServer.configuring", message)
    if account.clb_settles:
        return account.fill(CLB, balancer["id"], settles=account.clock() + account.clb_settles)
    return balancer


def listeners_of(account: Account, balancer: str) -> list[Object]:
    """Those of a load balancer, by port."""
    found = [each for each in account.store.all(LISTENER) if each["balancer"] == balancer]
    return sorted(found, key=lambda each: (each["port"], each["protocol"]))


def _set(account: Account, arguments: Arguments, **changes: Any) -> dict[str, Any]:
    balancer = ready(account, balancer_of(account, arguments))
    account.fill(CLB, balancer["id"], **changes)
    return {}


def _require_fitting(kind: str, charge: str, traffic: str, arguments: Arguments) -> None:
    if kind == "intranet" and "VSwitchId" not in arguments:
        raise Refusal(400, "MissingParam.VSwitchId", "The parameter VSwitchId is required.")
    if kind == "internet" and "VSwitchId" in arguments:
        raise Refusal(400, INVALID, "VSwitchId is not for an internet load balancer.")
    if kind == "internet" and "Address" in arguments:
        raise Refusal(400, INVALID, "Address is not for an internet load balancer.")
    if kind == "intranet" and arguments.get("AddressIPVersion", "ipv4") == "ipv6":
        message = "AddressType and IpVersion is conflict, IPv6 does not support intranet instance."
        raise Refusal(400, "InvalidParameter.Mismatch", message)
    if charge == "PayBySpec" and "LoadBalancerSpec" not in arguments:
        raise Refusal(400, "MissingParam.LoadBalancerSpec", "The param LoadBalancerSpec is required.")
    if charge == "PayByCLCU" and traffic == "paybybandwidth":
        raise _not_for_clcu()
    if traffic == "paybybandwidth" and "Bandwidth" not in arguments:
        raise Refusal(400, "InvalidParameter.Bandwidth", "The param Bandwidth is invalid.")


def _place(account: Account, kind: str, vswitch: str, arguments: Arguments) -> tuple[str, str, str]:
    """Its VPC, its address and its zone."""
    if kind == "internet":
        is_ipv6 = arguments.get("AddressIPVersion", "ipv4") == "ipv6"
        return "", _ipv6(account) if is_ipv6 else public_address(account), f"{account.region}-a"
    subnet = account.find(VSWITCH, vswitch, Refusal(400, "VSwitchNotExist", "The specified VSwitch does not exist."))
    vpc = arguments.get("VpcId", subnet["vpc"])
    account.find(VPC, vpc, Refusal(400, "InvalidVpcId.NotExist", "The specified VPC not exist."))
    if vpc != subnet["vpc"]:
        raise Refusal(400, "VSwitchNotExist", f"The specified VSwitch does not exist in {vpc}.")
    return vpc, take_address(account, vswitch, arguments.get("Address", "")), subnet["zone"]


def _ipv6(account: Account) -> str:
    return f"2001:db8::{account.store.next_number('ipv6'):x}"


def _not_for_clcu() -> Refusal:
    message = "Illegal parameter. The specified InternetChargeType not allowed."
    return Refusal(400, "Instance.InternetChargeTypeNotAllowed", message)


def _at_most_ten(values: list[str], name: str) -> Sequence[str]:
    if len(values) > 10:
        raise Refusal(400, INVALID, f"{name} has {len(values)} values, more than 10.")
    return values


def older_tags(text: str) -> list[dict[str, str]]:
    """`Tags`, a JSON list of TagKey and TagValue."""
    try:
        tags = [{"Key": tag["TagKey"], "Value": tag["TagValue"]} for tag in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        message = "Tags must be a JSON list of objects with TagKey and TagValue."
        raise Refusal(400, "InvalidParameter.Tags", message) from None
    _at_most_ten([tag["Key"] for tag in tags], "Tags")
    return tags


def _shown(account: Account, balancer: Object) -> dict[str, Any]:
    return {
        "LoadBalancerId": balancer["id"],
        "LoadBalancerName": balancer["name"],
        "LoadBalancerStatus": "active",
        "RegionId": account.region,
        "Address": balancer["address"],
        "AddressType": balancer["address_type"],
        "AddressIPVersion": balancer["ip_version"],
        "NetworkType": "vpc" if balancer["vpc"] else "classic",
        "VpcId": balancer["vpc"],
        "VSwitchId": balancer["vswitch"],
        "Bandwidth": balancer["bandwidth"],
        "InternetChargeType": balancer["traffic"],
        "InstanceChargeType": balancer["charge"],
        "PayType": "PayOnDemand",
        "LoadBalancerSpec": balancer["spec"],
        "MasterZoneId": balancer["master_zone"],
        "SlaveZoneId": balancer["slave_zone"],
        "ResourceGroupId": balancer["resource_group"],
        "DeleteProtection": balancer["delete_protection"],
        "ModificationProtectionStatus": balancer["protection"],
        "ModificationProtectionReason": balancer["reason"],
        "CreateTime": as_text(balancer["made"]),
        "CreateTimeStamp": int(balancer["made"] * 1000),
        "Tags": {"Tag": shown_tags(balancer["tags"])},
    }
