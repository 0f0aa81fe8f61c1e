"""The NLB that a Service becomes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.nlb.build import drains, follows_endpoints, members
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.model import HealthCheck
from tests.cloud_controller.clouds.alicloud.nlb.services import ENI, ZONES, backends, built, port, service

TLS = {"protocol-port": "tcpssl:443", "cert-id": "cert-1"}
PODS = {"10.1.0.1": "n1", "10.1.0.2": "n2"}


def test_a_service_with_zones_alone_becomes_a_public_load_balancer_with_the_documented_defaults() -> None:
    found = built()
    (listener,), (pool,) = found.model.listeners, found.model.pools

    assert found.model.name == "c1-default-web"
    assert found.model.attributes == {
        "zones": ("cn-hangzhou-h:vsw-h", "cn-hangzhou-k:vsw-k"),
        "address_type": "Internet",
        "address_ip_version": "ipv4",
        "bandwidth_package_id": None,
        "cross_zone_enabled": True,
        "deletion_protection": True,
        "modification_protection": "ConsoleProtection",
        "source_ranges": (),
    }
    assert (listener.protocol, listener.port, listener.pool) == ("TCP", 80, "tcp-80")
    assert listener.attributes == {
        "protocol": "TCP",
        "port_range": None,
        "running": True,
        "cps": 0,
        "idle_timeout": 900,
        "proxy_protocol": False,
    }
    assert pool.attributes == {
        "protocol": "TCP",
        "server_group_type": "Instance",
        "any_port": False,
        "scheduler": "wrr",
        "connection_drain": False,
        "preserve_client_ip": True,
    }
    assert pool.health_check == HealthCheck("TCP", interval_seconds=10, timeout_seconds=5)
    assert pool.members == (Member("i-n1", 30080, "i-n1", 100), Member("i-n2", 30080, "i-n2", 100))
    assert not found.ignored
    assert not found.warnings


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"address-type": "Intranet"}, {"address_type": "Intranet"}),
        ({"ip-version": "DualStack"}, {"address_ip_version": "DualStack", "ipv6_address_type": "Intranet"}),
        (
            {"ip-version": "dualstack", "ipv6-address-type": "internet"},
            {"address_ip_version": "DualStack", "ipv6_address_type": "Internet"},
        ),
        ({"bandwidth-package-id": "cbwp-1"}, {"bandwidth_package_id": "cbwp-1"}),
        ({"resource-group-id": "rg-1"}, {"resource_group_id": "rg-1"}),
        ({"security-group-ids": "sg-2,sg-1"}, {"security_group_ids": ("sg-1", "sg-2")}),
        ({"security-group-ids": ""}, {"security_group_ids": ()}),
        ({"cross-zone-enabled": "off"}, {"cross_zone_enabled": False}),
        ({"delete-protection": "off"}, {"deletion_protection": False}),
        ({"modification-protection": "NonProtection"}, {"modification_protection": "NonProtection"}),
        (
            {"zone-maps": "z-k:vsw-k:192.168.0.201:eip-1, z-h:vsw-h::eip-2\n"},
            {
                "zones": ("z-h:vsw-h", "z-k:vsw-k"),
                "private_ipv4.z-k": "192.168.0.201",
                "eip.z-k": "eip-1",
                "eip.z-h": "eip-2",
            },
        ),
    ],
)
def test_an_annotation_sets_an_attribute_of_the_load_balancer(
    annotations: dict[str, str], expected: dict[str, Any]
) -> None:
    attributes = built(annotations=annotations).model.attributes

    assert {key: attributes[key] for key in expected} == expected


def test_name_and_tags_are_the_services() -> None:
    model = built(annotations={"name": "edge", "additional-resource-tags": "team=web,stage=test"}).model

    assert model.name == "edge"
    assert {key: model.tags[key] for key in ("team", "stage", "kubernetes.io/service")} == {
        "team": "web",
        "stage": "test",
        "kubernetes.io/service": "default/web",
    }


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"cps": "100"}, {"cps": 100}),
        ({"idle-timeout": "60"}, {"idle_timeout": 60}),
        (
            {"proxy-protocol": "on", "ppv2-pvl-ep-id-enabled": "on", "ppv2-pvl-vpc-id-enabled": "on"},
            {"proxy_protocol": True, "ppv2_ep_id": True, "ppv2_eps_id": False, "ppv2_vpc_id": True},
        ),
        (
            {**TLS, "tls-cipher-policy": "tls_cipher_policy_1_2", "cacert": "on", "cacert-id": "ca-1"},
            {
                "protocol": "TCPSSL",
                "certificates": ("cert-1",),
                "security_policy": "tls_cipher_policy_1_2",
                "ca_enabled": True,
                "ca_certificates": ("ca-1",),
                "alpn": False,
            },
        ),
        (
            {**TLS, "alpn": "on", "alpn-policy": "HTTP2Preferred", "additional-cert-ids": "cert-b,cert-a,cert-1"},
            {"alpn": True, "alpn_policy": "HTTP2Preferred", "additional_certificates": ("cert-a", "cert-b")},
        ),
    ],
)
def test_an_annotation_sets_an_attribute_of_listeners(annotations: dict[str, str], expected: dict[str, Any]) -> None:
    (listener,) = built(port(443), annotations=annotations).model.listeners

    assert {key: listener.attributes[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"scheduler": "rr"}, {"scheduler": "rr"}),
        (
            {"connection-drain": "on", "connection-drain-timeout": "30"},
            {"connection_drain": True, "connection_drain_timeout": 30},
        ),
        ({"preserve-client-ip": "off"}, {"preserve_client_ip": False}),
        (
            {"health-check-type": "http", "health-check-domain": "a.example.com", "health-check-method": "head"},
            {"health_check_domain": "a.example.com", "health_check_method": "HEAD"},
        ),
        ({ENI: "eni", "server-group-type": "Ip"}, {"server_group_type": "Ip", "preserve_client_ip": False}),
    ],
)
def test_an_annotation_sets_an_attribute_of_server_groups(
    annotations: dict[str, str], expected: dict[str, Any]
) -> None:
    (pool,) = built(annotations=annotations).model.pools

    assert {key: pool.attributes[key] for key in expected} == expected


def test_every_number_of_a_health_check_is_the_services() -> None:
    annotations = {
        "health-check-type": "http",
        "health-check-uri": "/ok",
        "health-check-httpcode": "http_3xx,http_2xx",
        "health-check-connect-port": "8081",
        "health-check-connect-timeout": "6",
        "health-check-interval": "7",
        "healthy-threshold": "3",
        "unhealthy-threshold": "4",
    }

    (pool,) = built(annotations=annotations).model.pools

    assert pool.health_check == HealthCheck("HTTP", 8081, "/ok", 7, 6, 3, 4, "http_2xx,http_3xx")
    (off,) = built(annotations={"health-check-flag": "off"}).model.pools
    assert off.health_check == HealthCheck("NONE")


def test_ports_of_each_protocol_have_their_own_listener_and_pool() -> None:
    ports = (port(53, "UDP"), port(53), port(443), port(80))

    model = built(*ports, annotations={**TLS, "idle-timeout": "60"}).model

    assert {each.key: (each.attributes["protocol"], each.pool) for each in model.listeners} == {
        ("UDP", 53): ("UDP", "udp-53"),
        ("TCP", 53): ("TCP", "tcp-53"),
        ("TCP", 443): ("TCPSSL", "tcp-443-tls"),
        ("TCP", 80): ("TCP", "tcp-80"),
    }
    # Certificates are TCPSSL's alone, its backends cannot see the clients, and UDP idles for 20 seconds at most.
    assert [each.port for each in model.listeners if "certificates" in each.attributes] == [443]
    assert {each.name: each.attributes["preserve_client_ip"] for each in model.pools}["tcp-443-tls"] is False
    assert {each.key: each.attributes["idle_timeout"] for each in model.listeners}[("UDP", 53)] == 20
    assert {each.name: each.health_check.protocol for each in model.pools}["udp-53"] == "UDP"


def test_pods_are_backends_by_their_addresses() -> None:
    eni = built(annotations={ENI: "eni", "weight": "7"}, on=backends(pods=PODS))
    (pool,) = eni.model.pools

    assert pool.name == "tcp-80"
    assert pool.members == (Member("10.1.0.1", 8080, "10.1.0.1", 7), Member("10.1.0.2", 8080, "10.1.0.2", 7))
    (ip,) = built(annotations={ENI: "eni", "server-group-type": "Ip"}, on=backends(pods=PODS)).model.pools
    assert (ip.name, ip.members) == ("tcp-80-ip", tuple(m._replace(weight=100) for m in pool.members))


def test_with_traffic_policy_local_a_nodes_weight_is_the_number_of_its_pods() -> None:
    pods = {"10.1.0.1": "n1", "10.1.0.2": "n1", "10.1.0.3": "n2"}

    found = built(on=backends("n1", "n2", "n3", pods=pods), externalTrafficPolicy="Local")

    (pool,) = found.model.pools
    assert [(each.instance_id, each.weight) for each in pool.members] == [("i-n1", 2), ("i-n2", 1)]


@pytest.mark.parametrize(("label", "chosen"), [("pool=edge", ["i-n1"]), ("pool=edge,zone=h", []), ("zone=", [])])
def test_backends_can_be_chosen_by_label(label: str, chosen: list[str]) -> None:
    first, second = backends().nodes
    on = Backends((replace(first, labels={"pool": "edge"}), second))

    (pool,) = built(annotations={"backend-label": label}, on=on).model.pools

    assert [each.instance_id for each in pool.members] == chosen


def test_a_service_that_requires_both_families_gets_both() -> None:
    model = built(ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack").model

    assert model.attributes["address_ip_version"] == "DualStack"


def test_an_annotation_of_clb_is_reported_as_having_no_effect() -> None:
    (found,) = built(annotations={"spec": "slb.s1.small"}).ignored

    assert "only CLB" in found.reason


@pytest.mark.parametrize(("affinity", "given", "scheduler"), [("ClientIP", {}, "sch"), ("None", {}, "wrr")])
def test_session_affinity_chooses_the_scheduler(affinity: str, given: dict[str, str], scheduler: str) -> None:
    (pool,) = built(annotations=given, sessionAffinity=affinity).model.pools

    assert pool.attributes["scheduler"] == scheduler


def test_a_range_of_ports_goes_to_the_same_ports_of_pods() -> None:
    model = built(annotations={ENI: "eni", "listener-port-range": "1000-2000:80"}, on=backends(pods=PODS)).model
    (listener,), (pool,) = model.listeners, model.pools

    assert (listener.key, listener.attributes["port_range"]) == (("TCP", 1000), "1000-2000")
    assert (pool.name, pool.attributes["any_port"], pool.health_check.port) == ("tcp-80-any", True, 8080)
    assert pool.members == (Member("10.1.0.1", 0, "10.1.0.1", 100), Member("10.1.0.2", 0, "10.1.0.2", 100))


def test_the_members_are_those_of_the_model_even_if_other_settings_are_invalid() -> None:
    on = backends(pods=PODS)
    range_of = {ENI: "eni", "listener-port-range": "1000-2000:80"}
    for given in ({}, {ENI: "eni"}, range_of):
        model = built(annotations=given, on=on).model
        pools = {pool.name: pool.members for pool in model.pools}
        expected = {each.key: pools[each.pool] for each in model.listeners}

        assert members(service(annotations={**given, "cps": "-1"}), on) == expected


@pytest.mark.parametrize("text", [f"{'1' * 5000}-2000:80", f"1000-2000:{'0' * 5000}80", "\u0661-2000:80"])
def test_what_is_no_range_of_ports_leaves_the_members_of_the_ports(text: str) -> None:
    found = members(service(annotations={ENI: "eni", "listener-port-range": text}), backends(pods=PODS))

    assert [*found] == [("TCP", 80)]


def test_source_ranges_are_the_clients() -> None:
    ranges = ["203.0.113.0/24", "198.51.100.0/24"]

    model = built(loadBalancerSourceRanges=ranges).model

    assert model.attributes["source_ranges"] == ("198.51.100.0/24", "203.0.113.0/24")
    assert model.tags["cloud-controller/own-security-group"] == "true"


def test_a_reused_load_balancer_keeps_its_own_attributes() -> None:
    found = built(annotations={"id": "nlb-user", "force-override-listeners": "true", "name": "other", "zone-maps": ""})

    assert found.reuse is not None
    assert (found.reuse.id, found.reuse.force, found.reuse.network) == ("nlb-user", True, "vpc-1")
    assert not found.model.attributes
    (listener,), (pool,) = found.model.listeners, found.model.pools
    assert listener.pool == pool.name == "tcp-80-uid-1"
    assert listener.tags == pool.tags == found.model.tags
    assert [each.field.rpartition("-")[2] for each in found.ignored] == ["name"]


def test_named_resources_are_those_of_the_annotations() -> None:
    annotations = {**TLS, "zone-maps": "z:vsw-1::eip-1", "security-group-ids": "sg-1", "additional-cert-ids": "cert-2"}
    annotations |= {"bandwidth-package-id": "cbwp-1", "resource-group-id": "rg-1", "tls-cipher-policy": "tls-1"}

    assert {(each.kind, *each.names) for each in built(port(443), annotations=annotations).named} == {
        *(("subnet", "vsw-1"), ("elastic-ip", "eip-1"), ("security-group", "sg-1")),
        *(("certificate", "cert-1"), ("certificate", "cert-2"), ("tls-policy", "tls-1")),
        *(("bandwidth-package", "cbwp-1"), ("resource-group", "rg-1")),
    }


REFUSED: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"zone-maps": ""}, {}, "zone-maps: missing"),
    ({"zone-maps": "cn-hangzhou-k"}, {}, "is not a zone with its vSwitch"),
    ({"zone-maps": "z:vsw-1:300.0.0.1"}, {}, "'300.0.0.1' in 'z:vsw-1:300.0.0.1' is not an IPv4 address"),
    ({"zone-maps": "z:vsw-1:10.0.0.1:eip-1:more"}, {}, "is not a zone with its vSwitch"),
    ({"zone-maps": "z:vsw-1,z:vsw-2"}, {}, "two vSwitches are in zone z"),
    ({"zone-maps": ",".join(f"z{i}:vsw-{i}" for i in range(11))}, {}, "11 words are too many"),
    ({"zone-maps": "z:vsw-1::eip-1", "address-type": "intranet"}, {}, "eip-1 cannot be used"),
    ({"address-type": "intranet", "bandwidth-package-id": "cbwp-1"}, {}, "no public addresses"),
    ({"security-group-ids": "sg-1"}, {"loadBalancerSourceRanges": ["10.0.0.0/8"]}, "decide which clients"),
    ({"security-group-ids": "web"}, {}, "'web' is not an ID"),
    ({}, {"loadBalancerSourceRanges": [f"10.{i}.0.0/16" for i in range(191)]}, "191 ranges are too many"),
    ({"id": "nlb-1"}, {"loadBalancerSourceRanges": ["10.0.0.0/8"]}, "keeps its own security groups"),
    ({"id": "nlb-1", "security-group-ids": "sg-1"}, {}, "keeps its own security groups"),
    ({"additional-resource-tags": "team"}, {}, "'team' is not key=value"),
    ({"additional-resource-tags": "acs:team=a"}, {}, "reserved tag key"),
    ({"additional-resource-tags": ",".join(f"k{i}=v" for i in range(15))}, {}, "15 tags are too many"),
    ({"protocol-port": "https:80"}, {}, "an NLB does not speak HTTP"),
    ({"protocol-port": "quic:80"}, {}, "is not a protocol and a port"),
    ({"protocol-port": "udp:80"}, {}, "needs a UDP port, but port 80 of the Service is TCP"),
    ({"protocol-port": "tcp:80,tcpssl:80"}, {}, "two protocols for port 80"),
    ({"protocol-port": "tcpssl:80"}, {}, "cert-id: missing"),
    ({"protocol-port": "tcpssl:80", "cert-id": "c", "cacert": "on"}, {}, "cacert-id: missing"),
    ({"listener-port-range": "1000-2000:80"}, {}, "needs pods as backends"),
    ({ENI: "eni", "listener-port-range": "2000-1000:80"}, {}, "is not a range of ports"),
    ({"server-group-type": "Ip"}, {}, "Ip holds pods, but the backends are nodes"),
    ({ENI: "eni", "server-group-type": "Ip", "preserve-client-ip": "on"}, {}, "cannot preserve client addresses"),
    ({"health-check-type": "udp"}, {}, "cannot check TCP backends"),
    ({}, {"ipFamilies": ["IPv6"]}, "IPv6 cannot be the first family"),
    ({}, {"ports": [port(80, "SCTP")]}, "'SCTP' is not supported"),
    ({}, {"ports": [port(80, nodePort=0)]}, "the load balancer sends to node ports"),
]


@pytest.mark.parametrize(("annotations", "spec", "why"), REFUSED)
def test_a_conflict_is_refused_with_its_reason(annotations: dict[str, str], spec: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(why)) as refused:
        built(annotations=annotations, **spec)

    assert refused.value.allowed


def test_ranges_must_not_overlap_other_listeners() -> None:
    with pytest.raises(InvalidConfiguration, match="'1000-2000:80' overlaps the listeners of other ports: 1500"):
        built(port(80), port(1500), annotations={ENI: "eni", "listener-port-range": "1000-2000:80"})


@pytest.mark.parametrize(
    ("annotations", "spec", "field"),
    [
        ({"ipv6-address-type": "internet"}, {}, "ipv6-address-type"),
        ({"force-override-listeners": "true"}, {}, "force-override-listeners"),
        ({"protocol-port": "tcp:81"}, {}, "protocol-port"),
        ({"cert-id": "c"}, {}, "cert-id"),
        ({"ppv2-pvl-vpc-id-enabled": "on"}, {}, "ppv2-pvl-vpc-id-enabled"),
        ({"connection-drain-timeout": "20"}, {}, "connection-drain-timeout"),
        ({"health-check-uri": "/a"}, {}, "health-check-uri"),
        ({"health-check-flag": "off", "health-check-interval": "5"}, {}, "health-check-interval"),
        ({"weight": "5"}, {"externalTrafficPolicy": "Local"}, "weight"),
        ({"vgroup-port": "sgp-1:80"}, {}, "vgroup-port"),
        ({ENI: "eni", "backend-label": "a=b"}, {}, "backend-label"),
        ({"scheduler": "rr"}, {"sessionAffinity": "ClientIP"}, "spec.sessionAffinity"),
        ({}, {"ipFamilies": ["IPv4", "IPv6"]}, "spec.ipFamilies"),
        ({}, {"loadBalancerIP": "10.0.0.1"}, "spec.loadBalancerIP"),
    ],
)
def test_what_has_no_effect_is_reported(annotations: dict[str, str], spec: dict[str, Any], field: str) -> None:
    (found,) = built(annotations=annotations, **spec).ignored

    assert found.field.endswith(field)
    assert found.reason


def test_whether_endpoints_matter_and_connections_drain_depends_on_the_service() -> None:
    assert [follows_endpoints(service()), follows_endpoints(service(annotations={ENI: "eni"}))] == [False, True]
    assert follows_endpoints(service(externalTrafficPolicy="Local"))
    assert not follows_endpoints(service(annotations={ENI: "none"}))
    assert [drains(service()), drains(service(annotations={"connection-drain": "on"}))] == [False, True]
    assert not drains(service(annotations={"connection-drain": "yes"}))
    assert ZONES
