"""Who may talk to whom: the group of the nodes and, where machines run it, those of the control plane and its NLB.

Members of one group reach each other; between groups and from ranges only what a rule allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
        self._add(label, "ingress", f"From {peer}", protocol, ports, cidr=cidr, group=group)

    def let_out(self, cidrs: Sequence[str]) -> None:
        """Let members out only to these ranges, to the cloud's own services and, on port 443, to everything.

        That holds for their other groups, too: an instance's rules are put together, and the least priority wins. The
        cloud's own services have reserved addresses: DNS, time, packages, metadata, and its API inside of a VPC.
        """
        for cidr in dict.fromkeys((str(RESERVED), *cidrs)):
            self._add(f"{self._name}-to-{cidr}", "egress", f"To {cidr}", "all", EVERYTHING, cidr=cidr)
        self._add(f"{self._name}-to-https", "egress", "To HTTPS", "tcp", HTTPS, cidr=ANYWHERE)
        self._add(f"{self._name}-to-rest", "egress", "To the rest", "all", EVERYTHING, cidr=ANYWHERE, drop=True)

    def _add(
        self,
        label: str,
        direction: str,
        what: str,
        protocol: str,
        ports: str,
        *,
        cidr: str | None = None,
        group: SecurityGroup | None = None,
        drop: bool = False,
    ) -> None:
        """Add a rule; one that drops comes last, and others go before it."""
        after = pulumi.ResourceOptions(depends_on=list(self._rules) if drop else [])
        self._rules.append(
            alicloud.ecs.SecurityGroupRule(
                label,
                security_group_id=self.group.id,
                type=direction,
                ip_protocol=protocol,
                port_range=ports,
                nic_type="intranet",
                policy="drop" if drop else "accept",
                priority=100 if drop else 1,
                cidr_ip=cidr,
                source_security_group_id=group.group.id if group else None,
                description=what,
                opts=pulumi.ResourceOptions.merge(self._opts, after),
            )
        )


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
