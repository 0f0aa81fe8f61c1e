"""This controller leaves of each recorded NLB, after each phase, what the Go controller's calls leave, but for what is
listed."""

from __future__ import annotations

import pytest

from tests.compatibility.alicloud_nlb_differences import DIFFERENCES
from tests.compatibility.alicloud_driven import of_ours
from tests.compatibility.alicloud_recorded import Json, differences, of_peer, results
from tests.compatibility.differences import Found, outdated, unlisted


@pytest.fixture(scope="module")
def ours() -> dict[str, Json]:
    return results("nlb", of_ours)


@pytest.fixture(scope="module")
def differing(ours: dict[str, Json]) -> list[Found]:
    return differences(results("nlb", of_peer), ours)


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []
