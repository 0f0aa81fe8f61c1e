"""This controller leaves of each recorded NLB what the Go controller's calls leave, but for what is listed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility.alicloud_nlb_differences import DIFFERENCES
from tests.compatibility.alicloud_nlb_left import of_ours, of_peer, results
from tests.compatibility.differences import Found, found, outdated, unlisted


@pytest.fixture(scope="module")
def differing() -> list[Found]:
    both: list[dict[str, dict[str, Any]]] = [results(of_peer), results(of_ours)]
    assert not any(each["refused"] for of in both for each in of.values())
    return found(*both)


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []
