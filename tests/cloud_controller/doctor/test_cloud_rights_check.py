"""Rights in the cloud that the CCM's credentials lack are found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

from cloud_controller.cloud import AccessDenied, CcmPods, DryRun, Unavailable
from cloud_controller.doctor.checks import cloud_rights
from cloud_controller.doctor.findings import OutOfReach, examine
from cloud_controller.doctor.seen import Unreadable
from cloud_controller.kube import DAEMON_SETS, PODS, Object
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.doctor import manager
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


@dataclass
class TryingCloud(FakeCloud):
    """A cloud where some changes can be tried."""

    shown: DryRun = field(default_factory=DryRun)
    asked: list[tuple[Collection[str], CcmPods | None]] = field(default_factory=list)
    refusal: Exception | None = None

    def dry_run(self, controllers: Collection[str], pods: CcmPods | None) -> DryRun:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append((controllers, pods))
        return self.shown


def with_ccm(world: World, template: Object, *pods: tuple[str, Object]) -> None:
    """A CCM's container in its template, and in pods on these nodes."""
    daemon_set = manager.daemon_set()
    daemon_set["spec"]["template"]["spec"]["containers"] = [{"name": manager.NAME, **template}]
    world.api.put(DAEMON_SETS, daemon_set)
    for node, container in pods:
        pod = manager.pod()
        pod["metadata"]["name"] = f"ccm-{node}"
        beside = {"name": "beside", "env": [{"name": "AWS_PROFILE", "value": "another"}]}
        pod["spec"] = {"nodeName": node, "containers": [{"name": manager.NAME, **container}, beside]}
        world.api.put(PODS, pod)


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


# ------------------------------------------------------------------------------------------------------------ dry runs


def test_changes_that_dry_runs_allow_are_no_finding() -> None:
    cloud = TryingCloud(shown=DryRun(allowed=["CreateRoute"]))

    assert World(cloud).findings(cloud_rights.CHECK) == []
    assert [controllers for controllers, _ in cloud.asked] == [("node", "node-lifecycle", "route")]


def test_what_dry_runs_cannot_show_is_out_of_reach_and_what_they_showed_is_named() -> None:
    world = World(TryingCloud(shown=DryRun(allowed=["CreateRoute", "DeleteRoute"], unknown=["a has none", "b hid"])))

    with pytest.raises(OutOfReach) as raised:
        world.findings(cloud_rights.CHECK)

    assert str(raised.value) == (
        "every read is allowed, and by dry runs CreateRoute, DeleteRoute, but a has none; b hid"
    )


def test_a_refused_dry_run_is_a_right_that_is_missing_besides_what_is_out_of_reach() -> None:
    world = World(TryingCloud(shown=DryRun(lacking=["CreateRoute: no"], unknown=["load balancers have none"])))

    (result,) = examine([cloud_rights.CHECK], world.look())

    assert [finding.evidence for finding in result.findings] == [("CreateRoute: no",)]
    assert result.out_of_reach == "every read is allowed, but load balancers have none"


def test_a_caller_that_is_refused_altogether_is_a_finding() -> None:
    (finding,) = World(TryingCloud(refusal=AccessDenied("AuthFailure"))).findings(cloud_rights.CHECK)

    assert finding.evidence == ("AuthFailure",)


def test_without_an_answer_to_a_dry_run_the_check_is_not_done() -> None:
    with pytest.raises(Unreadable, match="no answer"):
        World(TryingCloud(refusal=Unavailable("no answer"))).findings(cloud_rights.CHECK)


def test_nothing_is_tried_where_a_read_is_refused() -> None:
    world = World(TryingCloud())
    world.node("a")
    world.cloud.error = AccessDenied("not allowed: DescribeInstances")

    assert [finding.evidence for finding in world.findings(cloud_rights.CHECK)] == [("not allowed: DescribeInstances",)]
    assert world.cloud.asked == []


def test_the_cloud_gets_the_environment_and_the_machines_of_the_ccms_pods() -> None:
    world = World(TryingCloud())
    machine = world.node("a")["spec"]["providerID"]
    world.node("b", 1)
    secret = {"name": "AWS_ACCESS_KEY_ID", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    # The webhook's.
    role = {"name": "AWS_ROLE_ARN", "value": "arn:role"}
    with_ccm(world, {"env": [secret]}, ("a", {"env": [secret, role]}), ("not-yet", {}))

    world.findings(cloud_rights.CHECK)

    environment = {"AWS_ACCESS_KEY_ID": None, "AWS_ROLE_ARN": "arn:role"}
    assert [pods for _, pods in world.cloud.asked] == [CcmPods(environment, {machine})]


@pytest.mark.parametrize("where", ["nowhere", "template", "pod"])
def test_a_ccm_that_does_not_show_its_environment_has_unknown_credentials(where: str) -> None:
    world = World(TryingCloud())
    world.node("a")
    from_secret = {"envFrom": [{"secretRef": {"name": "aws"}}]}
    if where == "template":
        with_ccm(world, from_secret)
    if where == "pod":
        with_ccm(world, {}, ("a", from_secret))

    world.findings(cloud_rights.CHECK)

    assert [pods for _, pods in world.cloud.asked] == [None]
