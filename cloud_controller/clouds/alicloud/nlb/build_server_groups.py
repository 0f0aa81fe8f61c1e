"""Builds the server groups of an NLB: backends with their weights, scheduling, health checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cloud_controller.clouds.alicloud.nlb.annotations import field
from cloud_controller.clouds.alicloud.nlb.build_listeners import Front
from cloud_controller.clouds.alicloud.nlb.request import Port, Request, value_of
from cloud_controller.clouds.common.service_spec import ignored_affinity_timeout, is_local
from cloud_controller.load_balancers.backends import Backends, Member, ready_endpoints
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import HealthCheck, Ignored, Object, Pool

HEAVIEST = 100
_OF_HTTP = ("health_check_uri", "health_check_domain", "health_check_httpcode", "health_check_method")
_OF_CHECK = (
    *("health_check_type", "health_check_connect_port", "health_check_connect_timeout", "health_check_interval"),
    *("healthy_threshold", "unhealthy_threshold", *_OF_HTTP),
)


def by_pod(service: Object) -> bool:
    """Whether the backends are pods. Raises InvalidConfiguration if the annotation is invalid."""
    return value_of(service, "backend_type") == "eni"


def pool(asked: Request, front: Front, name: str, backends: Backends, tags: Mapping[str, str]) -> Pool:
    """The pool behind one listener."""
    draining = asked.on("connection_drain")
    check = _health_check(asked, front, backends)
    attributes: dict[str, Value | None] = {
        "protocol": front.transport,
        "server_group_type": asked.text("server_group_type"),
        "any_port": front.last is not None,
        "scheduler": _scheduler(asked),
        "connection_drain": draining,
        "preserve_client_ip": _preserves_client_ip(asked, front),
    }
    if draining:
        attributes["connection_drain_timeout"] = asked.settings.integer("connection_drain_timeout")
    if check.protocol == "HTTP":
        attributes["health_check_domain"] = asked.text("health_check_domain")
        attributes["health_check_method"] = asked.text("health_check_method")
    members = members_of(asked.service, front.port, backends, any_port=front.last is not None)
    return Pool(name, check, members, attributes, tags)


def members_of(service: Object, port: Port, backends: Backends, *, any_port: bool) -> tuple[Member, ...]:
    """The members behind a port: ready pods, nodes with pods (weighted by their number), or nodes.

    Raises InvalidConfiguration if an annotation about members is invalid.
    """
    weight = value_of(service, "weight")
    usual = weight if isinstance(weight, int) else HEAVIEST
    if by_pod(service):
        # A group with any port takes the port from the listener.
        found = backends.by_pod(port)
        return tuple(Member(each.address, 0 if any_port else each.port, each.address, usual) for each in found)
    labels = _labels(service)
    nodes = tuple(node for node in backends.nodes if labels.items() <= node.labels.items())
    chosen = Backends(nodes, backends.slices, backends.pods)
    if is_local(service["spec"]):
        local = chosen.by_local_pods(port, port["nodePort"])
        return _sorted(Member(m.instance_id, m.port, m.instance_id, min(m.weight, HEAVIEST)) for m in local)
    every = chosen.by_node_port(port["nodePort"])
    return _sorted(Member(m.instance_id, m.port, m.instance_id, usual) for m in every)


def ignored(asked: Request, found: Sequence[Front]) -> Iterator[Ignored]:
    """Annotations of server groups that have no effect here."""
    pods = by_pod(asked.service)
    if pods:
        yield from asked.ignored("backend_label", "the backends are pods, not nodes")
    elif is_local(asked.spec):
        why = "with externalTrafficPolicy Local, a node's weight is the number of its ready pods"
        yield from asked.ignored("weight", why)
    if not asked.on("connection_drain"):
        yield from asked.ignored("connection_drain_timeout", f"{field('connection_drain')} is not on")
    if any(front.tls for front in found) and asked.has("preserve_client_ip") and asked.on("preserve_client_ip"):
        yield from asked.ignored("preserve_client_ip", "TCPSSL listeners cannot; the other listeners do")
    if not asked.on("health_check_flag"):
        for argument in _OF_CHECK:
            yield from asked.ignored(argument, f"{field('health_check_flag')} is off")
    elif all(_check_protocol(asked, front) != "HTTP" for front in found):
        for argument in _OF_HTTP:
            yield from asked.ignored(argument, f"{field('health_check_type')} is not http")
    sticky = asked.spec.get("sessionAffinity") == "ClientIP"
    if sticky and _scheduler(asked) != "sch":
        why = f"{field('scheduler')} is {asked.text('scheduler')}, which does not keep clients with a backend"
        yield Ignored("spec.sessionAffinity", "ClientIP", why)
    yield from ignored_affinity_timeout(asked.spec, "an NLB has no timeout for it")


def _scheduler(asked: Request) -> str:
    sticky = asked.spec.get("sessionAffinity") == "ClientIP"
    return "sch" if sticky and not asked.has("scheduler") else asked.text("scheduler")


def _preserves_client_ip(asked: Request, front: Front) -> bool:
    wanted = asked.settings.text("preserve_client_ip")
    return wanted != "off" and not front.by_address and not front.tls


def _check_protocol(asked: Request, front: Front) -> str:
    return (asked.settings.text("health_check_type") or front.transport).upper()


def _health_check(asked: Request, front: Front, backends: Backends) -> HealthCheck:
    if not asked.on("health_check_flag"):
        return HealthCheck("NONE")
    protocol = _check_protocol(asked, front)
    if protocol == "UDP" and front.transport == "TCP":
        protocol = "TCP"
    port = asked.settings.integer("health_check_connect_port") or None
    if port is None and front.last is not None:
        # Members of such a group have no port of their own to check.
        port = _target_port(front.port, backends)
    settings, http = asked.settings, protocol == "HTTP"
    return HealthCheck(
        protocol=protocol,
        port=port,
        path=asked.text("health_check_uri") if http else None,
        interval_seconds=settings.integer("health_check_interval"),
        timeout_seconds=settings.integer("health_check_connect_timeout"),
        healthy_threshold=settings.integer("healthy_threshold"),
        unhealthy_threshold=settings.integer("unhealthy_threshold"),
        success_codes=",".join(sorted({*asked.text("health_check_httpcode").split(",")})) if http else None,
    )


def _target_port(port: Port, backends: Backends) -> int:
    target = port.get("targetPort")
    if isinstance(target, int):
        return target
    # A named port: as the pods have it, and until there are any, the Service's own.
    return next((number for _, number, _ in ready_endpoints(backends.slices, port)), int(port["port"]))


def _labels(service: Object) -> dict[str, str]:
    text = value_of(service, "backend_label")
    return dict(pair.split("=", 1) for pair in str(text).split(",")) if text else {}


def _sorted(members: Iterator[Member]) -> tuple[Member, ...]:
    return tuple(sorted(members))
