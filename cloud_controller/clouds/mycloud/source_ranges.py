"""The clients that may connect to a Service: the spec takes precedence over the annotation, as upstream."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, ip_network
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.load_balancers.catalogue import Settings


def source_ranges(spec: Mapping[str, Any], settings: Settings) -> tuple[str, ...]:
    """The IPv4 ranges, sorted; empty: all clients.

    Leaves out IPv6 ranges, because no IPv6 client can connect. Raises InvalidConfiguration for invalid CIDRs, if
    only IPv6 ranges are left, and for any range with a reused load balancer: each of these would admit all clients.
    """
    field, given = "spec.loadBalancerSourceRanges", tuple(spec.get("loadBalancerSourceRanges") or ())
    if not given:
        annotated = settings.given.get("load_balancer_source_ranges")
        given = annotated if isinstance(annotated, tuple) else ()
        field = f"annotation {CATALOGUE.by_argument['load_balancer_source_ranges'].name}"
    found = set()
    for text in given:
        try:
            # Host bits are cleared, as upstream's parser does.
            found.add(ip_network(text.strip(), strict=False))
        except ValueError:
            raise InvalidConfiguration(field, f"{text!r} is not a CIDR", "such as 192.0.2.0/24") from None
    if found and settings.text("id"):
        why = (
            f"not supported with annotation {CATALOGUE.by_argument['id'].name}: the reused load balancer keeps"
            " its own ranges"
        )
        raise InvalidConfiguration(field, why, "none; set the ranges on that load balancer")
    usable = sorted(network for network in found if isinstance(network, IPv4Network))
    if found and not usable:
        why = (
            "contains only IPv6 ranges, but mycloud's load balancers have only IPv4 addresses: no client could connect"
        )
        raise InvalidConfiguration(field, why, "at least one IPv4 range")
    return tuple(str(network) for network in usable)
