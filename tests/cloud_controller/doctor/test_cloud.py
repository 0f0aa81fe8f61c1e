"""What is wrong with the way to the cloud is found: its config, its answers, rights and quotas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    InvalidConfiguration,
    Quota,
    QuotaExceeded,
    Route,
    Throttled,
    Unavailable,
)
from cloud_controller.doctor.checks import cloud_api, cloud_rights, quotas
from cloud_controller.doctor.findings import Severity, Unreadable
from cloud_controller.doctor.seen import Daemon, Seen, Target
from cloud_controller.planning import PlanSettings
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor.looks import NOW, World


@dataclass
class TellingCloud(FakeCloud):
    """A cloud that tells rights and quotas."""

    lacking: tuple[str, ...] = ()
    used: list[Quota] = field(default_factory=list)
    asked: list[Collection[str]] = field(default_factory=list)

    def lacking_rights(self, controllers: Collection[str]) -> Sequence[str]:
        self.fail_if_told()
        self.asked.append(controllers)
        return self.lacking

    def quotas(self, controllers: Collection[str]) -> Sequence[Quota]:
        self.fail_if_told()
        self.asked.append(controllers)
        return self.used


def opened(error: CloudError | Unreadable) -> Seen:
    """A look for which the cloud config leads to this error."""

    def cloud() -> FakeCloud:
        raise error

    return Seen(World().look().kube, cloud, lambda *_: Daemon("", (), PlanSettings()), Target(), now=lambda: NOW)


# ---------------------------------------------------------------------------------------------------------- config


def test_a_valid_cloud_config_is_no_finding() -> None:
    assert World().findings(cloud_api.CONFIG) == []


def test_an_invalid_cloud_config_is_found_with_its_field() -> None:
    (finding,) = cloud_api.CONFIG.run(opened(InvalidConfiguration("[Global] endpoint", "missing")))

    assert finding.evidence == ("[Global] endpoint: missing",)


def test_without_a_cloud_config_nothing_is_said_about_it() -> None:
    with pytest.raises(Unreadable, match="no cloud config"):
        [*cloud_api.CONFIG.run(opened(Unreadable("no cloud config was given")))]


# --------------------------------------------------------------------------------------------------------- answers


def test_a_cloud_that_answers_is_no_finding() -> None:
    assert World().findings(cloud_api.CALLS) == []


@pytest.mark.parametrize(
    ("error", "severity", "remedy"),
    [
        (AccessDenied("the token has expired"), Severity.CRITICAL, "replace the credentials"),
        (Throttled("too many calls", 1.0), Severity.WARNING, "who else calls"),
        (InvalidConfiguration("cluster-id", "c-9 does not exist"), Severity.CRITICAL, "correct the field"),
        (Unavailable("no answer"), Severity.CRITICAL, "check the endpoint"),
    ],
    ids=["denied", "throttled", "invalid", "unavailable"],
)
def test_a_cloud_that_refuses_calls_is_found_with_what_to_do(
    error: CloudError, severity: Severity, remedy: str
) -> None:
    world = World()
    world.cloud.error = error

    (finding,) = world.findings(cloud_api.CALLS)
    assert finding.evidence == (str(error),)
    assert finding.severity is severity
    assert remedy in finding.remedy


def test_nothing_is_said_about_the_answers_of_a_cloud_without_a_config() -> None:
    with pytest.raises(Unreadable, match="no cloud config"):
        [*cloud_api.CALLS.run(opened(Unreadable("no cloud config was given")))]


# ---------------------------------------------------------------------------------------------------------- rights


def test_enough_rights_are_no_finding() -> None:
    cloud = TellingCloud()
    world = World(cloud)

    assert world.findings(cloud_rights.CHECK) == []
    assert cloud.asked == [("node", "node-lifecycle", "route")]


def test_each_right_that_is_missing_is_named() -> None:
    (finding,) = World(TellingCloud(lacking=("POST routes", "DELETE routes"))).findings(cloud_rights.CHECK)

    assert finding.evidence == ("POST routes", "DELETE routes")


@pytest.mark.parametrize("kind", [FakeCloud, TellingCloud], ids=["tells no rights", "tells rights"])
def test_a_read_that_is_refused_is_a_right_that_is_missing(kind: type[FakeCloud]) -> None:
    world = World(kind())
    world.node("a")
    world.cloud.error = AccessDenied("not allowed: DescribeInstances")

    (finding,) = world.findings(cloud_rights.CHECK)
    assert finding.evidence == ("not allowed: DescribeInstances",)


def test_where_the_cloud_does_not_tell_rights_they_are_not_checked() -> None:
    with pytest.raises(Unreadable, match="does not tell which changes"):
        World().findings(cloud_rights.CHECK)


def test_nothing_is_said_about_rights_while_the_cloud_does_not_answer() -> None:
    world = World(TellingCloud(error=Unavailable("no answer")))

    with pytest.raises(Unreadable, match="no answer"):
        world.findings(cloud_rights.CHECK)


# ---------------------------------------------------------------------------------------------------------- quotas


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
