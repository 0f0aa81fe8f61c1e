"""The rules by which a load balancer's clients are let in, merged to as few as allow the same traffic. Pure.

AWS lets a security group have 60 rules and counts each port of each range of addresses, so that neighbouring ports
become one range, neighbouring ranges of addresses one that holds them, and what another rule allows already is left
out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

Network = IPv4Network | IPv6Network

TOO_BIG = {4: "icmp 3-4", 6: "icmpv6 2-0"}
"""By IP version: the message (type and code) that a packet is too big for the path, without which connections hang."""


def client_rules(
    listeners: Iterable[tuple[str, int]],
    sources: Sequence[Network],
    prefix_lists: Iterable[str] = (),
    *,
    path_mtu: bool = True,
) -> tuple[str, ...]:
    """The texts of the rules that let these sources in to the listeners, given as transport and port, and no others.

    A listener `TCP_UDP` takes both. With `path_mtu` the ranges may tell of packets that are too big; prefix lists may
    not, for each rule with a list counts as many as the list may have entries.
    """
    ports: defaultdict[str, set[int]] = defaultdict(set)
    for transport, port in listeners:
        for protocol in transport.lower().split("_"):
            ports[protocol].add(port)
    traffic = [f"{protocol} {low}-{high}" for protocol, numbers in ports.items() for low, high in _ranges(numbers)]
    ranges = _collapsed(sources)
    too_big = [f"{TOO_BIG[source.version]} {source}" for source in ranges] if path_mtu else []
    return tuple(
        sorted([*(f"{what} {source}" for source in (*ranges, *{*prefix_lists}) for what in traffic), *too_big])
    )


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The runs of neighbouring numbers, as the first and the last of each."""
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
