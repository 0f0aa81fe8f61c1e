"""What a Service's security group admits to nodes; nothing here needs a service of OpenStack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.clouds.openstack.octavia.node_rules import body_of, observed_access, text_of
from cloud_controller.clouds.openstack.octavia.options import Networks
from cloud_controller.clouds.openstack.octavia.topology import Subnet
from tests.cloud_controller.clouds.openstack.octavia.services import named
from tests.cloud_controller.clouds.openstack.octavia.test_build import GOLD, TOPOLOGY, attribute, built
from tests.cloud_controller.load_balancing import endpoint, endpoint_slice, port, service


def test_node_ports_are_open_to_the_members_subnet_where_the_load_balancer_comes_from() -> None:
    given = service({}, port(80), port(53, "UDP"), port(7000, "SCTP"))

    assert attribute(given, "node_rules", manage_security_groups=True) == (
        "sctp 30000 10.1.0.0/16",
        "tcp 30080 10.1.0.0/16",
        "udp 30053 10.1.0.0/16",
    )
    assert attribute(given, "open_nodes", manage_security_groups=True) == ("10.1.0.1", "10.1.0.2")


def test_the_subnet_that_a_service_names_for_members_is_where_the_load_balancer_comes_from() -> None:
    found = attribute(service(named(member_subnet_id=GOLD)), "node_rules", manage_security_groups=True)

    assert found == ("tcp 30080 203.0.113.0/24",)


def test_a_node_without_a_subnet_keeps_no_other_node_closed() -> None:
    only_node1 = replace(TOPOLOGY, subnets=(Subnet("s", "s", "n", "10.1.0.0/31"),))

    found = built(service(), only_node1, manage_security_groups=True, networks=Networks(subnet_id=GOLD)).model

    assert found.attributes["node_rules"] == ("tcp 30080 10.1.0.0/31",)
    assert found.attributes["open_nodes"] == ("10.1.0.1",)


def test_kube_proxys_port_is_open_for_health_checks_of_local_traffic() -> None:
    given = service(
        named(enable_health_monitor=True), port(80), externalTrafficPolicy="Local", healthCheckNodePort=32_000
    )
    slices = (endpoint_slice(endpoint("10.244.0.1", "node1")),)

    found = built(given, slices=slices, manage_security_groups=True).model.attributes

    assert found["node_rules"] == ("tcp 30080 10.1.0.0/16", "tcp 32000 10.1.0.0/16")
    assert found["open_nodes"] == ("10.1.0.1",)


def test_without_the_option_nodes_are_left_alone() -> None:
    assert attribute(service(), "node_group") is False
    assert attribute(service(), "node_rules") is None


def test_a_service_on_an_existing_load_balancer_is_told_that_it_gets_no_group() -> None:
    given = service(named(id="10000000-0000-4000-8000-000000000000"))

    found = built(given, manage_security_groups=True, networks=Networks())

    assert [each.reason for each in found.ignored] == [
        "only load balancers of one Service have a security group for nodes"
    ]
    assert found.model.attributes == {}


def test_a_written_rule_reads_as_it_was_wanted() -> None:
    assert text_of(body_of("udp 30053 10.1.0.0/16", "g")) == "udp 30053 10.1.0.0/16"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"direction": "egress"}, "egress IPv4 tcp 30080-30080 10.1.0.0/16"),
        ({"port_range_max": 30090}, "ingress IPv4 tcp 30080-30090 10.1.0.0/16"),
        ({"remote_ip_prefix": None, "remote_group_id": "g2"}, "ingress IPv4 tcp 30080-30080 g2"),
    ],
)
def test_a_rule_that_the_controller_does_not_write_is_recognised(change: dict[str, object], text: str) -> None:
    assert text_of(body_of("tcp 30080 10.1.0.0/16", "g") | change) == text


def test_a_port_that_is_no_members_any_more_shows_so_that_the_group_is_taken_off() -> None:
    two = [
        {"fixed_ips": [{"ip_address": "10.1.0.1"}, {"ip_address": "fd00::1"}]},
        {"fixed_ips": [{"ip_address": "10.1.0.9"}]},
    ]

    found = observed_access(None, two, {"10.1.0.1", "10.1.0.2"}, {"10.1.0.2", "10.1.0.3"})

    assert found["open_nodes"] == ("10.1.0.1", "10.1.0.2", "10.1.0.9")
