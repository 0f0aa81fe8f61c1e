"""Every cloud is held to the whole contract."""

from __future__ import annotations

import pytest

from cloud_controller import clouds
from tests.contract.clouds import NAMES, of
from tests.contract.harness import Harness

PART = "load_balancers"


def test_every_registered_cloud_has_a_harness() -> None:
    assert {*clouds.names()} <= {*NAMES}


def test_a_harness_offers_every_part_that_its_cloud_has(harness: Harness, request: pytest.FixtureRequest) -> None:
    """Or its modules together, if each is about one kind of load balancer (`of_NAME_KIND.py`)."""
    cloud, name = harness.new_cloud(), request.node.callspec.params["harness"].partition("_")[0]
    offers = frozenset().union(*(of(each).OFFERS for each in NAMES if each.partition("_")[0] == name))

    assert {part for part in ("load_balancers", "routes", "volumes") if getattr(cloud, part) is not None} <= offers
