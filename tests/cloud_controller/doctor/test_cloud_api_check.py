"""A cloud config that is invalid and a cloud that refuses calls are found."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, Throttled, Unavailable
from cloud_controller.doctor.checks import cloud_api
from cloud_controller.doctor.findings import Check, Severity
from cloud_controller.doctor.seen import Daemon, Seen, Target, Unreadable
from cloud_controller.planning import PlanSettings
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor.looks import NOW, World


def opened(error: CloudError | Unreadable) -> Seen:
    """A look for which the cloud config leads to this error."""

    def cloud() -> FakeCloud:
        raise error

    return Seen(World().look().kube, cloud, lambda *_: Daemon("", (), PlanSettings()), Target(), now=lambda: NOW)


OF_BOTH = pytest.mark.parametrize("check", [cloud_api.CONFIG, cloud_api.CALLS], ids=lambda check: check.name)


@OF_BOTH
def test_a_valid_cloud_config_of_a_cloud_that_answers_is_no_finding(check: Check) -> None:
    assert World().findings(check) == []


def test_an_invalid_cloud_config_is_found_with_its_field() -> None:
    (finding,) = cloud_api.CONFIG.run(opened(InvalidConfiguration("[Global] endpoint", "missing")))

    assert finding.evidence == ("[Global] endpoint: missing",)


@OF_BOTH
def test_without_a_cloud_config_nothing_is_said_about_it_or_the_cloud(check: Check) -> None:
    with pytest.raises(Unreadable, match="no cloud config"):
        [*check.run(opened(Unreadable("no cloud config was given")))]


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (AccessDenied("the token has expired"), "refuses the credentials", "replace the credentials"),
        (Throttled("too many calls", 1.0), "throttles", "who else calls"),
        (InvalidConfiguration("cluster-id", "c-9 does not exist"), "does not accept the cloud config", "the field"),
        (Unavailable("no answer"), "does not answer", "check the endpoint"),
    ],
    ids=["denied", "throttled", "invalid", "unavailable"],
)
def test_a_cloud_that_refuses_calls_is_found_with_what_to_do(error: CloudError, what: str, remedy: str) -> None:
    world = World()
    world.cloud.error = error

    (finding,) = world.findings(cloud_api.CALLS)
    assert finding.evidence == (str(error),)
    assert finding.severity is Severity.CRITICAL
    assert what in finding.what
    assert remedy in finding.remedy
