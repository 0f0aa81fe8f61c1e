"""Translates AWS's description of a network load balancer into a model. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cloud_controller.clouds.aws.attributes import NAME, SOURCE_NAT, load_balancer_defaults
from cloud_controller.clouds.aws.memory import Known, name_in
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import (
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)

ADDRESSES = {"eip_allocations": "AllocationId", "private_ipv4_addresses": "PrivateIPv4Address"}
"""Attributes of the model with one value for each subnet, and their AWS names."""

_STATES = {
    "provisioning": LoadBalancerState.PENDING,
    "active": LoadBalancerState.READY,
    # It serves traffic, but cannot scale up as required.
    "active_impaired": LoadBalancerState.READY,
    "failed": LoadBalancerState.FAILED,
}


def observed(
    view: Mapping[str, Any],
    known: Known,
    tags: Mapping[str, str],
    groups: Mapping[str, Value | None],
) -> ObservedLoadBalancer:
    """The observed load balancer from AWS's description, the cached details and the security groups' `attributes`."""
    state = view.get("State") or {}
    created = view.get("CreatedTime")
    code = str(state.get("Code", "active"))
    return ObservedLoadBalancer(
        id=view["LoadBalancerName"],
        state=_STATES.get(code, LoadBalancerState.READY),
        state_reason=state.get("Reason"),
        model=LoadBalancerModel(
            name=name_of(tags) or view["LoadBalancerName"],
            attributes=_attributes(view, known, groups),
            listeners=tuple(each.listener for _, each in sorted(known.listeners.items())),
            pools=tuple(each.pool for _, each in sorted(known.groups.items())),
            tags=tags,
        ),
        ingress=(Ingress(hostname=view["DNSName"]),) if view.get("DNSName") else (),
        created_at=created.isoformat() if isinstance(created, datetime) else str(created or ""),
        settled=code != "provisioning",
    )


def addresses_of(view: Mapping[str, Any], known: Known | None) -> dict[str, tuple[str, ...]]:
    """The chosen addresses in the order of the subnets; those of its creation if AWS returns none."""
    zones = sorted(view.get("AvailabilityZones") or (), key=lambda zone: str(zone.get("SubnetId")))
    found = {}
    for attribute, key in ADDRESSES.items():
        told = [address[key] for zone in zones for address in zone.get("LoadBalancerAddresses") or () if key in address]
        found[attribute] = tuple(told) or (known.made_with.get(attribute, ()) if known else ())
    return found


def exchange(present: Sequence[str], wanted: Sequence[str], zones: Mapping[str, str]) -> list[list[str]]:
    """The sequence of subnets to set to move a load balancer from `present` to `wanted`.

    AWS accepts another subnet of a zone only after the old one is removed, and always needs at least one.
    """
    steps = []
    while {*present} != {*wanted}:
        taken = {zones.get(subnet) for subnet in present}
        step = [subnet for subnet in wanted if subnet in present or zones.get(subnet) not in taken] or [*present[:1]]
        # If its only subnet is to be replaced in the same zone, AWS refuses.
        present = step if {*step} != {*present} else [*wanted]
        steps.append([*present])
    return steps


def name_of(tags: Mapping[str, str]) -> str:
    """The name for users; "" if a tag that holds it is missing."""
    owner = Owner.of_tags(tags)
    return owner.load_balancer_name if owner is not None and owner.name else ""


def _attributes(view: Mapping[str, Any], known: Known, groups: Mapping[str, Value | None]) -> dict[str, Value | None]:
    scheme = str(view["Scheme"])
    return {
        # Attributes that AWS omits have their defaults.
        **load_balancer_defaults(scheme),
        **known.attributes,
        "type": "network",
        "scheme": scheme,
        NAME: (name_in(str(view["LoadBalancerArn"])),),
        "subnets": tuple(sorted(zone["SubnetId"] for zone in view.get("AvailabilityZones") or ())),
        "ip_address_type": view.get("IpAddressType") or "ipv4",
        SOURCE_NAT: view.get("EnablePrefixForIpv6SourceNat") or "off",
        **addresses_of(view, known),
        **groups,
    }
