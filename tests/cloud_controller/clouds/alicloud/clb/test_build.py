"""What a Service becomes as a classic load balancer."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.backends import UNSCHEDULABLE
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.model import Ingress, Reuse
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES
from tests.cloud_controller.clouds.alicloud.clb.services import NODES, built, effect, listener
from tests.cloud_controller.load_balancing import endpoint, endpoint_slice, port

HTTPS = {"protocol-port": "https:443,http:80", "cert-id": "cert-1"}
ENI = {BACKEND_TYPE: "eni"}
REUSED = {"id": "lb-user"}


def members(given: dict[str, str] | None = None, backends: Backends = NODES, **spec: object) -> tuple[Member, ...]:
    return built(given, backends=backends, **spec).model.pools[0].members


def test_a_port_becomes_a_listener_and_a_group_of_the_nodes_with_their_owners_tags() -> None:
    found = built().model

    [one], [pool] = found.listeners, found.pools
    assert (one.key, one.pool, pool.name) == (("TCP", 80), "tcp-80", "tcp-80")
    assert pool.members == tuple(Member(f"i-{each}", 30080, f"i-{each}", 100) for each in (1, 2, 3))
    assert one.tags == pool.tags == found.tags
    assert found.tags["kubernetes.io/service-uid"] == "uid-web"


def test_the_default_name_fits_and_is_the_services_alone() -> None:
    names = {built(namespace=each * 63, name="web" * 21).model.name for each in "ab"}

    assert len(names) == 2
    assert all(len(name) <= 80 and name.startswith("k8s-") for name in names)


def test_tcp_and_udp_may_share_a_port_number() -> None:
    found = built({}, port(53), port(53, "UDP")).model

    assert [each.key for each in found.listeners] == [("TCP", 53), ("UDP", 53)]
    assert [each.name for each in found.pools] == ["tcp-53", "udp-53"]


def test_protocol_port_makes_http_and_https_listeners() -> None:
    found = built(HTTPS)

    assert [effect(found, "listener.protocol", number) for number in (80, 443)] == ["http", "https"]
    assert effect(found, "listener.health_check", 443) == "off"
    assert effect(found, "listener.server_certificate_id", 443) == "cert-1"


def test_a_redirecting_port_has_no_group_and_comes_after_its_https_port() -> None:
    found = built({**HTTPS, "forward-port": "80:443"}).model

    assert [each.port for each in found.listeners] == [443, 80]
    assert found.listeners[1].attributes == {
        "protocol": "http",
        "status": "running",
        "acl_status": "off",
        "forward_port": 443,
    }
    assert [pool.name for pool in found.pools] == ["tcp-443"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"protocol-port": "https:443", "cert-id": ""}, "cert-id"),
        ({"protocol-port": "https:443"}, "needs a certificate"),
        ({"protocol-port": "https"}, "not a protocol and a port"),
        ({"protocol-port": "ftp:80"}, "not a protocol and a port"),
        ({"protocol-port": "http:81"}, "not a port of the Service .allowed: one of 80/TCP"),
        ({"protocol-port": "udp:80"}, "not a port of the Service"),
        ({"protocol-port": "http:80,tcp:80"}, "port 80 appears twice"),
        ({"forward-port": "80:443"}, "port 80 is not an HTTP port of the Service"),
        ({"protocol-port": "http:80", "forward-port": "80:443"}, "port 443 is not an HTTPS port"),
        ({"protocol-port": "http:80", "forward-port": "80"}, "not two ports"),
        ({**HTTPS, "forward-port": "80:443,80:443"}, "port 80 appears twice"),
        ({**HTTPS, "domain-extensions": "a.example.com"}, "not a domain and a certificate"),
        ({**HTTPS, "domain-extensions": "a.example.com:c1,a.example.com:c2"}, "a.example.com appears twice"),
        ({**HTTPS, "scheduler": "sch"}, "sch is not offered for HTTP and HTTPS"),
        ({**HTTPS, "sticky-session": "on", "sticky-session-type": "server"}, "server needs annotation cookie"),
        ({"spec": "slb.s2.small"}, "PayByCLCU, the default, has no specification .allowed: none; or annotation"),
        ({"charge-type": "paybybandwidth"}, "paid by traffic only .allowed: paybytraffic; or annotation"),
        ({"acl-status": "on"}, "on needs annotation acl-id"),
        ({"acl-id": "acl-1"}, "every client could connect past acl-1"),
        ({"backend-ip-version": "ipv6"}, "which has an IPv4 address"),
        ({**ENI, "backend-ip-version": "ipv6"}, "needs a load balancer with an IPv6 address"),
        ({"additional-resource-tags": "=x"}, "a tag has no key"),
        ({"additional-resource-tags": "acs:x=1"}, "reserved tag key"),
        ({"additional-resource-tags": ",".join(f"k{each}=1" for each in range(14))}, "14 tags are too many"),
        ({SOURCE_RANGES: "10.0.0.0/8"}, "access control lists, which the controller does not make .allowed: none; or"),
    ],
)
def test_a_wrong_or_contradictory_setting_is_refused_with_a_way_out(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidConfiguration, match=message):
        built(given)


def test_source_ranges_of_the_spec_are_refused_unless_they_admit_everyone() -> None:
    built(loadBalancerSourceRanges=["0.0.0.0/0"])
    with pytest.raises(InvalidConfiguration, match=r"spec.loadBalancerSourceRanges: .* acl-id"):
        built(loadBalancerSourceRanges=["192.0.2.0/24"])


def test_a_protocol_that_clb_lacks_and_a_port_without_node_port_are_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"spec.ports\[0\].protocol: 'SCTP'"):
        built({}, port(80, "SCTP"))
    with pytest.raises(InvalidConfiguration, match=r"spec.ports\[0\].nodePort: missing.*backend-type: eni"):
        built({}, port(80, nodePort=None))


STICKY = {"protocol-port": "http:80", "sticky-session": "on"}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"bandwidth": "7"}, ["bandwidth"]),
        ({"vswitch-id": "vsw-h", "ip": "192.168.0.1"}, ["vswitch-id", "ip"]),
        ({"external-ip-type": "eip"}, ["external-ip-type"]),
        ({"force-override-listeners": "true"}, ["force-override-listeners"]),
        ({"cert-id": "c", "http2-enabled": "off"}, ["cert-id", "http2-enabled"]),
        ({"idle-timeout": "30"}, ["idle-timeout"]),
        ({"protocol-port": "http:80", "persistence-timeout": "9"}, ["persistence-timeout"]),
        ({**REUSED, "name": "edge", "address-type": "intranet"}, ["address-type", "name"]),
        ({"vgroup-port": "rsp-1:80", "weight": "60"}, ["vgroup-port", "weight"]),
        ({"ignore-weight-update": "on"}, ["ignore-weight-update"]),
        ({"network-type": "vpc", "tunnel-type": "x"}, ["network-type", "tunnel-type"]),
        ({"health-check-flag": "off", "health-check-interval": "9"}, ["health-check-interval"]),
        ({"acl-type": "black"}, ["acl-type"]),
        ({"connection-drain-timeout": "30"}, ["connection-drain-timeout"]),
        ({**STICKY, "sticky-session-type": "insert", "cookie": "c"}, ["cookie"]),
        ({**STICKY, "sticky-session-type": "server", "cookie": "c", "cookie-timeout": "9"}, ["cookie-timeout"]),
        ({"address-type": "intranet", "charge-type": "paybytraffic"}, ["charge-type"]),
        (
            {BACKEND_TYPE: "eni", "remove-unscheduled-backend": "on", "backend-label": "pool=a"},
            ["remove-unscheduled-backend", "backend-label"],
        ),
    ],
)
def test_a_setting_without_effect_is_reported(given: dict[str, str], fields: list[str]) -> None:
    found = built(given)

    assert [each.field.rpartition("loadbalancer-")[2] for each in found.ignored] == fields
    assert all(each.reason for each in found.ignored)


def test_an_internal_load_balancer_is_in_the_vswitch_of_the_config_unless_one_is_named() -> None:
    by_config = built({"address-type": "intranet"})
    by_name = built({"address-type": "intranet", "vswitch-id": "vsw-h"})

    assert (effect(by_config, "vswitch_id"), effect(by_name, "vswitch_id")) == ("vsw-k", "vsw-h")
    assert [each.names for each in by_name.named] == [("vsw-h",)]
    assert effect(built({"vswitch-id": "vsw-h"}), "vswitch_id") is None


def test_access_control_lists_and_resource_groups_are_among_what_annotations_name() -> None:
    found = built({"acl-id": "acl-1,acl-2", "acl-status": "on", "resource-group-id": "rg-1"}).named

    assert {(each.kind, *each.names) for each in found} == {
        *(("access-control-list", "acl-1"), ("access-control-list", "acl-2"), ("resource-group", "rg-1")),
    }


@pytest.mark.parametrize(
    ("given", "charges"),
    [
        ({}, ("PayByCLCU", None, "paybytraffic", None)),
        ({"instance-charge-type": "PayBySpec"}, ("PayBySpec", "slb.s1.small", "paybytraffic", None)),
        (
            {"instance-charge-type": "PayBySpec", "charge-type": "paybybandwidth"},
            ("PayBySpec", "slb.s1.small", "paybybandwidth", 50),
        ),
        ({"address-type": "intranet"}, ("PayByCLCU", None, None, None)),
    ],
)
def test_charges(given: dict[str, str], charges: tuple[object, ...]) -> None:
    names = ("instance_charge_type", "load_balancer_spec", "internet_charge_type", "bandwidth")

    assert tuple(effect(built(given), name) for name in names) == charges


def test_tags_of_the_user_are_beside_the_owners() -> None:
    tags = built({"additional-resource-tags": "team=web, stage=test,bare"}).model.tags

    assert {key: tags[key] for key in ("team", "stage", "bare")} == {"team": "web", "stage": "test", "bare": ""}


def test_a_reused_load_balancer_gets_parts_with_names_of_their_own_and_nothing_else() -> None:
    found = built({**REUSED, "force-override-listeners": "true"})

    assert found.reuse == Reuse("lb-user", force=True, network="vpc-1")
    assert found.model.attributes == {}
    assert found.model.listeners[0].pool == found.model.pools[0].name == "tcp-80-uid-web"
    assert found.model.pools[0].tags["kubernetes.io/service-uid"] == "uid-web"


def test_a_redirect_may_lead_to_another_services_port_of_a_reused_load_balancer() -> None:
    found = built({**REUSED, "protocol-port": "http:80", "forward-port": "80:443"})

    assert listener(found).attributes["forward_port"] == 443


def test_a_host_name_is_published_instead_of_the_address() -> None:
    assert built({"hostname": "web.example.com"}).published == (Ingress(hostname="web.example.com"),)
    assert built().published == ()


def test_udp_is_checked_as_the_api_does_by_default() -> None:
    udp = built({}, port(53, "UDP"))
    slow = built({"health-check-interval": "7", "health-check-connect-timeout": "9"}, port(53, "UDP"))

    names = ("listener.health_check_interval", "listener.health_check_timeout")
    assert [effect(udp, name, 53) for name in names] == [5, 10]
    assert [effect(slow, name, 53) for name in names] == [7, 9]


def test_session_affinity_spreads_by_source_address() -> None:
    assert effect(built(sessionAffinity="ClientIP"), "listener.scheduler") == "sch"
    assert effect(built({"scheduler": "rr"}, sessionAffinity="ClientIP"), "listener.scheduler") == "rr"
    http = built({"protocol-port": "http:80"}, sessionAffinity="ClientIP")
    assert [each.field for each in http.ignored] == ["spec.sessionAffinity"]


# -------------------------------------------------------------------------------------------------------- backends

SLICES = (
    endpoint_slice(
        endpoint("192.168.1.1", "n1"), endpoint("192.168.1.2", "n1"), endpoint("192.168.1.3", "n3"), name="web-1"
    ),
)
WITH_PODS = Backends(NODES.nodes, SLICES)


def test_traffic_policy_local_weighs_nodes_by_their_pods() -> None:
    found = members({"default-weight": "7"}, WITH_PODS, externalTrafficPolicy="Local")

    assert [(each.address, each.weight) for each in found] == [("i-1", 2), ("i-3", 1)]


def test_pods_are_backends_by_their_own_address() -> None:
    found = members({**ENI, "default-weight": "7"}, WITH_PODS)

    assert [(each.address, each.port, each.weight) for each in found] == [
        (f"192.168.1.{each}", 8000, 7) for each in (1, 2, 3)
    ]


def test_pods_as_backends_need_no_node_port() -> None:
    assert built(ENI, port(80, nodePort=None), backends=WITH_PODS).model.pools[0].members


@pytest.mark.parametrize(("label", "nodes"), [("pool=a", ["i-1", "i-2"]), ("pool=b", ["i-3"]), ("pool=a,x=y", [])])
def test_backend_label_chooses_nodes(label: str, nodes: list[str]) -> None:
    assert [each.address for each in members({"backend-label": label})] == nodes


def test_cordoned_nodes_stay_unless_the_service_removes_them() -> None:
    cordoned = NodeBackend("n4", "i-4", "i-4", labels={UNSCHEDULABLE: "true"})
    nodes = Backends((*NODES.nodes, cordoned))

    assert "i-4" in {each.address for each in members({}, nodes)}
    assert "i-4" not in {each.address for each in members({"remove-unscheduled-backend": "on"}, nodes)}


def test_a_weight_for_all_nodes_is_reported_if_nodes_are_weighed_by_their_pods() -> None:
    found = built({"default-weight": "30"}, externalTrafficPolicy="Local")

    assert [each.value for each in found.ignored] == [30]
