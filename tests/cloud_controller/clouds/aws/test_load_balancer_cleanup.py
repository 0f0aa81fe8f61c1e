"""`cloud-controller cleanup` on AWS: load balancers of both kinds, target groups and security groups go."""

from __future__ import annotations

import threading

import pytest

from cloud_controller import cleanup, converge
from cloud_controller.converge import Converge, Report
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Refusing
from tests.cloud_controller.clouds.aws.in_the_account import assert_nothing_left, load_balancers
from tests.cloud_controller.clouds.aws.services import TYPE, nlb, put_nodes
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.guard import guard
from tests.cloud_controller.load_balancing import Running, port


@pytest.fixture
def cluster(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One Service with a network load balancer, and one with a classic one, before the cluster is gone."""
    monkeypatch.setattr(converge, "round_pause", lambda _: 0.01)
    made = Cluster()
    put_nodes(made, account.launch(1))
    made.put(nlb({}, port(80), port(443)))
    old = nlb({}, port(80), port(443), name="old")
    del old["metadata"]["annotations"][TYPE]
    made.put(old)
    Running(account, made).settle()
    return made


def clean(running: Running, deadline: float = 60.0) -> Report:
    return Converge(
        cleanup.GoneCluster(),
        running.cloud,
        cleanup.finders(running.cloud, None),
        prove=lambda _: None,
        show=lambda *_: None,
        approve=lambda _: True,
        done=lambda _: None,
        safeguard=guard(),
    ).run(None, deadline, threading.Event)


def classic_load_balancers(account: AwsAccount) -> list[str]:
    return [each["LoadBalancerName"] for each in account.elb.describe_load_balancers()["LoadBalancerDescriptions"]]


def test_nothing_of_a_gone_cluster_is_left(account: AwsAccount, cluster: Cluster) -> None:
    assert load_balancers(account) and classic_load_balancers(account)

    report = clean(Running(account, cluster, started=False))

    assert (report.complete, classic_load_balancers(account)) == (True, [])
    assert_nothing_left(account)


def test_what_is_in_use_for_a_while_is_tried_again(account: AwsAccount, cluster: Cluster) -> None:
    refusals = [("DependencyViolation", "resource has a dependent object")] * 3
    in_use = Refusing(lambda call, _: refusals.pop() if refusals and call == "DeleteSecurityGroup" else None)

    clean(Running(account, cluster, started=False, wrap=in_use))

    assert refusals == []
    assert_nothing_left(account)


def test_another_clusters_load_balancers_stay(account: AwsAccount, cluster: Cluster) -> None:
    before = [each["LoadBalancerArn"] for each in load_balancers(account)]

    assert clean(Running(account, cluster, started=False, cluster_id="prod-2", vpc_id=account.vpc_id)).complete

    assert [each["LoadBalancerArn"] for each in load_balancers(account)] == before
