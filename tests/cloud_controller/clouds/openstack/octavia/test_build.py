"""What a Service becomes in Octavia; nothing here needs a service of OpenStack."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller import patterns
from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.openstack.assumed import assumed
from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from cloud_controller.clouds.openstack.octavia.build import OctaviaBuilder
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Built, Ingress, Pool
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.refusals import refuse
from tests.cloud_controller.clouds.openstack.octavia.services import named
from tests.cloud_controller.load_balancing import endpoint, endpoint_slice, port, service

NODES_SUBNET, OTHER_SUBNET = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2))
PUBLIC, DMZ, GOLD, SILVER = (f"{number}0000000-0000-4000-8000-000000000000" for number in (3, 4, 5, 6))
TOPOLOGY = Topology(
    (
        Subnet(NODES_SUBNET, "nodes", "net", "10.1.0.0/16"),
        Subnet(GOLD, "public-a", PUBLIC, "203.0.113.0/24", frozenset({"gold", "v4"})),
        Subnet(SILVER, "public-b", PUBLIC, "198.51.100.0/24", frozenset({"silver", "v4"})),
    ),
    {PUBLIC: "public"},
)
OF_SILVER = {"floating_subnet_id": SILVER}
TWO_NODES = (
    NodeBackend("node1", "node1", "10.1.0.1", labels={"env": "prod"}),
    NodeBackend("node2", "node2", "10.1.0.2", labels={"env": "dev"}),
)


def built(given: Object, topology: Topology = TOPOLOGY, slices: tuple[Object, ...] = (), **options: Any) -> Built:
    builder = OctaviaBuilder("c-1", LoadBalancerOptions(**options))
    return builder.build(given, Backends(TWO_NODES, slices), Fact(topology))


def pool(given: Object, **more: Any) -> Pool:
    (found,) = built(given, **more).model.pools
    return found


def attribute(given: Object, name: str, **more: Any) -> Value | None:
    return built(given, **more).model.attributes.get(name)


def refused(given: Object, **more: Any) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        built(given, **more)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- listeners and pools


def test_each_port_is_a_listener_that_forwards_to_a_pool_of_node_ports() -> None:
    model = built(service({}, port(80), port(53, "UDP"))).model

    assert [(each.key, each.pool) for each in model.listeners] == [(("TCP", 80), "tcp-80"), (("UDP", 53), "udp-53")]
    assert [[(m.address, m.port) for m in each.members] for each in model.pools] == [
        [("10.1.0.1", 30080), ("10.1.0.2", 30080)],
        [("10.1.0.1", 30053), ("10.1.0.2", 30053)],
    ]


def test_every_part_carries_its_owner_so_that_parts_of_others_are_recognised() -> None:
    model = built(service({}, port(80))).model

    assert model.tags == model.listeners[0].tags == model.pools[0].tags
    assert model.tags["kubernetes.io/service-uid"] == "uid-web"


@pytest.mark.parametrize(
    ("annotations", "protocol", "name"),
    [
        (named(x_forwarded_for=True), "HTTP", "tcp-80-http"),
        (named(proxy_protocol="true"), "PROXY", "tcp-80-proxy"),
        (named(proxy_protocol="v2"), "PROXYV2", "tcp-80-proxyv2"),
        (named(member_subnet_id=OTHER_SUBNET), "TCP", "tcp-80-20000000"),
    ],
)
def test_what_a_pool_cannot_change_is_part_of_its_name(annotations: dict[str, str], protocol: str, name: str) -> None:
    found = pool(service(annotations))

    assert (found.attributes["protocol"], found.name) == (protocol, name)


def test_source_ranges_are_those_of_the_listeners() -> None:
    (listener,) = built(service({}, loadBalancerSourceRanges=["192.0.2.0/24", "10.0.0.1/8"])).model.listeners

    assert listener.attributes["allowed_cidrs"] == ("10.0.0.0/8", "192.0.2.0/24")


def test_ranges_that_admit_everybody_are_none_as_listeners_show_them() -> None:
    everybody = ["0.0.0.0/0", "10.0.0.0/8"]

    assert built(service({}, loadBalancerSourceRanges=everybody)).model == built(service({})).model


def test_session_affinity_is_persistence_by_source_address() -> None:
    assert pool(service({}, sessionAffinity="ClientIP")).attributes["session_persistence"] == "SOURCE_IP"
    assert pool(service({})).attributes["session_persistence"] == ""


def test_local_traffic_goes_to_nodes_with_pods_alone_weighted_by_their_number() -> None:
    slices = (endpoint_slice(endpoint("10.2.0.1", "node2"), endpoint("10.2.0.2", "node2")),)

    found = pool(service({}, externalTrafficPolicy="Local"), slices=slices)

    assert [(m.instance_id, m.weight) for m in found.members] == [("node2", 2)]


@pytest.mark.parametrize(("words", "chosen"), [("env=prod", ["node1"]), ("env", ["node1", "node2"]), ("zone", [])])
def test_the_node_selector_chooses_members_by_label(words: str, chosen: list[str]) -> None:
    found = pool(service(named(node_selector=(words,))))

    assert [each.instance_id for each in found.members] == chosen


def test_the_hostname_is_what_the_status_shows() -> None:
    assert built(service(named(hostname="web.example.com"))).published == (Ingress(hostname="web.example.com"),)


# ---------------------------------------------------------------------------------------------------- health monitors


def test_members_are_not_checked_unless_annotation_or_cloud_config_asks() -> None:
    assert pool(service({})).health_check.protocol == "NONE"
    assert pool(service({}), create_monitor=True).health_check.protocol == "TCP"
    assert pool(service(named(enable_health_monitor=False)), create_monitor=True).health_check.protocol == "NONE"


@pytest.mark.parametrize(("protocol", "check"), [("TCP", "TCP"), ("UDP", "UDP-CONNECT"), ("SCTP", "SCTP")])
def test_the_check_speaks_the_ports_protocol(protocol: str, check: str) -> None:
    given = service(named(enable_health_monitor=True), port(80, protocol))

    assert pool(given).health_check.protocol == check


def test_with_local_traffic_kube_proxy_is_asked() -> None:
    given = service(named(enable_health_monitor=True), externalTrafficPolicy="Local", healthCheckNodePort=32000)

    check = pool(given).health_check

    assert (check.protocol, check.path, check.port) == ("HTTP", "/healthz", 32000)


def test_a_timeout_above_the_delay_of_the_cloud_config_is_refused() -> None:
    given = service(named(enable_health_monitor=True, health_monitor_timeout=5))

    assert "5 s is longer than the delay (4 s)" in refused(given, monitor_delay=4)


# ------------------------------------------------------------------------------------------------------------ networks


def test_the_only_external_network_gives_the_floating_ip() -> None:
    assert attribute(service({}), "floating_network") == PUBLIC


def test_of_several_external_networks_one_must_be_named() -> None:
    several = Topology(TOPOLOGY.subnets, {PUBLIC: "public", DMZ: "dmz"})

    assert "there are several external networks (allowed: " in refused(service({}), topology=several)
    assert attribute(service(named(floating_network_id=DMZ)), "floating_network", topology=several) == DMZ


@pytest.mark.parametrize(
    ("annotations", "choice"),
    [
        (named(floating_subnet_id=SILVER), f"id:{SILVER}"),
        (named(floating_subnet_name="public-*"), "name:public-*"),
        (named(floating_subnet_name="~-b$"), "name:~-b$"),
        (named(floating_subnet_tags="gold,v4"), "tags:gold,v4"),
    ],
)
def test_the_floating_subnet_is_chosen_by_id_name_or_tags(annotations: dict[str, str], choice: str) -> None:
    assert attribute(service(annotations), "floating_subnet") == choice


@pytest.mark.parametrize(
    "annotations",
    [
        named(floating_subnet_id=NODES_SUBNET),
        named(floating_subnet_name="!*"),
        named(floating_subnet_tags="gold,silver"),
        named(floating_subnet_name="~("),
        named(floating_subnet_name="[b-a]"),
    ],
)
def test_a_floating_subnet_that_the_network_does_not_have_is_refused(annotations: dict[str, str]) -> None:
    assert next(iter(annotations)) in refused(service(annotations))


@pytest.fixture
def _never_given_to_re(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where `re`, which backtracks and holds the interpreter, gets the pattern of a Service's author."""
    compiled = vars(re)["_compile"]

    def watched(pattern: Any, flags: int) -> Any:
        assert "(.*)" not in str(pattern) and "ofauthor" not in str(pattern)
        return compiled(pattern, flags)

    monkeypatch.setattr(re, "_compile", watched)


@pytest.mark.usefixtures("_never_given_to_re")
@pytest.mark.parametrize("pattern", ["~" + "(.*)" * 30 + "Z", "~(a*)*ofauthor", "*a" * 60 + "ofauthor"])
def test_no_thread_waits_for_the_pattern_of_a_services_author(pattern: str) -> None:
    asks = service(named(floating_subnet_name=pattern))
    longest = replace(TOPOLOGY.subnets[1], name="a" * 255)
    offline = assumed("c-1", asks)

    assert "has name:" in refused(asks, topology=replace(TOPOLOGY, subnets=(longest,)))
    assert offline.builder.build(asks, Backends(TWO_NODES), offline.facts).model.attributes["floating_subnet"]
    assert len(pattern) <= patterns.LONGEST


def test_a_network_of_an_annotation_overrides_the_subnet_of_the_cloud_config() -> None:
    networks = Networks(floating_network_id=PUBLIC, floating_subnet_id=GOLD)

    found = built(service(named(floating_network_id=DMZ)), networks=networks).model.attributes

    assert (found["floating_network"], found["floating_subnet"]) == (DMZ, "")


def test_a_class_says_where_the_load_balancer_and_its_members_are() -> None:
    inner = Networks(network_id="net", subnet_id=OTHER_SUBNET, member_subnet_id=NODES_SUBNET)

    built_ = built(service(named(lb_class="inner")), classes={"inner": inner}).model

    assert (built_.attributes["vip_subnet"], built_.attributes["vip_network"]) == (OTHER_SUBNET, "net")
    assert built_.pools[0].attributes["member_subnet"] == NODES_SUBNET


def test_a_class_that_the_cloud_config_lacks_is_refused_with_those_it_has() -> None:
    assert "no class 'x' (allowed: dmz)" in refused(service(named(lb_class="x")), classes={"dmz": Networks()})


def test_what_nobody_asks_for_is_left_to_the_creation() -> None:
    assert not {"vip_subnet", "vip_network", "vip_port", "vip_address"} & built(service({})).model.attributes.keys()


@pytest.mark.parametrize(("internal", "name"), [(True, "vip_address"), (False, "load_balancer_ip")])
def test_the_load_balancer_ip_is_the_own_address_of_internal_ones(internal: bool, name: str) -> None:
    given = service(named(internal=internal), loadBalancerIP="192.0.2.9")

    assert attribute(given, name) == "192.0.2.9"


def test_no_service_is_public_where_the_cloud_config_says_internal() -> None:
    found = built(service(named(internal=False)), internal=True)

    assert found.model.attributes["internal"] is True
    assert [each.reason for each in found.ignored] == [
        "the cloud config says internal-lb, so every load balancer is internal"
    ]


# --------------------------------------------------------------------------------------------------------------- named


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        (named(network_id=DMZ, subnet_id=SILVER), [("network", (DMZ,)), ("subnet", (SILVER,))]),
        (named(port_id=DMZ, member_subnet_id=GOLD), [("port", (DMZ,)), ("subnet", (GOLD,))]),
        (
            named(floating_network_id=PUBLIC, floating_subnet_id=GOLD),
            [("network", (PUBLIC,)), ("subnet", (GOLD,))],
        ),
        (
            named(floating_subnet_name="public-*"),
            [("subnet", (GOLD, "public-a")), ("subnet", (SILVER, "public-b"))],
        ),
        (named(floating_subnet_tags="silver"), [("subnet", (SILVER, "public-b"))]),
        (named(internal=True, floating_network_id=DMZ), []),
        (named(id=DMZ, member_subnet_id=GOLD), [("subnet", (GOLD,))]),
    ],
)
def test_networks_subnets_and_ports_that_annotations_name_are_found(
    annotations: dict[str, str], found: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(each.kind, each.names) for each in built(service(annotations)).named] == found


def test_a_subnet_is_allowed_by_its_tags_too() -> None:
    by_id, by_tags = (built(service(named(**each))).named for each in (OF_SILVER, {"floating_subnet_tags": "v4"}))

    Nameable.parse(["subnet=tag:silver"]).require(by_id)
    with pytest.raises(InvalidConfiguration, match=f"{GOLD}' is not allowed"):
        Nameable.parse(["subnet=tag:silver"]).require(by_tags)


@pytest.mark.parametrize(("internal", "found"), [(False, [("floating-ip", "spec.loadBalancerIP")]), (True, [])])
def test_the_load_balancer_ip_of_a_public_one_names_a_floating_ip(internal: bool, found: list[tuple[str, str]]) -> None:
    given = service(named(internal=internal), loadBalancerIP="192.0.2.9")

    assert [(each.kind, each.field) for each in built(given).named] == found


@pytest.mark.parametrize("argument", ["floating_network_id", "floating_subnet_id", "floating_subnet_name"])
def test_where_the_cloud_config_says_internal_nothing_of_floating_ips_is_named(argument: str) -> None:
    given = service(named(**{argument: GOLD}), loadBalancerIP="192.0.2.9")

    assert not built(given, internal=True).named
    # Only the controller knows what the cloud config says.
    listed = Nameable.parse(["floating-ip=203.0.113.*", "network=none", "subnet=none"])
    refuse(CATALOGUE.parse(given["metadata"]["annotations"]), given["spec"], [*listed.refusals(CATALOGUE.namings)])


# ------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (service(named(default_tls_container_ref="http://keys/1")), "TERMINATED_HTTPS"),
        (
            service(named(proxy_protocol="true"), port(80), port(53, "UDP")),
            "only TCP ports can have the PROXY protocol",
        ),
        (service(named(proxy_protocol="true", x_forwarded_for=True)), "it excludes"),
        (service(named(id=DMZ, flavor_id=GOLD)), "uses an existing load balancer"),
        (service({}, loadBalancerIP="192.0.2.9", ipFamilyPolicy="RequireDualStack"), "IPv6"),
        (service({"loadbalancer.openstack.org/lb-method": "SOURCE_IP_PORT"}), "OVN"),
        (service({"loadbalancer.openstack.org/lb-method": "FASTEST"}), "ROUND_ROBIN"),
        (service({"loadbalancer.openstack.org/timeout-client-data": "x"}), "timeout-client-data"),
        (service({"loadbalancer.openstack.org/floating-tag": "gold"}), "did you mean"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: Object, words: str) -> None:
    assert words in refused(given)


def test_the_output_of_the_go_controller_is_ignored_and_said() -> None:
    (ignored,) = built(service({"loadbalancer.openstack.org/load-balancer-address": "203.0.113.9"})).ignored

    assert "status.loadBalancer.ingress" in ignored.reason


def test_a_load_balancer_that_is_named_gets_parts_of_the_service_and_no_settings() -> None:
    found = built(service(named(id=DMZ)))

    assert found.reuse is not None
    assert found.reuse.id == DMZ
    assert found.model.attributes == {}
    assert [each.name for each in found.model.pools] == ["tcp-80-uid-web"]


@pytest.mark.parametrize(
    ("annotations", "options", "required"),
    [
        ({}, {}, {}),
        ({}, {"internal": True}, {}),
        (named(internal=True), {}, {"internal": True, "floating_network": ""}),
        (named(internal=False), {}, {"internal": False}),
        (named(internal=False), {"internal": True}, {"internal": True, "floating_network": ""}),
    ],
)
def test_a_load_balancer_that_is_named_must_be_as_internal_as_the_service_says(
    annotations: dict[str, str], options: dict[str, Any], required: dict[str, Value]
) -> None:
    reuse = built(service(annotations | named(id=DMZ)), **options).reuse

    assert reuse is not None
    assert {each.attribute: each.value for each in reuse.required} == required
