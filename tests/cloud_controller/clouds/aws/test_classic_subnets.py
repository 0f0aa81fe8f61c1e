"""How a classic load balancer moves to other subnets, which moto does in any order and AWS does not."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration, Postponed
from cloud_controller.clouds.aws.classic_subnets import move, steps
from tests.cloud_controller.clouds.aws.scripted_aws import Answer, elb_error, scripted

ATTACH, DETACH = "AttachLoadBalancerToSubnets", "DetachLoadBalancerFromSubnets"
ZONES = {f"{zone}{number}": zone for zone in "abc" for number in (1, 2)}
"""Two subnets in each of three zones."""


@pytest.mark.parametrize(
    ("actual", "wanted", "expected"),
    [
        (["a1", "b1"], ["b1", "c1"], [(ATTACH, ["c1"]), (DETACH, ["a1"])]),
        (["a1"], ["b1"], [(ATTACH, ["b1"]), (DETACH, ["a1"])]),
        (["a1", "b1"], ["a2", "b1"], [(DETACH, ["a1"]), (ATTACH, ["a2"])]),
        (["a1", "b1"], ["a2", "b2"], [(DETACH, ["a1"]), (ATTACH, ["a2"]), (DETACH, ["b1"]), (ATTACH, ["b2"])]),
        (["a1", "b1"], ["a2"], [(DETACH, ["a1"]), (ATTACH, ["a2"]), (DETACH, ["b1"])]),
        (["a1"], ["a2", "b1"], [(ATTACH, ["b1"]), (DETACH, ["a1"]), (ATTACH, ["a2"])]),
        (["a1", "b1"], ["b1", "a1"], []),
    ],
)
def test_it_is_always_in_a_subnet_and_never_in_two_of_a_zone(
    actual: list[str], wanted: list[str], expected: list[tuple[str, list[str]]]
) -> None:
    assert steps(actual, wanted, ZONES) == expected


def test_the_only_subnet_cannot_be_exchanged_for_one_of_the_same_zone() -> None:
    with pytest.raises(
        InvalidConfiguration, match=r"load-balancer-subnets: a2 cannot replace a1.*another Availability Zone"
    ):
        steps(("a1",), ("a2",), ZONES)


def test_a_zone_that_is_not_free_yet_is_left_to_the_next_plan() -> None:
    done = Answer(200, f"<Response><{DETACH}Result/><{ATTACH}Result/></Response>")
    busy = elb_error("InvalidConfigurationRequest", 409, "ELB cannot be attached to multiple subnets in the same AZ.")

    with scripted([done, busy, done]) as aws:
        api = aws.api()
        with pytest.raises(Postponed, match="is still removing the old subnet"):
            move(api, "web", actual=["a1", "b1"], wanted=["a2", "b1"], zones=ZONES)
        move(api, "web", actual=["b1"], wanted=["a2", "b1"], zones=ZONES)

    assert [each["Action"] for each in aws.requests] == [DETACH, ATTACH, ATTACH]


def test_any_other_configuration_that_aws_refuses_is_an_error() -> None:
    with (
        scripted([elb_error("InvalidConfigurationRequest", 409, "It is not valid.")]) as aws,
        pytest.raises(InvalidConfiguration, match="It is not valid"),
    ):
        move(aws.api(), "web", actual=["b1"], wanted=["a2", "b1"], zones=ZONES)
