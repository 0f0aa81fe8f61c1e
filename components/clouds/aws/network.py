"""A VPC over the zones: a public and a private subnet in each, found by load balancers through their tags.

Where the CCM writes pod routes, all nodes share one route table, the one with the cluster's tag: upstream's
controller and ours write to a single table. Where they are not written, each zone's private subnet has a table and a
NAT gateway of its own, so that the failure of a zone affects no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

import pulumi
import pulumi_aws as aws

from ... import inputs
from ..common.dependencies import with_what_it_needs
from ..interface import NetworkParts
from . import endpoints
from .settings import (
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    ZONE,
    ZONE_LETTERS,
    AwsClusterArgs,
    AwsNetworkArgs,
    range_problem,
    tags,
)

ANYWHERE = "0.0.0.0/0"


def subnet_cidrs(vpc_cidr: str, zones: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The public and the private range of each zone, by its letter: no other zone's coming or going changes them.

    A VPC is cut into eight; the first part holds the public subnets (load balancers, NAT gateways), each of the others
    is a zone's private one, where machines and, with AWS's own pod network, pods take their addresses from.
    """
    first, *private = IPv4Network(vpc_cidr).subnets(prefixlen_diff=3)
    public = list(first.subnets(prefixlen_diff=3))
    places = {zone: ZONE_LETTERS.index(zone[-1]) for zone in zones}
    return {zone: (str(public[place]), str(private[place])) for zone, place in places.items()}


def make(name: str, zones: Sequence[str], settings: AwsClusterArgs, opts: pulumi.ResourceOptions) -> NetworkParts:
    """The VPC with its subnets, gateways and route tables. Raises WrongInput for zones or a range that don't fit."""
    vpc_cidr = settings.get("vpc_cidr", DEFAULT_VPC_CIDR)
    check(zones, vpc_cidr, settings)
    if "network" in settings:
        return _existing(zones, vpc_cidr, settings, settings["network"])
    vpc = aws.ec2.Vpc(
        name,
        cidr_block=vpc_cidr,
        # Nodes are called by their private DNS names.
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags=tags(name, name),
        opts=opts,
    )
    gateway = aws.ec2.InternetGateway(name, vpc_id=vpc.id, tags=tags(name), opts=opts)
    cidrs = subnet_cidrs(vpc_cidr, zones)
    public = {zone: _subnet(name, vpc, zone, cidrs[zone][0], public=True, opts=opts) for zone in zones}
    private = {zone: _subnet(name, vpc, zone, cidrs[zone][1], public=False, opts=opts) for zone in zones}

    in_public = settings.get("node_subnets") == "public"
    routed = "pod_cidr" in settings
    table = _table(f"{name}-public", vpc, name if routed and in_public else None, opts)
    out = aws.ec2.Route(
        f"{name}-public", route_table_id=table.id, destination_cidr_block=ANYWHERE, gateway_id=gateway.id, opts=opts
    )
    public_ids = {
        zone: with_what_it_needs(subnet.id, [out, _associate(f"{name}-public-{zone}", table, subnet, opts)])
        for zone, subnet in public.items()
    }
    if in_public:
        private_ids, routes = {zone: subnet.id for zone, subnet in private.items()}, table if routed else None
    else:
        private_ids, routes = _with_ways_out(name, vpc, public_ids, private, gateway, routed, opts)
    nodes, others = (public_ids, private_ids) if in_public else (private_ids, public_ids)
    if settings.get("internal_endpoints"):
        reached = endpoints.make(name, zones[0][:-1], vpc, [*nodes.values()], opts)
        nodes = {zone: with_what_it_needs(id_, reached) for zone, id_ in nodes.items()}
    return NetworkParts(
        vpc.id,
        pulumi.Output.from_input(settings["pod_cidr"]) if "pod_cidr" in settings else vpc.cidr_block,
        nodes,
        others,
        # A destroy that broke off may have left the VPC without the table, where a preview would look for routes.
        pulumi.Output.all(vpc.id, routes.id).apply(lambda ids: str(ids[0])) if routes is not None else None,
    )


def check(zones: Sequence[str], vpc_cidr: str, settings: AwsClusterArgs) -> None:
    """Raise WrongInput for what no VPC can be made of."""
    for index, zone in enumerate(zones):
        inputs.check(
            f"zones[{index}]", zone, "a zone of a region, such as eu-central-1a", lambda v: bool(ZONE.fullmatch(v))
        )
    if settings["control_plane"] == "eks" and len(zones) < 2:
        raise inputs.WrongInput("zones", f"{', '.join(zones)}; allowed: at least two zones, as EKS requires")
    pods, services = settings.get("pod_cidr"), settings.get("service_cidr", DEFAULT_SERVICE_CIDR)
    for key, cidr in (("vpc_cidr", vpc_cidr), ("pod_cidr", pods), ("service_cidr", services)):
        if cidr is not None:
            inputs.check_cidr(f"settings.{key}", cidr)
    if problem := range_problem(vpc_cidr, pods, services, made="network" not in settings):
        setting, found, why = problem
        raise inputs.WrongInput(f"settings.{setting}", f"{found!r}; {why}")


def _existing(zones: Sequence[str], vpc_cidr: str, settings: AwsClusterArgs, network: AwsNetworkArgs) -> NetworkParts:
    """The parts of a VPC that is there already; makes nothing."""
    if "vpc_cidr" not in settings:
        raise inputs.WrongInput("settings.vpc_cidr", "is missing; allowed with network: the VPC's IPv4 range")
    if "node_subnets" in settings:
        raise inputs.WrongInput("settings.node_subnets", "must not be set with network, which names the subnets")
    if "internal_endpoints" in settings:
        raise inputs.WrongInput("settings.internal_endpoints", "must not be set with network, in which nothing is made")
    for zone in zones:
        known = sorted(network["subnets"])
        inputs.check("zones", zone, f"zones of settings.network.subnets: {', '.join(known)}", known.__contains__)
    return NetworkParts(
        pulumi.Output.from_input(network["vpc_id"]),
        pulumi.Output.from_input(settings.get("pod_cidr", vpc_cidr)),
        {zone: pulumi.Output.from_input(network["subnets"][zone]) for zone in zones},
        {zone: pulumi.Output.from_input(id_) for zone, id_ in network.get("load_balancer_subnets", {}).items()},
    )


def _subnet(
    name: str, vpc: aws.ec2.Vpc, zone: str, cidr: str, *, public: bool, opts: pulumi.ResourceOptions
) -> aws.ec2.Subnet:
    kind = "public" if public else "private"
    role = "kubernetes.io/role/elb" if public else "kubernetes.io/role/internal-elb"
    full = f"{name}-{kind}-{zone}"
    return aws.ec2.Subnet(
        full,
        vpc_id=vpc.id,
        availability_zone=zone,
        cidr_block=cidr,
        map_public_ip_on_launch=public,
        tags=tags(full, name, **{role: "1"}),
        opts=opts,
    )


def _with_ways_out(
    name: str,
    vpc: aws.ec2.Vpc,
    public_ids: Mapping[str, pulumi.Output[str]],
    private: Mapping[str, aws.ec2.Subnet],
    gateway: aws.ec2.InternetGateway,
    routed: bool,
    opts: pulumi.ResourceOptions,
) -> tuple[dict[str, pulumi.Output[str]], aws.ec2.RouteTable | None]:
    """The private subnets by zone, with route tables and the NAT gateways that these lead to.

    Returned beside them is the table of pod routes, if they are `routed`.
    """
    found: dict[str, pulumi.Output[str]] = {}
    shared: tuple[aws.ec2.RouteTable, aws.ec2.Route] | None = None
    for zone, subnet in private.items():
        if shared is not None:
            associated = _associate(f"{name}-private-{zone}", shared[0], subnet, opts)
            found[zone] = with_what_it_needs(subnet.id, [associated, shared[1]])
            continue
        full = f"{name}-nat" if routed else f"{name}-nat-{zone}"
        address = aws.ec2.Eip(full, domain="vpc", tags=tags(full), opts=opts)
        nat = aws.ec2.NatGateway(
            full,
            allocation_id=address.id,
            subnet_id=public_ids[zone],
            tags=tags(full),
            # The address is this gateway's until it is gone.
            opts=pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(depends_on=[gateway], delete_before_replace=True)
            ),
        )
        label = f"{name}-private" if routed else f"{name}-private-{zone}"
        table = _table(label, vpc, name if routed else None, opts)
        out = aws.ec2.Route(
            label, route_table_id=table.id, destination_cidr_block=ANYWHERE, nat_gateway_id=nat.id, opts=opts
        )
        associated = _associate(f"{name}-private-{zone}", table, subnet, opts)
        found[zone] = with_what_it_needs(subnet.id, [associated, out])
        shared = (table, out) if routed else None
    return found, shared[0] if shared else None


def _table(name: str, vpc: aws.ec2.Vpc, cluster: str | None, opts: pulumi.ResourceOptions) -> aws.ec2.RouteTable:
    """A route table, whose routes are resources of their own: others, of the CCM, are left alone."""
    return aws.ec2.RouteTable(name, vpc_id=vpc.id, tags=tags(name, cluster), opts=opts)


def _associate(
    name: str, table: aws.ec2.RouteTable, subnet: aws.ec2.Subnet, opts: pulumi.ResourceOptions
) -> aws.ec2.RouteTableAssociation:
    return aws.ec2.RouteTableAssociation(name, route_table_id=table.id, subnet_id=subnet.id, opts=opts)
