"""Builds the NLB instance of a Service: zones and addresses, clients that may connect, protection, tags. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.nlb.annotations import field
from cloud_controller.clouds.alicloud.nlb.names import OWN_GROUP_TAG
from cloud_controller.clouds.alicloud.nlb.request import Request
from cloud_controller.clouds.common.source_ranges import field_and_texts, source_ranges
from cloud_controller.clouds.common.subnets import require_one_of_a_zone
from cloud_controller.clouds.common.tags import TagRules
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Ignored
from cloud_controller.load_balancers.nameable import Named

MOST_RANGES = 190
"""Rules that a security group has room for, besides the two that refuse everybody else."""
_MOST_ZONES = 10
_TAGS = TagRules(
    most=20,
    longest_key=64,
    longest_value=128,
    pattern=re.compile(r"[\w.:/=+\-@]*"),
    characters="letters, digits and _ . : / = + - @",
    reserved=("aliyun", "acs:", "cloud-controller/", "kubernetes.do.not.delete", "ack.aliyun.com"),
)
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
        "bandwidth_package_id": _bandwidth_package(asked, public=public),
        **({"resource_group_id": asked.text("resource_group_id")} if asked.has("resource_group_id") else {}),
        "cross_zone_enabled": asked.on("cross_zone_enabled"),
        "deletion_protection": asked.on("delete_protection"),
        "modification_protection": asked.text("modification_protection"),
        **_clients(asked),
    }


def zones(asked: Request) -> list[Zone]:
    """The zones in the annotation's order. Raises InvalidConfiguration unless there are valid ones."""
    where, form = field("zone_maps"), "ZONE:VSWITCH[:ADDRESS[:EIP]] for each zone, such as cn-hangzhou-k:vsw-0a1"
    if not asked.words("zone_maps"):
        raise InvalidConfiguration(where, "missing: an NLB needs zones, each with a vSwitch of the cluster's VPC", form)
    found = []
    for word in asked.words("zone_maps"):
        parts = [part.strip() for part in word.split(":")]
        zone, vswitch, address, eip, *more = [*parts, "", "", ""]
        if len(parts) > 4 or any(more) or not zone or not vswitch.startswith("vsw-") or (eip and eip[:4] != "eip-"):
            raise InvalidConfiguration(where, f"{word!r} is not a zone with its vSwitch", form)
        if eip and asked.text("address_type") == "intranet":
            why = f"{eip} cannot be used: {field('address_type')} is intranet"
            raise InvalidConfiguration(where, why, "no elastic IP, or address-type: internet")
        if address:
            try:
                IPv4Address(address)
            except AddressValueError:
                raise InvalidConfiguration(where, f"{address!r} in {word!r} is not an IPv4 address", form) from None
        found.append(Zone(zone, vswitch, address, eip))
    require_one_of_a_zone(where, found)
    if len(found) > _MOST_ZONES:
        raise InvalidConfiguration(where, f"{len(found)} zones are too many", f"at most {_MOST_ZONES}")
    return found


def tags(asked: Request) -> dict[str, str]:
    """The tags of all that is made for the Service. Raises InvalidConfiguration."""
    own = {**asked.owner.tags, **({OWN_GROUP_TAG: "true"} if field_and_texts(asked.spec, asked.settings)[1] else {})}
    # Later come the cluster's UID, and on parts their load balancer and pool.
    return _TAGS.merged(field("additional_resource_tags"), asked.pairs("additional_resource_tags"), own, later=3)


def require_reusable(asked: Request) -> None:
    """Raise InvalidConfiguration for what restricts clients, which a reused load balancer would not do."""
    where, texts = field_and_texts(asked.spec, asked.settings)
    for given, name in ((texts, where), (asked.words("security_group_ids"), field("security_group_ids"))):
        if given:
            why = f"not supported with {field('id')}: the reused load balancer keeps its own security groups"
            raise InvalidConfiguration(name, why, "none; set the security groups on that load balancer")


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


def named(asked: Request) -> Iterator[Named]:
    """The existing resources that annotations of the load balancer name."""
    if asked.has("id"):
        return
    for zone in zones(asked):
        yield Named("subnet", field("zone_maps"), (zone.id,))
        if zone.eip:
            yield Named("elastic-ip", field("zone_maps"), (zone.eip,))
    for group in asked.words("security_group_ids"):
        yield Named("security-group", field("security_group_ids"), (group,))


def dual_stack(asked: Request) -> bool:
    """Whether the load balancer has IPv6 addresses too: by annotation, or because the Service requires both."""
    if asked.has("ip_version"):
        return asked.text("ip_version") == "DualStack"
    return asked.spec.get("ipFamilyPolicy") == "RequireDualStack"


def _ip_versions(asked: Request) -> dict[str, Value | None]:
    families = asked.spec.get("ipFamilies") or ["IPv4"]
    if families[0] != "IPv4":
        why = f"{families[0]} cannot be the first family: load balancers reach backends by IPv4"
        raise InvalidConfiguration("spec.ipFamilies", why, "IPv4 as the first family")
    if not dual_stack(asked):
        return {"address_ip_version": "ipv4"}
    public = asked.text("ipv6_address_type") == "internet"
    return {"address_ip_version": "DualStack", "ipv6_address_type": "Internet" if public else "Intranet"}


def _bandwidth_package(asked: Request, *, public: bool) -> str | None:
    given = asked.settings.text("bandwidth_package_id")
    if given and not public and not (dual_stack(asked) and asked.text("ipv6_address_type") == "internet"):
        why = "the load balancer has no public addresses that could use the bandwidth"
        raise InvalidConfiguration(field("bandwidth_package_id"), why, "none; or address-type: internet")
    return given


def _clients(asked: Request) -> Mapping[str, Value | None]:
    """`security_group_ids` if the Service names groups, and the `source_ranges` that the Service's own group admits."""
    where, texts = field_and_texts(asked.spec, asked.settings)
    if asked.has("security_group_ids"):
        if texts:
            why = f"the security groups in {field('security_group_ids')} decide which clients may connect"
            raise InvalidConfiguration(where, why, "only one of the two")
        for group in asked.words("security_group_ids"):
            if not re.fullmatch("sg-[0-9a-z-]+", group):
                raise InvalidConfiguration(field("security_group_ids"), f"{group!r} is not an ID", "sg-…")
        return {"security_group_ids": tuple(sorted({*asked.words("security_group_ids")})), "source_ranges": ()}
    versions = (4, 6) if dual_stack(asked) else (4,)
    ranges = tuple(str(each) for each in source_ranges(asked.spec, asked.settings, versions))
    if len(ranges) > MOST_RANGES:
        raise InvalidConfiguration(where, f"{len(ranges)} ranges are too many", f"at most {MOST_RANGES}")
    return {"source_ranges": ranges}
