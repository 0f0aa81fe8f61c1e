"""A network load balancer whose AWS name people chose: found by its tags, never taken from somebody else."""

from __future__ import annotations

from contextlib import suppress

import pytest

from cloud_controller.cloud import InvalidConfiguration, Unavailable
from cloud_controller.clouds.aws.annotations import CATALOGUE, PREFIX
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Faults
from tests.cloud_controller.clouds.aws.in_the_account import (
    assert_nothing_left,
    groups_made,
    listeners,
    load_balancers,
    target_groups,
)
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port

NAMED_EDGE = named(name="edge")


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.put(nlb(NAMED_EDGE, port(80), port(443)))
    return cluster


def names(account: AwsAccount) -> list[str]:
    return [lb["LoadBalancerName"] for lb in load_balancers(account)]


def test_it_has_the_name_and_another_process_finds_it(account: AwsAccount, cluster: Cluster) -> None:
    Running(account, cluster).settle()

    second = Running(account, cluster).settle()
    second.resync()
    second.settle()

    assert names(account) == ["edge"]
    assert second.calls.writes == {}


def test_it_is_changed_and_deleted_like_any_other(account: AwsAccount, cluster: Cluster) -> None:
    Running(account, cluster).settle()
    cross_zone = named(cross_zone_load_balancing_enabled=True)
    changed(cluster, cross_zone)

    changing = Running(account, cluster).settle()
    assert dict(changing.calls.writes) == {"elbv2 ModifyLoadBalancerAttributes": 1}

    cluster.delete_service()
    Running(account, cluster).settle(rounds=6)
    assert_nothing_left(account)


@pytest.mark.parametrize("lost", [False, True])
def test_the_last_of_several_takes_the_shared_group_and_the_nodes_rule_with_it(
    account: AwsAccount, cluster: Cluster, lost: bool
) -> None:
    cluster.put(nlb(named(name="other"), port(80), name="second"))
    Running(account, cluster).settle()
    running = Running(account, cluster).settle()

    cluster.delete_service("default/second")
    running.settle("default/second", rounds=6)
    cluster.delete_service()
    if lost:
        Faults(1, dies=False).stand_before(running.cloud._api)
        with pytest.raises(Unavailable, match="no answer from DeleteLoadBalancer"):
            running.settle(WEB)
    running.settle(WEB, rounds=6)

    assert_nothing_left(account)


def test_one_that_was_deleted_by_hand_does_not_hide_its_successor(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster).settle()
    made = running.cloud.load_balancers._network.memory.made
    for cross_zone in (True, False):
        made.forget(*made.all())  # A minute passes.
        if cross_zone:
            account.elbv2.delete_load_balancer(LoadBalancerArn=load_balancers(account)[0]["LoadBalancerArn"])
        running.calls.clear()
        changed(cluster, named(cross_zone_load_balancing_enabled=cross_zone))
        running.settle()

    assert names(account) == ["edge"]
    assert dict(running.calls.writes) == {"elbv2 ModifyLoadBalancerAttributes": 1}


def test_another_name_changes_nothing_and_the_plan_says_so(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster).settle()
    changed(cluster, named(name="other"))
    running.calls.clear()

    running.settle()

    assert names(account) == ["edge"]
    assert running.calls.writes == {}


def test_another_scheme_ends_it_first_for_no_two_can_have_the_name(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster).settle()
    (before,) = load_balancers(account)

    changed(cluster, named(scheme="internal"))
    running.settle(rounds=8)

    (after,) = load_balancers(account)
    assert after["LoadBalancerName"] == "edge"
    assert after["Scheme"] == "internal"
    assert after["LoadBalancerArn"] != before["LoadBalancerArn"]
    assert {*listeners(account, after)} == {80, 443}


def test_a_name_that_is_somebody_elses_is_refused_before_anything_is_made(
    account: AwsAccount, cluster: Cluster
) -> None:
    account.elbv2.create_load_balancer(Name="edge", Type="network", Subnets=[account.public_subnets[0]])

    with pytest.raises(InvalidConfiguration, match=r"another load balancer \(arn:.*\) already has the name 'edge'"):
        Running(account, cluster).settle()

    assert len(load_balancers(account)) == 1
    assert target_groups(account) == []
    assert groups_made(account) == []


def test_of_two_services_with_one_name_the_second_is_refused_and_the_first_is_left_alone(
    account: AwsAccount, cluster: Cluster
) -> None:
    Running(account, cluster).settle()
    cluster.put(nlb(NAMED_EDGE, port(80), port(443), name="thief"))

    running = Running(account, cluster)
    with pytest.raises(InvalidConfiguration, match="already has the name 'edge'"):
        running.settle("default/thief")

    assert running.calls.writes == {}
    assert len(load_balancers(account)) == 1


@pytest.mark.parametrize("left", range(1, 12))
def test_a_creation_that_broke_off_is_finished(account: AwsAccount, cluster: Cluster, left: int) -> None:
    faults = Faults(left, dies=False)
    with suppress(Unavailable):  # Some calls are repeated at once.
        Running(account, cluster, wrap=faults).settle()

    Running(account, cluster).settle(rounds=6)

    assert names(account) == ["edge"]
    (lb,) = load_balancers(account)
    assert {*listeners(account, lb)} == {80, 443}
    assert len(target_groups(account)) == 2


@pytest.mark.parametrize("name", ["internal-edge", "k8s-edge", "-edge", "edge-", "e" * 33, "a_b", f"a{'0' * 31}"])
def test_a_name_that_aws_or_others_would_not_leave_to_it_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfiguration, match="at most 32 letters"):
        CATALOGUE.parse({f"{PREFIX}name": name})
