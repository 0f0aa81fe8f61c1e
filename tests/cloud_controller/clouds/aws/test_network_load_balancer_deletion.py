"""What can't be deleted at once is deleted later: it holds up nobody, and is never forgotten (aws#566, #752, #1208)."""

from __future__ import annotations

import pytest

from cloud_controller.binding import Binding
from cloud_controller.cloud import Conflict
from cloud_controller.controllers.service.controller import POLL
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import DeletionProtection, security_groups_in_use
from tests.cloud_controller.clouds.aws.in_the_account import (
    assert_nothing_left,
    groups_made,
    load_balancers,
    target_groups,
)
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.put(nlb({}, port(80), port(443)))
    return cluster


def test_while_security_groups_are_in_use_the_service_keeps_its_finalizer(
    account: AwsAccount, cluster: Cluster
) -> None:
    in_use = security_groups_in_use()
    running = Running(account, cluster, wrap=in_use).settle()

    cluster.delete_service()
    running.settle()

    assert load_balancers(account) == []
    assert WEB in cluster.objects["services"]
    assert groups_made(account)
    assert target_groups(account), "something must tell of the Service when the last group goes"

    in_use.end()
    running.settle()
    assert_nothing_left(account)
    assert not cluster.objects["services"]


def test_each_look_at_what_is_in_use_is_cheap(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster, wrap=security_groups_in_use())
    cluster.put(nlb({}, port(80), port(443), name="second"))
    running.settle()
    cluster.delete_service()
    running.settle()
    running.calls.clear()

    running.handle(POLL)
    running.handle()

    assert dict(running.calls.counts) == {
        "elbv2 DescribeLoadBalancers": 1,
        "elbv2 DescribeTargetGroups": 1,
        "elbv2 DescribeTags": 1,
    }


def test_however_many_looks_it_takes_it_is_told_once(account: AwsAccount, cluster: Cluster) -> None:
    in_use = security_groups_in_use()
    running = Running(account, cluster, wrap=in_use).settle()
    cluster.delete_service()
    running.settle()

    in_use.end()
    running.settle()

    assert cluster.reasons[-2:] == ["DeletingLoadBalancer", "DeletedLoadBalancer"]
    assert cluster.reasons.count("DeletingLoadBalancer") == 1


def test_it_goes_on_though_the_service_is_gone(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster, wrap=security_groups_in_use()).settle()
    cluster.delete_service()
    running.settle()
    del cluster.objects["services"][WEB]
    after = Running(account, cluster).settle()

    after.confirm_all()
    after.settle()

    assert_nothing_left(account)


def test_one_confirmation_is_enough_though_it_takes_two_processes(account: AwsAccount, cluster: Cluster) -> None:
    cluster.objects["namespaces"] = {"kube-system": {"metadata": {"uid": "uid-here"}}}
    here = Binding("uid-here")
    Running(account, cluster, binding=here).settle()
    del cluster.objects["services"][WEB]
    running = Running(account, cluster, wrap=security_groups_in_use(), binding=here).settle()

    running.confirm_all()
    running.settle()
    assert groups_made(account)
    Running(account, cluster, binding=here).settle()

    assert_nothing_left(account)


def test_meanwhile_another_service_gets_its_load_balancer(account: AwsAccount, cluster: Cluster) -> None:
    in_use = security_groups_in_use()
    running = Running(account, cluster, wrap=in_use).settle()
    cluster.delete_service()
    running.settle(WEB)

    cluster.put(nlb({}, port(80), port(443), name="second"))
    running.settle()

    (lb,) = load_balancers(account)
    assert len(lb["SecurityGroups"]) == 2
    in_use.end()
    running.settle()
    assert len(groups_made(account)) == 2 and len(target_groups(account)) == 2


def test_a_service_that_wants_one_again_takes_over_what_is_left(account: AwsAccount, cluster: Cluster) -> None:
    running = Running(account, cluster, wrap=security_groups_in_use()).settle()
    changed(cluster, type="ClusterIP")
    running.settle()
    left = groups_made(account)

    changed(cluster, type="LoadBalancer")
    running.settle()

    (lb,) = load_balancers(account)
    assert len(groups_made(account)) == len(left)
    assert len(target_groups(account)) == 2
    assert cluster.ingress == [{"hostname": lb["DNSName"]}]


def test_a_deleted_service_leaves_a_protected_load_balancer_to_whoever_takes_the_protection_off(
    account: AwsAccount, cluster: Cluster
) -> None:
    protected = named(attributes=("deletion_protection.enabled=true",))
    running = served(account, cluster, nlb(protected), wrap=DeletionProtection(account))
    (lb,) = load_balancers(account)

    cluster.delete_service()
    with pytest.raises(Conflict, match="deletion protection is enabled"):
        running.settle()
    assert load_balancers(account)
    assert cluster.objects["services"]

    account.elbv2.modify_load_balancer_attributes(
        LoadBalancerArn=lb["LoadBalancerArn"], Attributes=[{"Key": "deletion_protection.enabled", "Value": "false"}]
    )
    running.settle(rounds=6)
    assert load_balancers(account) == []
