"""Rules of security groups: fewer than there are ports and ranges, and exactly the same traffic."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cloud_controller.clouds.aws.ip_permissions import ip_permissions, rule_texts
from cloud_controller.clouds.aws.security_rules import Rule, client_rules, merged


def rules(*texts: str) -> list[Rule]:
    found = []
    for text in texts:
        protocol, ports, source = text.split()
        low, _, high = ports.partition("-")
        found.append(Rule(protocol, int(low), int(high or low), ip_network(source)))
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["tcp 80 10.0.0.0/8", "tcp 81 10.0.0.0/8"], ["tcp 80-81 10.0.0.0/8"]),
        (["tcp 80 10.0.0.0/8", "tcp 82 10.0.0.0/8"], ["tcp 80-80 10.0.0.0/8", "tcp 82-82 10.0.0.0/8"]),
        (["tcp 80 10.0.0.0/9", "tcp 80 10.128.0.0/9"], ["tcp 80-80 10.0.0.0/8"]),
        (["tcp 80 10.0.0.0/8", "tcp 80 10.1.0.0/16"], ["tcp 80-80 10.0.0.0/8"]),
        (["tcp 80-90 10.1.0.0/16", "tcp 85 10.0.0.0/8"], ["tcp 80-90 10.1.0.0/16", "tcp 85-85 10.0.0.0/8"]),
        (["tcp 80 10.0.0.0/8", "udp 80 10.0.0.0/8"], ["tcp 80-80 10.0.0.0/8", "udp 80-80 10.0.0.0/8"]),
        (["tcp 80 0.0.0.0/0", "tcp 80 ::/0"], ["tcp 80-80 0.0.0.0/0", "tcp 80-80 ::/0"]),
        (["icmp 3-4 10.0.0.0/9", "icmp 3-4 10.128.0.0/9"], ["icmp 3-4 10.0.0.0/8"]),
        (
            ["tcp 80-90 10.0.0.0/17", "tcp 85-95 10.0.128.0/17"],
            ["tcp 80-90 10.0.0.0/17", "tcp 85-95 10.0.128.0/17"],
        ),
    ],
)
def test_neighbours_are_merged_and_nothing_else(before: list[str], after: list[str]) -> None:
    assert sorted(map(str, merged(rules(*before)))) == after


# Few ports and a small network, so that rules meet, and the traffic of all can be told.
PORTS = range(1, 13)
SMALL = ip_network("10.0.0.0/28")
SOURCES = [*SMALL.subnets(new_prefix=32), *SMALL.subnets(new_prefix=30), *SMALL.subnets(new_prefix=29), SMALL]


@some.composite
def any_rules(draw: Any) -> list[Rule]:
    found = []
    for _ in range(draw(some.integers(0, 12))):
        low = draw(some.sampled_from(PORTS))
        high = draw(some.integers(low, PORTS[-1]))
        found.append(Rule(draw(some.sampled_from(["tcp", "udp"])), low, high, draw(some.sampled_from(SOURCES))))
    return found


def traffic(found: list[Rule]) -> set[tuple[str, int, str]]:
    return {
        (rule.protocol, number, str(address))
        for rule in found
        for number in range(rule.low, rule.high + 1)
        for address in rule.source
    }


@given(any_rules())
def test_merged_rules_allow_exactly_the_same_traffic_and_are_never_more(before: list[Rule]) -> None:
    after = merged(before)

    assert traffic(after) == traffic(before)
    assert len(after) <= len(set(before))


@given(any_rules())
def test_what_is_merged_once_stays_as_it_is(before: list[Rule]) -> None:
    once = merged(before)

    assert len(merged(once)) == len(once)


def test_a_hundred_neighbouring_ports_for_sixty_neighbouring_networks_are_few_rules() -> None:
    sources = [ip_network(f"10.0.{number}.0/24") for number in range(64)]

    found = client_rules([("TCP", 8000 + number) for number in range(100)], sources)

    assert found == ("icmp 3-4 10.0.0.0/18", "tcp 8000-8099 10.0.0.0/18")


def test_a_listener_of_both_transports_lets_both_in_and_both_families_tell_of_packets_that_are_too_big() -> None:
    found = client_rules([("TCP_UDP", 53)], [IPv4Network("0.0.0.0/0"), IPv6Network("::/0")])

    assert found == (
        "icmp 3-4 0.0.0.0/0",
        "icmpv6 2-0 ::/0",
        "tcp 53-53 0.0.0.0/0",
        "tcp 53-53 ::/0",
        "udp 53-53 0.0.0.0/0",
        "udp 53-53 ::/0",
    )


def test_the_texts_are_those_that_the_api_is_read_back_as() -> None:
    found = client_rules([("TCP", 80), ("UDP", 53)], [IPv4Network("192.0.2.0/24"), IPv6Network("2001:db8::/32")])

    assert rule_texts(ip_permissions(found)) == set(found)
    assert all(ip_address(text.split()[-1].split("/")[0]) for text in found)
