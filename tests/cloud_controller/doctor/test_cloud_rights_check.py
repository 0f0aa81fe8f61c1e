"""Rights in the cloud that the CCM's credentials lack are found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from cloud_controller.cloud import AccessDenied, Unavailable
from cloud_controller.doctor.checks import cloud_rights
from cloud_controller.doctor.findings import OutOfReach, Unreadable
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor.looks import World


@dataclass
class TellingCloud(FakeCloud):
    """A cloud that tells which rights its credentials lack."""

    lacking: tuple[str, ...] = ()
    asked: list[Collection[str]] = field(default_factory=list)

    def lacking_rights(self, controllers: Collection[str]) -> Sequence[str]:
        self.fail_if_told()
        self.asked.append(controllers)
        return self.lacking


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


def test_where_the_cloud_does_not_tell_rights_they_are_out_of_reach() -> None:
    with pytest.raises(OutOfReach, match="does not tell which changes"):
        World().findings(cloud_rights.CHECK)


def test_nothing_is_said_about_rights_while_the_cloud_does_not_answer() -> None:
    world = World(TellingCloud(error=Unavailable("no answer")))

    with pytest.raises(Unreadable, match="no answer"):
        world.findings(cloud_rights.CHECK)
