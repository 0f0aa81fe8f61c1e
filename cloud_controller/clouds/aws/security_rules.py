"""The rules by which a load balancer's clients are let in, merged to as few as allow the same traffic. Pure.

AWS lets a security group have 60 rules and counts each port of each range of addresses, so that neighbouring ports
become one range, neighbouring ranges of addresses one that holds them, and what another rule allows already is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from itertools import pairwise
from typing import NamedTuple

Network = IPv4Network | IPv6Network


class Rule(NamedTuple):
    """Traffic of a protocol, to ports (for `icmp` and `icmpv6`: of a type and a code), from a range of addresses."""

    protocol: str
    low: int
    high: int
    source: Network

    def __str__(self) -> str:
        return f"{self.protocol} {self.low}-{self.high} {self.source}"


_TOO_BIG = {4: ("icmp", 3, 4), 6: ("icmpv6", 2, 0)}
"""By IP version: the message that a packet is too big for the path, without which connections hang."""


def client_rules(listeners: Iterable[tuple[str, int]], sources: Sequence[Network]) -> tuple[str, ...]:
    """The texts of the rules that let these sources in to the listeners, given as transport and port, and no others.

    A listener `TCP_UDP` takes both. What tells of packets that are too big is let in too.
    """
    rules = [
        Rule(protocol.lower(), port, port, source)
        for transport, port in listeners
        for protocol in transport.split("_")
        for source in sources
    ]
    messages = [Rule(*_TOO_BIG[source.version], source) for source in sources]
    return tuple(sorted(str(rule) for rule in merged([*rules, *messages])))


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """Rules that allow exactly what these allow: never more of them, and few."""
    apart: dict[tuple[object, ...], list[Rule]] = {}
    for rule in rules:
        # A type and a code of ICMP are no range; only their sources can be merged.
        whole = (rule.low, rule.high) if rule.protocol.startswith("icmp") else ()
        apart.setdefault((rule.protocol, rule.source.version, *whole), []).append(rule)
    found = []
    for (protocol, *_), group in apart.items():
        first = group[0]
        if str(protocol).startswith("icmp"):
            sources = _collapsed(rule.source for rule in group)
            found += [Rule(first.protocol, first.low, first.high, source) for source in sources]
        else:
            found += _merged_ports(group)
    return found


def _merged_ports(rules: Sequence[Rule]) -> list[Rule]:
    """The same for rules of one protocol and IP version."""
    edges = sorted({edge for rule in rules for edge in (rule.low, rule.high + 1)})
    # Between two edges every port has the same sources.
    spans = [
        (low, after - 1, _collapsed(rule.source for rule in rules if rule.low <= low and after - 1 <= rule.high))
        for low, after in pairwise(edges)
    ]
    found = []
    for source in sorted({source for _, _, sources in spans for source in sources}):
        run: list[tuple[int, int]] = []
        for low, high, sources in spans:
            if source in sources:
                run.append((low, high))
            elif not any(_holds(wider, source) for wider in sources):
                found += _joined(run, rules[0].protocol, source)
                run = []
        found += _joined(run, rules[0].protocol, source)
    # Ranges that overlap crosswise are fewer as they are.
    return min(found, sorted(set(rules)), key=len)


def _joined(run: Sequence[tuple[int, int]], protocol: str, source: Network) -> list[Rule]:
    """One rule for a run of spans: what lies between them is allowed by wider sources anyway."""
    return [Rule(protocol, run[0][0], run[-1][1], source)] if run else []


def _collapsed(sources: Iterable[Network]) -> list[Network]:
    given = list(sources)
    four = collapse_addresses([source for source in given if isinstance(source, IPv4Network)])
    six = collapse_addresses([source for source in given if isinstance(source, IPv6Network)])
    return [*four, *six]


def _holds(wider: Network, source: Network) -> bool:
    if isinstance(wider, IPv4Network) and isinstance(source, IPv4Network):
        return source.subnet_of(wider)
    return isinstance(wider, IPv6Network) and isinstance(source, IPv6Network) and source.subnet_of(wider)
