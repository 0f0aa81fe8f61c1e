"""Who may talk to whom: the group of the nodes, and that of the control plane.

Only the nodes' group carries the cluster's tag, by which the CCM finds the group to admit load balancers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from ..common.dependencies import with_what_it_needs
from .network import ANYWHERE
from .settings import tags

HTTPS = 443


@dataclass(frozen=True)
class SecurityGroups:
    """The ids of a cluster's groups."""

    nodes: pulumi.Output[str]
    control_plane: pulumi.Output[str]


@dataclass(frozen=True)
class _Peer:
    """The other side of a rule, which it lets in or lets out to: another group's members, or an address range."""

    name: str
    cidr: str | None = None
    group: pulumi.Output[str] | None = None


_ANYWHERE = _Peer("anywhere", cidr=ANYWHERE)


def make(
    name: str,
    vpc_id: pulumi.Input[str],
    *,
    api_port: int,
    api_sources: Sequence[str],
    pod_cidr: str | None,
    opts: pulumi.ResourceOptions,
    machines_reach: Sequence[str] | None = None,
) -> SecurityGroups:
    """Nodes talk among each other, the control plane to nodes, nodes and `api_sources` to the API server.

    - `pod_cidr`: the pods' range, where packets carry their addresses beyond their node.
    - `machines_reach`: where the control plane runs on machines of the cluster's own, which only its group is for:
      ranges that these reach besides the cluster and, on port 443, everything. Nodes then reach all their ports.
    """
    nodes = _group(f"{name}-nodes", vpc_id, f"Nodes of {name}", tags(f"{name}-nodes", name), opts)
    plane = _group(f"{name}-control-plane", vpc_id, f"Control plane of {name}", tags(f"{name}-control-plane"), opts)
    on_machines = machines_reach is not None
    port = None if on_machines else api_port
    of_nodes, of_plane = _Peer("nodes", group=nodes.id), _Peer("control-plane", group=plane.id)
    into_nodes: list[pulumi.Resource] = [
        _allow(nodes, f"{name}-nodes", of_nodes, None, opts),
        _allow(nodes, f"{name}-nodes", of_plane, None, opts),
    ]
    into_plane: list[pulumi.Resource] = [
        _allow(plane, f"{name}-control-plane", of_nodes, port, opts),
        _allow(plane, f"{name}-control-plane", of_plane, None, opts),
    ]
    for source in api_sources:
        peer = _Peer(source, cidr=source)
        into_plane.append(_allow(plane, f"{name}-control-plane", peer, api_port, opts))
    if pod_cidr is not None:
        peer = _Peer("pods", cidr=pod_cidr)
        into_nodes.append(_allow(nodes, f"{name}-nodes", peer, None, opts))
        into_plane.append(_allow(plane, f"{name}-control-plane", peer, port, opts))
    reached: list[tuple[_Peer, int | None]] = [(_ANYWHERE, None)]
    if machines_reach is not None:
        # Addresses of the VPC's own DNS, time and metadata are never filtered (VPC user guide, "Security groups").
        ranges = {**({"pods": pod_cidr} if pod_cidr else {}), **{cidr: cidr for cidr in machines_reach}}
        reached = [(peer, None) for peer in (of_nodes, of_plane, *(_Peer(*each) for each in ranges.items()))]
        # AWS's APIs, registries of images and packages: their addresses change.
        reached.append((_ANYWHERE, HTTPS))
    out_of_plane = [_let_out(plane, f"{name}-control-plane", peer, port, opts) for peer, port in reached]
    return SecurityGroups(
        with_what_it_needs(nodes.id, [_let_out(nodes, f"{name}-nodes", _ANYWHERE, None, opts), *into_nodes]),
        with_what_it_needs(plane.id, [*out_of_plane, *into_plane]),
    )


def _group(
    name: str, vpc_id: pulumi.Input[str], description: str, marks: dict[str, str], opts: pulumi.ResourceOptions
) -> aws.ec2.SecurityGroup:
    # Rules are resources of their own: a list here would undo those that the CCM writes.
    return aws.ec2.SecurityGroup(name, description=description, vpc_id=vpc_id, tags=marks, opts=opts)


def _let_out(
    group: aws.ec2.SecurityGroup, name: str, peer: _Peer, port: int | None, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """Let the members out to the peer, to one TCP port or to everything."""
    full = name if peer is _ANYWHERE and port is None else f"{name}-to-{peer.name}" + (f"-{port}" if port else "")
    return aws.vpc.SecurityGroupEgressRule(
        full,
        security_group_id=group.id,
        description=f"To {peer.name}",
        ip_protocol="tcp" if port else "-1",
        from_port=port,
        to_port=port,
        referenced_security_group_id=peer.group,
        cidr_ipv4=peer.cidr,
        tags=tags(full),
        opts=opts,
    )


def _allow(
    group: aws.ec2.SecurityGroup, name: str, peer: _Peer, port: int | None, opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """Let the peer in, to one TCP port or to everything."""
    full = f"{name}-from-{peer.name}" + (f"-{port}" if port else "")
    return aws.vpc.SecurityGroupIngressRule(
        full,
        security_group_id=group.id,
        description=f"From {peer.name}",
        ip_protocol="tcp" if port else "-1",
        from_port=port,
        to_port=port,
        referenced_security_group_id=peer.group,
        cidr_ipv4=peer.cidr,
        tags=tags(full),
        opts=opts,
    )
