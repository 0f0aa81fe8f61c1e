"""Builds the model of a network load balancer from a Service. Pure.

Each port becomes a listener and a pool (a target group); TCP and UDP on one port share them, as `TCP_UDP`. The
pool's name contains the settings that a target group cannot change, so that a change creates a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws import build_common as common
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.build_network_addresses import AddressType, address_type, own_addresses
from cloud_controller.clouds.aws.build_network_listeners import ignored as listeners_ignored
from cloud_controller.clouds.aws.build_network_listeners import listener, marks
from cloud_controller.clouds.aws.build_network_targets import (
    OF_PORT,
    health_check,
    outside_of_the_vpc,
    require_members,
    target_attributes,
)
from cloud_controller.clouds.aws.names import pool_name
from cloud_controller.clouds.aws.refusals import MOST_LISTENERS
from cloud_controller.clouds.aws.request import Port, Request, field, kind_of
from cloud_controller.clouds.common.service_spec import ignored_affinity_timeout
from cloud_controller.load_balancers.backends import Backends, Member, ready_endpoints
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Built, Ignored, LoadBalancerModel, Object, Pool

_PROTOCOLS = ("TCP", "UDP")


@dataclass(frozen=True, slots=True)
class Front:
    """A port number with the Service's ports on it: one, or one each of TCP and UDP."""

    number: int
    ports: tuple[Port, ...]

    @property
    def transport(self) -> str:
        """TCP, UDP or TCP_UDP."""
        return "_".join(sorted(port["protocol"] for port in self.ports))


def build(asked: Request, backends: Backends) -> Built:
    """The model. Raises InvalidConfiguration that names the field or annotation."""
    targets = str(asked.settings.text("nlb_target_type"))
    found = fronts(asked.service)
    scheme = common.scheme(asked)
    chosen = common.subnets(asked, scheme)
    addresses = address_type(asked, chosen, [front.transport for front in found])
    named = asked.pairs("attributes")
    attributes: dict[str, Value | None] = {
        "type": "network",
        "scheme": scheme,
        **({aws.NAME: (str(asked.settings.given["name"]),)} if "name" in asked.settings.given else {}),
        "subnets": tuple(sorted(subnet.id for subnet in chosen)),
        **addresses.attributes,
        **common.front(
            asked, [(front.transport, front.number) for front in found], dualstack=addresses.type == "dualstack"
        ),
        **own_addresses(asked, chosen),
        **{key: value for key, value in named.items() if key not in aws.OF_ANNOTATIONS.values()},
        **common.logs(asked, named),
    }
    pools = {front.number: _pool(asked, front, targets, addresses, backends) for front in found}
    listeners = tuple(listener(asked, front.transport, front.ports[0], pools[front.number].name) for front in found)
    model = LoadBalancerModel(
        name=asked.owner.load_balancer_name,
        attributes=attributes,
        listeners=listeners,
        pools=tuple(pools.values()),
        tags=common.tags(asked, marks(asked, listeners)),
    )
    return Built(
        model,
        ignored=(*_ignored(asked, targets, model), *addresses.ignored),
        warnings=(
            *common.warnings(asked, model, "attributes", "target_group_attributes", "listener_attributes", OF_PORT),
            *(outside_of_the_vpc(asked, model.pools) if targets == "ip" else ()),
        ),
    )


def fronts(service: Object) -> list[Front]:
    """The Service's ports, grouped by number."""
    found: dict[int, list[Port]] = {}
    for port in service["spec"].get("ports") or ():
        if port["protocol"] in _PROTOCOLS:
            found.setdefault(port["port"], []).append(port)
    return [
        Front(number, tuple(sorted(ports, key=lambda port: str(port["protocol"])))) for number, ports in found.items()
    ]


def follows_endpoints(service: Object) -> bool:
    """Whether the targets are pods; False if the annotations are invalid."""
    try:
        return by_pod(service)
    except InvalidConfiguration:
        return False


def by_pod(service: Object) -> bool:
    """Whether the targets are pods. Raises InvalidConfiguration if the annotations are invalid."""
    if kind_of(service) != "network":
        return False
    return CATALOGUE.value(service["metadata"].get("annotations"), "nlb_target_type") == "ip"


def members(service: Object, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
    """The members behind each listener, even if other settings of the Service are invalid."""
    pods = by_pod(service)
    served = [front for front in fronts(service) if pods or all(port.get("nodePort") for port in front.ports)]
    return {(front.transport, front.number): _members(service, front, backends, pods) for front in served}


def pod_addresses(service: Object, slices: Sequence[Object]) -> set[str]:
    """The addresses of the Service's ready pods."""
    # A Service with more is refused.
    family, ports = _pods_family(service), [front.ports[0] for front in fronts(service)[:MOST_LISTENERS]]
    return {address for port in ports for address, _, _ in ready_endpoints(slices, port, family)}


# ----------------------------------------------------------------------------------------------------------- pools


def _members(service: Object, front: Front, backends: Backends, by_pods: bool) -> tuple[Member, ...]:
    first = front.ports[0]
    if not by_pods:
        return common.node_members(service, first, backends)
    pods = backends.by_pod(first, _pods_family(service))
    return tuple(Member(found.address, found.port, found.address) for found in pods)


def _pods_family(service: Object) -> str:
    return str((service["spec"].get("ipFamilies") or ["IPv4"])[0])


def _pool(asked: Request, front: Front, targets: str, addresses: AddressType, backends: Backends) -> Pool:
    tls = common.speaks_tls(asked, front.ports[0])
    protocol = "TLS" if tls and asked.settings.text("backend_protocol") == "ssl" else front.transport
    require_members(asked, front.ports, targets, backends)
    return Pool(
        name=pool_name(protocol, front.number, targets, addresses.of_targets),
        health_check=health_check(asked, targets),
        members=_members(asked.service, front, backends, targets == "ip"),
        attributes={
            "protocol": protocol,
            "target_type": targets,
            "ip_address_type": addresses.of_targets,
            **target_attributes(asked, front.number, protocol, targets),
        },
    )


# --------------------------------------------------------------------------------------------------------- ignored

_ONLY_CLASSIC: Mapping[str, str] = {
    "access_log_emit_interval": "the log interval of network load balancers cannot be changed",
    "connection_draining_enabled": "network load balancers always drain connections",
    "connection_draining_timeout": (f"use deregistration_delay.timeout_seconds in {field('target_group_attributes')}"),
}


def _ignored(asked: Request, targets: str, model: LoadBalancerModel) -> Iterator[Ignored]:
    yield from common.ignored(asked, model)
    yield from listeners_ignored(asked, model.listeners)
    for argument, reason in _ONLY_CLASSIC.items():
        yield from asked.ignored(argument, reason)
    if not asked.words("ssl_cert"):
        yield from asked.ignored("alpn_policy", f"{field('ssl_cert')} is not set")
    for suffix in asked.settings.members(OF_PORT).keys() - {str(port["port"]) for port in asked.ports}:
        yield from asked.ignored(f"{OF_PORT}.{suffix}", "the Service has no port with this number")
    if asked.settings.text("backend_protocol") in ("http", "https"):
        yield from asked.ignored("backend_protocol", "network load balancers support only TCP and TLS to targets")
    if targets == "ip":
        yield from asked.ignored("target_node_labels", "the targets are pods, not nodes")
    yield from ignored_affinity_timeout(asked.spec, "AWS does not support a timeout")
