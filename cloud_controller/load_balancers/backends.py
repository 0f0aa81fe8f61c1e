"""Who gets a Service's traffic behind a load balancer: node ports of nodes, or pods themselves. Pure.

What nodes and EndpointSlices say becomes members; which of the three ways is taken is the cloud's `build` to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cloud_controller.load_balancers.pods import PodNetwork

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""


class Member(NamedTuple):
    """A port of one machine, or of a pod on it; a pool has at most one member for an address and port.

    A tuple, because there may be millions, which are compared at every visit to a Service.
    """

    address: str
    port: int
    instance_id: str
    weight: int = 1

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the other members of its pool."""
        return self[:2]


@dataclass(frozen=True, slots=True)
class NodeBackend:
    """A node as load balancers reach it. `preferred`: where there are such nodes, they alone get node-port traffic.

    `labels` are the node's where a Service may choose nodes by them. `leaving`: the autoscaler is about to remove it;
    load balancers that drain send nothing new there. `is_pod`: it is there for one pod, whose address is the node's.
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
    """What may serve one Service: the eligible nodes by name, and the Service's EndpointSlices where they matter.

    `pods`: where pods have addresses. Plans remove endpoints that can't be pods from `slices` before a cloud sees them.
    """

    nodes: tuple[NodeBackend, ...] = ()
    slices: tuple[Object, ...] = ()
    pods: PodNetwork = field(default_factory=PodNetwork)

    @property
    def chosen_nodes(self) -> tuple[NodeBackend, ...]:
        """The preferred nodes, or all of them where none is preferred."""
        return tuple(node for node in self.nodes if node.preferred) or self.nodes

    def by_node_port(self, node_port: int) -> tuple[Member, ...]:
        """The node port on each chosen node: any node leads to every pod (`externalTrafficPolicy: Cluster`)."""
        return tuple(sorted(Member(node.address, node_port, node.instance_id) for node in self.chosen_nodes))

    def by_local_pods(self, port: Object, node_port: int) -> tuple[Member, ...]:
        """The node port on the nodes that have ready pods of this port, each weighing as many as it has (`Local`).

        Of these nodes the preferred ones, where there are any.
        """
        pods: dict[str, set[str]] = {}
        for address, _, node in _ready(self.slices, port):
            pods.setdefault(node, set()).add(address)
        local = tuple(node for node in self.nodes if node.node in pods)
        return tuple(
            sorted(
                Member(node.address, node_port, node.instance_id, weight=len(pods[node.node]))
                for node in Backends(local).chosen_nodes
            )
        )

    def by_pod(self, port: Object, family: str = "IPv4") -> tuple[Member, ...]:
        """The ready pods themselves, each on the machine of its node; pods on nodes that are not eligible are out.

        `family` is that of the pods' addresses, `IPv4` or `IPv6`.
        """
        nodes = {node.node: node for node in self.nodes}
        found = {
            (address, number): Member(address, number, nodes[node].instance_id)
            for address, number, node in _ready(self.slices, port, family)
            if node in nodes
        }
        return tuple(sorted(found.values()))


def _ready(slices: Sequence[Object], port: Object, family: str = "IPv4") -> Iterator[tuple[str, int, str]]:
    """Address, port and node of the ready endpoints of a Service's port; one may be in two slices for a while."""
    for each in slices:
        number = _port_number(each, port)
        if each.get("addressType") != family or number is None:
            continue
        for endpoint in each.get("endpoints") or []:
            # "Not said" counts as ready (the API's word), and a pod that ends is not ready.
            if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("nodeName"):
                # Consumers take the first address (the API's word); there never is another.
                yield endpoint["addresses"][0], number, endpoint["nodeName"]


def _port_number(endpoint_slice: Mapping[str, Any], port: Mapping[str, Any]) -> int | None:
    """The pods' own port, which may differ between slices where the Service names it."""
    for each in endpoint_slice.get("ports") or []:
        same_name = (each.get("name") or "") == (port.get("name") or "")
        if same_name and each.get("protocol", "TCP") == port["protocol"] and each.get("port"):
            return int(each["port"])
    return None
