"""This controller leaves of each recorded load balancer what the Go controller's calls leave, after each phase, but for
what is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.compatibility import alicloud_clb_differences, alicloud_nlb_differences
from tests.compatibility.alicloud_driven import of_ours
from tests.compatibility.alicloud_page import PAGE, page
from tests.compatibility.alicloud_recorded import REFUSED, Json, of_peer, results
from tests.compatibility.differences import Difference, Found, outdated, unlisted
from tests.compatibility.phases import differences, refused

pytestmark = pytest.mark.integration

LISTED = {"clb": alicloud_clb_differences.DIFFERENCES, "nlb": alicloud_nlb_differences.DIFFERENCES}


@dataclass(frozen=True)
class Compared:
    """What both leave of the load balancers of a kind."""

    kind: str
    peer: dict[str, Json]
    ours: dict[str, Json]

    @property
    def listed(self) -> Sequence[Difference]:
        return LISTED[self.kind]

    @property
    def differing(self) -> list[Found]:
        return differences(self.peer, self.ours)


@pytest.fixture(scope="module", params=LISTED)
def compared(request: pytest.FixtureRequest) -> Compared:
    return Compared(request.param, results(request.param, of_peer), results(request.param, of_ours))


def test_the_page_tells_of_each_listed_difference() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.compatibility.alicloud_page"


def test_nothing_differs_that_is_not_listed(compared: Compared) -> None:
    assert unlisted(compared.differing, compared.listed) == []


def test_nothing_is_listed_that_differs_no_more(compared: Compared) -> None:
    assert outdated(compared.differing, compared.listed) == []


def test_the_scenarios_whose_later_phases_are_not_compared_are_listed(compared: Compared) -> None:
    assert refused(compared.peer, compared.ours) == {*REFUSED[compared.kind]}


def test_nothing_is_left_of_a_deleted_service_but_what_its_user_keeps(compared: Compared) -> None:
    deletions = {name: state for name, state in compared.ours.items() if name.endswith(": deletion")}
    left = {name for name, state in deletions.items() if state["load balancers"] or state["server groups"]}

    assert len(deletions) > len(left)
    assert {name.partition("-")[0] for name in left} == {"reuse", "preserve"}
