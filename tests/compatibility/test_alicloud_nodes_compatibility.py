"""This controller makes of the recorded Nodes and routes what the Go controller made, but for what is listed."""

from __future__ import annotations

import pytest

from tests.compatibility.alicloud_nodes import of_ours, of_peer
from tests.compatibility.alicloud_nodes_differences import DIFFERENCES
from tests.compatibility.alicloud_recorded import Json
from tests.compatibility.differences import Found, outdated, unlisted
from tests.compatibility.phases import differences


@pytest.fixture(scope="module")
def ours() -> dict[str, Json]:
    return of_ours()


@pytest.fixture(scope="module")
def differing(ours: dict[str, Json]) -> list[Found]:
    return differences(of_peer(), ours)


def test_nothing_differs_that_is_not_listed(differing: list[Found]) -> None:
    assert unlisted(differing, DIFFERENCES) == []


def test_nothing_is_listed_that_differs_no_more(differing: list[Found]) -> None:
    assert outdated(differing, DIFFERENCES) == []


def test_a_restart_with_nothing_changed_writes_nothing(ours: dict[str, Json]) -> None:
    restarts = {name: state["writes"] for name, state in ours.items() if name.endswith(": restart")}

    assert set(map(len, restarts.values())) == {0}, restarts
