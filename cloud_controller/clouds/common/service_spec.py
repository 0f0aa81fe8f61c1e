"""What a Service's spec asks of its load balancer, read alike for every cloud: traffic policy, affinity, node ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.model import Ignored

AFFINITY_TIMEOUT = 10_800
"""Seconds: Kubernetes' default, which every Service with session affinity has."""


def is_local(spec: Mapping[str, Any]) -> bool:
    """Whether nodes forward only to their own pods: `externalTrafficPolicy` is Local."""
    return bool(spec.get("externalTrafficPolicy") == "Local")


def affinity_timeout(spec: Mapping[str, Any]) -> int | None:
    """The seconds for which a client stays with its pod; None without session affinity."""
    if spec.get("sessionAffinity") != "ClientIP":
        return None
    config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    return int(config.get("timeoutSeconds") or AFFINITY_TIMEOUT)


def ignored_affinity_timeout(spec: Mapping[str, Any], why: str) -> Iterator[Ignored]:
    """A timeout other than the default, for clouds that do not support one."""
    timeout = affinity_timeout(spec) or AFFINITY_TIMEOUT
    if timeout != AFFINITY_TIMEOUT:
        yield Ignored("spec.sessionAffinityConfig.clientIP.timeoutSeconds", timeout, why)


def require_node_port(index: int, port: Mapping[str, Any], otherwise: str = "") -> None:
    """Raise InvalidConfiguration if the port has no node port for the load balancer to send to.

    `otherwise`: another way out, besides allocating node ports.
    """
    if not port.get("nodePort"):
        why = "missing, but the load balancer sends to node ports"
        allowed = "spec.allocateLoadBalancerNodePorts: true" + (f"; or {otherwise}" if otherwise else "")
        raise InvalidConfiguration(f"spec.ports[{index}].nodePort", why, allowed)
