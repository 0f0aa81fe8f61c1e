"""NLB: the zones of a load balancer, with a subnet and addresses in each."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.machines import EIP, VSWITCH, free_address, public_address, take_address
from local.standin.refusals import Refusal
from local.standin.store import Object

INTERNET, INTRANET = "Internet", "Intranet"
_LEAST, _MOST = 2, 10

Zone = dict[str, Any]


def zones_of(account: Account, asked: Sequence[Mapping[str, Any]], balancer: Object) -> list[Zone]:
    """The zones that a request asks for, with addresses taken; those that stay as they are keep theirs."""
    names = [each["ZoneId"] for each in asked]
    if len({*names}) != len(names):
        raise Refusal(400, "DuplicatedParam.ZoneId", "The param of ZoneId is duplicated.")
    if not _LEAST <= len(names) <= _MOST:
        raise Refusal(400, "IllegalParam.ZoneMappings", f"{len(names)} zones; an NLB has {_LEAST} to {_MOST}.")
    return [_same(each, balancer["zones"]) or _zone(account, each, balancer) for each in asked]


def with_type(account: Account, balancer: Object, address_type: str, eips: Mapping[str, str]) -> list[Zone]:
    """Its zones with public addresses, or without; `eips` are elastic IPs by zone."""
    return [
        {**zone, **_public(account, eips.get(zone["zone"], ""), balancer["id"], address_type)}
        for zone in balancer["zones"]
    ]


def release(account: Account, gone: Sequence[Zone], kept: Sequence[Zone] = ()) -> None:
    """Give the addresses of zones back that no other zone has."""
    private = {(each["vswitch"], each["private"]) for each in kept}
    eips = {each["eip"] for each in kept}
    for zone in gone:
        if (zone["vswitch"], zone["private"]) not in private:
            free_address(account, zone["vswitch"], zone["private"])
        if zone["eip"] and zone["eip"] not in eips and account.store.get(EIP, zone["eip"]) is not None:
            account.fill(EIP, zone["eip"], instance="", kind="")


def shown_zone(zone: Zone) -> dict[str, Any]:
    """A zone as answers write it."""
    addresses = {
        "EniId": zone["eni"],
        "PrivateIPv4Address": zone["private"],
        "PrivateIPv4HcStatus": "Healthy",
        **({"AllocationId": zone["eip"]} if zone["eip"] else {}),
        **({"PublicIPv4Address": zone["public"]} if zone["public"] else {}),
        **({"Ipv6Address": zone["ipv6"]} if zone["ipv6"] else {}),
    }
    return {
        "ZoneId": zone["zone"],
        "VSwitchId": zone["vswitch"],
        "Status": "Active",
        "LoadBalancerAddresses": [addresses],
    }


_ASKED: Final = ("VSwitchId", "PrivateIPv4Address", "AllocationId")


def _same(asked: Mapping[str, Any], had: Sequence[Zone]) -> Zone | None:
    """The zone that the load balancer has already, if the request changes nothing of it."""
    fields = dict(zip(_ASKED, ("vswitch", "private", "eip"), strict=True))
    for zone in had:
        if zone["zone"] == asked["ZoneId"] and all(
            asked[name] == zone[fields[name]] for name in _ASKED if name in asked
        ):
            return zone
    return None


def _zone(account: Account, asked: Mapping[str, Any], balancer: Object) -> Zone:
    vswitch, vpc = asked["VSwitchId"], balancer["vpc"]
    subnet = account.find(VSWITCH, vswitch, Refusal(404, "ResourceNotFound.VSwitch", f"There is no vSwitch {vswitch}."))
    if subnet["vpc"] != vpc:
        raise Refusal(400, "Mismatch.VpcId", f"The VpcId is mismatched for {vswitch} and {vpc}.")
    if subnet["zone"] != asked["ZoneId"]:
        raise Refusal(400, "Mismatch.ZoneIdAndVSwitchId", f"{vswitch} is not in {asked['ZoneId']}.")
    for name in ("Ipv4LocalAddresses", "Ipv6LocalAddresses"):
        if name in asked:
            raise Refusal(501, "NotSimulated", f"the stand-in does not simulate {name}")
    ipv6 = ""
    if balancer["ip_version"] == "DualStack" and subnet["ipv6_cidr"]:
        ipv6 = str(ipaddress.ip_network(subnet["ipv6_cidr"])[account.store.next_number("ipv6")])
    return {
        "zone": subnet["zone"],
        "vswitch": vswitch,
        "eni": account.new_id("eni"),
        "private": take_address(account, vswitch, asked.get("PrivateIPv4Address", "")),
        "ipv6": asked.get("Ipv6Address", ipv6),
        **_public(account, asked.get("AllocationId", ""), balancer["id"], balancer["address_type"]),
    }


def _public(account: Account, eip: str, balancer: str, address_type: str) -> dict[str, str]:
    if address_type == INTRANET:
        if eip:
            raise Refusal(400, "IllegalParam.AllocationId", "AllocationId is not for an Intranet load balancer.")
        return {"eip": "", "public": ""}
    if not eip:
        return {"eip": "", "public": public_address(account)}
    found = account.find(EIP, eip, Refusal(404, "ResourceNotFound.Eip", f"There is no elastic IP {eip}."))
    if found["instance"] not in ("", balancer):
        raise Refusal(400, "ResourceInUse.Eip", f"The elastic IP {eip} is bound to {found['instance']}.")
    account.fill(EIP, eip, instance=balancer, kind="NlbInstance")
    return {"eip": eip, "public": found["address"]}
