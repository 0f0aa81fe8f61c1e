"""Finds the network interfaces of pods that are backends by their own address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from cloud_controller.clouds.common.concurrent_calls import batches

_A_CALL = 100


class Api(Protocol):
    """See `Client`."""

    def pages(
        self, product: str, action: str, parameters: Mapping[str, Any], path: str
    ) -> Iterable[dict[str, Any]]: ...


def interfaces(client: Api, vpc_id: str, addresses: Sequence[str]) -> dict[str, str]:
    """The interface of each address in the VPC; those that have none are left out."""
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
                found |= {address: str(shown["NetworkInterfaceId"]) for address in part if address in own}
    return found
