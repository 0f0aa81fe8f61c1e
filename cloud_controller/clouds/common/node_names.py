"""Finds the machines of nodes by their names, in a list of machines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from cloud_controller.cloud import Conflict, node_name

Machine = TypeVar("Machine")


def by_node_name(
    wanted: Collection[str],
    machines: Iterable[Machine],
    host_names: Callable[[Machine], Iterable[str]],
    identity: Callable[[Machine], str],
) -> dict[str, Machine]:
    """The machine of each of these nodes that has one. `host_names`: what a machine's host may be called.

    Raises `Conflict` if a node may be that of two machines: a guess could give it the addresses and routes of another.
    """
    found: dict[str, Machine] = {}
    for each in machines:
        for name in {node_name(host) for host in host_names(each)}.intersection(wanted):
            other = found.setdefault(name, each)
            if identity(other) != identity(each):
                called = " and ".join(" or ".join(map(repr, host_names(one))) for one in (other, each))
                raise Conflict(
                    f"machines {identity(other)} and {identity(each)}, called {called}, both have the name of node "
                    f"{name}; allowed: one; rename one, or set the node's spec.providerID"
                )
    return found
