"""Computes a load balancer's members from nodes and EndpointSlices: node ports, or the pods themselves. Pure.

The cloud's `build` chooses one of the three ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, NamedTuple

from cloud_controller.load_balancers.pods import PodNetwork, parsed_address

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""


class Member(NamedTuple):
    """A port of a machine or of a pod; within a pool, address and port are unique.

    A tuple for speed: there may be millions, and every reconcile compares them.
    """

    address: str
    port: int
    instance_id: str
    weight: int = 1

    @property
    def key(self) -> tuple[str, int]:
        """The member's identity within its pool."""
        return self[:2]


@dataclass(frozen=True, slots=True)
class NodeBackend:
    """A node as a backend.

    - `preferred`: if there are preferred nodes, only they get node-port traffic.
    - `labels`: the node's labels, if Services may select nodes by label.
    - `leaving`: the autoscaler is about to remove it; load balancers that drain send it no new connections.
    - `is_pod`: the node represents a single pod and shares its address (such as on Fargate).
    """

    node: str
    instance_id: str
    address: str
    preferred: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    leaving: bool = False
    is_pod: bool = False


@dataclass(frozen=True, slots=True)
class Backends:
    """The possible backends of one Service: eligible nodes, and its EndpointSlices if they matter.

    `pods`: the pod network. Endpoints that cannot be pods are removed from `slices` before a cloud sees them.
    `excluded`: nodes that would be eligible but for their label.
    """

    nodes: tuple[NodeBackend, ...] = ()
    slices: tuple[Object, ...] = ()
    pods: PodNetwork = field(default_factory=PodNetwork)
    excluded: tuple[NodeBackend, ...] = ()

    @property
    def chosen_nodes(self) -> tuple[NodeBackend, ...]:
        """The preferred nodes, or all if none is preferred."""
        return tuple(node for node in self.nodes if node.preferred) or self.nodes

    def by_node_port(self, node_port: int) -> tuple[Member, ...]:
        """The node port on each chosen node, for `externalTrafficPolicy: Cluster`."""
        return tuple(sorted(Member(node.address, node_port, node.instance_id) for node in self.chosen_nodes))

    def by_local_pods(self, port: Object, node_port: int) -> tuple[Member, ...]:
        """The node port on nodes with ready pods, weighted by their number, for `externalTrafficPolicy: Local`.

        If some of these nodes are preferred, only those.
        """
        pods: dict[str, set[str]] = {}
        for address, _, node in ready_endpoints(self.slices, port):
            pods.setdefault(node, set()).add(address)
        local = tuple(node for node in self.nodes if node.node in pods)
        return tuple(
            sorted(
                Member(node.address, node_port, node.instance_id, weight=len(pods[node.node]))
                for node in Backends(local).chosen_nodes
            )
        )

    def by_pod(self, port: Object, family: str = "IPv4") -> tuple[Member, ...]:
        """The ready pods themselves, except those on ineligible nodes.

        `family`: the pods' address family, `IPv4` or `IPv6`.
        """
        nodes = {node.node: node for node in self.nodes}
        found = {
            (address, number): Member(address, number, nodes[node].instance_id)
            for address, number, node in ready_endpoints(self.slices, port, family)
            if node in nodes
        }
        return tuple(sorted(found.values()))


def node_ipv4(node: Object) -> str | None:
    """The node's first internal IPv4 address. Its kubelet can write any text there, and a cloud would refuse all
    members with it."""
    addresses = node.get("status", {}).get("addresses") or []
    found = (each["address"] for each in addresses if each["type"] == "InternalIP")
    return next((each for each in found if isinstance(parsed_address(each), IPv4Address)), None)


def ready_endpoints(slices: Sequence[Object], port: Object, family: str = "IPv4") -> Iterator[tuple[str, int, str]]:
    """Address, port and node of a Service port's ready endpoints; may repeat while one is in two slices."""
    for each in slices:
        number = _port_number(each, port)
        if each.get("addressType") != family or number is None:
            continue
        for endpoint in each.get("endpoints") or []:
            # By the API's definition, an unset condition means ready. Terminating pods are not ready.
            if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("nodeName"):
                # By the API's definition, consumers use the first address only.
                yield endpoint["addresses"][0], number, endpoint["nodeName"]


def _port_number(endpoint_slice: Mapping[str, Any], port: Mapping[str, Any]) -> int | None:
    """The pods' port number; with a named target port, it may differ between slices."""
    for each in endpoint_slice.get("ports") or []:
        same_name = (each.get("name") or "") == (port.get("name") or "")
        if same_name and each.get("protocol", "TCP") == port["protocol"] and each.get("port"):
            return int(each["port"])
    return None
