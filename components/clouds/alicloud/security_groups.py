"""Who may talk to whom: the group of the nodes and, where machines run it, those of the control plane and its NLB.

Members of one group reach each other; between groups and from ranges only what a rule allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_alicloud as alicloud

from ..common.dependencies import with_what_it_needs
from .settings import RESERVED, tags

NODE_PORTS = "30000/32767"
EVERYTHING = "-1/-1"
HTTPS = "443/443"
ANYWHERE = "0.0.0.0/0"


class SecurityGroup:
    """A group and the rules that let into it; all may leave, unless `let_out` limits that."""

    def __init__(self, name: str, vpc_id: pulumi.Input[str], what: str, opts: pulumi.ResourceOptions):
        self._name = name
        self._opts = opts
        self._rules: list[pulumi.Resource] = []
        self.group = alicloud.ecs.SecurityGroup(
            name,
            security_group_name=name,
            description=what,
            vpc_id=vpc_id,
            security_group_type="normal",
            inner_access_policy="Accept",
            tags=tags(name),
            opts=opts,
        )

    @property
    def id(self) -> pulumi.Output[str]:
        """Its id; what uses it is made after its rules."""
        return with_what_it_needs(self.group.id, self._rules)

    def allow(
        self,
        peer: str,
        ports: str,
        protocol: str = "tcp",
        *,
        cidr: str | None = None,
        group: SecurityGroup | None = None,
    ) -> None:
        """Let an address range or another group's members in, to these ports."""
        label = f"{self._name}-from-{peer}" + ("" if protocol == "all" else f"-{protocol}-{ports.partition('/')[0]}")
        rule = {"type": "ingress", "policy": "accept", "priority": 1, "description": f"From {peer}"}
        source = group.group.id if group else None
        self._add(label, rule, protocol, ports, self._opts, cidr_ip=cidr, source_security_group_id=source)

    def let_out(self, cidrs: Sequence[str]) -> None:
        """Let members out only to these ranges, to the cloud's own services and, on port 443, to everything.

        That holds for their other groups, too: an instance's rules are put together, and the least priority wins. The
        cloud's own services have reserved addresses: DNS, time, packages, metadata, and its API inside of a VPC.
        """
        ways = [(str(RESERVED), "all", EVERYTHING), *((cidr, "all", EVERYTHING) for cidr in cidrs)]
        for cidr, protocol, ports in (*ways, (ANYWHERE, "tcp", HTTPS)):
            rule = {"type": "egress", "policy": "accept", "priority": 1, "description": f"To {cidr}"}
            self._add(f"{self._name}-to-{cidr}", rule, protocol, ports, self._opts, cidr_ip=cidr)
        rule = {"type": "egress", "policy": "drop", "priority": 100, "description": "To nothing else"}
        after = pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(depends_on=list(self._rules)))
        self._add(f"{self._name}-to-nothing-else", rule, "all", EVERYTHING, after, cidr_ip=ANYWHERE)

    def _add(
        self,
        label: str,
        rule: Mapping[str, Any],
        protocol: str,
        ports: str,
        opts: pulumi.ResourceOptions,
        **peer: pulumi.Input[str] | None,
    ) -> None:
        made = alicloud.ecs.SecurityGroupRule(
            label,
            security_group_id=self.group.id,
            ip_protocol=protocol,
            port_range=ports,
            nic_type="intranet",
            opts=opts,
            **rule,
            **peer,
        )
        self._rules.append(made)


def of_nodes(
    name: str, vpc_id: pulumi.Input[str], ranges: Mapping[str, str], pod_cidr: str | None, opts: pulumi.ResourceOptions
) -> SecurityGroup:
    """The nodes' group: load balancers reach node ports, pods (where they have no addresses of members) everything.

    `ranges`: those of the machines' vSwitches, by zone, in which NLBs have their addresses.
    """
    nodes = SecurityGroup(f"{name}-nodes", vpc_id, f"Nodes of {name}", opts)
    for protocol in ("tcp", "udp"):
        nodes.allow("clb", NODE_PORTS, protocol, cidr=str(RESERVED))
        for zone, cidr in ranges.items():
            nodes.allow(f"nlb-{zone}", NODE_PORTS, protocol, cidr=cidr)
    if pod_cidr is not None:
        nodes.allow("pods", EVERYTHING, "all", cidr=pod_cidr)
    return nodes
