"""Finds the network interfaces of pods that are backends by their own address."""

from __future__ import annotations

from collections.abc import Sequence

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.common.concurrent_calls import batches

_A_CALL = 100
_NAMED = 5


def interfaces_of(client: Client, vpc_id: str, addresses: Sequence[str]) -> dict[str, str]:
    """The interface of each address in the VPC. Raises InvalidConfiguration for addresses that have none."""
    found: dict[str, str] = {}
    by_family = {"PrivateIpAddress": [a for a in addresses if ":" not in a]}
    by_family["Ipv6Address"] = [a for a in addresses if ":" in a]
    for name, of_family in by_family.items():
        for part in batches(of_family, _A_CALL):
            asked = {"VpcId": vpc_id, "Status": "InUse", name: [*part], "MaxResults": _A_CALL}
            path = "NetworkInterfaceSets.NetworkInterfaceSet"
            for shown in client.pages("ecs", "DescribeNetworkInterfaces", asked, path):
                ips = (shown.get("PrivateIpSets") or {}).get("PrivateIpSet") or []
                ip6s = (shown.get("Ipv6Sets") or {}).get("Ipv6Set") or []
                own = {each.get("PrivateIpAddress") for each in ips} | {each.get("Ipv6Address") for each in ip6s}
                found |= {address: shown["NetworkInterfaceId"] for address in part if address in own}
    missing = [each for each in addresses if each not in found]
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        why = f"no network interface of {vpc_id} has the pod address {', '.join(missing[:_NAMED])}{more}"
        raise InvalidConfiguration(f"annotation {BACKEND_TYPE}", why, "ecs; or a network plugin such as Terway")
    return found
