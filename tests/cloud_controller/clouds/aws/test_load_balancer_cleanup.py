"""`cloud-controller cleanup` on AWS: load balancers of both kinds, target groups and security groups go."""

from __future__ import annotations

import threading

import pytest

from cloud_controller import cleanup, converge
from cloud_controller.converge import Converge, Report
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Refusing
from tests.cloud_controller.clouds.aws.in_the_account import assert_nothing_left, classic_load_balancers, load_balancers
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
        safeguard=guard(cleanup.GoneCluster()),
    ).run(None, deadline, threading.Event)


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


def end_all_machines(account: AwsAccount) -> None:
    pages = account.ec2.get_paginator("describe_instances").paginate()
    found = [each["InstanceId"] for page in pages for of in page["Reservations"] for each in of["Instances"]]
    account.ec2.terminate_instances(InstanceIds=found)


def test_a_cluster_of_eks_is_left_alone_though_no_machine_of_it_is_left(account: AwsAccount, cluster: Cluster) -> None:
    end_all_machines(account)
    subnets = {"subnetIds": account.private_subnets}
    role = "arn:aws:iam::123456789012:role/eks"
    account.api().call("eks", "CreateCluster", name="prod-1", roleArn=role, resourcesVpcConfig=subnets)

    with pytest.raises(converge.Refused, match="cluster prod-1 still exists: aws shows it"):
        cleanup.require_dead(Running(account, cluster, started=False).cloud)


def test_without_eks_living_machines_leave_a_cluster_alone_and_ended_ones_prove_nothing(
    account: AwsAccount, cluster: Cluster
) -> None:
    cloud = Running(account, cluster, started=False).cloud
    with pytest.raises(converge.Refused, match=r"prod-1 still exists: it has 1 machine: i-\w+ \(ip-.*, running\)"):
        cleanup.require_dead(cloud)

    end_all_machines(account)
    answered = cleanup.require_dead(cloud)

    stake = cleanup.at_stake(cloud, None)
    assert (answered, stake.load_balancers) == (False, 2)
    with pytest.raises(converge.Refused, match=r"aws cannot tell\. At stake: 2 load balancers"):
        cleanup.evidence(cloud, stake, None, answered=answered, said=False)
