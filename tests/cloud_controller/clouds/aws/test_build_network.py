"""What a Service comes to as a network load balancer."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import PREFIX
from cloud_controller.clouds.aws.attributes import (
    DEFAULT_SSL_POLICY,
    DEREGISTRATION_DELAY,
    PROXY_PROTOCOL,
    target_group_defaults,
)
from cloud_controller.clouds.aws.config import Config
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import HealthCheck
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES
from tests.cloud_controller.clouds.aws.services import (
    BUILDER,
    CERTIFICATE,
    CONFIG,
    DUAL_VPC,
    backends,
    built,
    ignored,
    model,
    named,
    nlb,
    node,
    only_pool,
    slices,
)
from tests.cloud_controller.load_balancing import port

I1, I2 = "i-00000000000000001", "i-00000000000000002"
DUAL: dict[str, Any] = {"ipFamilies": ["IPv4", "IPv6"]}
LOCAL: dict[str, Any] = {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}


def refused(service: Any, hint: str, **more: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=hint):
        built(service, **more)


# --------------------------------------------------------------------------------------------- listeners and pools


def test_each_port_has_a_listener_and_a_pool_of_the_nodes_at_its_node_port() -> None:
    found = model(nlb({}, port(80), port(53, "UDP")), with_=backends(node(1), node(2)))

    assert [(each.key, each.pool) for each in found.listeners] == [(("TCP", 80), "tcp-80"), (("UDP", 53), "udp-53")]
    assert [pool.name for pool in found.pools] == ["tcp-80", "udp-53"]
    assert found.pools[0].members == (Member(I1, 30080, I1), Member(I2, 30080, I2))
    assert found.pools[1].attributes["protocol"] == "UDP"


def test_whose_it_is_stands_in_its_tags() -> None:
    tags = model(nlb(named(additional_resource_tags=("Team=edge", "Empty", "Query=a=b")))).tags

    assert tags == {
        "kubernetes.io/cluster": "prod-1",
        "kubernetes.io/cluster/prod-1": "owned",
        "kubernetes.io/service": "default/web",
        "kubernetes.io/service-name": "default/web",
        "kubernetes.io/service-uid": "uid-web",
        "Team": "edge",
        "Empty": "",
        "Query": "a=b",
    }


@pytest.mark.parametrize(
    "tag",
    [
        "kubernetes.io/service-uid=me",
        "kubernetes.io/cluster/other=owned",
        "aws:x=1",
        "AWS:x=1",
        "Team=a;b",
        f"k={'v' * 257}",
        "=v",
    ],
)
def test_tags_that_are_not_a_services_to_set_are_refused(tag: str) -> None:
    refused(nlb(named(additional_resource_tags=(tag,))), "additional-resource-tags")


def test_tcp_and_udp_on_one_port_share_a_listener_and_a_pool() -> None:
    found = model(nlb({}, port(53, "UDP"), port(53)))

    (listener,), (pool,) = found.listeners, found.pools
    assert listener.key == ("TCP_UDP", 53)
    assert pool.name == listener.pool == "tcp_udp-53"
    assert pool.attributes["protocol"] == listener.attributes["protocol"] == "TCP_UDP"
    assert BUILDER.members(nlb({}, port(53, "UDP"), port(53)), backends()) == {("TCP_UDP", 53): pool.members}


def test_tcp_and_udp_on_one_port_must_lead_to_one_port_of_the_pods() -> None:
    by_pod = named(nlb_target_type="ip")
    apart = backends(slices=(slices("10.0.1.9", number=53), slices("10.0.1.9", number=54, protocol="UDP")))
    together = backends(slices=(slices("10.0.1.9", number=53), slices("10.0.1.9", number=53, protocol="UDP")))
    service = nlb(by_pod, port(53), port(53, "UDP"))

    refused(service, r"ports\[1\].targetPort", with_=apart)
    assert only_pool(service, with_=together).members == (Member("10.0.1.9", 53, "10.0.1.9"),)


def test_pods_are_targets_at_their_own_addresses_and_need_no_node_port() -> None:
    service = nlb(named(nlb_target_type="ip"), port(80, nodePort=None))

    pool = only_pool(service, with_=backends(slices=(slices("10.0.1.9", "10.0.2.9"),)))

    assert pool.name == "tcp-80-ip"
    assert pool.members == (Member("10.0.1.9", 8080, "10.0.1.9"), Member("10.0.2.9", 8080, "10.0.2.9"))
    assert pool.attributes["target_type"] == "ip"


def test_with_traffic_policy_local_all_nodes_are_targets_and_the_check_finds_those_with_pods() -> None:
    assert len(only_pool(nlb(**LOCAL), with_=backends(node(1), node(2))).members) == 2


def test_only_nodes_with_the_labels_that_are_wanted_are_targets() -> None:
    nodes = backends(node(1, pool="edge", zone="a"), node(2, pool="edge"), node(3))

    assert [
        m.address for m in only_pool(nlb(named(target_node_labels=("pool=edge", "zone"))), with_=nodes).members
    ] == [I1]
    assert len(only_pool(nlb(named(target_node_labels=("pool=",))), with_=nodes).members) == 2


def test_what_has_no_machine_is_no_instance_target() -> None:
    fargate = node(1, provider_id="aws:///us-east-1a/fargate-ip-10-0-1-9.ec2.internal")

    assert only_pool(nlb(), with_=backends(fargate)).members == ()
    by_pod = only_pool(nlb(named(nlb_target_type="ip")), with_=backends(fargate, slices=(slices("10.0.1.9"),)))
    assert by_pod.members == (Member("10.0.1.9", 8080, "10.0.1.9"),)


# ------------------------------------------------------------------------------------------------------------- TLS


def listener_of(annotations: dict[str, str], *ports: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return dict(model(nlb(annotations, *ports)).listeners[index].attributes)


def test_with_a_certificate_every_tcp_listener_speaks_tls_by_awss_own_policy() -> None:
    found = listener_of(named(ssl_cert=(CERTIFICATE,)))

    assert found == {
        "protocol": "TLS",
        "certificates": (CERTIFICATE,),
        "ssl_policy": DEFAULT_SSL_POLICY,
        "alpn_policy": "None",
    }


def test_without_one_there_is_no_tls_and_the_rest_of_it_is_said_to_be_ignored() -> None:
    annotations = named(ssl_ports=("443",), ssl_negotiation_policy="ELBSecurityPolicy-2016-08", alpn_policy="HTTP2Only")

    no_tls = {"protocol": "TCP", "certificates": (), "ssl_policy": None, "alpn_policy": None}
    assert listener_of(annotations) == {**no_tls, "tcp.idle_timeout.seconds": "350"}
    assert {*ignored(nlb(annotations))} == {"ssl-ports", "ssl-negotiation-policy", "alpn-policy"}


@pytest.mark.parametrize(
    ("ssl_ports", "tls"),
    [(("443",), [False, True]), (("web",), [True, False]), (("*",), [True, True]), (("443", "web"), [True, True])],
)
def test_which_ports_speak_tls_is_said_by_number_or_name(ssl_ports: tuple[str, ...], tls: list[bool]) -> None:
    service = nlb(named(ssl_cert=(CERTIFICATE,), ssl_ports=ssl_ports), port(80, name="web"), port(443, name="tls"))

    assert [listener.attributes["protocol"] == "TLS" for listener in model(service).listeners] == tls


def test_a_port_that_the_service_lacks_is_told_of() -> None:
    service = nlb(named(ssl_cert=(CERTIFICATE,), ssl_ports=("80", "8443", "admin")))

    (found,) = built(service).ignored
    assert found.value == ("8443", "admin")


def test_of_several_certificates_the_first_stays_first_and_the_others_are_in_a_stable_order() -> None:
    assert listener_of(named(ssl_cert=("arn:c", "arn:b", "arn:a", "arn:b")))["certificates"] == (
        "arn:c",
        "arn:a",
        "arn:b",
    )


def test_policies_are_as_they_are_said() -> None:
    said = named(
        ssl_cert=("arn:a",), ssl_negotiation_policy="ELBSecurityPolicy-TLS13-1-2-2021-06", alpn_policy="HTTP2Only"
    )

    found = listener_of(said)

    assert (found["ssl_policy"], found["alpn_policy"]) == ("ELBSecurityPolicy-TLS13-1-2-2021-06", "HTTP2Only")


@pytest.mark.parametrize(("protocol", "pool"), [("ssl", "tls-443"), ("tcp", "tcp-443"), ("http", "tcp-443")])
def test_targets_speak_tls_only_where_the_backend_protocol_is_ssl(protocol: str, pool: str) -> None:
    service = nlb(named(ssl_cert=(CERTIFICATE,), backend_protocol=protocol), port(443))

    assert only_pool(service).name == pool
    assert ("backend-protocol" in ignored(service)) is (protocol == "http")


def test_udp_is_never_behind_tls_and_shares_no_port_with_it() -> None:
    certificate = named(ssl_cert=(CERTIFICATE,))

    assert listener_of(certificate, port(443, "UDP"))["protocol"] == "UDP"
    refused(nlb(certificate, port(443), port(443, "UDP")), "ssl-ports: port 443 serves UDP too")


# --------------------------------------------------------------------------------------------------- health checks


def check(annotations: dict[str, str] | None = None, config: Config = CONFIG, **spec: Any) -> HealthCheck:
    return only_pool(nlb(annotations, **spec), config=config).health_check


def by_http(
    protocol: str, port: int | None, path: str, interval: int, timeout: int, healthy: int, unhealthy: int
) -> HealthCheck:
    return HealthCheck(protocol, port, path, interval, timeout, healthy, unhealthy, "200-399")


SHARED = Config("prod-1", health_probe_mode="Shared")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (check(), HealthCheck("TCP", None, None, 30, 10, 3, 3)),
        (check(**LOCAL), by_http("HTTP", 31000, "/healthz", 10, 6, 2, 2)),
        (check(config=SHARED), by_http("HTTP", 10256, "/healthz", 30, 6, 3, 3)),
        (check(config=SHARED, **LOCAL), by_http("HTTP", 31000, "/healthz", 10, 6, 2, 2)),
        (check(named(healthcheck_protocol="http")), by_http("HTTP", None, "/", 30, 6, 3, 3)),
        (
            check(named(healthcheck_protocol="HTTPS", healthcheck_path="/up")),
            by_http("HTTPS", None, "/up", 30, 10, 3, 3),
        ),
        (check(named(healthcheck_path="/up")), HealthCheck("TCP", None, None, 30, 10, 3, 3)),
        (check(named(healthcheck_success_codes="200")), HealthCheck("TCP", None, None, 30, 10, 3, 3)),
        (check(named(healthcheck_port="8080")), HealthCheck("TCP", 8080, None, 30, 10, 3, 3)),
        (check(named(healthcheck_port="traffic-port"), **LOCAL), by_http("HTTP", None, "/healthz", 10, 6, 2, 2)),
        (check(named(healthcheck_protocol="TCP"), config=SHARED), HealthCheck("TCP", 10256, None, 30, 10, 3, 3)),
        (check(named(healthcheck_interval=5)), HealthCheck("TCP", None, None, 5, 5, 3, 3)),
        (check(named(healthcheck_timeout=20)), HealthCheck("TCP", None, None, 30, 20, 3, 3)),
        (
            check(named(healthcheck_healthy_threshold=2, healthcheck_unhealthy_threshold=9)),
            HealthCheck("TCP", None, None, 30, 10, 2, 9),
        ),
        (check(named(nlb_target_type="ip"), config=SHARED, **LOCAL), HealthCheck("TCP", None, None, 30, 10, 3, 3)),
    ],
)
def test_checks_are_upstreams_unless_the_service_says_otherwise(found: HealthCheck, wanted: HealthCheck) -> None:
    assert found == wanted


@pytest.mark.parametrize("codes", ["200", "200-299,301", "200-599"])
def test_the_codes_that_pass_a_check_are_the_services(codes: str) -> None:
    given = named(healthcheck_protocol="HTTP", healthcheck_success_codes=codes)

    assert check(given).success_codes == codes


# ----------------------------------------------------------------------------------------- target group attributes


def attributes(service: Any, **more: Any) -> dict[str, Any]:
    return dict(only_pool(service, **more).attributes)


@pytest.mark.parametrize(
    ("protocol", "targets"), [("TCP", "instance"), ("TCP", "ip"), ("UDP", "instance"), ("UDP", "ip")]
)
def test_what_the_service_says_nothing_of_is_awss_default(protocol: str, targets: str) -> None:
    found = attributes(nlb(named(nlb_target_type=targets), port(80, protocol)))

    defaults = target_group_defaults(protocol, targets)
    own = {"protocol": protocol, "target_type": targets, "ip_address_type": "ipv4"}
    assert found == own | {key: defaults[key] for key in found.keys() - own.keys()}
    assert defaults["preserve_client_ip.enabled"] == ("false" if (protocol, targets) == ("TCP", "ip") else "true")


@pytest.mark.parametrize(
    "attribute",
    [
        "preserve_client_ip.enabled=false",
        "proxy_protocol_v2.enabled=true",
        "deregistration_delay.timeout_seconds=0",
        "deregistration_delay.connection_termination.enabled=true",
        "load_balancing.cross_zone.enabled=use_load_balancer_configuration",
        "stickiness.enabled=true",
        "target_group_health.dns_failover.minimum_healthy_targets.count=off",
        "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage=50",
        "target_health_state.unhealthy.connection_termination.enabled=false",
    ],
)
def test_every_attribute_that_aws_knows_may_be_given(attribute: str) -> None:
    key, _, value = attribute.partition("=")

    assert attributes(nlb(named(target_group_attributes=(attribute,))))[key] == value


UNHEALTHY = "target_health_state.unhealthy"


@pytest.mark.parametrize(
    ("protocol", "given", "hint"),
    [
        ("TCP", "slow_start.duration_seconds=30", "'slow_start.duration_seconds' is not an attribute"),
        (
            "TCP",
            "preserve_client_ip.enabled=no",
            "'no' is not a valid value of preserve_client_ip.enabled .*true, false",
        ),
        ("TCP", "preserve_client_ip.enabled", "'' is not a valid value"),
        ("TCP", "deregistration_delay.timeout_seconds=3601", "0 to 3,600"),
        ("UDP", "preserve_client_ip.enabled=false", "=false is not supported by UDP"),
        ("UDP", f"{UNHEALTHY}.connection_termination.enabled=true", "=true is not supported by UDP"),
        ("TCP", f"{UNHEALTHY}.draining_interval_seconds=9", f"{UNHEALTHY}.connection_termination.enabled=false"),
    ],
)
def test_what_aws_refuses_of_them_is_refused_before_it_is_asked(protocol: str, given: str, hint: str) -> None:
    refused(nlb(named(target_group_attributes=tuple(given.split(","))), port(80, protocol)), hint)


def test_of_an_attribute_that_is_given_twice_the_last_value_counts_with_a_warning() -> None:
    key = "preserve_client_ip.enabled"
    service = nlb(named(target_group_attributes=(f"{key}=true", f"{key}=false", f"{key}=false")))

    assert attributes(service)[key] == "false"
    ((reason, message),) = built(service).warnings
    assert reason == "RepeatedKey"
    assert message.endswith(f"target-group-attributes: '{key}' appears several times; the last value, 'false', is used")


def test_an_attribute_that_is_given_twice_with_one_value_is_no_warning() -> None:
    service = nlb(named(target_group_attributes=("stickiness.enabled=true",) * 2))

    assert built(service).warnings == ()


def test_session_affinity_keeps_clients_at_their_target() -> None:
    service = nlb(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}})

    found = attributes(service)

    assert (found["stickiness.enabled"], found["stickiness.type"]) == ("true", "source_ip")
    assert ignored(service) == {"spec.sessionAffinityConfig.clientIP.timeoutSeconds": "AWS does not support a timeout"}


def test_the_proxy_protocol_is_version_two() -> None:
    assert attributes(nlb(named(proxy_protocol="*")))["proxy_protocol_v2.enabled"] == "true"


@pytest.mark.parametrize(
    ("more", "spec", "key"),
    [
        ({"proxy_protocol": "*"}, {}, "proxy_protocol_v2.enabled"),
        ({}, {"sessionAffinity": "ClientIP"}, "stickiness.enabled"),
    ],
)
def test_attributes_that_contradict_the_rest_of_the_service_are_refused(
    more: dict[str, Any], spec: dict[str, Any], key: str
) -> None:
    refused(nlb(named(target_group_attributes=(f"{key}=false",), **more), **spec), f"{key}=false contradicts")


# ----------------------------------------------------------------------------------------------- the load balancer


def test_scheme_and_subnets_go_together() -> None:
    assert model(nlb()).attributes["scheme"] == "internet-facing"
    assert model(nlb()).attributes["subnets"] == ("subnet-a1", "subnet-b1", "subnet-c1")
    assert model(nlb(named(internal=True))).attributes["scheme"] == "internal"
    assert model(nlb(named(scheme="internal", internal=True))).attributes["scheme"] == "internal"


def test_addresses_of_ones_own_are_in_the_order_of_the_sorted_subnets() -> None:
    given = named(subnets=("subnet-b1", "subnet-a1"), eip_allocations=("eipalloc-0b", "eipalloc-0a"))
    inside = named(internal=True, subnets=("subnet-b1", "subnet-a1"), private_ipv4_addresses=("10.0.1.9", "10.0.11.9"))

    assert model(nlb(given)).attributes["subnets"] == ("subnet-a1", "subnet-b1")
    assert model(nlb(given)).attributes["eip_allocations"] == ("eipalloc-0a", "eipalloc-0b")
    assert model(nlb(inside)).attributes["private_ipv4_addresses"] == ("10.0.1.9", "10.0.11.9")


def test_without_named_subnets_elastic_addresses_are_for_the_zones_in_their_order() -> None:
    given = named(eip_allocations=("eipalloc-0a", "eipalloc-0b", "eipalloc-0c"))

    assert model(nlb(given)).attributes["eip_allocations"] == ("eipalloc-0a", "eipalloc-0b", "eipalloc-0c")


def test_logs_need_a_bucket_and_what_is_said_of_them_counts_only_when_they_are_enabled() -> None:
    off = nlb(named(access_log_s3_bucket_name="logs"))
    on = model(nlb(named(access_log_enabled=True, access_log_s3_bucket_name="logs"))).attributes

    assert {key for key in model(off).attributes if key.startswith("access_logs")} == {"access_logs.s3.enabled"}
    assert "access-log-s3-bucket-name" in ignored(off)
    assert (on["access_logs.s3.enabled"], on["access_logs.s3.bucket"], on["access_logs.s3.prefix"]) == (
        "true",
        "logs",
        "",
    )
    refused(nlb(named(access_log_enabled=True)), "access-log-s3-bucket-name: missing")


def test_attributes_may_be_given_under_awss_names_but_not_against_their_annotations() -> None:
    both = named(
        attributes=("access_logs.s3.enabled=true", "access_logs.s3.bucket=logs", "deletion_protection.enabled=true")
    )

    found = model(nlb(both)).attributes

    assert (found["access_logs.s3.bucket"], found["deletion_protection.enabled"]) == ("logs", "true")
    against = named(attributes=("load_balancing.cross_zone.enabled=false",), cross_zone_load_balancing_enabled=True)
    refused(nlb(against), "load_balancing.cross_zone.enabled=false contradicts")
    refused(
        nlb(named(attributes=("idle_timeout.timeout_seconds=60",))), "is not an attribute of network load balancers"
    )


# ----------------------------------------------------------------------------------------- attributes of listeners

IDLE = "tcp.idle_timeout.seconds"


def idle_timeouts(service: Object) -> dict[int, object]:
    return {each.port: each.attributes.get(IDLE) for each in model(service).listeners}


def test_an_idle_timeout_is_that_of_every_tcp_listener() -> None:
    service = nlb(
        named(connection_idle_timeout=60, ssl_cert=(CERTIFICATE,), ssl_ports=("443",)),
        port(80),
        port(443),
        port(3306),
        port(53, "UDP"),
    )

    assert idle_timeouts(service) == {80: "60", 443: None, 3306: "60", 53: None}
    assert ignored(service) == {}


def test_a_listeners_own_attributes_win_over_the_services_idle_timeout() -> None:
    own = {"TCP-80": (f"{IDLE}=6000",)}
    service = nlb(named(connection_idle_timeout=60, listener_attributes=own), port(80), port(81))

    assert idle_timeouts(service) == {80: "6000", 81: "60"}


@pytest.mark.parametrize(
    ("annotations", "marked"),
    [
        ({}, False),
        (named(connection_idle_timeout=60), True),
        (named(listener_attributes={"TCP-80": (f"{IDLE}=350",)}), True),
        (named(listener_attributes={"TCP-81": (f"{IDLE}=60",)}), False),
    ],
    ids=["no attributes", "for all", "for one", "for none that there is"],
)
def test_a_load_balancer_whose_listeners_have_attributes_is_marked(annotations: dict[str, str], marked: bool) -> None:
    assert ("cloud-controller/listener-attributes" in model(nlb(annotations, port(80))).tags) == marked


# ------------------------------------------------------------------------------- attributes of single target groups


def test_the_attributes_of_a_port_win_over_those_of_all() -> None:
    service = nlb(
        named(
            target_group_attributes=("deregistration_delay.timeout_seconds=30", "proxy_protocol_v2.enabled=true"),
            target_group_attributes_of_port={
                "80": ("deregistration_delay.timeout_seconds=5", "proxy_protocol_v2.enabled=")
            },
        ),
        port(80),
        port(81),
    )

    found = {
        each.name: (each.attributes[DEREGISTRATION_DELAY], each.attributes[PROXY_PROTOCOL])
        for each in model(service).pools
    }
    assert found == {"tcp-80": ("5", "true"), "tcp-81": ("30", "true")}


@pytest.mark.parametrize(
    ("all_ports", "port_80", "hint"),
    [
        ("proxy_protocol_v2.enabled=false", "stickiness.enabled=false", "target-group-attributes: proxy_protocol_v2"),
        ("stickiness.enabled=false", "proxy_protocol_v2.enabled=false", "target-group-attributes.80: proxy_protocol_v"),
    ],
)
def test_the_annotation_that_contradicts_the_service_is_named_where_a_port_has_one_of_its_own(
    all_ports: str, port_80: str, hint: str
) -> None:
    given = named(
        proxy_protocol="*",
        target_group_attributes=(all_ports,),
        target_group_attributes_of_port={"80": (port_80,)},
    )

    refused(nlb(given, port(80)), hint)


# -------------------------------------------------------------------------------------------------------- the rest


def test_the_name_that_people_choose_is_the_load_balancers_in_aws() -> None:
    assert model(nlb(named(name="edge"))).attributes["load_balancer_name"] == ("edge",)
    assert "load_balancer_name" not in model(nlb()).attributes


# ---------------------------------------------------------------------------------------------------- who connects


def test_source_ranges_are_the_only_clients_and_without_any_all_clients_may_connect() -> None:
    restricted = nlb({SOURCE_RANGES: "192.0.2.0/24"})

    assert model(nlb()).attributes["ingress_rules"] == ("icmp 3-4 0.0.0.0/0", "tcp 80-80 0.0.0.0/0")
    assert model(restricted).attributes["ingress_rules"] == ("icmp 3-4 192.0.2.0/24", "tcp 80-80 192.0.2.0/24")


def test_prefix_lists_are_let_in_instead_of_everybody_and_besides_source_ranges() -> None:
    lists = named(security_group_prefix_lists=("pl-0b", "pl-0a"))

    assert model(nlb(lists)).attributes["ingress_rules"] == ("tcp 80-80 pl-0a", "tcp 80-80 pl-0b")
    assert model(nlb(lists, loadBalancerSourceRanges=["10.0.0.0/8"])).attributes["ingress_rules"] == (
        "icmp 3-4 10.0.0.0/8",
        "tcp 80-80 10.0.0.0/8",
        "tcp 80-80 pl-0a",
        "tcp 80-80 pl-0b",
    )
    refused(nlb(named(security_group_prefix_lists=("com.amazonaws.global.cloudfront.origin-facing",))), "pl-…")


def test_path_mtu_discovery_by_icmp_can_be_shut_off() -> None:
    silent = nlb(named(enable_icmp_for_path_mtu_discovery="off"))

    assert model(silent).attributes["ingress_rules"] == ("tcp 80-80 0.0.0.0/0",)


def test_groups_of_people_stand_for_the_services_own_and_extra_ones_beside_it() -> None:
    own = nlb(named(security_groups=("sg-0b", "sg-0a")), loadBalancerSourceRanges=["0.0.0.0/0"])
    more = model(nlb(named(extra_security_groups=("sg-0c",)))).attributes

    found = model(own).attributes
    assert (found["security_groups"], found["ingress_rules"]) == (("sg-0a", "sg-0b"), None)
    assert more["security_groups"] == ("sg-0c",)
    assert more["ingress_rules"] is not None


@pytest.mark.parametrize(
    ("annotations", "spec", "field"),
    [
        ({}, {"loadBalancerSourceRanges": ["10.0.0.0/8"]}, "spec.loadBalancerSourceRanges"),
        ({SOURCE_RANGES: "10.0.0.0/8"}, {}, "load-balancer-source-ranges"),
        (named(security_group_prefix_lists=("pl-0a",)), {}, "security-group-prefix-lists"),
    ],
)
def test_restrictions_are_refused_where_groups_of_others_decide_who_may_connect(
    annotations: dict[str, str], spec: dict[str, Any], field: str
) -> None:
    by_service = nlb(annotations | named(security_groups=("sg-0a",)), **spec)
    by_config = nlb(annotations, **spec)

    refused(by_service, f"{field}: .*security-groups decide which clients may connect")
    refused(by_config, f"{field}: .*ElbSecurityGroup sg-0e", config=Config("prod-1", elb_security_group="sg-0e"))


def test_a_group_of_the_cloud_config_stands_for_it_too() -> None:
    found = model(nlb(), config=Config("prod-1", elb_security_group="sg-0e")).attributes

    assert (found["security_groups"], found["ingress_rules"]) == (("sg-0e",), None)


def test_more_rules_than_all_its_groups_may_have_are_refused_with_the_limit() -> None:
    apart = [f"10.{number}.0.0/24" for number in range(200)]
    service = nlb({}, port(80), loadBalancerSourceRanges=apart)

    refused(service, "spec.loadBalancerSourceRanges: the ports and sources need 400 .*at most 240 rules, in 4 ")
    rules = model(nlb({}, port(80), loadBalancerSourceRanges=apart[:120])).attributes["ingress_rules"]
    assert isinstance(rules, tuple)
    assert len(rules) == 240


# -------------------------------------------------------------------------------------------------------- families


def test_both_families_make_a_dual_stack_load_balancer_that_lets_both_in() -> None:
    found = model(nlb(**DUAL), facts=DUAL_VPC)

    assert found.attributes["ip_address_type"] == "dualstack"
    assert "tcp 80-80 ::/0" in str(found.attributes["ingress_rules"])
    assert found.pools[0].attributes["ip_address_type"] == "ipv4"


def test_targets_are_of_the_first_family() -> None:
    service = nlb(named(nlb_target_type="ip"), ipFamilies=["IPv6"])

    pool = only_pool(service, with_=backends(slices=(slices("2001:db8::9", family="IPv6"),)), facts=DUAL_VPC)

    assert pool.name == "tcp-80-ip-ipv6"
    assert pool.attributes["ip_address_type"] == "ipv6"
    assert pool.members == (Member("2001:db8::9", 8080, "2001:db8::9"),)


def test_whoever_only_prefers_both_gets_ipv4_where_subnets_have_no_ipv6_and_is_told() -> None:
    service = nlb(**DUAL, ipFamilyPolicy="PreferDualStack")

    assert model(service).attributes["ip_address_type"] == "ipv4"
    assert "no IPv6 range in subnet-a1, subnet-b1, subnet-c1" in ignored(service)["spec.ipFamilies"]


def test_udp_keeps_a_load_balancer_to_ipv4() -> None:
    service = nlb({}, port(53, "UDP"), **DUAL)

    assert model(service, facts=DUAL_VPC).attributes["ip_address_type"] == "ipv4"
    assert "UDP" in ignored(service, facts=DUAL_VPC)["spec.ipFamilies"]


def test_udp_over_ipv6_is_served_where_the_service_asks_for_source_addresses() -> None:
    service = nlb(named(enable_prefix_for_ipv6_source_nat="on"), port(53, "UDP"), **DUAL)

    found = model(service, facts=DUAL_VPC).attributes

    assert (found["ip_address_type"], found["source_nat"]) == ("dualstack", "on")
    assert ignored(service, facts=DUAL_VPC) == {}


def test_source_addresses_without_ipv6_have_no_effect_and_are_told_of() -> None:
    service = nlb(named(enable_prefix_for_ipv6_source_nat="on"), port(53, "UDP"))

    assert "source_nat" not in model(service).attributes
    assert ignored(service) == {"enable-prefix-for-ipv6-source-nat": "the load balancer has no IPv6 addresses"}


def test_the_annotation_wins_over_the_families() -> None:
    assert model(nlb(named(ip_address_type="ipv4"), **DUAL), facts=DUAL_VPC).attributes["ip_address_type"] == "ipv4"
    assert model(nlb(named(ip_address_type="dualstack")), facts=DUAL_VPC).attributes["ip_address_type"] == "dualstack"


# ----------------------------------------------------------------------------------------- refused, or without effect


@pytest.mark.parametrize(
    ("service", "hint"),
    [
        (nlb({}, port(53), port(53, "UDP", nodePort=31053)), r"ports\[1\].nodePort: .*30053 and 31053"),
        (nlb({}, port(80), port(36412, "SCTP")), r"spec.ports\[1\].protocol: 'SCTP' .*TCP, UDP"),
        (nlb({}, port(80, nodePort=None)), "allocateLoadBalancerNodePorts: true; or .*nlb-target-type: ip"),
        (nlb(named(ssl_cert=(CERTIFICATE,)), sessionAffinity="ClientIP"), "spec.sessionAffinity"),
        (nlb(loadBalancerIP="192.0.2.1"), "spec.loadBalancerIP: '192.0.2.1'.*eip-allocations"),
        (nlb(named(scheme="internal", internal=False)), "scheme: 'internal' contradicts"),
        (
            nlb({f"{PREFIX}healthcheck-protocol": "HTTP", f"{PREFIX}healthcheck-success-codes": "299-200"}),
            "range '299-200' ends before it begins",
        ),
        (nlb({f"{PREFIX}healthcheck-success-codes": "100"}), "codes from 200 to 599"),
        (nlb(named(healthcheck_timeout=20, healthcheck_interval=10)), "healthcheck-timeout: 20 s .*2 to 10"),
        (nlb(named(healthcheck_protocol="SSL")), "healthcheck-protocol: 'SSL' .*HTTP, HTTPS, TCP"),
        (nlb(named(healthcheck_port="70000")), "healthcheck-port: '70000' .*1 to 65535"),
        (nlb(named(eip_allocations=("eipalloc-0a",))), "eip-allocations: 1 values for 3 subnets"),
        (
            nlb(named(eip_allocations=("eipalloc-0a",), internal=True)),
            "eip-allocations: not supported on an internal load balancer",
        ),
        (nlb(named(eip_allocations=("192.0.2.1",))), "'192.0.2.1' is not a valid allocation ID"),
        (nlb(named(eip_allocations=("eipalloc-0a",) * 3)), "duplicate allocation ID"),
        (
            nlb(named(private_ipv4_addresses=("10.0.1.9",))),
            "addresses: not supported on an internet-facing load balancer",
        ),
        (
            nlb(named(private_ipv4_addresses=("10.0.1.9", "10.0.1.8", "10.0.21.9"), internal=True)),
            "two addresses are in subnet-a1",
        ),
        (
            nlb(named(private_ipv4_addresses=("10.0.1.9", "10.0.11.9", "10.9.0.1"), internal=True)),
            "10.9.0.1 is not in the load balancer's subnets",
        ),
        (nlb(named(private_ipv4_addresses=("a", "b", "c"), internal=True)), "'a' is not an IPv4 address"),
        (nlb(named(connection_idle_timeout=59)), "connection-idle-timeout: '59' is not a valid value.*60 to 6,000"),
        (nlb(named(listener_attributes={"TCP-80": (f"{IDLE}=6001",)})), "attributes.TCP-80: .*'6001'.*60 to 6,000"),
        (
            nlb(named(listener_attributes={"TCP-80": ("idle=60",)})),
            "'idle' is not an attribute of TCP listeners.*tcp.idle",
        ),
        (
            nlb(named(listener_attributes={"UDP-53": (f"{IDLE}=60",)}), port(53, "UDP")),
            "UDP listeners have no attributes",
        ),
        (
            nlb(named(target_group_attributes_of_port={"80": ("stickiness.enabled=maybe",)})),
            "target-group-attributes.80: 'maybe' is not a valid value",
        ),
        (
            nlb(named(extra_security_groups=("sg-01", "sg-02", "sg-03", "sg-04"))),
            "extra-security-groups: 4 security groups",
        ),
        (nlb(named(security_groups=("web",))), "security-groups: 'web' is not a valid security group ID"),
        (
            nlb(**DUAL, ipFamilyPolicy="RequireDualStack"),
            "spec.ipFamilies: IPv4, IPv6 is not possible: no IPv6 range in subnet-a1",
        ),
        (nlb(ipFamilies=["IPv6"]), "spec.ipFamilies: IPv6 is not possible: no IPv6 range in subnet-a1"),
        (
            nlb(named(ip_address_type="dualstack")),
            "ip-address-type: 'dualstack' is not possible: no IPv6 range in subnet-a1",
        ),
        (nlb(named(ip_address_type="ipv4"), ipFamilies=["IPv6"]), "ip-address-type: 'ipv4'"),
    ],
)
def test_what_a_network_one_cannot_do_is_refused_and_says_what_can(service: Object, hint: str) -> None:
    refused(service, hint)


@pytest.mark.parametrize(
    ("service", "reasons"),
    [
        (nlb(named(healthcheck_success_codes="200")), {"healthcheck-success-codes": ""}),
        (nlb(named(connection_idle_timeout=60), port(53, "UDP")), {"connection-idle-timeout": ""}),
        (
            nlb(named(listener_attributes={"TLS-80": (f"{IDLE}=60",)})),
            {"listener-attributes.TLS-80": "the Service has no such listener; it has TCP-80"},
        ),
        (
            nlb(named(target_group_attributes_of_port={"81": ("stickiness.enabled=true",)})),
            {"target-group-attributes.81": "the Service has no port with this number"},
        ),
        (
            nlb(named(connection_draining_enabled=True, connection_draining_timeout=10, access_log_emit_interval="5")),
            {"connection-draining-enabled": "", "connection-draining-timeout": "", "access-log-emit-interval": ""},
        ),
        (
            nlb({f"{PREFIX}multi-cluster-target-group": "true"}),
            {"multi-cluster-target-group": "each target group belongs to one Service"},
        ),
    ],
)
def test_what_has_no_effect_is_told_of(service: Object, reasons: dict[str, str]) -> None:
    found = ignored(service)

    assert found.keys() == reasons.keys()
    assert all(reason in found[field] for field, reason in reasons.items())


# ------------------------------------------------------------------------------------ a Service with another fault


def test_targets_follow_the_nodes_whatever_else_is_wrong() -> None:
    service = nlb({**named(eip_allocations=("mine",))}, port(80), port(81, nodePort=None), port(53, "SCTP"))

    assert BUILDER.members(service, backends()) == {("TCP", 80): (Member(I1, 30080, I1),)}
