"""This controller leaves of each recorded NLB what the Go controller's calls leave, after each phase, but for what is
listed.
"""

from __future__ import annotations

import pytest

from tests.compatibility.alicloud_driven import of_ours
from tests.compatibility.alicloud_nlb_differences import DIFFERENCES
from tests.compatibility.alicloud_recorded import REFUSED, Json, of_peer, results
from tests.compatibility.differences import Found, outdated, unlisted
from tests.compatibility.phases import differences, refused

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def peer() -> dict[str, Json]:
    return results("nlb", of_peer)


@pytest.fixture(scope="module")
def ours() -> dict[str, Json]:
    return results("nlb", of_ours)


@pytest.fixture(scope="module")
def differing(peer: dict[str, Json], ours: dict[str, Json]) -> list[Found]:
    return differences(peer, ours)


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []


def test_the_scenarios_whose_later_phases_are_not_compared_are_listed(
    peer: dict[str, Json], ours: dict[str, Json]
) -> None:
    assert refused(peer, ours) == {*REFUSED["nlb"]}


def test_nothing_is_left_of_a_deleted_service_but_what_its_user_keeps(ours: dict[str, Json]) -> None:
    deletions = {name: state for name, state in ours.items() if name.endswith(": deletion")}
    left = {name for name, state in deletions.items() if state["load balancers"] or state["server groups"]}

    assert len(deletions) > len(left)
    assert {name.partition("-")[0] for name in left} == {"reuse", "preserve"}
