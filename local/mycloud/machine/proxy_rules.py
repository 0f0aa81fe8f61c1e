"""Which ports a node-proxier listens on, and where each leads: Services and EndpointSlices in, listeners out. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from local.addresses import socket_address

Object = dict[str, Any]
Target = tuple[str, int]

PROTOCOLS = ("TCP", "UDP")


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A socket address to listen on; `shared` if every machine of the site listens on it too (cluster IPs)."""

    protocol: str
    host: str
    port: int
    shared: bool


def listeners(
    services: Iterable[Object], slices: Iterable[Object], node_address: str
) -> dict[Listener, tuple[Target, ...]]:
    """Every listener that has an endpoint, with its endpoints (socket addresses) in a fixed order.

    A port without a usable endpoint is not listened on, so that a connection is refused, and a health check sees it.
    """
    by_service: dict[tuple[str, str], list[Object]] = defaultdict(list)
    for endpoint_slice in slices:
        metadata = endpoint_slice["metadata"]
        owner = (metadata.get("labels") or {}).get("kubernetes.io/service-name")
        if owner and endpoint_slice.get("addressType") == "IPv4":
            by_service[metadata["namespace"], owner].append(endpoint_slice)
    found: dict[Listener, tuple[Target, ...]] = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        cluster_ip = spec.get("clusterIP")
        if spec.get("type") == "ExternalName" or not cluster_ip or cluster_ip == "None":
            continue
        for port in spec.get("ports") or []:
            if port.get("protocol", "TCP") not in PROTOCOLS:
                continue
            targets = endpoints(by_service[metadata["namespace"], metadata["name"]], port)
            if targets:
                found |= dict.fromkeys(_listeners_of(port, cluster_ip, node_address), targets)
    return found


def endpoints(slices: Iterable[Object], port: Object) -> tuple[Target, ...]:
    """Where a Service's port leads: its ready endpoints or, if there is none, those that serve while they terminate."""
    ready: set[Target] = set()
    terminating: set[Target] = set()
    for endpoint_slice in slices:
        number = _port_number(endpoint_slice, port)
        if number is None:
            continue
        for endpoint in endpoint_slice.get("endpoints") or []:
            conditions = endpoint.get("conditions") or {}
            targets = {(socket_address(address), number) for address in endpoint["addresses"][:1]}
            if conditions.get("ready") is not False:
                ready |= targets
            elif conditions.get("serving") and conditions.get("terminating"):
                terminating |= targets
    return tuple(sorted(ready or terminating))


def ignored_fields(service: Object) -> list[str]:
    """What a Service asks for that the node-proxier does not do."""
    spec = service["spec"]
    ignored = [
        f"{field}: {value}"
        for field, value in (("externalTrafficPolicy", "Local"), ("internalTrafficPolicy", "Local"))
        if spec.get(field) == value
    ]
    if spec.get("sessionAffinity", "None") != "None":
        ignored.append(f"sessionAffinity: {spec['sessionAffinity']}")
    return ignored


def _listeners_of(port: Object, cluster_ip: str, node_address: str) -> list[Listener]:
    protocol = port.get("protocol", "TCP")
    found = [Listener(protocol, socket_address(cluster_ip), int(port["port"]), shared=True)]
    if port.get("nodePort"):
        found.append(Listener(protocol, socket_address(node_address), int(port["nodePort"]), shared=False))
    return found


def _port_number(endpoint_slice: Object, port: Object) -> int | None:
    for offered in endpoint_slice.get("ports") or []:
        same_name = (offered.get("name") or "") == (port.get("name") or "")
        if same_name and offered.get("protocol", "TCP") == port.get("protocol", "TCP"):
            return None if offered.get("port") is None else int(offered["port"])
    return None
