"""What a Service's spec asks of its load balancer, read alike for every cloud: traffic policy, affinity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
