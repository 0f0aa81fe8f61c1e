"""The clients that may connect to a Service: the spec takes precedence over the annotation, as upstream."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.security_rules import Network
from cloud_controller.load_balancers.catalogue import Settings
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES

FIELD = "spec.loadBalancerSourceRanges"
_EVERYBODY: tuple[Network, Network] = (IPv4Network("0.0.0.0/0"), IPv6Network("::/0"))


def field_and_texts(spec: Mapping[str, Any], settings: Settings) -> tuple[str, tuple[str, ...]]:
    """The ranges as written, and their field; none: all clients."""
    given = tuple(spec.get("loadBalancerSourceRanges") or ())
    if given:
        return FIELD, given
    annotated = settings.given.get("load_balancer_source_ranges")
    return f"annotation {SOURCE_RANGES}", annotated if isinstance(annotated, tuple) else ()


def source_ranges(
    spec: Mapping[str, Any], settings: Settings, *, dualstack: bool, everybody: bool = True
) -> tuple[Network, ...]:
    """The ranges of the load balancer's address families; without any, all clients if `everybody`, else none.

    Leaves out IPv6 ranges of a load balancer with only IPv4 addresses. Raises InvalidConfiguration for invalid
    CIDRs, and if no range is left: that would admit all clients.
    """
    field, texts = field_and_texts(spec, settings)
    found: set[Network] = set()
    for text in texts:
        try:
            # Host bits are cleared, as upstream's parser does.
            found.add(ip_network(text.strip(), strict=False))
        except ValueError:
            raise InvalidConfiguration(field, f"{text!r} is not a CIDR", "such as 192.0.2.0/24") from None
    if not found and not everybody:
        return ()
    versions = (4, 6) if dualstack else (4,)
    usable = [network for network in found or _EVERYBODY if network.version in versions]
    if not usable:
        why = "contains only IPv6 ranges, but the load balancer has only IPv4 addresses: no client could connect"
        raise InvalidConfiguration(field, why, "at least one IPv4 range")
    return tuple(sorted(usable, key=lambda network: (network.version, network)))
