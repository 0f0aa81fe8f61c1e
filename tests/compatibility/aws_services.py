"""Services as users of AWS write them, each of which both controllers are given.

`${public-a}`, `${certificate}` and so on stand for what there is in the account (see `aws_account`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cloud_controller.kube import Object

PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"

_FIRST_NODE_PORT = 30000
_FIRST_HEALTH_CHECK_NODE_PORT = 32000
_PORTS_A_SERVICE = 10


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a Service."""

    number: int
    protocol: str = "TCP"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """A Service. `annotations` are without the prefix that they share; `spec` is more of its spec."""

    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[Port, ...] = (Port(80),)
    spec: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    """Annotations with another prefix."""
    left_to_others: bool = False
    """Neither controller is to do anything, so there is nothing to wait for."""

    @property
    def ends_tls(self) -> bool:
        """Whether it has a certificate."""
        return _CERTIFICATE.keys() <= self.annotations.keys()


_TWO_PORTS = (Port(80, name="http"), Port(443, name="https"))
_LOCAL = {"externalTrafficPolicy": "Local"}
_RANGES = {"loadBalancerSourceRanges": ["203.0.113.0/24", "198.51.100.7/32"]}
_LOGS = {
    "access-log-enabled": "true",
    "access-log-s3-bucket-name": "access-logs",
    "access-log-s3-bucket-prefix": "services/shop",
}
_THRESHOLDS = {
    "healthcheck-interval": "30",
    "healthcheck-timeout": "6",
    "healthcheck-healthy-threshold": "4",
    "healthcheck-unhealthy-threshold": "4",
}
_HTTP_CHECK = {"healthcheck-protocol": "HTTP", "healthcheck-path": "/ready", "healthcheck-port": "31999"}
_TAGS = {"additional-resource-tags": "team=shop,cost-centre=42,bare"}
_NLB = {"type": "nlb"}
_CERTIFICATE = {"ssl-cert": "${certificate}"}

CASES: tuple[Case, ...] = (
    # ------------------------------------------------------------------------------------------- classic load balancer
    Case("classic-plain"),
    Case("classic-internal", {"internal": "true"}),
    Case("classic-internal-false", {"internal": "false"}),
    Case("classic-several-ports", ports=(*_TWO_PORTS, Port(8080, name="admin"))),
    Case("classic-tls", _CERTIFICATE, (Port(443),)),
    Case("classic-tls-some-ports-by-number", _CERTIFICATE | {"ssl-ports": "443"}, _TWO_PORTS),
    Case("classic-tls-some-ports-by-name", _CERTIFICATE | {"ssl-ports": "https,admin"}, _TWO_PORTS),
    Case("classic-tls-policy", _CERTIFICATE | {"ssl-negotiation-policy": "ELBSecurityPolicy-TLS-1-2-2017-01"}),
    Case("classic-https-to-http", _CERTIFICATE | {"backend-protocol": "http"}, (Port(443),)),
    Case("classic-https-to-https", _CERTIFICATE | {"backend-protocol": "https"}, (Port(443),)),
    Case("classic-ssl-to-ssl", _CERTIFICATE | {"backend-protocol": "ssl"}, (Port(443),)),
    Case("classic-http", {"backend-protocol": "http"}),
    Case("classic-proxy-protocol", {"proxy-protocol": "*"}, _TWO_PORTS),
    Case("classic-access-logs", _LOGS | {"access-log-emit-interval": "5"}),
    Case("classic-cross-zone", {"cross-zone-load-balancing-enabled": "true"}),
    Case("classic-idle-timeout", {"connection-idle-timeout": "300"}),
    Case("classic-draining", {"connection-draining-enabled": "true", "connection-draining-timeout": "90"}),
    Case("classic-health-check-times", _THRESHOLDS),
    Case("classic-health-check-http", _HTTP_CHECK),
    Case("classic-local", spec=_LOCAL),
    Case("classic-local-health-check-on-traffic-port", {"healthcheck-port": "traffic-port"}, spec=_LOCAL),
    Case("classic-source-ranges", spec=_RANGES),
    Case(
        "classic-source-ranges-by-annotation",
        others={"service.beta.kubernetes.io/load-balancer-source-ranges": "203.0.113.0/24, 192.0.2.0/24"},
    ),
    Case("classic-extra-security-groups", {"extra-security-groups": "${group-1},${group-2}"}),
    Case("classic-own-security-groups", {"security-groups": "${group-1},${group-2}"}),
    Case("classic-additional-tags", _TAGS),
    Case("classic-subnets", {"subnets": "${public-a}, ${public-b}"}),
    Case("classic-subnets-by-name", {"subnets": "elb-us-east-1a,elb-us-east-1c"}),
    Case("classic-target-nodes", {"target-node-labels": "tier=edge"}),
    # ------------------------------------------------------------------------------------------- network load balancer
    Case("nlb-plain", _NLB),
    Case("nlb-internal", _NLB | {"internal": "true"}),
    Case("nlb-several-ports", _NLB, (*_TWO_PORTS, Port(8080, name="admin"))),
    Case("nlb-udp", _NLB, (Port(53, "UDP"),)),
    Case("nlb-tls", _NLB | _CERTIFICATE | {"ssl-negotiation-policy": "ELBSecurityPolicy-TLS13-1-2-2021-06"}),
    Case("nlb-tls-some-ports", _NLB | _CERTIFICATE | {"ssl-ports": "https"}, _TWO_PORTS),
    Case("nlb-tls-to-tls", _NLB | _CERTIFICATE | {"backend-protocol": "ssl"}, (Port(443),)),
    Case("nlb-proxy-protocol", _NLB | {"proxy-protocol": "*"}),
    Case("nlb-access-logs", _NLB | _LOGS),
    Case("nlb-cross-zone", _NLB | {"cross-zone-load-balancing-enabled": "true"}),
    Case("nlb-health-check-times", _NLB | _THRESHOLDS),
    Case("nlb-health-check-http", _NLB | _HTTP_CHECK),
    Case("nlb-local", _NLB, spec=_LOCAL),
    Case("nlb-source-ranges", _NLB, _TWO_PORTS, _RANGES),
    Case("nlb-extra-security-groups", _NLB | {"extra-security-groups": "${group-1}"}),
    Case("nlb-own-security-groups", _NLB | {"security-groups": "${group-1}"}),
    Case("nlb-additional-tags", _NLB | _TAGS),
    Case("nlb-subnets", _NLB | {"subnets": "${public-a},${public-b}"}),
    Case("nlb-eip-allocations", _NLB | {"eip-allocations": "${eip-a},${eip-b},${eip-c}"}),
    Case(
        "nlb-private-addresses",
        _NLB
        | {
            "internal": "true",
            "subnets": "${private-a},${private-b}",
            "private-ipv4-addresses": "10.0.130.5,10.0.162.5",
        },
    ),
    Case(
        "nlb-target-group-attributes",
        _NLB | {"target-group-attributes": "preserve_client_ip.enabled=false,proxy_protocol_v2.enabled=true"},
    ),
    Case("nlb-target-nodes", _NLB | {"target-node-labels": "tier=edge"}),
    # ------------------------------------------------------------------------------------ one of them, or both, says no
    Case("nlb-tcp-and-udp", _NLB, (Port(80), Port(53, "UDP", "dns"))),
    Case("nlb-tcp-and-udp-on-one-port", _NLB, (Port(53, "TCP", "dns-tcp"), Port(53, "UDP", "dns-udp"))),
    Case("nlb-session-affinity", _NLB, spec={"sessionAffinity": "ClientIP"}),
    Case(
        "nlb-more-target-group-attributes", _NLB | {"target-group-attributes": "deregistration_delay.timeout_seconds=5"}
    ),
    Case("classic-udp", ports=(Port(53, "UDP"),)),
    Case("classic-session-affinity", spec={"sessionAffinity": "ClientIP"}),
    Case("classic-address", spec={"loadBalancerIP": "203.0.113.9"}),
    Case("classic-proxy-protocol-of-one-port", {"proxy-protocol": "80"}),
    Case("nlb-health-check-of-unknown-protocol", _NLB | {"healthcheck-protocol": "gopher"}),
    Case("type-alb", {"type": "alb"}),
    Case("type-external", {"type": "external"}, left_to_others=True),
    Case("type-nlb-ip", {"type": "nlb-ip"}, left_to_others=True),
)


def manifest(case: Case) -> Object:
    """The Service, with node ports that are its own, the same in each run."""
    number = CASES.index(case)
    of_one_port = {port.number: index for index, port in reversed([*enumerate(case.ports)])}
    spec = {"type": "LoadBalancer", "selector": {"app": "shop"}, **case.spec}
    if case.spec.get("externalTrafficPolicy") == "Local":
        spec["healthCheckNodePort"] = _FIRST_HEALTH_CHECK_NODE_PORT + number
    spec["ports"] = [
        {
            "name": port.name or f"port-{port.number}",
            "port": port.number,
            "protocol": port.protocol,
            # TCP and UDP on one port share the node port, too.
            "nodePort": _FIRST_NODE_PORT + number * _PORTS_A_SERVICE + of_one_port[port.number],
        }
        for port in case.ports
    ]
    annotations = {PREFIX + key: value for key, value in case.annotations.items()} | dict(case.others)
    metadata = {"name": case.name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
