"""The traffic that is allowed: the security group of the nodes, and that of the control plane's machines.

Neither has Neutron's default rules, which let out to everything. IPv4 only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_openstack as openstack

from ..common.dependencies import with_what_it_needs
from .settings import tags

ANYWHERE = "0.0.0.0/0"
NODE_PORTS = (30000, 32767)
DNS = (53, 53)
HTTPS = (443, 443)
NTP = (123, 123)
_NETWORK = "network"


@dataclass(frozen=True)
class SecurityGroups:
    """The ids of a cluster's groups; what uses one is made after its rules."""

    nodes: pulumi.Output[str]
    control_plane: pulumi.Output[str]


def make(
    name: str,
    *,
    network_cidr: str,
    pod_cidr: str,
    api_port: int,
    machines_reach: Sequence[str],
    opts: pulumi.ResourceOptions,
) -> SecurityGroups:
    """Nodes, pods and control plane talk among each other; load balancers, from the network, to node ports and the API.

    Nodes reach everything; the control plane the cluster, port 443, DNS, NTP and `machines_reach`.
    """
    nodes = _Group(f"{name}-nodes", f"Nodes of {name}", opts)
    plane = _Group(f"{name}-control-plane", f"Control plane of {name}", opts)
    for group in (nodes, plane):
        for peer in (nodes, plane):
            group.allow("ingress", peer.name.removeprefix(f"{name}-"), group=peer)
        # Packets of pods carry the pods' addresses.
        group.allow("ingress", "pods", cidr=pod_cidr)
    for protocol in ("sctp", "tcp", "udp"):
        nodes.allow("ingress", _NETWORK, protocol, NODE_PORTS, cidr=network_cidr)
    plane.allow("ingress", _NETWORK, "tcp", (api_port, api_port), cidr=network_cidr)

    nodes.allow("egress", "anywhere", cidr=ANYWHERE)
    plane.allow("egress", _NETWORK, cidr=network_cidr)
    plane.allow("egress", "pods", cidr=pod_cidr)
    plane.allow("egress", "anywhere", "tcp", HTTPS, cidr=ANYWHERE)
    for protocol in ("tcp", "udp"):
        plane.allow("egress", "anywhere", protocol, DNS, cidr=ANYWHERE)
    plane.allow("egress", "anywhere", "udp", NTP, cidr=ANYWHERE)
    # Neutron refuses a second rule of the same content.
    for cidr in dict.fromkeys(machines_reach):
        if cidr not in (network_cidr, pod_cidr):
            plane.allow("egress", cidr, cidr=cidr)
    return SecurityGroups(nodes.complete_id, plane.complete_id)


class _Group:
    """A group, to which rules are added."""

    def __init__(self, name: str, description: str, opts: pulumi.ResourceOptions) -> None:
        self.name = name
        self._opts = opts
        self._rules: list[pulumi.Resource] = []
        self._group = openstack.networking.SecGroup(
            name, name=name, description=description, delete_default_rules=True, tags=tags(), opts=opts
        )

    @property
    def complete_id(self) -> pulumi.Output[str]:
        """Its id; what uses it is made after its rules."""
        return with_what_it_needs(self._group.id, self._rules)

    def allow(
        self,
        direction: str,
        peer: str,
        protocol: str | None = None,
        ports: tuple[int, int] | None = None,
        *,
        cidr: str | None = None,
        group: _Group | None = None,
    ) -> None:
        """Let a range or another group's members in, or members out to it; everything without a protocol."""
        way = "from" if direction == "ingress" else "to"
        what = f"-{protocol}-{ports[0]}" if protocol and ports else ""
        self._rules.append(
            openstack.networking.SecGroupRule(
                f"{self.name}-{way}-{peer}{what}",
                security_group_id=self._group.id,
                direction=direction,
                ethertype="IPv4",
                protocol=protocol,
                port_range_min=ports[0] if ports else None,
                port_range_max=ports[1] if ports else None,
                remote_ip_prefix=cidr,
                remote_group_id=group._group.id if group else None,
                description=f"{way.capitalize()} {peer}",
                opts=self._opts,
            )
        )
