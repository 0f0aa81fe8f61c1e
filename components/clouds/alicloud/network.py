"""A VPC over the zones: vSwitches for machines and, where pods have addresses of the VPC, for pods; a way out by NAT.

All vSwitches share the VPC's own route table, into which the NAT gateway and, where pods have routes, the CCM write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

import pulumi
import pulumi_alicloud as alicloud

from ... import inputs
from ..common.dependencies import with_what_it_needs
from ..interface import NetworkParts
from .settings import (
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    AlicloudClusterArgs,
    is_zone,
    range_problem,
    tags,
)


def vswitch_cidrs(vpc_cidr: str, zones: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The range of each zone's machines and that of its pods, by its letter: no other zone's coming changes them."""
    machines, pods = (list(half.subnets(prefixlen_diff=5)) for half in IPv4Network(vpc_cidr).subnets(prefixlen_diff=1))
    places = {zone: ord(zone[-1]) - ord("a") for zone in zones}
    return {zone: (str(machines[place]), str(pods[place])) for zone, place in places.items()}


def machine_ranges(network: NetworkParts, settings: AlicloudClusterArgs) -> dict[str, str]:
    """The ranges of the machines' vSwitches, by zone."""
    cidrs = vswitch_cidrs(settings.get("vpc_cidr", DEFAULT_VPC_CIDR), sorted(network.subnet_ids))
    return {zone: machines for zone, (machines, _) in cidrs.items()}


def make(name: str, zones: Sequence[str], settings: AlicloudClusterArgs, opts: pulumi.ResourceOptions) -> NetworkParts:
    """The VPC with its vSwitches and its NAT gateway. Raises WrongInput for zones or ranges that don't fit."""
    vpc_cidr = settings.get("vpc_cidr", DEFAULT_VPC_CIDR)
    check(zones, vpc_cidr, settings)
    vpc = alicloud.vpc.Network(name, vpc_name=name, cidr_block=vpc_cidr, tags=tags(name), opts=opts)
    cidrs = vswitch_cidrs(vpc_cidr, zones)
    machines = {zone: _vswitch(f"{name}-{zone}", vpc, zone, cidrs[zone][0], opts) for zone in zones}
    routed = "pod_cidr" in settings
    pods = {} if routed else {zone: _vswitch(f"{name}-pods-{zone}", vpc, zone, cidrs[zone][1], opts) for zone in zones}
    out = _way_out(name, vpc, machines, pods, opts)
    return NetworkParts(
        vpc.id,
        pulumi.Output.from_input(settings.get("pod_cidr", vpc_cidr)),
        # Machines fetch what they start with from the internet.
        {zone: with_what_it_needs(vswitch.id, out) for zone, vswitch in machines.items()},
        {zone: with_what_it_needs(vswitch.id, out) for zone, vswitch in pods.items()},
    )


def check(zones: Sequence[str], vpc_cidr: str, settings: AlicloudClusterArgs) -> None:
    """Raise WrongInput for what no VPC can be made of."""
    region = settings["region"]
    for index, zone in enumerate(zones):
        inputs.check(f"zones[{index}]", zone, f"a zone of region {region}", lambda v: is_zone(region, v))
    if settings["control_plane"] == "ecs" and len(zones) < 2:
        raise inputs.WrongInput("zones", f"{', '.join(zones)}; allowed: at least two zones, as an NLB requires")
    pods, services = settings.get("pod_cidr"), settings.get("service_cidr", DEFAULT_SERVICE_CIDR)
    for key, cidr in (("vpc_cidr", vpc_cidr), ("pod_cidr", pods), ("service_cidr", services)):
        if cidr is not None:
            inputs.check_cidr(f"settings.{key}", cidr)
    if problem := range_problem(vpc_cidr, pods, services):
        setting, found, why = problem
        raise inputs.WrongInput(f"settings.{setting}", f"{found!r}; {why}")


def _vswitch(
    full: str, vpc: alicloud.vpc.Network, zone: str, cidr: str, opts: pulumi.ResourceOptions
) -> alicloud.vpc.Switch:
    return alicloud.vpc.Switch(
        full, vswitch_name=full, vpc_id=vpc.id, zone_id=zone, cidr_block=cidr, tags=tags(full), opts=opts
    )


def _way_out(
    name: str,
    vpc: alicloud.vpc.Network,
    machines: Mapping[str, alicloud.vpc.Switch],
    pods: Mapping[str, alicloud.vpc.Switch],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """A NAT gateway with one elastic IP address, by which every vSwitch reaches the internet; nothing comes in by it.

    Its address is the cluster's towards others, so it is protected and retained like the network.
    """
    full = f"{name}-nat"
    first = machines[min(machines)]
    gateway = alicloud.vpc.NatGateway(
        full,
        nat_gateway_name=full,
        vpc_id=vpc.id,
        vswitch_id=first.id,
        nat_type="Enhanced",
        internet_charge_type="PayByLcu",
        payment_type="PayAsYouGo",
        eip_bind_mode="NAT",
        tags=tags(full),
        # A zone of an earlier letter that comes later must not replace it.
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["vswitchId"])),
    )
    address = alicloud.ecs.EipAddress(
        full,
        address_name=full,
        bandwidth="100",
        internet_charge_type="PayByTraffic",
        payment_type="PayAsYouGo",
        tags=tags(full),
        opts=opts,
    )
    bound = alicloud.ecs.EipAssociation(
        full, allocation_id=address.id, instance_id=gateway.id, instance_type="Nat", opts=opts
    )
    after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[bound]))
    return [
        alicloud.vpc.SnatEntry(
            f"{full}-{kind}{zone}",
            snat_entry_name=f"{full}-{kind}{zone}",
            snat_table_id=gateway.snat_table_ids,
            source_vswitch_id=vswitch.id,
            snat_ip=address.ip_address,
            opts=after,
        )
        for kind, vswitches in (("", machines), ("pods-", pods))
        for zone, vswitch in vswitches.items()
    ]
