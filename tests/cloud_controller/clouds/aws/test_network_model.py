"""What AWS's description of a network load balancer comes to, and how one gets from subnets to others."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.aws.network_model import exchange

ZONES = {f"{zone}{number}": zone for zone in "abc" for number in (1, 2)}


@pytest.mark.parametrize(
    ("present", "wanted", "steps"),
    [
        (["a1"], ["a1"], []),
        (["a1"], ["a1", "b1"], [["a1", "b1"]]),
        (["a1", "b1"], ["b1"], [["b1"]]),
        (["a1"], ["b1"], [["b1"]]),
        (["a1", "b1"], ["a2", "b1"], [["b1"], ["a2", "b1"]]),
        (["a1", "b1"], ["a2", "b2"], [["a1"], ["b2"], ["a2", "b2"]]),
        (["a1"], ["a2", "b1"], [["b1"], ["a2", "b1"]]),
        (["a1"], ["a2"], [["a2"]]),
        (["gone"], ["a1"], [["a1"]]),
    ],
)
def test_a_zone_is_left_before_another_subnet_of_it_is_set(
    present: list[str], wanted: list[str], steps: list[list[str]]
) -> None:
    assert exchange(present, wanted, ZONES) == steps
