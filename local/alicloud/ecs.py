"""ECS: instances and their network interfaces, as a controller reads them, and the source/destination check."""

from __future__ import annotations

import json
from typing import Any

from local.alicloud.account import Account
from local.alicloud.checks import has_tags, shown_tags
from local.alicloud.machines import EIP, ENI, INSTANCE, SECURITY_GROUP, host_name
from local.alicloud.paging import numbered, tokened
from local.alicloud.products import ECS
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

MOST_IDS = 100
"""In a call."""


@ECS.action("DescribeInstances", "AdditionalAttributes", "InstanceNetworkType", "NeedSaleCycle")
def describe_instances(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids (JSON text, at most 100), VPC, zone, status, name, tags; pages of both kinds."""
    if "InstanceIds" in arguments:
        ids = _ids(arguments["InstanceIds"], "InstanceIds")
        found = [each for one in dict.fromkeys(ids) if (each := account.store.get(INSTANCE, one)) is not None]
    else:
        found = account.store.all(INSTANCE)
    for parameter, field in (
        ("VpcId", "vpc"),
        ("VSwitchId", "vswitch"),
        ("ZoneId", "zone"),
        ("Status", "status"),
        ("InstanceName", "name"),
        ("InstanceType", "type"),
        ("InstanceChargeType", "charge_type"),
    ):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    if "PrivateIpAddresses" in arguments:
        wanted = set(_ids(arguments["PrivateIpAddresses"], "PrivateIpAddresses"))
        found = [each for each in found if wanted & set(_primary(account, each)["addresses"])]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    page, fields = _page(arguments, found)
    elastic = {eip["instance"]: eip for eip in account.store.all(EIP) if eip["instance"]}
    shown = [_instance(account, each, elastic.get(each["id"])) for each in page]
    return {"Instances": {"Instance": shown}, **fields}


@ECS.action("DescribeInstanceAttribute")
def describe_instance_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One machine; unlike DescribeInstances, an error if there is none."""
    machine = arguments["InstanceId"]
    missing = Refusal(404, "InvalidInstanceId.NotFound", f"The specified InstanceId does not exist: {machine}.")
    instance = account.find(INSTANCE, machine, missing)
    return {
        "InstanceId": instance["id"],
        "InstanceName": instance["name"],
        "InstanceType": instance["type"],
        "RegionId": account.region,
        "ZoneId": instance["zone"],
        "Status": instance["status"],
    }


@ECS.action("DescribeNetworkInterfaces")
def describe_network_interfaces(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids (at most 100), addresses, instance, VPC, status, type; pages of both kinds."""
    ids = arguments.get("NetworkInterfaceId")
    if ids is None:
        found = account.store.all(ENI)
    else:
        _at_most(ids, "NetworkInterfaceId")
        found = [each for one in dict.fromkeys(ids) if (each := account.store.get(ENI, one)) is not None]
    for parameter, field in (("VpcId", "vpc"), ("VSwitchId", "vswitch"), ("InstanceId", "instance"), ("Type", "kind")):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    for parameter, field in (("PrivateIpAddress", "addresses"), ("Ipv6Address", "ipv6")):
        if parameter in arguments:
            wanted = set(_at_most(arguments[parameter], parameter))
            found = [each for each in found if wanted & set(each[field])]
    if "PrimaryIpAddress" in arguments:
        found = [each for each in found if each["addresses"][0] == arguments["PrimaryIpAddress"]]
    if status := arguments.get("Status"):
        found = [each for each in found if _eni_status(each) == status]
    if "SecurityGroupId" in arguments:
        found = [each for each in found if arguments["SecurityGroupId"] in each["groups"]]
    page, fields = _page(arguments, found)
    return {"NetworkInterfaceSets": {"NetworkInterfaceSet": [_eni(each) for each in page]}, **fields}


@ECS.action("ModifyNetworkInterfaceAttribute")
def modify_network_interface_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Only the source/destination check is simulated."""
    eni = arguments["NetworkInterfaceId"]
    missing = Refusal(404, "InvalidEniId.NotFound", f"The specified parameter NetworkInterfaceId is not valid: {eni}.")
    account.find(ENI, eni, missing)
    if "SourceDestCheck" in arguments:
        account.fill(ENI, eni, source_check=arguments["SourceDestCheck"])
    return {}


@ECS.action("DescribeSecurityGroups")
def describe_security_groups(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By id, ids (JSON text), VPC and tags."""
    found = account.store.all(SECURITY_GROUP)
    if "SecurityGroupId" in arguments:
        found = [each for each in found if each["id"] == arguments["SecurityGroupId"]]
    if "SecurityGroupIds" in arguments:
        wanted = set(_ids(arguments["SecurityGroupIds"], "SecurityGroupIds"))
        found = [each for each in found if each["id"] in wanted]
    if "VpcId" in arguments:
        found = [each for each in found if each["vpc"] == arguments["VpcId"]]
    tags = arguments.get("Tag", [])
    found = [each for each in found if has_tags(each.get("tags", {}), tags)]
    page, fields = _page(arguments, found)
    shown = [
        {
            "SecurityGroupId": each["id"],
            "SecurityGroupName": each.get("name", ""),
            "VpcId": each["vpc"],
            "SecurityGroupType": each.get("type", "normal"),
            "Tags": {"Tag": shown_tags(each.get("tags", {}))},
            "CreationTime": each["made"],
        }
        for each in page
    ]
    return {"SecurityGroups": {"SecurityGroup": shown}, "RegionId": account.region, **fields}


def _page(arguments: Arguments, found: list[Object]) -> tuple[list[Object], dict[str, Any]]:
    if "PageNumber" in arguments or "PageSize" in arguments:
        if "MaxResults" in arguments or "NextToken" in arguments:
            raise Refusal(400, "InvalidParameter", "PageNumber and PageSize exclude MaxResults and NextToken.")
        return numbered(arguments, found, 10, 100)
    page, fields = tokened(arguments, found, 10, 100)
    return page, {"PageNumber": 1, "PageSize": len(page), **fields}


def _ids(text: str, name: str) -> list[str]:
    try:
        ids = json.loads(text)
    except ValueError:
        ids = None
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise Refusal(400, f"Invalid{name}.Malformed", f"The specified {name} is not a JSON list of texts.")
    return _at_most(ids, name)


def _at_most(ids: list[str], name: str) -> list[str]:
    if len(ids) > MOST_IDS:
        raise Refusal(400, f"Invalid{name}.ExceedLimit", f"{name} has {len(ids)} values, more than {MOST_IDS}.")
    return ids


def _primary(account: Account, instance: Object) -> Object:
    return account.store.get(ENI, instance["enis"][0]) or {}


def _instance(account: Account, instance: Object, eip: Object | None) -> dict[str, Any]:
    enis = [eni for one in instance["enis"] if (eni := account.store.get(ENI, one)) is not None]
    public = [instance["public_address"]] if instance["public_address"] else []
    return {
        "InstanceId": instance["id"],
        "InstanceName": instance["name"],
        "HostName": host_name(instance),
        "InstanceType": instance["type"],
        "InstanceTypeFamily": instance["type"].rpartition(".")[0],
        "RegionId": account.region,
        "ZoneId": instance["zone"],
        "Status": instance["status"],
        "InstanceChargeType": instance["charge_type"],
        "SpotStrategy": instance["spot_strategy"],
        "InstanceNetworkType": "vpc",
        "CreationTime": instance["made"],
        "PublicIpAddress": {"IpAddress": public},
        "InnerIpAddress": {"IpAddress": []},
        "EipAddress": {
            "AllocationId": "" if eip is None else eip["id"],
            "IpAddress": "" if eip is None else eip["address"],
        },
        "SecurityGroupIds": {"SecurityGroupId": instance["security_groups"]},
        "VpcAttributes": {
            "VpcId": instance["vpc"],
            "VSwitchId": instance["vswitch"],
            "NatIpAddress": "",
            "PrivateIpAddress": {"IpAddress": enis[0]["addresses"][:1]},
        },
        "NetworkInterfaces": {
            "NetworkInterface": [
                {
                    "NetworkInterfaceId": eni["id"],
                    "Type": eni["kind"],
                    "PrimaryIpAddress": eni["addresses"][0],
                    "PrivateIpSets": {"PrivateIpSet": _private(eni)},
                    "Ipv6Sets": {"Ipv6Set": [{"Ipv6Address": address} for address in eni["ipv6"]]},
                }
                for eni in enis
            ]
        },
        "Tags": {"Tag": shown_tags(instance["tags"])},
    }


def _eni(eni: Object) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": eni["id"],
        "VpcId": eni["vpc"],
        "VSwitchId": eni["vswitch"],
        "ZoneId": eni["zone"],
        "InstanceId": eni["instance"],
        "Type": eni["kind"],
        "Status": _eni_status(eni),
        "SourceDestCheck": eni["source_check"],
        "PrivateIpAddress": eni["addresses"][0],
        "PrivateIpSets": {"PrivateIpSet": _private(eni)},
        "Ipv6Sets": {"Ipv6Set": [{"Ipv6Address": address} for address in eni["ipv6"]]},
        "SecurityGroupIds": {"SecurityGroupId": eni["groups"]},
        "CreationTime": eni["made"],
        "Tags": {"Tag": []},
    }


def _private(eni: Object) -> list[dict[str, Any]]:
    return [{"PrivateIpAddress": address, "Primary": not number} for number, address in enumerate(eni["addresses"])]


def _eni_status(eni: Object) -> str:
    return "InUse" if eni["instance"] else "Available"
