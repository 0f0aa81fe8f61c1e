"""What a Service comes to as a load balancer of mycloud: pure.

Each port of the Service becomes a listener and a pool of its own, `tcp-80` or `udp-53`, whose members are the node
port on the ingress nodes. Where no node is marked as ingress node, every eligible node is a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloud_controller.catalogue import Settings
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.instances import machine_id
from cloud_controller.load_balancer import (
    Built,
    HealthCheck,
    Ignored,
    Listener,
    LoadBalancerModel,
    Member,
    Object,
    Owner,
    Pool,
)

NO_INGRESS_NODES = (
    f'no node carries the annotation {INGRESS_NODE}: "true"; every eligible node gets the load balancer\'s traffic'
)

_PROTOCOLS = ("TCP", "UDP")


def build(service: Object, nodes: Sequence[Object], *, cluster_id: str, default_scheme: str) -> Built:
    """The model for a Service with these eligible nodes. Raises InvalidConfiguration, naming field or annotation."""
    metadata, spec = service["metadata"], service["spec"]
    settings = CATALOGUE.parse(metadata.get("annotations"))
    owner = Owner(cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
    if "IPv4" not in (spec.get("ipFamilies") or ["IPv4"]):
        raise InvalidConfiguration("spec.ipFamilies", "mycloud's load balancers have IPv4 addresses", "IPv4")
    backends = _backends(nodes)
    ports = [*enumerate(spec.get("ports") or [])]
    for index, port in ports:
        _require_served(index, port)
    model = LoadBalancerModel(
        name=owner.load_balancer_name,
        attributes={"scheme": settings.given.get("scheme", default_scheme)},
        listeners=tuple(_listener(port, settings) for _, port in ports),
        pools=tuple(_pool(port, settings, backends) for _, port in ports),
        tags=owner.tags,
    )
    marked = any(_is_ingress_node(node) for node in nodes)
    return Built(
        model,
        ignored=_ignored(service, settings),
        warnings=() if marked or not backends else (NO_INGRESS_NODES,),
    )


# -------------------------------------------------------------------------------------------------------- backends


def _backends(nodes: Sequence[Object]) -> list[tuple[str, str]]:
    """Address and machine id of the nodes that get traffic, in a stable order."""
    marked = [node for node in nodes if _is_ingress_node(node)]
    found = []
    for node in marked or nodes:
        # A node without either is not initialised yet; it comes in when it is.
        machine = machine_id(node["spec"].get("providerID") or "")
        address = _internal_address(node)
        if machine and address:
            found.append((address, machine))
    return sorted(found)


def _is_ingress_node(node: Object) -> bool:
    annotations = node["metadata"].get("annotations") or {}
    return bool(annotations.get(INGRESS_NODE) == "true")


def _internal_address(node: Object) -> str | None:
    addresses = node.get("status", {}).get("addresses") or []
    # The cloud's own addresses are IPv4; a node that lists an IPv6 address too is reached by the other.
    found = (a["address"] for a in addresses if a["type"] == "InternalIP" and ":" not in a["address"])
    return next(found, None)


# --------------------------------------------------------------------------------------------- listeners and pools


def _require_served(index: int, port: dict[str, Any]) -> None:
    field = f"spec.ports[{index}]"
    if port["protocol"] not in _PROTOCOLS:
        raise InvalidConfiguration(f"{field}.protocol", f"{port['protocol']!r} is not offered", ", ".join(_PROTOCOLS))
    if not port.get("nodePort"):
        why = "there is none, and mycloud's load balancers send to node ports"
        raise InvalidConfiguration(f"{field}.nodePort", why, "spec.allocateLoadBalancerNodePorts: true")


def _pool_name(port: dict[str, Any]) -> str:
    return f"{port['protocol'].lower()}-{port['port']}"


def _listener(port: dict[str, Any], settings: Settings) -> Listener:
    return Listener(
        protocol=port["protocol"],
        port=port["port"],
        pool=_pool_name(port),
        attributes={
            "max_qps": settings.number("listener_max_qps"),
            "idle_timeout_seconds": settings.number("listener_idle_timeout"),
        },
    )


def _pool(port: dict[str, Any], settings: Settings, backends: Sequence[tuple[str, str]]) -> Pool:
    node_port = port["nodePort"]
    return Pool(
        name=_pool_name(port),
        health_check=_health_check(port["protocol"], settings),
        members=tuple(Member(address, node_port, machine) for address, machine in backends),
        attributes={"scheduler": settings.text("scheduler")},
    )


def _health_check(protocol: str, settings: Settings) -> HealthCheck:
    port = settings.number("health_check_port")
    # What answers at a UDP port is the pod's own protocol, which no check speaks.
    unchecked = protocol == "UDP" and port is None
    interval, timeout = settings.integer("health_check_interval"), settings.integer("health_check_timeout")
    if timeout > interval:
        name = CATALOGUE.by_argument["health_check_timeout"].name
        raise InvalidConfiguration(f"annotation {name}", f"{timeout} s is longer than the interval", f"1 to {interval}")
    return HealthCheck(
        protocol="NONE" if unchecked else settings.text("health_check_protocol") or "TCP",
        port=port,
        path=settings.text("health_check_path"),
        interval_seconds=interval,
        timeout_seconds=timeout,
        healthy_threshold=settings.integer("health_check_healthy_threshold"),
        unhealthy_threshold=settings.integer("health_check_unhealthy_threshold"),
    )


# --------------------------------------------------------------------------------------------------------- ignored


def _ignored(service: Object, settings: Settings) -> tuple[Ignored, ...]:
    """What the Service asks for in vain."""
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    source_ranges = CATALOGUE.by_argument["load_balancer_source_ranges"].ignored or ""
    found = [Ignored(f"annotation {e.name}", annotations[e.name], e.ignored or "") for e in settings.ignored]
    if spec.get("loadBalancerSourceRanges"):
        ranges = tuple(spec["loadBalancerSourceRanges"])
        found.append(Ignored("spec.loadBalancerSourceRanges", ranges, source_ranges))
    if spec.get("loadBalancerIP"):
        why = "mycloud chooses the addresses of its load balancers"
        found.append(Ignored("spec.loadBalancerIP", spec["loadBalancerIP"], why))
    if spec.get("externalTrafficPolicy") == "Local":
        # A check at the health check node port would find every node unfit: nothing answers there.
        why = "the proxies of mycloud's machines send to pods on any node"
        found.append(Ignored("spec.externalTrafficPolicy", "Local", why))
    if spec.get("sessionAffinity", "None") != "None":
        why = "mycloud's load balancers know no session affinity; only the nodes' proxies heed it"
        found.append(Ignored("spec.sessionAffinity", spec["sessionAffinity"], why))
    return tuple(found)
