"""What this controller leaves of each compared Service in AWS is what the Go controller leaves, but for what is listed.

Ours runs here, as its own process on a real API server and moto; the peer's results were recorded (see `aws_run`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import moto
import pytest

from benchmarks.aws import peer
from benchmarks.aws.daemons import OURS
from tests.compatibility import aws_recorded
from tests.compatibility.aws_differences import DIFFERENCES
from tests.compatibility.aws_left import Json
from tests.compatibility.aws_page import PAGE, page
from tests.compatibility.aws_run import node_results, results
from tests.compatibility.aws_services import CASES
from tests.compatibility.differences import found, outdated, unlisted

RECORD_ANEW = "record anew: python -m tests.compatibility.aws_run"


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    return aws_recorded.read()


@pytest.fixture(scope="module")
def ours() -> dict[str, Json]:
    return results(OURS) | node_results(OURS)


def test_what_was_recorded_is_of_these_services_and_versions(recorded: Mapping[str, Any]) -> None:
    assert recorded["services"] == {case.name: aws_recorded.digest(case) for case in CASES}, RECORD_ANEW
    assert recorded["versions"]["cloud-provider-aws"] == peer.CONTROLLER.version(), RECORD_ANEW
    assert recorded["versions"]["moto"] == moto.__version__, RECORD_ANEW


def test_the_page_tells_of_each_listed_difference(recorded: Mapping[str, Any]) -> None:
    assert PAGE.read_text() == page(recorded), "write it anew: python -m tests.compatibility.aws_page"


@pytest.mark.control_plane
@pytest.mark.timeout(1800)
def test_nothing_differs_that_is_not_listed(recorded: Mapping[str, Any], ours: dict[str, Json]) -> None:
    differences = unlisted(found(recorded["results"], ours), DIFFERENCES)

    assert differences == [], "\n".join(map(str, differences))


@pytest.mark.control_plane
@pytest.mark.timeout(1800)
def test_nothing_is_listed_that_differs_no_more(recorded: Mapping[str, Any], ours: dict[str, Json]) -> None:
    assert outdated(found(recorded["results"], ours), DIFFERENCES) == []


@pytest.mark.control_plane
@pytest.mark.timeout(1800)
def test_a_deleted_service_leaves_nothing(ours: dict[str, Json]) -> None:
    nothing = {"load_balancers": [], "target_groups_alone": 0, "opened": {}, "groups_alone": 0}
    assert [name for name, result in ours.items() if result.get("after_deletion", nothing) != nothing] == []
