"""Chooses the subnets of a load balancer: those that its Service names, or the best one of each zone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from cloud_controller.cloud_errors import InvalidConfiguration


class Subnet(Protocol):
    """A cloud's subnet, in a zone of which a load balancer can have only one."""

    @property
    def id(self) -> str: ...
    @property
    def zone(self) -> str: ...


S = TypeVar("S", bound=Subnet)


def best_of_zones(subnets: Iterable[S], rank: Callable[[S], Any]) -> list[S]:
    """The subnet with the lowest rank in each zone, in the order of zones; among equals, the one with the lowest ID."""
    best: dict[str, S] = {}
    for subnet in sorted(subnets, key=lambda each: (rank(each), each.id)):
        best.setdefault(subnet.zone, subnet)
    return [best[zone] for zone in sorted(best)]


def require_one_of_a_zone(field: str, subnets: Iterable[Subnet]) -> None:
    """Raise InvalidConfiguration that names `field` if two of these subnets are in one zone."""
    zones: dict[str, Subnet] = {}
    for subnet in subnets:
        other = zones.setdefault(subnet.zone, subnet)
        if other is not subnet:
            why = f"{other.id} and {subnet.id} are both in {subnet.zone}"
            raise InvalidConfiguration(field, why, "one subnet for each zone")


def the_only(field: str, found: list[S], what: str) -> S:
    """The subnet that was found. Raises InvalidConfiguration for `field` if there are none or several `what`."""
    if len(found) == 1:
        return found[0]
    raise InvalidConfiguration(field, f"{len(found) or 'no'} {what}", "exactly one subnet in the cluster's network")
