"""Builds the model of a classic load balancer from a Service. Pure.

Each port becomes a listener that sends to its node port. All nodes are in one pool with one health check, because a
classic load balancer has only one.
"""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws import build_common as common
from cloud_controller.clouds.aws.request import Port, Request, as_text, field
from cloud_controller.clouds.common.service_spec import is_local
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Built, HealthCheck, Ignored, Listener, LoadBalancerModel, Object, Pool

POOL = "instances"

_TYPE_NLB = "annotation service.beta.kubernetes.io/aws-load-balancer-type: nlb"
_ONLY_NETWORK = (
    "ip_address_type",
    "eip_allocations",
    "private_ipv4_addresses",
    "attributes",
    "alpn_policy",
    "enable_prefix_for_ipv6_source_nat",
    "healthcheck_success_codes",
    "listener_attributes",
    "name",
    "nlb_target_type",
    "target_group_attributes",
    "target_group_attributes_of_port",
)
_BEHIND_TLS = {
    None: ("SSL", "TCP"),
    "tcp": ("SSL", "TCP"),
    "ssl": ("SSL", "SSL"),
    "http": ("HTTPS", "HTTP"),
    "https": ("HTTPS", "HTTPS"),
}
"""By `backend-protocol`: the protocol of a listener with a certificate, and its instance protocol."""


def build(asked: Request, backends: Backends) -> Built:
    """The model. Raises InvalidConfiguration that names the field or annotation."""
    listeners = tuple(_listener(asked, port) for port in asked.ports)
    pool = Pool(POOL, _health_check(asked), members(asked.service, backends))
    model = LoadBalancerModel(
        name=asked.owner.load_balancer_name,
        attributes=_attributes(asked),
        listeners=listeners,
        pools=(pool,),
        tags=common.tags(asked, {}),
    )
    return Built(model, ignored=tuple(_ignored(asked, model)), warnings=common.warnings(asked, model))


def members(service: Object, backends: Backends) -> tuple[Member, ...]:
    """The nodes, each one member for all ports."""
    return common.node_members(service, {}, backends, number=0)


def _attributes(asked: Request) -> dict[str, Value | None]:
    settings = asked.settings
    scheme = common.scheme(asked)
    idle_timeout = settings.integer("connection_idle_timeout")
    found: dict[str, Value | None] = {
        "type": "classic",
        "scheme": scheme,
        "subnets": tuple(sorted(subnet.id for subnet in common.subnets(asked, scheme))),
        **common.front(asked, [("TCP", port["port"]) for port in asked.ports], dualstack=False),
        **common.logs(asked, {}),
        aws.IDLE_TIMEOUT: str(idle_timeout),
        aws.DRAINING: as_text(settings.flag("connection_draining_enabled")),
    }
    if found[aws.ENABLED] == "true":
        found[aws.EMIT_INTERVAL] = settings.text("access_log_emit_interval")
    if settings.flag("connection_draining_enabled"):
        found[aws.DRAINING_TIMEOUT] = str(settings.integer("connection_draining_timeout"))
    return found


def _listener(asked: Request, port: Port) -> Listener:
    backend = asked.settings.text("backend_protocol")
    tls = common.speaks_tls(asked, port)
    plain = ("HTTP", "HTTP") if backend == "http" else ("TCP", "TCP")
    protocol, behind = _BEHIND_TLS[backend] if tls else plain
    return Listener(
        "TCP",
        port["port"],
        POOL,
        attributes={
            "protocol": protocol,
            "instance_protocol": behind,
            "instance_port": port["nodePort"],
            "certificate": aws.Arn(asked.words("ssl_cert")[0]) if tls else None,
            "ssl_policy": asked.settings.text("ssl_negotiation_policy") if tls else None,
            "proxy_protocol": asked.proxy_protocol,
        },
    )


def _health_check(asked: Request) -> HealthCheck:
    settings, config = asked.settings, asked.config
    tls_behind = settings.text("backend_protocol") in ("https", "ssl")
    protocol, port, path = ("SSL" if tls_behind else "TCP"), asked.ports[0]["nodePort"], "/"
    if is_local(asked.spec):
        protocol, port, path = "HTTP", asked.spec["healthCheckNodePort"], "/healthz"
    elif config.health_probe_mode == "Shared":
        protocol, port, path = "HTTP", config.health_probe_port, config.health_probe_path
    protocol = settings.text("healthcheck_protocol") or protocol
    given = settings.text("healthcheck_port")
    if given is not None:
        port = asked.ports[0]["nodePort"] if given == "traffic-port" else int(given)
    interval = settings.number("healthcheck_interval") or 10
    timeout = settings.number("healthcheck_timeout") or min(5, interval - 1)
    return HealthCheck(
        protocol=protocol,
        port=port,
        path=(settings.text("healthcheck_path") or path) if protocol in ("HTTP", "HTTPS") else None,
        interval_seconds=interval,
        timeout_seconds=timeout,
        healthy_threshold=settings.number("healthcheck_healthy_threshold") or 2,
        unhealthy_threshold=settings.number("healthcheck_unhealthy_threshold") or 6,
    )


def _ignored(asked: Request, model: LoadBalancerModel) -> Iterator[Ignored]:
    yield from common.ignored(asked, model)
    for argument in _ONLY_NETWORK:
        yield from asked.ignored(argument, f"classic load balancers do not support it; {_TYPE_NLB} does")
    if model.attributes[aws.ENABLED] != "true":
        yield from asked.ignored("access_log_emit_interval", f"{field('access_log_enabled')} is not true")
    if not asked.settings.flag("connection_draining_enabled"):
        yield from asked.ignored("connection_draining_timeout", f"{field('connection_draining_enabled')} is not true")
    if "IPv6" in (asked.spec.get("ipFamilies") or []):
        why = f"classic load balancers in a VPC have only IPv4 addresses; {_TYPE_NLB} supports both families"
        yield Ignored("spec.ipFamilies", tuple(asked.spec["ipFamilies"]), why)
