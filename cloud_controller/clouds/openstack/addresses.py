"""Which addresses of a server become its node's, by the section [Networking] of the cloud config. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from cloud_controller.cloud import NodeAddress
from cloud_controller.clouds.openstack.config import Networking


def node_addresses(server: Mapping[str, Any], options: Networking) -> tuple[NodeAddress, ...]:
    """Those of an object of `GET servers/detail`: internal ones first, by network in the order of names.

    `address-sort-order` goes before all that.
    """
    found: dict[str, NodeAddress] = {}
    for each in _all(server, options):
        # An address that is public for any reason is not internal too.
        if each.address not in found or each.type == "ExternalIP":
            found[each.address] = each
    ordered = sorted(found.values(), key=lambda each: (_rank(each, options), each.type == "ExternalIP"))
    hostname = (server.get("metadata") or {}).get("hostname")
    return (*ordered, *([NodeAddress("Hostname", hostname)] if hostname else ()))


def _all(server: Mapping[str, Any], options: Networking) -> Iterator[NodeAddress]:
    for network, addresses in sorted(server["addresses"].items()):
        for each in addresses:
            if each["version"] == 6 and options.without_ipv6:
                continue
            if each.get("OS-EXT-IPS:type") == "floating" or network in options.public_networks:
                yield NodeAddress("ExternalIP", each["addr"])
            elif not options.internal_networks or network in options.internal_networks:
                yield NodeAddress("InternalIP", each["addr"])
    if access := server.get("accessIPv4"):
        yield NodeAddress("ExternalIP", access)
    if (access := server.get("accessIPv6")) and not options.without_ipv6:
        yield NodeAddress("ExternalIP", access)


def _rank(address: NodeAddress, options: Networking) -> int:
    parsed = ip_address(address.address)
    return next((rank for rank, network in enumerate(options.sort_order) if parsed in network), len(options.sort_order))
