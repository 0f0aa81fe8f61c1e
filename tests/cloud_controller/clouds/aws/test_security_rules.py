"""Rules of security groups: fewer than there are ports and ranges, and exactly the same traffic."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cloud_controller.clouds.aws.security_rules import changes, client_rules, distributed

TOO_BIG = ("icmp", "icmpv6")


def rules(listeners: list[tuple[str, int]], *sources: str) -> list[str]:
    """Those of the traffic itself."""
    found = client_rules(listeners, [ip_network(source) for source in sources])
    return [rule for rule in found if not rule.startswith(TOO_BIG)]


@pytest.mark.parametrize(
    ("listeners", "sources", "expected"),
    [
        ([("TCP", 80), ("TCP", 81)], ["10.0.0.0/8"], ["tcp 80-81 10.0.0.0/8"]),
        ([("TCP", 82), ("TCP", 80)], ["10.0.0.0/8"], ["tcp 80-80 10.0.0.0/8", "tcp 82-82 10.0.0.0/8"]),
        ([("TCP", 80)], ["10.0.0.0/9", "10.128.0.0/9"], ["tcp 80-80 10.0.0.0/8"]),
        ([("TCP", 80)], ["10.0.0.0/8", "10.1.0.0/16"], ["tcp 80-80 10.0.0.0/8"]),
        ([("TCP", 80), ("UDP", 81)], ["10.0.0.0/8"], ["tcp 80-80 10.0.0.0/8", "udp 81-81 10.0.0.0/8"]),
        ([("TCP", 80)], ["0.0.0.0/0", "::/0"], ["tcp 80-80 0.0.0.0/0", "tcp 80-80 ::/0"]),
    ],
)
def test_neighbours_are_merged_and_nothing_else(
    listeners: list[tuple[str, int]], sources: list[str], expected: list[str]
) -> None:
    assert rules(listeners, *sources) == expected


# Few ports and a small network, so that rules meet, and the traffic of all can be told.
SMALL = ip_network("10.0.0.0/28")
SOURCES = [*SMALL.subnets(new_prefix=32), *SMALL.subnets(new_prefix=30), *SMALL.subnets(new_prefix=29), SMALL]
LISTENERS = some.tuples(some.sampled_from(["TCP", "UDP", "TCP_UDP"]), some.integers(1, 12))


@given(some.sets(LISTENERS, max_size=8), some.lists(some.sampled_from(SOURCES), max_size=6))
def test_exactly_the_sources_reach_exactly_the_listeners_by_no_more_rules_than_there_are_of_both(
    listeners: set[tuple[str, int]], sources: list[IPv4Network]
) -> None:
    pairs = {(protocol, port) for transport, port in listeners for protocol in transport.lower().split("_")}
    asked = {(*pair, address) for pair in pairs for source in sources for address in source}

    let_in = set()
    found = rules([*listeners], *map(str, sources))
    for rule in found:
        protocol, ports, source = rule.split()
        low, high = map(int, ports.split("-"))
        let_in |= {(protocol, port, address) for port in range(low, high + 1) for address in IPv4Network(source)}

    assert let_in == asked
    assert len(found) <= len(pairs) * len({*sources})


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


# ------------------------------------------------------------------------------------------------ rules in groups


def numbered(*numbers: int) -> frozenset[str]:
    return frozenset(f"tcp {number}-{number} 10.0.0.0/8" for number in numbers)


@pytest.mark.parametrize(
    ("current", "wanted", "groups"),
    [
        ([], numbered(1, 2, 3), [numbered(1, 2, 3)]),
        ([], numbered(), [numbered()]),
        ([], numbered(1, 2, 3, 4, 5, 6, 7), [numbered(1, 2, 3), numbered(4, 5, 6), numbered(7)]),
        ([numbered(1, 2, 3), numbered(4, 5)], numbered(1, 3, 4, 5, 6), [numbered(1, 3, 6), numbered(4, 5)]),
        ([numbered(1, 2, 3), numbered(4)], numbered(1, 4), [numbered(1, 4)]),
        ([numbered(1, 2), numbered(2, 3)], numbered(1, 2, 3, 4), [numbered(1, 2, 4), numbered(3)]),
    ],
    ids=[
        "few rules are in one group",
        "no rules still need a group",
        "rules beyond the quota fill further groups",
        "a rule stays in its group while others come and go",
        "rules of a group that is not needed any more move",
        "a rule that two groups have is kept in one",
    ],
)
def test_rules_are_spread_over_groups(
    current: list[frozenset[str]], wanted: frozenset[str], groups: list[frozenset[str]]
) -> None:
    assert distributed(current, wanted, most=3) == groups


@pytest.mark.parametrize(
    ("current", "wanted", "steps"),
    [
        (numbered(1, 2), numbered(2, 3), [("add", numbered(3)), ("remove", numbered(1))]),
        (numbered(1, 2, 3), numbered(2, 3, 4), [("remove", numbered(1)), ("add", numbered(4))]),
        (numbered(1), numbered(1), []),
    ],
    ids=["additions lock no client out", "where the quota leaves no room, removals come first", "equal rules"],
)
def test_additions_come_before_removals(
    current: frozenset[str], wanted: frozenset[str], steps: list[tuple[str, frozenset[str]]]
) -> None:
    assert changes(current, wanted, most=3) == steps
