"""VPC: networks and elastic IPs, as a controller reads them."""

from __future__ import annotations

from typing import Any

from local.alicloud.account import Account
from local.alicloud.checks import shown_tags
from local.alicloud.machines import EIP, ROUTE_TABLE, VPC, VSWITCH
from local.alicloud.paging import numbered
from local.alicloud.products import VPC as PRODUCT
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object


@PRODUCT.action("DescribeVpcs")
def describe_vpcs(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids, separated by commas."""
    found = account.store.all(VPC)
    if "VpcId" in arguments:
        found = [each for each in found if each["id"] in arguments["VpcId"].split(",")]
    page, fields = numbered(arguments, found, 10, 50)
    return {"Vpcs": {"Vpc": [_vpc(account, each) for each in page]}, **fields}


@PRODUCT.action("DescribeVpcAttribute")
def describe_vpc_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One network."""
    missing = Refusal(404, "InvalidVpcId.NotFound", "Specified VPC does not exist.")
    vpc = _vpc(account, account.find(VPC, arguments["VpcId"], missing))
    return {name: value for name, value in vpc.items() if name not in ("RouterTableIds", "NatGatewayIds")}


@PRODUCT.action("DescribeEipAddresses")
def describe_eip_addresses(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids (separated by commas), address, and what they are bound to."""
    found = account.store.all(EIP)
    if "AllocationId" in arguments:
        found = [each for each in found if each["id"] in arguments["AllocationId"].split(",")]
    for parameter, field in (
        ("EipAddress", "address"),
        ("AssociatedInstanceId", "instance"),
        ("AssociatedInstanceType", "kind"),
    ):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    page, fields = numbered(arguments, found, 10, 100)
    shown = [
        {
            "AllocationId": each["id"],
            "IpAddress": each["address"],
            "InstanceId": each["instance"],
            "InstanceType": each["kind"],
            "Status": "InUse" if each["instance"] else "Available",
            "RegionId": account.region,
            "AllocationTime": each["made"],
            "Tags": {"Tag": shown_tags(each.get("tags", {}), "Key", "Value")},
        }
        for each in page
    ]
    return {"EipAddresses": {"EipAddress": shown}, **fields}


def _vpc(account: Account, vpc: Object) -> dict[str, Any]:
    tables = [each["id"] for each in account.store.all(ROUTE_TABLE) if each["vpc"] == vpc["id"]]
    subnets = [each["id"] for each in account.store.all(VSWITCH) if each["vpc"] == vpc["id"]]
    return {
        "VpcId": vpc["id"],
        "VpcName": vpc["id"],
        "CidrBlock": vpc["cidr"],
        "Ipv6CidrBlock": vpc["ipv6_cidr"],
        "EnabledIpv6": bool(vpc["ipv6_cidr"]),
        "SecondaryCidrBlocks": {"SecondaryCidrBlock": []},
        "RegionId": account.region,
        "Status": "Available",
        "VRouterId": vpc["router"],
        "RouterTableIds": {"RouterTableIds": tables},
        "VSwitchIds": {"VSwitchId": subnets},
        "CreationTime": vpc["made"],
    }
