"""Quotas that are used up, or nearly, are found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pytest

from cloud_controller.cloud import CloudError, Quota, QuotaExceeded, Route
from cloud_controller.doctor.checks import quotas
from cloud_controller.doctor.findings import OutOfReach, Result, Severity
from cloud_controller.doctor.seen import Unreadable
from tests.cloud_controller.conftest import FakeCloud, FakeRoutes
from tests.cloud_controller.doctor.looks import World


@dataclass
class TellingCloud(FakeCloud):
    """A cloud that tells its other quotas."""

    told: list[list[Quota] | CloudError] = field(default_factory=list)
    """By API: what it tells, or why it does not."""

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        assert controllers == ("node", "node-lifecycle", "route")
        return [functools.partial(self._read, each) for each in self.told]

    @staticmethod
    def _read(told: list[Quota] | CloudError) -> Sequence[Quota]:
        if isinstance(told, CloudError):
            raise told
        return told


def routed(used: int, quota: int | None) -> World:
    """A world with so many routes, of at most `quota`."""
    routes = [Route(f"10.1.{number}.0/24", "i-a") for number in range(used)]
    return World(FakeCloud(table=routes, quota=quota))


def test_a_quota_with_room_is_no_finding() -> None:
    assert routed(7, 10).findings(quotas.CHECK) == []


def test_a_quota_that_the_cloud_does_not_tell_is_out_of_reach() -> None:
    with pytest.raises(OutOfReach, match="does not tell the quota of routes of the cluster's table"):
        routed(100, None).findings(quotas.CHECK)


def test_a_quota_is_nearly_used_up_from_80_percent() -> None:
    (finding,) = routed(8, 10).findings(quotas.CHECK)

    assert finding.what == "the quota of routes of the cluster's table is nearly used up"
    assert finding.evidence == ("8 of 10 are used",)
    assert finding.severity is Severity.WARNING


def test_a_quota_that_is_used_up_is_critical() -> None:
    (finding,) = routed(10, 10).findings(quotas.CHECK)

    assert finding.severity is Severity.CRITICAL


def test_the_table_is_read_before_its_quota_which_may_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On AWS, each address family of the routes has the quota."""
    monkeypatch.setattr(FakeRoutes, "quota", lambda routes: 20 if routes._cloud.route_lists else 10)

    assert routed(10, None).findings(quotas.CHECK) == []


def test_routes_do_not_matter_where_the_ccm_writes_none() -> None:
    world = routed(10, 10)
    world.controllers = ("node",)

    assert world.findings(quotas.CHECK) == []


def telling(*told: list[Quota] | CloudError) -> Result:
    return World(TellingCloud(quota=100, told=[*told])).examined(quotas.CHECK)


def test_the_other_quotas_that_the_cloud_tells_are_judged_too() -> None:
    (finding,) = telling([Quota("load balancers", 9, 10), Quota("volumes", 1, 10)]).findings

    assert finding.what == "the quota of load balancers is nearly used up"


def test_a_quota_that_cannot_be_read_hides_no_other() -> None:
    result = telling(CloudError("no way out"), [Quota("load balancers", 9, 10)])

    assert [each.what for each in result.findings] == ["the quota of load balancers is nearly used up"]
    assert "no way out" in (result.not_done or "")


def test_a_quota_whose_use_the_cloud_does_not_tell_is_out_of_reach_and_the_others_are_judged() -> None:
    result = telling([Quota("load balancers", None, 10), Quota("volumes", 10, 10)])

    assert [each.what for each in result.findings] == ["the quota of volumes is used up"]
    assert "load balancers" in (result.out_of_reach or "")


def test_nothing_is_said_about_quotas_that_cannot_be_read() -> None:
    world = World()
    world.cloud.error = QuotaExceeded("of calls")

    with pytest.raises(Unreadable, match="of calls"):
        world.findings(quotas.CHECK)
