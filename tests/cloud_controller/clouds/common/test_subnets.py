"""The choice of subnets: the best one of each zone, and those that are named."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.common.subnets import best_of_zones, require_one_of_a_zone, the_only


class Subnet(NamedTuple):
    id: str
    zone: str
    rank: int = 0


def test_the_best_subnet_of_each_zone_is_chosen_in_the_order_of_zones() -> None:
    subnets = [Subnet("b1", "b", 1), Subnet("a2", "a", 1), Subnet("a1", "a", 2), Subnet("c2", "c"), Subnet("c1", "c")]

    assert [each.id for each in best_of_zones(subnets, lambda each: each.rank)] == ["a2", "b1", "c1"]
    assert best_of_zones([], lambda _: 0) == []


def test_two_subnets_of_one_zone_are_refused() -> None:
    require_one_of_a_zone("subnets", [Subnet("a1", "a"), Subnet("b1", "b")])

    with pytest.raises(InvalidConfiguration, match=r"^subnets: a1 and a2 are both in a \(allowed: one subnet for each"):
        require_one_of_a_zone("subnets", [Subnet("a1", "a"), Subnet("b1", "b"), Subnet("a2", "a")])


@pytest.mark.parametrize(("found", "number"), [([], "no"), ([Subnet("a1", "a"), Subnet("a2", "a")], "2")])
def test_a_named_subnet_is_refused_unless_there_is_exactly_one(found: list[Subnet], number: str) -> None:
    assert the_only("subnets", [Subnet("a1", "a")], "subnets have this ID").id == "a1"

    with pytest.raises(InvalidConfiguration, match=f"^subnets: {number} subnets have this ID "):
        the_only("subnets", found, "subnets have this ID")
