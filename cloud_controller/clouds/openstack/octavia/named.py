"""The resources that a Service's annotations name: networks, subnets, ports, a floating IP. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloud_controller.clouds.openstack.octavia.refusals import NAMINGS, OF_FLOATING_IPS
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.nameable import Named, field_of, named_words
from cloud_controller.load_balancers.settings import Settings

_BY_PATTERN = ("floating_subnet_name", "floating_subnet_tags")


def named(
    settings: Settings, spec: Mapping[str, Any], attributes: Mapping[str, Value | None], facts: Fact[Topology]
) -> Iterator[Named]:
    """All resources that the Service names; of a pattern, each subnet from which the floating IP may come."""
    for naming, word in named_words(NAMINGS, settings, spec):
        if attributes.get("internal") and naming.argument in OF_FLOATING_IPS:
            continue  # The cloud config makes every load balancer internal.
        field = field_of(naming, settings)
        if naming.argument in _BY_PATTERN:
            network, choice = str(attributes["floating_network"]), str(attributes["floating_subnet"])
            for each in facts.value.candidates(network, choice, field):
                yield Named(naming.kind, field, (each.id, each.name), tags=_tags(each))
        elif naming.kind == "subnet":
            subnet = next((each for each in facts.value.subnets if each.id == word), None)
            yield Named(naming.kind, field, (word,), tags=_tags(subnet) if subnet else {})
        else:
            yield Named(naming.kind, field, (word,))


def _tags(subnet: Subnet) -> Mapping[str, str]:
    """Neutron's tags are single words."""
    return dict.fromkeys(subnet.tags, "")
