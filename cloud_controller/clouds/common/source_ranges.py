"""The clients that a Service admits to its load balancer: the spec takes precedence over the annotation, as upstream.

The annotation is Kubernetes' own; a cloud lists it in its catalogue as argument `load_balancer_source_ranges`.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.pods import Network
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES
from cloud_controller.load_balancers.settings import Settings

FIELD = "spec.loadBalancerSourceRanges"
EVERYBODY: Mapping[int, Network] = {4: IPv4Network("0.0.0.0/0"), 6: IPv6Network("::/0")}
"""All clients, by IP version."""


def no_client(of: int, served: int) -> tuple[str, str]:
    """Why ranges of one IP version admit no client of a load balancer with addresses of another; what is allowed."""
    why = f"contains only IPv{of} ranges, but the load balancer has only IPv{served} addresses: no client could connect"
    return why, f"at least one IPv{served} range"


def field_and_texts(spec: Mapping[str, Any], settings: Settings) -> tuple[str, tuple[str, ...]]:
    """The ranges as written, and their field; none: all clients."""
    given = tuple(spec.get("loadBalancerSourceRanges") or ())
    if given:
        return FIELD, given
    annotated = settings.given.get("load_balancer_source_ranges")
    return f"annotation {SOURCE_RANGES}", annotated if isinstance(annotated, tuple) else ()


def source_ranges(spec: Mapping[str, Any], settings: Settings, versions: tuple[int, ...] = (4,)) -> tuple[Network, ...]:
    """The ranges of the load balancer's IP versions, sorted; empty: all clients.

    Leaves out ranges of another version, whose clients cannot connect. Raises InvalidConfiguration for invalid CIDRs,
    and if no range is left: that would admit all clients.
    """
    field, texts = field_and_texts(spec, settings)
    found: set[Network] = set()
    for text in texts:
        try:
            # Host bits are cleared, as upstream's parser does.
            found.add(ip_network(text.strip(), strict=False))
        except ValueError:
            raise InvalidConfiguration(field, f"{text!r} is not a CIDR", "such as 192.0.2.0/24") from None
    usable = [network for network in found if network.version in versions]
    if found and not usable:
        raise InvalidConfiguration(field, *no_client(next(iter(found)).version, versions[0]))
    return tuple(sorted(usable, key=lambda network: (network.version, network)))
