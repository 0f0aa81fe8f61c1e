"""The rules of security groups that admit a load balancer's clients: as few as possible, and what to change. Pure.

A security group has room for few rules, and each port of each CIDR counts. So adjacent ports and CIDRs are merged,
and rules that another rule includes are left out. Rules are texts: `tcp 80-81 10.0.0.0/8`, protocol, ports, source.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Literal

from cloud_controller.load_balancers.pods import Network

Change = tuple[Literal["add", "remove"], frozenset[str]]

TOO_BIG = {4: "icmp 3-4", 6: "icmpv6 2-0"}
"""By IP version: the ICMP message (type and code) "packet too big", without which connections can hang."""


def client_rules(
    listeners: Iterable[tuple[str, int]],
    sources: Sequence[Network],
    others: Iterable[str] = (),
    *,
    path_mtu: bool = True,
) -> tuple[str, ...]:
    """The texts of the rules that admit exactly these sources to these listeners (transport and port).

    `TCP_UDP` stands for both. `others` are sources without a CIDR, such as prefix lists. With `path_mtu`, the CIDRs
    may send "packet too big"; the others may not, because a rule may count once for each entry of a list.
    """
    ports: defaultdict[str, set[int]] = defaultdict(set)
    for transport, port in listeners:
        for protocol in transport.lower().split("_"):
            ports[protocol].add(port)
    traffic = [f"{protocol} {low}-{high}" for protocol, numbers in ports.items() for low, high in _ranges(numbers)]
    ranges = _collapsed(sources)
    too_big = [f"{TOO_BIG[source.version]} {source}" for source in ranges] if path_mtu else []
    return tuple(sorted([*(f"{what} {source}" for source in (*ranges, *{*others}) for what in traffic), *too_big]))


def distributed(current: Sequence[Set[str]], wanted: Set[str], most: int) -> list[frozenset[str]]:
    """The rules of each group, `most` at most, in as few groups as possible; rules stay in their group if they can."""
    groups: list[set[str]] = []
    placed: set[str] = set()
    for index in range(max(1, math.ceil(len(wanted) / most))):
        present = current[index] if index < len(current) else frozenset()
        kept = sorted((present & wanted) - placed)[:most]
        groups.append(set(kept))
        placed.update(kept)
    rest = sorted(wanted - placed)
    for group in groups:
        room = most - len(group)
        group.update(rest[:room])
        rest = rest[room:]
    return [frozenset(group) for group in groups]


def changes(current: Set[str], wanted: Set[str], most: int) -> list[Change]:
    """The changes of a group's rules: additions first if the quota has room, so that no client is locked out
    meanwhile."""
    added, removed = frozenset(wanted - current), frozenset(current - wanted)
    add: list[Change] = [("add", added)] if added else []
    remove: list[Change] = [("remove", removed)] if removed else []
    return [*add, *remove] if len(current) + len(added) <= most else [*remove, *add]


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The runs of adjacent numbers, as first and last."""
    run: list[int] = []
    for number in sorted(numbers):
        if run and number != run[-1] + 1:
            yield run[0], run[-1]
            run = []
        run.append(number)
    if run:
        yield run[0], run[-1]


def _collapsed(sources: Iterable[Network]) -> list[Network]:
    given = list(sources)
    four = collapse_addresses([source for source in given if isinstance(source, IPv4Network)])
    six = collapse_addresses([source for source in given if isinstance(source, IPv6Network)])
    return [*four, *six]
