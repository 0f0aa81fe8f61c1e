"""A network with one subnet for all zones, and the router by which it reaches the outside and pods reach each other."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_openstack as openstack

from ... import inputs
from ..common.dependencies import with_what_it_needs
from ..common.ranges import overlap_problem
from ..interface import NetworkParts
from .settings import DEFAULT_NETWORK_CIDR, DEFAULT_POD_CIDR, DEFAULT_SERVICE_CIDR, OpenstackClusterArgs, tags


def make(name: str, zones: Sequence[str], settings: OpenstackClusterArgs, opts: pulumi.ResourceOptions) -> NetworkParts:
    """The network. Raises WrongInput for ranges that don't fit."""
    cidr, pods = settings.get("network_cidr", DEFAULT_NETWORK_CIDR), settings.get("pod_cidr", DEFAULT_POD_CIDR)
    _check(cidr, pods, settings.get("service_cidr", DEFAULT_SERVICE_CIDR))
    network = openstack.networking.Network(name, name=name, tags=tags(), opts=opts)
    subnet = openstack.networking.Subnet(
        name, name=name, network_id=network.id, cidr=cidr, ip_version=4, tags=tags(), opts=opts
    )
    # Routes are no part of the resource: those to pods, which the CCM writes, are left alone.
    router = openstack.networking.Router(
        name,
        name=name,
        external_network_id=settings["external_network_id"],
        tags=tags(),
        opts=opts,
    )
    joined = openstack.networking.RouterInterface(
        name,
        router_id=router.id,
        subnet_id=subnet.id,
        # Routes of the CCM that are left would keep the router in the subnet.
        force_destroy=True,
        opts=opts,
    )
    # Machines fetch what they start with from the outside.
    subnet_id = with_what_it_needs(subnet.id, [joined])
    return NetworkParts(
        network.id,
        pulumi.Output.from_input(pods),
        dict.fromkeys(zones, subnet_id),
        # Controllers find the router by its port in the network.
        complete_id=pulumi.Output.all(network.id, joined.id).apply(lambda ids: str(ids[0])),
        facts={"router_id": with_what_it_needs(router.id, [joined])},
    )


def _check(cidr: str, pods: str, services: str) -> None:
    for key, given in (("network_cidr", cidr), ("pod_cidr", pods), ("service_cidr", services)):
        inputs.check_cidr(f"settings.{key}", given)
    if problem := overlap_problem(cidr, pods, services, called="network"):
        setting, found, why = problem
        raise inputs.WrongInput(f"settings.{setting}", f"{found!r}; {why}")
