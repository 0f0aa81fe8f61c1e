"""The ingress rules for a load balancer's clients, merged into as few as allow the same traffic. Pure.

A security group has at most 60 rules by default, and each port of each CIDR counts. So adjacent ports and CIDRs are
merged, and rules that another rule includes are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

Network = IPv4Network | IPv6Network

TOO_BIG = {4: "icmp 3-4", 6: "icmpv6 2-0"}
"""By IP version: the ICMP message (type and code) "packet too big", without which connections can hang."""


def client_rules(
    listeners: Iterable[tuple[str, int]],
    sources: Sequence[Network],
    prefix_lists: Iterable[str] = (),
    *,
    path_mtu: bool = True,
) -> tuple[str, ...]:
    """The texts of the rules that admit exactly these sources to these listeners (transport and port).

    `TCP_UDP` stands for both. With `path_mtu`, the CIDRs may send "packet too big"; prefix lists may not, because a
    rule with a list counts as often as the list's maximum number of entries.
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
