"""Builds the NLB instance of a Service: zones and addresses, clients that may connect, protection, tags. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cloud_controller.clouds.alicloud.nlb.annotations import field
from cloud_controller.clouds.alicloud.nlb.names import OWN_GROUP_TAG
from cloud_controller.clouds.alicloud.nlb.request import Request
from cloud_controller.clouds.common.source_ranges import field_and_texts, source_ranges
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored

_OF_INSTANCE = (
    *("zone_maps", "address_type", "ip_version", "ipv6_address_type", "name", "resource_group_id"),
    *("bandwidth_package_id", "cross_zone_enabled", "delete_protection", "modification_protection"),
)
"""Annotations that a reused load balancer makes pointless."""


@dataclass(frozen=True, slots=True)
class Zone:
    """One zone of the load balancer, as `zone-maps` says: `id` is the vSwitch."""

    zone: str
    id: str
    address: str = ""
    eip: str = ""


def attributes(asked: Request) -> dict[str, Value | None]:
    """The attributes of the load balancer. Raises InvalidConfiguration that names the field or annotation."""
    found = zones(asked)
    public = asked.text("address_type") == "internet"
    return {
        "zones": tuple(sorted(f"{each.zone}:{each.id}" for each in found)),
        # One attribute a zone: what a Service leaves to the cloud is not compared.
        **{f"private_ipv4.{each.zone}": each.address for each in found if each.address},
        **{f"eip.{each.zone}": each.eip for each in found if each.eip},
        "address_type": "Internet" if public else "Intranet",
        **_ip_versions(asked),
        "bandwidth_package_id": asked.settings.text("bandwidth_package_id"),
        **({"resource_group_id": asked.text("resource_group_id")} if asked.has("resource_group_id") else {}),
        "cross_zone_enabled": asked.on("cross_zone_enabled"),
        "deletion_protection": asked.on("delete_protection"),
        "modification_protection": asked.text("modification_protection"),
        **_clients(asked),
    }


def zones(asked: Request) -> list[Zone]:
    """The zones in the annotation's order."""
    return [Zone(*(part.strip() for part in word.split(":"))) for word in asked.words("zone_maps")]


def tags(asked: Request) -> dict[str, str]:
    """The tags of all that is made for the Service."""
    own = {**asked.owner.tags, **({OWN_GROUP_TAG: "true"} if field_and_texts(asked.spec, asked.settings)[1] else {})}
    return {**asked.pairs("additional_resource_tags"), **own}


def ignored(asked: Request) -> Iterator[Ignored]:
    """Annotations of the load balancer that have no effect here."""
    if asked.has("id"):
        for argument in _OF_INSTANCE:
            yield from asked.ignored(argument, "the Service reuses a load balancer and cannot change it")
    else:
        yield from asked.ignored("force_override_listeners", f"it applies only with {field('id')}, which is not set")
    if not asked.has("id") and not dual_stack(asked):
        yield from asked.ignored("ipv6_address_type", f"the load balancer has no IPv6 addresses: {field('ip_version')}")
    families = asked.spec.get("ipFamilies") or ["IPv4"]
    if "IPv6" in families and not asked.has("id") and not dual_stack(asked):
        why = f"the load balancer has only IPv4 addresses; {field('ip_version')}: DualStack gives it both"
        yield Ignored("spec.ipFamilies", tuple(families), why)
    if asked.spec.get("loadBalancerIP"):
        yield Ignored("spec.loadBalancerIP", asked.spec["loadBalancerIP"], f"use {field('zone_maps')}")


def dual_stack(asked: Request) -> bool:
    """Whether the load balancer has IPv6 addresses too: by annotation, or because the Service requires both."""
    if asked.has("ip_version"):
        return asked.text("ip_version") == "DualStack"
    return asked.spec.get("ipFamilyPolicy") == "RequireDualStack"


def _ip_versions(asked: Request) -> dict[str, Value | None]:
    if not dual_stack(asked):
        return {"address_ip_version": "ipv4"}
    public = asked.text("ipv6_address_type") == "internet"
    return {"address_ip_version": "DualStack", "ipv6_address_type": "Internet" if public else "Intranet"}


def _clients(asked: Request) -> Mapping[str, Value | None]:
    """`security_group_ids` if the Service names groups, and the `source_ranges` that the Service's own group admits."""
    if asked.has("security_group_ids"):
        return {"security_group_ids": tuple(sorted({*asked.words("security_group_ids")})), "source_ranges": ()}
    versions = (4, 6) if dual_stack(asked) else (4,)
    ranges = tuple(sorted(str(each) for each in source_ranges(asked.spec, asked.settings, versions)))
    return {"source_ranges": ranges}
