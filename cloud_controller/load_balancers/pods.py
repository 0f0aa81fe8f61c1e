"""Decides which endpoints may become members by their own address: only pods of the Service's namespace. Pure.

EndpointSlices are user input. WITHOUT THESE RULES, permission to write one in any namespace would be enough to expose
kubelets, other networks, or any pod regardless of network policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAMED = 5
"""Maximum number of endpoints that a message lists; a Service may have thousands."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """The addresses of the cluster's pods and nodes.

    - `cluster`: the pod CIDRs, if configured.
    - `of_nodes`: each node's pod CIDRs.
    - `own`: the nodes' own addresses, with the node's name.
    """

    cluster: tuple[str, ...] = ()
    of_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own: Mapping[Address, str] = field(default_factory=dict)

    def refusal(self, endpoint: Object, namespace: str, of_cloud: Iterable[str]) -> str | None:
        """Why the endpoint cannot be a pod of this namespace; None if it may be one.

        `of_cloud`: CIDRs of the cloud's network in which pods may have addresses; they take precedence.
        """
        pod = endpoint.get("targetRef") or {}
        if pod.get("kind") != "Pod" or pod.get("namespace") != namespace:
            return f"its targetRef is not a Pod in namespace {namespace}"
        node = endpoint.get("nodeName")
        if not node:
            return "it has no nodeName"
        address = parsed_address(endpoint["addresses"][0])
        if address is None:
            return "it is not an IP address"
        if address in self.own:
            return f"it is an address of node {self.own[address]}"
        if _is_inside(address, of_cloud):
            return None
        cluster = _of_family(address, self.cluster)
        of_node = _of_family(address, self.of_nodes.get(node, ()))
        # A pod's address comes from its node's CIDR. Without this check, an endpoint could name another node's pod.
        if of_node and not _is_inside(address, of_node):
            return f"it is outside pod CIDR {of_node[0]} of node {node}"
        if (cluster or not of_node) and not _is_inside(address, cluster):
            return "it is outside the pod CIDRs"
        return None


def admitted(
    slices: Sequence[Object], namespace: str, network: PodNetwork, of_cloud: Iterable[str]
) -> tuple[tuple[Object, ...], str | None]:
    """The slices with only the endpoints that may be members, and a text on the excluded ones (None: there are none).

    `of_cloud`: see `PodNetwork.refusal`.
    """
    kept: list[Object] = []
    refused: dict[str, str] = {}
    for each in slices:
        endpoints = []
        for endpoint in each.get("endpoints") or []:
            why = network.refusal(endpoint, namespace, of_cloud)
            if why is None:
                endpoints.append(endpoint)
            else:
                refused[endpoint["addresses"][0]] = why
        kept.append({**each, "endpoints": endpoints})
    if not refused:
        return tuple(slices), None
    named = "; ".join(f"{address}: {refused[address]}" for address in sorted(refused)[:_NAMED])
    more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    return tuple(kept), f"{named}{more}"


# Cached: every reconcile parses the addresses of all pods of a Service.
@lru_cache(maxsize=1 << 16)
def parsed_address(text: str) -> Address | None:
    """The address; None if the text is not an IP address, such as a host name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


@lru_cache(maxsize=1 << 15)
def _network(cidr: str) -> Network | None:
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        return None


def _of_family(address: Address, cidrs: Iterable[str]) -> tuple[str, ...]:
    return tuple(cidr for cidr in cidrs if (found := _network(cidr)) is not None and found.version == address.version)


def _is_inside(address: Address, cidrs: Iterable[str]) -> bool:
    return any(found is not None and address in found for found in map(_network, cidrs))
