"""NLB: load balancers themselves."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import Range, Rule, Text, has_tags, require, shown_tags, tags_of
from local.alicloud.machines import BANDWIDTH, SECURITY_GROUP, VPC
from local.alicloud.nlb_jobs import BALANCER, ILLEGAL, active, balancer_of, begin, begin_removal, not_found
from local.alicloud.nlb_zones import INTERNET, INTRANET, shown_zone, with_type, zones_of
from local.alicloud.paging import tokened
from local.alicloud.products import NLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

NAME: Final = Text(r"[A-Za-z\u4e00-\u9fff][\w.\-]{1,127}", "2 to 128 letters, digits, . _ -, a letter first")
_RULES: Final[dict[str, Rule]] = {
    "AddressIpVersion": ("ipv4", "DualStack"),
    "AddressType": (INTERNET, INTRANET, "internet", "intranet"),
    "Cps": Range(0, 1000000),
    "LoadBalancerName": NAME,
    "LoadBalancerType": ("Network", "network"),
    "DeletionProtectionReason": NAME,
    "ModificationProtectionReason": NAME,
    "ModificationProtectionStatus": ("NonProtection", "ConsoleProtection"),
}
_PROTECTED: Final = "ConsoleProtection"


@NLB.action("CreateLoadBalancer", "LoadBalancerType", "LoadBalancerBillingConfig")
def create_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """In at least two zones. It is Provisioning, then Active."""
    require(arguments, _RULES, ILLEGAL)
    if len(account.store.all(BALANCER)) >= account.quotas.load_balancers:
        raise Refusal(400, "QuotaExceeded.LoadBalancersNum", "The quota of LoadBalancersNum is exceeded.")
    vpc, kind = arguments["VpcId"], arguments["AddressType"].capitalize()
    account.find(VPC, vpc, Refusal(404, "ResourceNotFound.Vpc", f"There is no VPC {vpc}."))
    new = account.new_id("nlb")
    package = arguments.get("BandwidthPackageId", "")
    if package:
        _package(account, package, kind)
    protection = arguments.get("ModificationProtectionConfig", {})
    deletion = arguments.get("DeletionProtectionConfig", {})
    body = {
        "id": new,
        "name": arguments.get("LoadBalancerName", new),
        "status": "",
        "address_type": kind,
        "ip_version": arguments.get("AddressIpVersion", "ipv4"),
        "ipv6_type": INTRANET,
        "vpc": vpc,
        "zones": [],
        "package": package,
        "cross_zone": True,
        "cps": 0,
        "groups": [],
        "resource_group": arguments.get("ResourceGroupId", "rg-default"),
        "deletion": {"Enabled": deletion.get("Enabled", False), "Reason": deletion.get("Reason", "")},
        "protection": _protection(protection.get("Status", "NonProtection"), protection.get("Reason", "")),
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        "made": account.now(),
    }
    account.store.put(BALANCER, new, {**body, "zones": zones_of(account, arguments["ZoneMappings"], body)})
    begin(account, BALANCER, new, "Provisioning", "Active")
    return {"LoadbalancerId": new, "OrderId": 0}


@NLB.action("GetLoadBalancerAttribute")
def get_load_balancer_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One load balancer."""
    balancer = balancer_of(account, arguments)
    return {**_shown(account, balancer), "Cps": balancer["cps"], "Tags": shown_tags(balancer["tags"])}


@NLB.action("ListLoadBalancers")
def list_load_balancers(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids, names (at most 20), tags, VPC, state; pages by token."""
    found = account.store.all(BALANCER)
    for parameter, field in (("LoadBalancerIds", "id"), ("LoadBalancerNames", "name"), ("VpcIds", "vpc")):
        if parameter in arguments:
            wanted = at_most(arguments[parameter], 20, parameter)
            found = [each for each in found if each[field] in wanted]
    for parameter, field in (
        ("LoadBalancerStatus", "status"),
        ("AddressIpVersion", "ip_version"),
        ("AddressType", "address_type"),
        ("ResourceGroupId", "resource_group"),
    ):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    page, fields = tokened(arguments, found, 20, 100)
    shown = [{**_shown(account, each), "Tags": shown_tags(each["tags"], "Key", "Value")} for each in page]
    return {"LoadBalancers": shown, "MaxResults": arguments.get("MaxResults", 20), **fields}


@NLB.action("UpdateLoadBalancerAttribute")
def update_load_balancer_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Name, cross-zone forwarding, connections per second."""
    require(arguments, _RULES, ILLEGAL)
    fields = {"LoadBalancerName": "name", "CrossZoneEnabled": "cross_zone", "Cps": "cps"}
    return _change(account, arguments, **{fields[name]: arguments[name] for name in fields if name in arguments})


@NLB.action("UpdateLoadBalancerAddressTypeConfig")
def update_load_balancer_address_type_config(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Internet or Intranet."""
    require(arguments, _RULES, ILLEGAL)
    balancer, kind = active(account, arguments), arguments["AddressType"].capitalize()
    if kind == balancer["address_type"]:
        raise Refusal(400, "IllegalParam.AddressType", f"The load balancer is {kind} already.")
    if kind == INTRANET and balancer["package"]:
        raise Refusal(400, "OperationDenied.BandwidthPackage", "Detach the bandwidth package first.")
    eips = {each["ZoneId"]: each.get("AllocationId", "") for each in arguments.get("ZoneMappings", [])}
    return _change(account, arguments, address_type=kind, zones=with_type(account, balancer, kind, eips))


@NLB.action("UpdateLoadBalancerZones")
def update_load_balancer_zones(account: Account, arguments: Arguments) -> dict[str, Any]:
    """All zones that it is to have."""
    balancer = active(account, arguments)
    return _change(account, arguments, zones=zones_of(account, arguments["ZoneMappings"], balancer))


@NLB.action("UpdateLoadBalancerProtection")
def update_load_balancer_protection(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Deletion protection, and the one that holds the console back."""
    require(arguments, _RULES, ILLEGAL)
    balancer = balancer_of(account, arguments)
    enabled = arguments.get("DeletionProtectionEnabled", balancer["deletion"]["Enabled"])
    reason = arguments.get("DeletionProtectionReason", balancer["deletion"]["Reason"])
    status = arguments.get("ModificationProtectionStatus", balancer["protection"]["Status"])
    why = arguments.get("ModificationProtectionReason", balancer["protection"]["Reason"])
    deletion = {"Enabled": enabled, "Reason": reason if enabled else ""}
    account.fill(BALANCER, balancer["id"], deletion=deletion, protection=_protection(status, why))
    return {}


@NLB.action("LoadBalancerJoinSecurityGroup")
def load_balancer_join_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Groups of its VPC that it has not joined."""
    balancer = active(account, arguments)
    for each in arguments["SecurityGroupIds"]:
        group = account.find(SECURITY_GROUP, each, not_found("SecurityGroup", each))
        if group["vpc"] != balancer["vpc"]:
            raise Refusal(400, "Mismatch.VpcId", f"The VpcId is mismatched for {each} and {balancer['id']}.")
        if each in balancer["groups"]:
            raise Refusal(
                400, "ResourceAlreadyAssociated.SecurityGroup", f"The load balancer has joined {each} already."
            )
    return _change(account, arguments, groups=[*balancer["groups"], *arguments["SecurityGroupIds"]])


@NLB.action("LoadBalancerLeaveSecurityGroup")
def load_balancer_leave_security_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Groups that it has joined."""
    balancer, gone = active(account, arguments), arguments["SecurityGroupIds"]
    for each in gone:
        if each not in balancer["groups"]:
            raise Refusal(400, "ResourceNotAssociated.SecurityGroup", f"The load balancer has not joined {each}.")
    return _change(account, arguments, groups=[each for each in balancer["groups"] if each not in gone])


@NLB.action("AttachCommonBandwidthPackageToLoadBalancer")
def attach_common_bandwidth_package_to_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of an Internet load balancer without one."""
    balancer, package = active(account, arguments), arguments["BandwidthPackageId"]
    _package(account, package, balancer["address_type"])
    if balancer["package"]:
        raise Refusal(400, "ResourceAlreadyAssociated.BandwidthPackage", f"It has {balancer['package']} already.")
    return _change(account, arguments, package=package)


@NLB.action("DetachCommonBandwidthPackageFromLoadBalancer")
def detach_common_bandwidth_package_from_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The one that it has."""
    if active(account, arguments)["package"] != arguments["BandwidthPackageId"]:
        message = f"The load balancer does not have {arguments['BandwidthPackageId']}."
        raise Refusal(400, "ResourceNotAssociated.BandwidthPackage", message)
    return _change(account, arguments, package="")


@NLB.action("EnableLoadBalancerIpv6Internet")
def enable_load_balancer_ipv6_internet(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Public IPv6 of a dual-stack load balancer."""
    return _set_ipv6(account, arguments, INTERNET)


@NLB.action("DisableLoadBalancerIpv6Internet")
def disable_load_balancer_ipv6_internet(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Private IPv6 of a dual-stack load balancer."""
    return _set_ipv6(account, arguments, INTRANET)


@NLB.action("DeleteLoadBalancer")
def delete_load_balancer(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Its listeners go with it, server groups stay."""
    balancer = balancer_of(account, arguments)
    if balancer["deletion"]["Enabled"]:
        message = "The operation is not allowed because of DeletionProtectionEnabled."
        raise Refusal(400, "OperationDenied.DeletionProtectionEnabled", message)
    if balancer["status"] != "CreateFailed":
        active(account, arguments)
    return {"JobId": begin_removal(account, BALANCER, balancer["id"], "Deleting")}


def at_most(values: list[str], most: int, name: str) -> list[str]:
    """The values; raises Refusal for too many."""
    if len(values) > most:
        raise Refusal(400, ILLEGAL.format(name), f"{name} has {len(values)} values, more than {most}.")
    return values


def _change(account: Account, arguments: Arguments, **changes: Any) -> dict[str, Any]:
    balancer = active(account, arguments)
    return {"JobId": begin(account, BALANCER, balancer["id"], "Configuring", "Active", **changes)}


def _set_ipv6(account: Account, arguments: Arguments, kind: str) -> dict[str, Any]:
    balancer = active(account, arguments)
    if balancer["ip_version"] != "DualStack":
        raise Refusal(400, "OperationDenied.AddressIpVersion", "The load balancer has no IPv6 addresses.")
    account.fill(BALANCER, balancer["id"], ipv6_type=kind)
    return {}


def _package(account: Account, package: str, address_type: str) -> None:
    account.find(BANDWIDTH, package, not_found("BandwidthPackage", package))
    if address_type != INTERNET:
        raise Refusal(400, "OperationDenied.AddressType", "A bandwidth package is not for an Intranet load balancer.")


def _protection(status: str, reason: str) -> dict[str, str]:
    return {"Status": status, "Reason": reason if status == _PROTECTED else ""}


def _shown(account: Account, balancer: Object) -> dict[str, Any]:
    return {
        "LoadBalancerId": balancer["id"],
        "LoadBalancerName": balancer["name"],
        "LoadBalancerStatus": balancer["status"],
        "LoadBalancerBusinessStatus": "Normal",
        "LoadBalancerType": "Network",
        "AddressType": balancer["address_type"],
        "AddressIpVersion": balancer["ip_version"],
        "Ipv6AddressType": balancer["ipv6_type"],
        "DNSName": f"{balancer['id']}.{account.region}.nlb.aliyuncsslb.com",
        "VpcId": balancer["vpc"],
        "RegionId": account.region,
        "ResourceGroupId": balancer["resource_group"],
        "BandwidthPackageId": balancer["package"],
        "CrossZoneEnabled": balancer["cross_zone"],
        "SecurityGroupIds": balancer["groups"],
        "LoadBalancerBillingConfig": {"PayType": "PostPay"},
        "DeletionProtectionConfig": balancer["deletion"],
        "ModificationProtectionConfig": balancer["protection"],
        "ZoneMappings": [shown_zone(each) for each in balancer["zones"]],
        "CreateTime": balancer["made"],
    }
