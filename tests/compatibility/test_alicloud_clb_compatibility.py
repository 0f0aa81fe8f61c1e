"""This controller leaves of each recorded Service what the Go controller's calls leave, but for what is listed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compatibility.alicloud_clb_differences import DIFFERENCES
from tests.compatibility.alicloud_clb_left import of_ours, of_peer, results
from tests.compatibility.alicloud_page import PAGE, page
from tests.compatibility.differences import Found, found, outdated, unlisted


@pytest.fixture(scope="module")
def differing() -> list[Found]:
    both: list[dict[str, dict[str, Any]]] = [results(of_peer), results(of_ours)]
    return found(*both)


def test_the_page_tells_of_each_listed_difference() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.compatibility.alicloud_page"


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []
