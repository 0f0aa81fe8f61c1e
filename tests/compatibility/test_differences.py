"""How results of two controllers are compared, and held against the list of differences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.compatibility.differences import Difference, Found, found, outdated, unlisted


def result(refused: bool = False, **fields: Any) -> dict[str, Any]:
    return {"refused": refused, **fields}


def differs(services: str, fields: str) -> Difference:
    return Difference(services, fields, "so", "otherwise", "because")


def test_equal_results_differ_in_nothing() -> None:
    assert found({"a": result(tags={"x": "1"})}, {"a": result(tags={"x": "1"})}) == []


def test_a_field_that_differs_is_named_by_its_path() -> None:
    peer, ours = result(lb=[{"port": 80}]), result(lb=[{"port": 81}])

    assert found({"a": peer}, {"a": ours}) == [Found("a", "lb/0/port", 80, 81)]


def test_a_field_that_only_one_has_differs() -> None:
    assert found({"a": result(tags={})}, {"a": result(tags={"x": "1"})}) == [Found("a", "tags/x", None, "1")]


def test_where_one_refuses_nothing_else_is_compared() -> None:
    assert found({"a": result(refused=True)}, {"a": result(port=80)}) == [Found("a", "refused", True, False)]


def test_what_is_listed_is_not_unlisted() -> None:
    one, other = Found("nlb-plain", "tags/x", None, "1"), Found("nlb-plain", "port", 80, 81)

    assert unlisted([one, other], [differs("nlb-*", "tags/*|groups")]) == [other]


def test_a_difference_of_other_services_is_unlisted() -> None:
    classic = Found("classic-plain", "tags/x", None, "1")

    assert unlisted([classic], [differs("nlb-*", "tags/*")]) == [classic]


def test_a_difference_between_certain_values_covers_no_other_values() -> None:
    listed = replace(differs("*", "port"), values=(80, 81))

    assert listed.covers(Found("nlb-plain", "port", 80, 81))
    assert not listed.covers(Found("nlb-plain", "port", 80, 82))


@pytest.mark.parametrize(
    ("listed", "nowhere"),
    [
        (differs("nlb-*|classic-*", "tags/*"), differs("classic-*", "tags/*")),
        (differs("nlb-*", "tags/*|port"), differs("nlb-*", "port")),
    ],
)
def test_a_pattern_that_is_listed_and_occurs_nowhere_is_outdated(listed: Difference, nowhere: Difference) -> None:
    assert outdated([Found("nlb-plain", "tags/x", None, "1")], [listed]) == [nowhere]


def test_what_is_listed_and_occurs_is_not_outdated() -> None:
    assert outdated([Found("nlb-plain", "tags/x", None, "1")], [differs("nlb-*", "tags/*")]) == []
