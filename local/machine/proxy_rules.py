"""The work of a node-proxier: Services and EndpointSlices in; listeners with their routes, and health ports out.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from local.addresses import socket_address

Object = dict[str, Any]
Target = tuple[str, int]

PROTOCOLS = ("TCP", "UDP")
DEFAULT_AFFINITY_SECONDS = 10_800


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A socket address to listen on; `shared` if every machine of the site listens on it too (cluster IPs)."""

    protocol: str
    host: str
    port: int
    shared: bool


@dataclass(frozen=True, slots=True)
class Route:
    """Where a listener leads: at least one socket address, in a fixed order.

    `affinity_seconds`: a client keeps its target until it has opened no connection for so long; None: targets take
    turns. `masquerade`: the target does not see the client's address.
    """

    targets: tuple[Target, ...]
    affinity_seconds: float | None = None
    masquerade: bool = False


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """The answer of a Service's health check node port: the number of ready endpoints on this node."""

    namespace: str
    name: str
    local_endpoints: int


@dataclass(frozen=True, slots=True)
class Rules:
    """All work of one node's proxier. A health port is open whether the node has endpoints or not."""

    routes: dict[Listener, Route]
    health_ports: dict[Target, ServiceHealth]


@dataclass(frozen=True, slots=True)
class Node:
    """The node that the rules are for: its name, which identifies its own endpoints, and its address."""

    name: str
    address: str


def rules(services: Iterable[Object], slices: Iterable[Object], node: Node) -> Rules:
    """The rules of one node.

    A port without a usable endpoint is not listened on, so that connections are refused and health checks fail.
    """
    by_service: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for endpoint_slice in slices:
        metadata = endpoint_slice["metadata"]
        owner = (metadata.get("labels") or {}).get("kubernetes.io/service-name")
        if owner and endpoint_slice.get("addressType") == "IPv4":
            by_service[metadata["namespace"], owner].append(endpoint_slice)
    found = Rules({}, {})
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        if spec.get("type") == "ExternalName" or spec.get("clusterIP") in (None, "", "None"):
            continue
        own = by_service[metadata["namespace"], metadata["name"]]
        for port in spec.get("ports") or []:
            if port.get("protocol", "TCP") in PROTOCOLS:
                found.routes.update(_routes(spec, port, own, node))
        if spec.get("healthCheckNodePort"):
            ready = _local_ready(own, node.name)
            health = ServiceHealth(metadata["namespace"], metadata["name"], ready)
            found.health_ports[socket_address(node.address), int(spec["healthCheckNodePort"])] = health
    return found


def ignored_fields(service: Object) -> list[str]:
    """Fields of a Service that the node-proxier does not support."""
    spec = service["spec"]
    ignored = [f"{field}: {spec[field]}" for field in ("externalIPs", "trafficDistribution") if spec.get(field)]
    others = sorted({port.get("protocol", "TCP") for port in spec.get("ports") or []} - set(PROTOCOLS))
    return ignored + [f"ports of protocol {protocol}" for protocol in others]


def ignored_addresses(endpoint_slice: Object) -> list[str]:
    """The endpoints that the node-proxier ignores: only loopback can be dialled here."""
    if endpoint_slice.get("addressType") != "IPv4":
        return []
    addresses = [endpoint["addresses"][0] for endpoint in endpoint_slice.get("endpoints") or []]
    return [f"endpoint {address}" for address in addresses if not _is_ours(address)]


def _is_ours(address: str) -> bool:
    return address.startswith("10.")


def _routes(spec: Object, port: Object, slices: list[Object], node: Node) -> dict[Listener, Route]:
    protocol = port.get("protocol", "TCP")
    affinity = _affinity_seconds(spec)
    found: dict[Listener, Route] = {}
    if targets := _endpoints(slices, port, node.name if spec.get("internalTrafficPolicy") == "Local" else None):
        listener = Listener(protocol, socket_address(spec["clusterIP"]), int(port["port"]), shared=True)
        found[listener] = Route(targets, affinity)
    if port.get("nodePort"):
        is_local = spec.get("externalTrafficPolicy") == "Local"
        if targets := _endpoints(slices, port, node.name if is_local else None):
            listener = Listener(protocol, socket_address(node.address), int(port["nodePort"]), shared=False)
            # As kube-proxy: the answer of a target on another node must come back through this one.
            found[listener] = Route(targets, affinity, masquerade=not is_local)
    return found


def _endpoints(slices: Iterable[Object], port: Object, node_name: str | None) -> tuple[Target, ...]:
    """A Service's ready endpoints (of one node, if named) or, if there is none, those that serve while terminating."""
    ready: set[Target] = set()
    terminating: set[Target] = set()
    for endpoint_slice in slices:
        number = _port_number(endpoint_slice, port)
        if number is None:
            continue
        for endpoint in endpoint_slice.get("endpoints") or []:
            if node_name is not None and endpoint.get("nodeName") != node_name:
                continue
            conditions = endpoint.get("conditions") or {}
            targets = {(socket_address(address), number) for address in endpoint["addresses"][:1] if _is_ours(address)}
            if _is_ready(endpoint):
                ready |= targets
            elif conditions.get("serving") and conditions.get("terminating"):
                terminating |= targets
    return tuple(sorted(ready or terminating))


def _local_ready(slices: Iterable[Object], node_name: str) -> int:
    return len(
        {
            endpoint["addresses"][0]
            for endpoint_slice in slices
            for endpoint in endpoint_slice.get("endpoints") or []
            if endpoint.get("nodeName") == node_name and _is_ready(endpoint)
        }
    )


def _is_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _affinity_seconds(spec: Object) -> float | None:
    if spec.get("sessionAffinity") != "ClientIP":
        return None
    client_ip = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return float(client_ip.get("timeoutSeconds") or DEFAULT_AFFINITY_SECONDS)


def _port_number(endpoint_slice: Object, port: Object) -> int | None:
    for offered in endpoint_slice.get("ports") or []:
        same_name = (offered.get("name") or "") == (port.get("name") or "")
        if same_name and offered.get("protocol", "TCP") == port.get("protocol", "TCP"):
            return None if offered.get("port") is None else int(offered["port"])
    return None
