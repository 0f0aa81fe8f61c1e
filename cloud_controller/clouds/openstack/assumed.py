"""What builds need of OpenStack, assumed: for plans without the cloud. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.descriptor import Assumed
from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from cloud_controller.clouds.openstack.octavia.build import OctaviaBuilder
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology, name_pattern
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Object


@dataclass(frozen=True, slots=True)
class _Everything(Topology):
    """One external network, and in each network the subnet that is asked for."""

    def only_external(self, field: str) -> str:
        del field
        return "network-assumed"

    def candidates(self, network_id: str, wanted: str, field: str) -> list[Subnet]:
        kind, _, value = wanted.partition(":")
        if kind == "name":
            name_pattern(value, field)  # Raises InvalidConfiguration for what is no pattern.
        return [Subnet("subnet-assumed", "assumed", network_id, "203.0.113.0/24")]


def assumed(cluster_id: str, service: Object) -> Assumed:
    """See `CloudDescriptor.assumed`. The cloud config has the class that the Service names, and nothing else."""
    named = None
    with suppress(InvalidConfiguration):
        named = CATALOGUE.value(service["metadata"].get("annotations"), "lb_class")
    options = LoadBalancerOptions(classes={str(named): Networks()} if named else {})
    return Assumed(OctaviaBuilder(cluster_id, options), Fact(_Everything()))
