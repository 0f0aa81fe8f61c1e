"""Which endpoints of a Service may be members by their own address: its namespace's pods. Pure.

An EndpointSlice says whatever its author likes. Without these rules, the right to write one in any namespace would lead
a load balancer to kubelets, to other networks, or through the cluster's network policies to anybody's pods.
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
"""Endpoints that a message names; one Service may have thousands."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """Where the cluster's pods have addresses.

    `cluster`: the pods' ranges, where the controller was given them. `of_nodes`: each node's pod ranges. `own`: the
    nodes' own addresses, with the node's name.
    """

    cluster: tuple[str, ...] = ()
    of_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own: Mapping[Address, str] = field(default_factory=dict)

    def refusal(self, endpoint: Object, namespace: str, of_cloud: Iterable[str]) -> str | None:
        """Why the endpoint can't be a pod of this namespace; None where it may be.

        `of_cloud`: ranges of the cloud's own network in which pods may have addresses, whatever the others say.
        """
        pod = endpoint.get("targetRef") or {}
        if pod.get("kind") != "Pod" or pod.get("namespace") != namespace:
            return f"its targetRef names no Pod of namespace {namespace}"
        node = endpoint.get("nodeName")
        if not node:
            return "it names no node"
        address = parsed_address(endpoint["addresses"][0])
        if address is None:
            return "it is not an IP address"
        if address in self.own:
            return f"it is an address of node {self.own[address]}"
        if _is_inside(address, of_cloud):
            return None
        cluster = _of_family(address, self.cluster)
        of_node = _of_family(address, self.of_nodes.get(node, ()))
        # A pod's address comes from its node's range: without this, one could name another node's pod.
        if of_node and not _is_inside(address, of_node):
            return f"it is outside the pod range {of_node[0]} of node {node}"
        if (cluster or not of_node) and not _is_inside(address, cluster):
            return "it is outside the pods' ranges"
        return None


def admitted(
    slices: Sequence[Object], namespace: str, network: PodNetwork, of_cloud: Iterable[str]
) -> tuple[tuple[Object, ...], str | None]:
    """The slices with only those endpoints that may be members, and a text on which were left out and why (None: none).

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


# Each visit to a Service asks for all of its pods, of which there may be thousands.
@lru_cache(maxsize=1 << 16)
def parsed_address(text: str) -> Address | None:
    """The address; None for what is none, such as a host name."""
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
