"""The pure half of mycloud's load balancers: what Services and nodes become.

Each port of the Service becomes a listener and a pool, `tcp-80` or `udp-53`. The members are the node port on the
ingress nodes (without any, on every eligible node), with `externalTrafficPolicy: Local` on the nodes with ready
pods, or the ready pods themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.common.service_spec import AFFINITY_TIMEOUT, affinity_timeout, is_local
from cloud_controller.clouds.common.source_ranges import source_ranges
from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.provider_ids import machine_id
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend, node_ipv4
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import (
    Built,
    HealthCheck,
    Ignored,
    Listener,
    LoadBalancerModel,
    Object,
    Owner,
    Pool,
    Reuse,
)
from cloud_controller.load_balancers.refusals import refuse
from cloud_controller.load_balancers.settings import Settings

NO_INGRESS_NODES = f'no node has the annotation {INGRESS_NODE}: "true"; the load balancer sends to every eligible node'
NO_INGRESS_NODES_WITH_PODS = (
    f'no node with the annotation {INGRESS_NODE}: "true" has a ready pod, and externalTrafficPolicy is Local; the'
    " load balancer sends to every eligible node that has one"
)

_PROTOCOLS = ("TCP", "UDP")
_HEAVIEST = 256
"""The highest weight that the API accepts."""


@dataclass(frozen=True, slots=True)
class MyCloudBuilder:
    """See `LoadBalancerBuilder`. The facts of its builds are the cluster's network."""

    cluster_id: str
    default_scheme: str

    @property
    def catalogue(self) -> Catalogue:
        """mycloud's annotations."""
        return CATALOGUE

    def claims(self, _: Object) -> bool:
        """Always: no other controller creates load balancers on mycloud."""
        return True

    def follows_endpoints(self, service: Object) -> bool:
        """Whether the Service's members depend on where its pods are."""
        if is_local(service["spec"]):
            return True
        try:
            return _backend_type(service) == "pod-ip"
        except InvalidConfiguration:
            return False

    def drains(self, _: Object) -> bool:
        """Always: changes of members do not affect established connections."""
        return True

    def pod_ranges(self, service: Object, _: Fact[str]) -> tuple[str, ...] | None:
        """() with pods as members, whose addresses come from the nodes' pod ranges; otherwise None."""
        return () if _backend_type(service) == "pod-ip" else None

    def backend(self, node: Object) -> NodeBackend | None:
        """The node as a backend of load balancers; None if it is not initialised yet."""
        machine = machine_id(node["spec"].get("providerID") or "")
        address = node_ipv4(node)
        if not machine or not address:
            return None
        annotations = node["metadata"].get("annotations") or {}
        preferred = annotations.get(INGRESS_NODE) == "true"
        return NodeBackend(node["metadata"]["name"], machine, address, preferred=preferred)

    def foreign_name(self, _: Owner) -> None:
        """None: no other controller creates load balancers on mycloud."""

    def build(self, service: Object, backends: Backends, facts: Fact[str]) -> Built:
        """The model of a Service with these backends. Raises InvalidConfiguration that names the field or
        annotation."""
        metadata, spec = service["metadata"], service["spec"]
        settings = CATALOGUE.parse(metadata.get("annotations"))
        owner = Owner(self.cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])
        refuse(settings, spec, CATALOGUE.refusals)
        ports = spec.get("ports") or []
        reuse = _reuse(settings, facts)
        # On a load balancer of its own, everything is the Service's; a shared one tells whose each part is.
        tags = owner.tags if reuse else {}
        suffix = f"-{owner.uid}" if reuse else ""
        attributes = {
            "scheme": settings.given.get("scheme", self.default_scheme),
            "source_ranges": tuple(map(str, source_ranges(spec, settings))),
        }
        members = {_key(port): _members(port, spec, settings.text("backend_type"), backends) for port in ports}
        model = LoadBalancerModel(
            name=owner.load_balancer_name,
            attributes={} if reuse else attributes,
            listeners=tuple(_listener(port, settings, suffix, tags) for port in ports),
            pools=tuple(_pool(port, spec, settings, members[_key(port)], suffix, tags) for port in ports),
            tags=owner.tags,
        )
        warnings = _warnings(spec, settings, backends)
        return Built(model, ignored=_ignored(service, settings), warnings=warnings, reuse=reuse)

    def members(self, service: Object, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
        """The members behind each listener, even if other settings of the Service are invalid."""
        spec, backend_type = service["spec"], _backend_type(service)
        return {
            _key(port): _members(port, spec, backend_type, backends)
            for port in spec.get("ports") or []
            if port["protocol"] in _PROTOCOLS and (port.get("nodePort") or backend_type == "pod-ip")
        }


def reuses(service: Object) -> bool:
    """Whether the Service names a load balancer to reuse; False if the name is invalid."""
    try:
        return bool(CATALOGUE.value(service["metadata"].get("annotations"), "id"))
    except InvalidConfiguration:
        return False


def _reuse(settings: Settings, facts: Fact[str]) -> Reuse | None:
    reused = settings.text("id")
    return Reuse(reused, settings.flag("force_override_listeners"), facts.value) if reused else None


def _backend_type(service: Object) -> str:
    return str(CATALOGUE.value(service["metadata"].get("annotations"), "backend_type"))


# -------------------------------------------------------------------------------------------------------- backends


def _members(
    port: dict[str, Any], spec: dict[str, Any], backend_type: str | None, backends: Backends
) -> tuple[Member, ...]:
    if backend_type == "pod-ip":
        return backends.by_pod(port)
    if is_local(spec):
        found = backends.by_local_pods(port, port["nodePort"])
        return tuple(Member(m.address, m.port, m.instance_id, min(m.weight, _HEAVIEST)) for m in found)
    return backends.by_node_port(port["nodePort"])


def _warnings(spec: dict[str, Any], settings: Settings, backends: Backends) -> tuple[tuple[str, str], ...]:
    if settings.text("backend_type") == "pod-ip" or not backends.nodes:
        return ()
    preferred = {node.address for node in backends.nodes if node.preferred}
    if not preferred:
        return (("NoIngressNodes", NO_INGRESS_NODES),)
    if is_local(spec):
        used = {m.address for port in spec.get("ports") or [] for m in backends.by_local_pods(port, port["nodePort"])}
        if used - preferred:
            return (("NoIngressNodes", NO_INGRESS_NODES_WITH_PODS),)
    return ()


# --------------------------------------------------------------------------------------------- listeners and pools


def _key(port: dict[str, Any]) -> tuple[str, int]:
    return (port["protocol"], port["port"])


def _pool_name(port: dict[str, Any], suffix: str) -> str:
    return f"{port['protocol'].lower()}-{port['port']}{suffix}"


def _listener(port: dict[str, Any], settings: Settings, suffix: str, tags: dict[str, str]) -> Listener:
    return Listener(
        protocol=port["protocol"],
        port=port["port"],
        pool=_pool_name(port, suffix),
        attributes={
            "max_qps": settings.number("listener_max_qps"),
            "idle_timeout_seconds": settings.number("listener_idle_timeout"),
        },
        tags=tags,
    )


def _pool(
    port: dict[str, Any],
    spec: dict[str, Any],
    settings: Settings,
    members: Sequence[Member],
    suffix: str,
    tags: dict[str, str],
) -> Pool:
    return Pool(
        name=_pool_name(port, suffix),
        health_check=_health_check(port["protocol"], spec, settings),
        members=tuple(members),
        attributes={"scheduler": settings.text("scheduler"), **_affinity(spec)},
        tags=tags,
    )


def _affinity(spec: dict[str, Any]) -> dict[str, str | int]:
    timeout = affinity_timeout(spec)
    return {
        "session_affinity": "CLIENT_IP" if timeout else "NONE",
        "session_affinity_timeout_seconds": timeout or AFFINITY_TIMEOUT,
    }


def _health_check(protocol: str, spec: dict[str, Any], settings: Settings) -> HealthCheck:
    by_node = settings.text("backend_type") != "pod-ip"
    proxy = spec.get("healthCheckNodePort") if by_node and is_local(spec) else None
    given = settings.number("health_check_port")
    # A UDP port answers only in its pods' own protocol, which no health check speaks. With traffic policy Local, kube-
    # proxy answers whether the node has ready pods; explicit settings take precedence. Beside TCP ports, the check's
    # protocol is meant for them: on a UDP port's number nothing may answer it, and every backend would be unhealthy.
    meant = proxy or given or ("health_check_protocol" in settings.given and _only_udp(spec))
    usual = "HTTP" if proxy else "TCP" if protocol == "TCP" or given else "NONE"
    chosen = str(settings.given.get("health_check_protocol", usual))
    interval, timeout = settings.integer("health_check_interval"), settings.integer("health_check_timeout")
    return HealthCheck(
        protocol="NONE" if protocol == "UDP" and not meant else chosen,
        port=given or proxy,
        path=str(settings.given.get("health_check_path", "/healthz" if proxy else settings.text("health_check_path"))),
        interval_seconds=interval,
        timeout_seconds=timeout,
        healthy_threshold=settings.integer("health_check_healthy_threshold"),
        unhealthy_threshold=settings.integer("health_check_unhealthy_threshold"),
    )


def _only_udp(spec: dict[str, Any]) -> bool:
    return all(port["protocol"] == "UDP" for port in spec.get("ports") or [])


# --------------------------------------------------------------------------------------------------------- ignored


def _ignored(service: Object, settings: Settings) -> tuple[Ignored, ...]:
    """The settings of the Service that have no effect."""
    spec, annotations = service["spec"], service["metadata"].get("annotations") or {}
    found = [Ignored(f"annotation {e.name}", annotations[e.name], e.ignored or "") for e in settings.ignored]
    if "IPv6" in (spec.get("ipFamilies") or []):
        why = "mycloud's load balancers have only IPv4 addresses"
        found.append(Ignored("spec.ipFamilies", tuple(spec["ipFamilies"]), why))
    if spec.get("loadBalancerIP"):
        why = "mycloud chooses the addresses of its load balancers"
        found.append(Ignored("spec.loadBalancerIP", spec["loadBalancerIP"], why))
    if "id" in settings.given:
        why = "the Service reuses a load balancer and cannot change it"
        if "scheme" in settings.given:
            name = CATALOGUE.by_argument["scheme"].name
            found.append(Ignored(f"annotation {name}", settings.given["scheme"], why))
    elif "force_override_listeners" in settings.given:
        name = CATALOGUE.by_argument["force_override_listeners"].name
        why = "it applies only with annotation id, which is not set"
        found.append(Ignored(f"annotation {name}", settings.given["force_override_listeners"], why))
    return tuple(found)
