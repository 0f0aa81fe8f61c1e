"""The addresses of a node, from its instance: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from cloud_controller.cloud import NodeAddress
from cloud_controller.clouds.aws.config import IpFamily


def addresses(instance: Mapping[str, Any], families: Iterable[IpFamily]) -> tuple[NodeAddress, ...]:
    """The addresses of an instance of DescribeInstances, by family, then by the order of its network interfaces."""
    interfaces = sorted(
        (each for each in instance.get("NetworkInterfaces") or () if each.get("Status") == "in-use"), key=_device
    )
    found: list[NodeAddress] = []
    for family in families:
        found += _ipv4(instance, interfaces) if family == "ipv4" else _ipv6(interfaces)
    return tuple(dict.fromkeys(found))


def _device(interface: Mapping[str, Any]) -> tuple[int, int]:
    """Instances with several network cards have an interface for each device index on each card."""
    attachment = interface.get("Attachment") or {}
    return attachment.get("DeviceIndex", 1 << 16), attachment.get("NetworkCardIndex", 0)


def _ipv4(instance: Mapping[str, Any], interfaces: Sequence[Mapping[str, Any]]) -> Iterator[NodeAddress]:
    for interface in interfaces:
        for entry in interface.get("PrivateIpAddresses") or ():
            yield NodeAddress("InternalIP", str(ip_address(entry["PrivateIpAddress"])))
    if public := instance.get("PublicIpAddress"):
        yield NodeAddress("ExternalIP", str(ip_address(public)))
    if private_name := instance.get("PrivateDnsName"):
        yield NodeAddress("InternalDNS", private_name)
        yield NodeAddress("Hostname", private_name)
    if public_name := instance.get("PublicDnsName"):
        yield NodeAddress("ExternalDNS", public_name)


def _ipv6(interfaces: Sequence[Mapping[str, Any]]) -> Iterator[NodeAddress]:
    for interface in interfaces:
        # The first address is the interface's own; the others are for pods.
        for entry in (interface.get("Ipv6Addresses") or ())[:1]:
            yield NodeAddress("InternalIP", str(ip_address(entry["Ipv6Address"])))
