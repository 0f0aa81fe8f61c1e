"""Translates between the classic API's objects and the model. Pure."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

from cloud_controller.clouds.aws.attributes import (
    BUCKET,
    CROSS_ZONE,
    DRAINING,
    DRAINING_TIMEOUT,
    EMIT_INTERVAL,
    ENABLED,
    IDLE_TIMEOUT,
    PREFIX,
)
from cloud_controller.clouds.aws.build_classic import POOL
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import HealthCheck, Listener, Pool

PROXY_POLICY = "k8s-proxyprotocol-enabled"
_SSL_POLICY = "k8s-SSLNegotiationPolicy-"
"""Upstream's names, so that both controllers interpret a load balancer's policies alike."""

DEFAULTS: Mapping[str, str] = {ENABLED: "false", CROSS_ZONE: "false", IDLE_TIMEOUT: "60", DRAINING: "false"}
"""The attributes of a new load balancer."""

DETAILS = frozenset({ENABLED, BUCKET, PREFIX, EMIT_INTERVAL, CROSS_ZONE, IDLE_TIMEOUT, DRAINING, DRAINING_TIMEOUT})
"""The attributes that AWS returns for one load balancer at a time."""

_DRAINING_SECONDS = 300
_EMIT_MINUTES = 60
"""AWS's defaults of values that it omits."""

# --------------------------------------------------------------------------------------------------- what AWS says


def listeners_of(description: Mapping[str, Any]) -> tuple[Listener, ...]:
    """The listeners in an entry of DescribeLoadBalancers."""
    proxied = {
        backend["InstancePort"]
        for backend in description.get("BackendServerDescriptions") or ()
        if PROXY_POLICY in (backend.get("PolicyNames") or ())
    }
    return tuple(_listener(each, proxied) for each in description.get("ListenerDescriptions") or ())


def pool_of(description: Mapping[str, Any]) -> Pool:
    """The instances and health check in an entry of DescribeLoadBalancers."""
    ids = {sys.intern(each["InstanceId"]) for each in description.get("Instances") or ()}
    return Pool(POOL, _health_check(description.get("HealthCheck") or {}), tuple(_member(each) for each in sorted(ids)))


def attributes_of(told: Mapping[str, Any]) -> dict[str, Value | None]:
    """The model's attributes from DescribeLoadBalancerAttributes."""
    logs, draining = told["AccessLog"], told["ConnectionDraining"]
    return {
        ENABLED: _flag(logs["Enabled"]),
        BUCKET: logs.get("S3BucketName") or "",
        PREFIX: logs.get("S3BucketPrefix") or "",
        EMIT_INTERVAL: str(logs.get("EmitInterval") or _EMIT_MINUTES),
        CROSS_ZONE: _flag(told["CrossZoneLoadBalancing"]["Enabled"]),
        IDLE_TIMEOUT: str(told["ConnectionSettings"]["IdleTimeout"]),
        DRAINING: _flag(draining["Enabled"]),
        DRAINING_TIMEOUT: str(draining.get("Timeout") or _DRAINING_SECONDS),
    }


def _listener(described: Mapping[str, Any], proxied: Collection[int]) -> Listener:
    listener = described["Listener"]
    policies = described.get("PolicyNames") or ()
    own = (name.removeprefix(_SSL_POLICY) for name in policies if name.startswith(_SSL_POLICY))
    return Listener(
        "TCP",
        listener["LoadBalancerPort"],
        POOL,
        {
            "protocol": listener["Protocol"],
            "instance_protocol": listener.get("InstanceProtocol") or listener["Protocol"],
            "instance_port": listener["InstancePort"],
            "certificate": listener.get("SSLCertificateId"),
            "ssl_policy": next(own, None),
            "proxy_protocol": listener["InstancePort"] in proxied,
        },
    )


def _health_check(check: Mapping[str, Any]) -> HealthCheck:
    protocol, _, where = check.get("Target", "TCP:80").partition(":")
    port, slash, path = where.partition("/")
    return HealthCheck(
        protocol=protocol,
        port=int(port),
        path=f"{slash}{path}" or None,
        interval_seconds=check.get("Interval", 30),
        timeout_seconds=check.get("Timeout", 5),
        healthy_threshold=check.get("HealthyThreshold", 10),
        unhealthy_threshold=check.get("UnhealthyThreshold", 2),
    )


def _member(instance_id: str) -> Member:
    return Member(instance_id, 0, instance_id)


def _flag(value: bool) -> str:
    return "true" if value else "false"


# ------------------------------------------------------------------------------------------------- what AWS takes


def listener_params(listener: Listener) -> dict[str, Any]:
    """A listener as a parameter of CreateLoadBalancer and CreateLoadBalancerListeners."""
    given = listener.attributes
    params = {
        "Protocol": given["protocol"],
        "LoadBalancerPort": listener.port,
        "InstanceProtocol": given["instance_protocol"],
        "InstancePort": given["instance_port"],
    }
    return params | ({"SSLCertificateId": given["certificate"]} if given["certificate"] else {})


def health_check_params(check: HealthCheck) -> dict[str, Any]:
    """A health check as a parameter of ConfigureHealthCheck."""
    return {
        "Target": f"{check.protocol}:{check.port}{check.path or ''}",
        "Interval": check.interval_seconds,
        "Timeout": check.timeout_seconds,
        "HealthyThreshold": check.healthy_threshold,
        "UnhealthyThreshold": check.unhealthy_threshold,
    }


def attribute_params(wanted: Mapping[str, Value | None], actual: Mapping[str, Value | None]) -> dict[str, Any]:
    """The differing attributes as a parameter of ModifyLoadBalancerAttributes; empty if none differs."""
    changed = {key for key, value in wanted.items() if actual.get(key) != value}
    params: dict[str, Any] = {}
    if changed & {ENABLED, BUCKET, PREFIX, EMIT_INTERVAL}:
        params["AccessLog"] = {"Enabled": wanted[ENABLED] == "true"}
        if wanted[ENABLED] == "true":
            params["AccessLog"] |= {
                "S3BucketName": wanted[BUCKET],
                "S3BucketPrefix": wanted[PREFIX],
                "EmitInterval": int(str(wanted[EMIT_INTERVAL])),
            }
    if CROSS_ZONE in changed:
        params["CrossZoneLoadBalancing"] = {"Enabled": wanted[CROSS_ZONE] == "true"}
    if IDLE_TIMEOUT in changed:
        params["ConnectionSettings"] = {"IdleTimeout": int(str(wanted[IDLE_TIMEOUT]))}
    if changed & {DRAINING, DRAINING_TIMEOUT}:
        params["ConnectionDraining"] = {"Enabled": wanted[DRAINING] == "true"}
        if wanted[DRAINING] == "true":
            params["ConnectionDraining"] |= {"Timeout": int(str(wanted[DRAINING_TIMEOUT]))}
    return params


def ssl_policy_name(reference: str) -> str:
    """The name of a load balancer's policy that refers to this predefined security policy."""
    return f"{_SSL_POLICY}{reference}"


def must_be_made_anew(wanted: Listener, actual: Listener) -> bool:
    """Whether the change needs the listener to be deleted and recreated."""
    for key in ("protocol", "instance_protocol", "instance_port"):
        if wanted.attributes[key] != actual.attributes[key]:
            return True
    # Only a new listener gets AWS's default policy.
    return wanted.attributes["ssl_policy"] is None and actual.attributes["ssl_policy"] is not None
