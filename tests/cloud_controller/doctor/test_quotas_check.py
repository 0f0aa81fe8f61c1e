"""Quotas that are used up, or nearly, are found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from cloud_controller.cloud import Quota, QuotaExceeded, Route
from cloud_controller.doctor.checks import quotas
from cloud_controller.doctor.findings import Severity, Unreadable
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor.looks import World


@dataclass
class TellingCloud(FakeCloud):
    """A cloud that tells its other quotas."""

    used: list[Quota] = field(default_factory=list)

    def quotas(self, controllers: Collection[str]) -> Sequence[Quota]:
        assert controllers == ("node", "node-lifecycle", "route")
        return self.used


def routed(used: int, quota: int | None) -> World:
    """A world with so many routes, of at most `quota`."""
    routes = [Route(f"10.1.{number}.0/24", "i-a") for number in range(used)]
    return World(FakeCloud(table=routes, quota=quota))


@pytest.mark.parametrize(("used", "quota"), [(7, 10), (100, None)], ids=["room", "unknown"])
def test_a_quota_with_room_and_one_that_the_cloud_does_not_tell_are_no_finding(used: int, quota: int | None) -> None:
    assert routed(used, quota).findings(quotas.CHECK) == []


def test_a_quota_is_nearly_used_up_from_80_percent() -> None:
    (finding,) = routed(8, 10).findings(quotas.CHECK)

    assert finding.what == "the quota of routes of the cluster's table is nearly used up"
    assert finding.evidence == ("8 of 10 are used",)
    assert finding.severity is Severity.WARNING


def test_a_quota_that_is_used_up_is_critical() -> None:
    (finding,) = routed(10, 10).findings(quotas.CHECK)

    assert finding.severity is Severity.CRITICAL


def test_routes_do_not_matter_where_the_ccm_writes_none() -> None:
    world = routed(10, 10)
    world.controllers = ("node",)

    assert world.findings(quotas.CHECK) == []


def test_the_other_quotas_that_the_cloud_tells_are_judged_too() -> None:
    (finding,) = World(TellingCloud(used=[Quota("load balancers", 9, 10), Quota("volumes", 1, 10)])).findings(
        quotas.CHECK
    )

    assert finding.what == "the quota of load balancers is nearly used up"


def test_nothing_is_said_about_quotas_that_cannot_be_read() -> None:
    world = World()
    world.cloud.error = QuotaExceeded("of calls")

    with pytest.raises(Unreadable, match="of calls"):
        world.findings(quotas.CHECK)
