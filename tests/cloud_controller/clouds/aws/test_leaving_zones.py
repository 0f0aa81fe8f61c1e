"""Another subnet of a zone: as AWS's user guide says, it takes up to three minutes until the old one is out."""

from __future__ import annotations

import pytest

from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import LeavingZones
from tests.cloud_controller.clouds.aws.in_the_account import subnets_of, target_groups, targets
from tests.cloud_controller.clouds.aws.services import in_subnets, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served

NOT_BEHIND_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"


@pytest.fixture
def aws(account: AwsAccount) -> LeavingZones:
    return LeavingZones(account)


@pytest.fixture
def waiting(account: AwsAccount, cluster: Cluster, aws: LeavingZones) -> Running:
    """A load balancer that waits for the zone of its first subnet, the old one being out."""
    running = served(account, cluster, nlb(in_subnets(*account.private_subnets), port(80)), wrap=aws)
    changed(cluster, in_subnets(*moved(account)))
    running.settle(rounds=1)
    assert subnets_of(account) == {*account.private_subnets[1:]}
    return running


def moved(account: AwsAccount) -> tuple[str, ...]:
    """The first subnet has changed for another one of its zone."""
    return (account.public_subnets[0], *account.private_subnets[1:])


def members(account: AwsAccount) -> set[str]:
    return {machine for group in target_groups(account) for machine, _ in targets(account, group)}


def test_the_new_subnet_is_added_as_soon_as_aws_takes_it(
    account: AwsAccount, cluster: Cluster, aws: LeavingZones, waiting: Running
) -> None:
    aws.free()
    waiting.settle()

    assert subnets_of(account) == {*moved(account)}
    assert cluster.reasons[-1] == "EnsuredLoadBalancer"
    assert "SyncLoadBalancerFailed" not in cluster.reasons


def test_the_wait_is_told_once(cluster: Cluster, waiting: Running) -> None:
    told = [*cluster.reasons]

    waiting.settle()

    assert told[-2:] == ["EnsuringLoadBalancer", "Waiting"]
    assert cluster.reasons == told


def test_members_go_while_aws_is_busy_without_a_look_at_the_health_of_others(
    account: AwsAccount, cluster: Cluster, waiting: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sorted(cluster.objects["nodes"])
    monkeypatch.setattr(waiting.cloud.load_balancers, "health", lambda _: pytest.fail("health is asked for"))

    cluster.objects["nodes"][first]["metadata"]["labels"][NOT_BEHIND_LOAD_BALANCERS] = ""
    waiting.take_nodes()
    waiting.settle()

    assert members(account) == {second}


def test_a_change_that_is_taken_back_meanwhile_is_taken_back_in_aws_too(
    account: AwsAccount, cluster: Cluster, aws: LeavingZones, waiting: Running
) -> None:
    changed(cluster, in_subnets(*account.private_subnets))
    waiting.settle()
    aws.free()
    waiting.settle()

    assert subnets_of(account) == {*account.private_subnets}
