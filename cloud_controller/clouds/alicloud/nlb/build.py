"""Builds the model of a network load balancer (NLB) from a Service. Pure.

Each port becomes a listener and a pool (a server group). A pool's name contains what a server group cannot change, so
that such a change makes a new one, and the old one goes once no listener forwards to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.nlb import build_listeners, build_load_balancer, build_server_groups
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.clouds.alicloud.nlb.build_listeners import Front, fronts
from cloud_controller.clouds.alicloud.nlb.build_server_groups import by_pod, members_of
from cloud_controller.clouds.alicloud.nlb.names import display_name
from cloud_controller.clouds.alicloud.nlb.refusals import RANGE, numbers_of
from cloud_controller.clouds.alicloud.nlb.request import BuildFacts, Request, value_of
from cloud_controller.clouds.common.service_spec import is_local
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Built, Ignored, LoadBalancerModel, Object, Reuse
from cloud_controller.load_balancers.nameable import named
from cloud_controller.load_balancers.refusals import refuse
from cloud_controller.patterns import is_whole


def build(asked: Request, backends: Backends, facts: BuildFacts) -> Built:
    """The model. Raises InvalidConfiguration that names the field or annotation."""
    refuse(asked.settings, asked.spec, NLB.refusals)
    found = fronts(asked)
    tags = build_load_balancer.tags(asked)
    reuse = _reuse(asked, facts)
    # On a load balancer of its own, everything is the Service's; a shared one tells whose each part is.
    part_tags: Mapping[str, str] = tags if reuse else {}
    suffix = f"-{asked.owner.uid}" if reuse else ""
    attributes: Mapping[str, Value | None] = {} if reuse else build_load_balancer.attributes(asked)
    given_name = asked.settings.text("name")
    model = LoadBalancerModel(
        name=given_name or display_name(asked.owner.load_balancer_name),
        attributes=attributes,
        listeners=tuple(build_listeners.listener(asked, each, f"{each.pool}{suffix}", part_tags) for each in found),
        pools=tuple(
            build_server_groups.pool(asked, each, f"{each.pool}{suffix}", backends, part_tags) for each in found
        ),
        tags=tags,
    )
    return Built(
        model,
        ignored=tuple(_ignored(asked, found)),
        reuse=reuse,
        named=tuple(named(NLB.namings, asked.settings, asked.spec)),
    )


def members(service: Object, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
    """The members behind each listener, even if other settings of the Service are invalid."""
    pods = by_pod(service)
    ranges = _first_ports(service) if pods else {}
    return {
        (port["protocol"], ranges.get(port["port"], port["port"])): members_of(
            service, port, backends, any_port=port["port"] in ranges
        )
        for port in service["spec"].get("ports") or ()
        if port["protocol"] in ("TCP", "UDP") and (pods or port.get("nodePort"))
    }


def follows_endpoints(service: Object) -> bool:
    """Whether members depend on where pods run; False if the annotation is invalid."""
    try:
        return by_pod(service) or is_local(service["spec"])
    except InvalidConfiguration:
        return False


def drains(service: Object) -> bool:
    """Whether removed members keep their connections."""
    try:
        return value_of(service, "connection_drain") == "on"
    except InvalidConfiguration:
        return False


def _reuse(asked: Request, facts: BuildFacts) -> Reuse | None:
    reused = asked.settings.text("id")
    if reused is None:
        return None
    return Reuse(reused, asked.settings.flag("force_override_listeners"), facts.vpc_id)


def _first_ports(service: Object) -> dict[int, int]:
    """The first port of each listener for a range, by the Service's port."""
    words = value_of(service, "listener_port_range")
    ranges = [word for word in words if is_whole(RANGE, word)] if isinstance(words, tuple) else []
    return {number: first for first, _, number in map(numbers_of, ranges)}


def _ignored(asked: Request, found: list[Front]) -> Iterator[Ignored]:
    annotations = NLB.meant(asked.service["metadata"].get("annotations"))
    for entry in asked.settings.ignored:
        yield Ignored(f"annotation {entry.name}", str(entry.text_in(annotations)), entry.ignored or "")
    yield from build_load_balancer.ignored(asked)
    yield from build_listeners.ignored(asked, found)
    yield from build_listeners.ignored_tlvs(asked)
    yield from build_server_groups.ignored(asked, found)
