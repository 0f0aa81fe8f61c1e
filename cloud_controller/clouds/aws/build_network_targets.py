"""Builds the target groups of a network load balancer: health checks and attributes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.request import Port, Request, as_text
from cloud_controller.clouds.common.service_spec import is_local
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.model import HealthCheck, Pool

_INTERVAL, _THRESHOLD = 30, 3
_LOCAL_INTERVAL, _LOCAL_THRESHOLD = 10, 2
"""Upstream's values for traffic policy Local: a node without pods must fail its health check soon."""

OF_ALL_PORTS = "target_group_attributes"
OF_PORT = "target_group_attributes_of_port"
"""The family of annotations for the target group of one port."""

_TIMEOUTS = {"HTTP": 6, "HTTPS": 10, "TCP": 10}
"""AWS's defaults in seconds; upstream sets none."""


def health_check(asked: Request, targets: str) -> HealthCheck:
    """The health check."""
    settings, config = asked.settings, asked.config
    by_node, local = targets == "instance", is_local(asked.spec) and targets == "instance"
    protocol, port, path = "TCP", None, "/"
    if local:
        protocol, port, path = "HTTP", asked.spec["healthCheckNodePort"], "/healthz"
    elif by_node and config.health_probe_mode == "Shared":
        protocol, port, path = "HTTP", config.health_probe_port, config.health_probe_path
    protocol = settings.text("healthcheck_protocol") or protocol
    given = settings.text("healthcheck_port")
    if given is not None:
        port = None if given == "traffic-port" else int(given)
    interval = settings.number("healthcheck_interval") or (_LOCAL_INTERVAL if local else _INTERVAL)
    timeout = settings.number("healthcheck_timeout") or min(_TIMEOUTS[protocol], interval)
    threshold = _LOCAL_THRESHOLD if local else _THRESHOLD
    codes = settings.text("healthcheck_success_codes") or aws.DEFAULT_SUCCESS_CODES
    return HealthCheck(
        protocol=protocol,
        port=port,
        path=(settings.text("healthcheck_path") or path) if protocol != "TCP" else None,
        success_codes=codes if protocol != "TCP" else None,
        interval_seconds=interval,
        timeout_seconds=timeout,
        healthy_threshold=settings.number("healthcheck_healthy_threshold") or threshold,
        unhealthy_threshold=settings.number("healthcheck_unhealthy_threshold") or threshold,
    )


def target_attributes(asked: Request, number: int, protocol: str, targets: str) -> dict[str, str]:
    """The attributes of a port's target group: the Service's, and AWS's defaults for those that a Service can set."""
    own = {key: value for key, value in asked.pairs(f"{OF_PORT}.{number}").items() if value}
    given = {**asked.pairs(OF_ALL_PORTS), **own}
    defaults = aws.target_group_defaults(protocol, targets)
    found = {
        aws.DEREGISTRATION_DELAY: defaults[aws.DEREGISTRATION_DELAY],
        aws.PRESERVE_CLIENT_IP: defaults[aws.PRESERVE_CLIENT_IP],
        aws.PROXY_PROTOCOL: as_text(asked.proxy_protocol),
        aws.STICKINESS: as_text(asked.spec.get("sessionAffinity") == "ClientIP"),
        **given,
    }
    if found[aws.STICKINESS] == "true":
        found[aws.STICKINESS_TYPE] = "source_ip"
    return found


def outside_of_the_vpc(asked: Request, pools: Sequence[Pool]) -> Iterator[tuple[str, str]]:
    """A warning about targets in no subnet of the VPC, which AWS accepts even if it cannot reach them."""
    addresses = dict.fromkeys(member.address for pool in pools for member in pool.members)
    outside = [address for address in addresses if asked.facts.is_outside(address)]
    if outside:
        why = f"not in a subnet of {asked.facts.vpc_id}, which needs a route to them"
        yield "TargetsOutsideVpc", f"{listed(outside)}: {why}"


def require_members(asked: Request, ports: Sequence[Port], targets: str, backends: Backends) -> None:
    """Raise InvalidConfiguration if TCP and UDP of one port use different target ports."""
    if len(ports) < 2 or targets == "instance":
        return
    family = (asked.spec.get("ipFamilies") or ["IPv4"])[0]
    numbers_of = [{member.port for member in backends.by_pod(port, family)} for port in ports]
    if all(numbers_of) and numbers_of[0] != numbers_of[1]:
        why = f"TCP and UDP on port {ports[0]['port']} share one listener, which sends both to the same target port"
        index = [*asked.ports].index(ports[1])
        raise InvalidConfiguration(f"spec.ports[{index}].targetPort", why, "the same target port for both")
