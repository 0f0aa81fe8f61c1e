"""What a Service comes to as a classic load balancer."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.config import Config
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck
from tests.cloud_controller.clouds.aws.services import (
    BUILDER,
    CERTIFICATE,
    CONFIG,
    backends,
    built,
    classic,
    ignored,
    model,
    named,
    node,
    only_pool,
)
from tests.cloud_controller.load_balancing import port

I1, I2 = "i-00000000000000001", "i-00000000000000002"
LOCAL: dict[str, Any] = {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}
SHARED = Config("prod-1", health_probe_mode="Shared", health_probe_port=10300, health_probe_path="/livez")


def refused(service: Any, hint: str) -> None:
    with pytest.raises(InvalidConfiguration, match=hint):
        built(service)


def test_a_service_that_names_no_type_gets_a_classic_one_with_aws_defaults() -> None:
    assert model(classic()).attributes == {
        "type": "classic",
        "scheme": "internet-facing",
        "subnets": ("subnet-a1", "subnet-b1", "subnet-c1"),
        "security_groups": (),
        "ingress_rules": ("icmp 3-4 0.0.0.0/0", "tcp 80-80 0.0.0.0/0"),
        "access_logs.s3.enabled": "false",
        "load_balancing.cross_zone.enabled": "false",
        "idle_timeout.timeout_seconds": "60",
        "connection_draining.enabled": "false",
    }


def test_what_is_said_of_logs_draining_and_silence_is_in_its_attributes() -> None:
    found = model(
        classic(
            named(
                access_log_enabled=True,
                access_log_s3_bucket_name="logs",
                access_log_s3_bucket_prefix="web",
                access_log_emit_interval="5",
                connection_draining_enabled=True,
                connection_draining_timeout=30,
                connection_idle_timeout=120,
                cross_zone_load_balancing_enabled=True,
            )
        )
    ).attributes

    said = {key: value for key, value in found.items() if "." in key}
    assert said == {
        "access_logs.s3.enabled": "true",
        "access_logs.s3.bucket": "logs",
        "access_logs.s3.prefix": "web",
        "access_logs.s3.emit_interval": "5",
        "load_balancing.cross_zone.enabled": "true",
        "idle_timeout.timeout_seconds": "120",
        "connection_draining.enabled": "true",
        "connection_draining.timeout_seconds": "30",
    }


def test_each_port_has_a_listener_and_the_nodes_are_in_one_pool() -> None:
    found = model(classic({}, port(80), port(443)), with_=backends(node(1), node(2)))

    (pool,) = found.pools
    assert [(each.key, each.pool) for each in found.listeners] == [(("TCP", 80), pool.name), (("TCP", 443), pool.name)]
    assert pool.members == (Member(I1, 0, I1), Member(I2, 0, I2))


@pytest.mark.parametrize(
    ("backend", "with_certificate", "without"),
    [
        (None, ("SSL", "TCP"), ("TCP", "TCP")),
        ("tcp", ("SSL", "TCP"), ("TCP", "TCP")),
        ("ssl", ("SSL", "SSL"), ("TCP", "TCP")),
        ("http", ("HTTPS", "HTTP"), ("HTTP", "HTTP")),
        ("https", ("HTTPS", "HTTPS"), ("TCP", "TCP")),
    ],
)
def test_the_backend_protocol_decides_what_the_listener_reads(
    backend: str | None, with_certificate: tuple[str, str], without: tuple[str, str]
) -> None:
    said = {} if backend is None else {"backend_protocol": backend}
    annotations = named(ssl_cert=(CERTIFICATE,), ssl_ports=("443",), **said)

    tls, plain = model(classic(annotations, port(443), port(80))).listeners

    assert (tls.attributes["protocol"], tls.attributes["instance_protocol"]) == with_certificate
    assert (plain.attributes["protocol"], plain.attributes["instance_protocol"]) == without
    assert (tls.attributes["certificate"], plain.attributes["certificate"]) == (CERTIFICATE, None)


def test_a_policy_is_for_listeners_with_tls() -> None:
    annotations = named(ssl_cert=(CERTIFICATE,), ssl_ports=("443",), ssl_negotiation_policy="ELBSecurityPolicy-2016-08")

    tls, plain = model(classic(annotations, port(443), port(80))).listeners

    assert (tls.attributes["ssl_policy"], plain.attributes["ssl_policy"]) == ("ELBSecurityPolicy-2016-08", None)


def test_the_proxy_protocol_is_for_every_listener() -> None:
    (listener,) = model(classic(named(proxy_protocol="*"))).listeners

    assert listener.attributes["proxy_protocol"] is True


def check(annotations: dict[str, str] | None = None, config: Config = CONFIG, **spec: Any) -> HealthCheck:
    return only_pool(classic(annotations, port(80), port(443), **spec), config=config).health_check


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (check(), HealthCheck("TCP", 30080, None, 10, 5, 2, 6)),
        (check(named(backend_protocol="https")), HealthCheck("SSL", 30080, None, 10, 5, 2, 6)),
        (check(**LOCAL), HealthCheck("HTTP", 31000, "/healthz", 10, 5, 2, 6)),
        (check(config=SHARED), HealthCheck("HTTP", 10300, "/livez", 10, 5, 2, 6)),
        (check(config=SHARED, **LOCAL), HealthCheck("HTTP", 31000, "/healthz", 10, 5, 2, 6)),
        (check(named(healthcheck_port="traffic-port"), **LOCAL), HealthCheck("HTTP", 30080, "/healthz", 10, 5, 2, 6)),
        (check(named(healthcheck_port="8080")), HealthCheck("TCP", 8080, None, 10, 5, 2, 6)),
        (check(named(healthcheck_protocol="http")), HealthCheck("HTTP", 30080, "/", 10, 5, 2, 6)),
        (
            check(named(healthcheck_protocol="HTTP", healthcheck_path="/up")),
            HealthCheck("HTTP", 30080, "/up", 10, 5, 2, 6),
        ),
        (check(named(healthcheck_interval=5)), HealthCheck("TCP", 30080, None, 5, 4, 2, 6)),
        (
            check(named(healthcheck_healthy_threshold=9, healthcheck_unhealthy_threshold=2, healthcheck_timeout=9)),
            HealthCheck("TCP", 30080, None, 10, 9, 9, 2),
        ),
    ],
)
def test_checks_are_upstreams_unless_the_service_says_otherwise(found: HealthCheck, wanted: HealthCheck) -> None:
    assert found == wanted


@pytest.mark.parametrize(
    ("service", "hint"),
    [
        (classic({}, port(53, "UDP")), r"spec.ports\[0\].protocol: 'UDP'.*aws-load-balancer-type: nlb"),
        (classic({}, port(80, nodePort=None)), r"spec.ports\[0\].nodePort"),
        (classic(sessionAffinity="ClientIP"), "spec.sessionAffinity: 'ClientIP'.*type: nlb"),
        (classic(ipFamilies=["IPv6", "IPv4"]), "spec.ipFamilies: .*only IPv4 addresses"),
        (classic(ipFamilyPolicy="RequireDualStack"), "spec.ipFamilyPolicy: RequireDualStack is not supported"),
        (classic(loadBalancerIP="192.0.2.1"), "spec.loadBalancerIP"),
        (classic(named(ssl_cert=("arn:a", "arn:b"))), "ssl-cert: .*one certificate"),
        (classic(named(healthcheck_timeout=10)), "healthcheck-timeout: 10 s.*2 to 9"),
        (classic(named(healthcheck_timeout=61, healthcheck_interval=300)), "2 to 60"),
        (classic(named(proxy_protocol="*", access_log_enabled=True)), "access-log-s3-bucket-name: missing"),
    ],
)
def test_what_a_classic_one_cannot_do_is_refused_and_says_what_can(service: Any, hint: str) -> None:
    refused(service, hint)


def test_what_only_a_network_one_does_is_told_of() -> None:
    given = named(
        nlb_target_type="ip",
        eip_allocations=("eipalloc-0a",),
        target_group_attributes=("stickiness.enabled=true",),
        ip_address_type="dualstack",
        connection_draining_timeout=5,
        access_log_emit_interval="5",
    )

    assert {*ignored(classic(given, ipFamilies=["IPv4", "IPv6"]))} == {
        "nlb-target-type",
        "eip-allocations",
        "target-group-attributes",
        "ip-address-type",
        "connection-draining-timeout",
        "access-log-emit-interval",
        "spec.ipFamilies",
    }


def test_nodes_follow_whatever_else_is_wrong() -> None:
    service = classic(named(ssl_cert=("arn:a", "arn:b")), port(80), port(53, "UDP"))

    assert BUILDER.members(service, backends()) == {("TCP", 80): (Member(I1, 0, I1),)}
