"""What ten Services of two ports cost on AWS: made, at rest, after a restart, with a node more (issue 6's goals)."""

from __future__ import annotations

import pytest

from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.in_the_account import assert_nothing_left, listeners, load_balancers
from tests.cloud_controller.clouds.aws.services import named, nlb, put_nodes
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.controllers.service.test_checkpoint import Cluster as ConfigMaps
from tests.cloud_controller.load_balancing import Running, changed, port

SERVICES = 10
PORTS = 2
NODES = 120
"""So that the targets of a target group take two calls."""

SHARED = 2
"""Calls that make what all load balancers share: a security group, and a rule that lets it in to the nodes."""


@pytest.fixture
def cluster(account: AwsAccount) -> Cluster:
    made = Cluster()
    put_nodes(made, account.launch(NODES))
    for number in range(SERVICES):
        made.put(nlb({}, port(80, nodePort=30000 + number), port(443, nodePort=31000 + number), name=f"web{number}"))
    return made


def test_ten_services_stay_within_their_budgets(account: AwsAccount, cluster: Cluster) -> None:
    kept = ConfigMaps()

    running = Running(account, cluster, checkpoint=kept).settle()

    a_service = 3 + PORTS * 4  # Front group and rules, load balancer; a target group, two registrations, a listener.
    assert running.calls.writes.total() == SERVICES * a_service + SHARED
    # The loop has one poll for all that wait; by hand, each round has one.
    assert len(running.calls.made) - running.calls.writes.total() <= 10 + SERVICES

    running.calls.clear()
    running.resync()
    running.settle(rounds=1)
    assert dict(running.calls.counts) == {
        "elbv2 DescribeLoadBalancers": 1,
        "elbv2 DescribeTargetGroups": 1,
        "elb DescribeLoadBalancers": 1,
    }

    assert running.checkpoint is not None
    assert running.checkpoint.save()
    restarted = Running(account, cluster, checkpoint=kept).settle()
    assert restarted.calls.writes.total() == 0
    assert len(restarted.calls.made) <= 15
    assert not [each for each in restarted.calls.made if "Attributes" in each or "Health" in each or "Tags" in each]

    restarted.calls.clear()
    put_nodes(cluster, account.launch(1))
    restarted.take_nodes()
    restarted.settle()
    assert dict(restarted.calls.counts) == {"elbv2 RegisterTargets": SERVICES * PORTS}
    assert not kept.full, "what it knew is not true any more"

    restarted.calls.clear()
    changed(cluster, named(cross_zone_load_balancing_enabled=True), "default/web3")
    restarted.settle()
    assert dict(restarted.calls.writes) == {"elbv2 ModifyLoadBalancerAttributes": 1}
    assert len(restarted.calls.made) <= 4

    for number in range(SERVICES):
        cluster.delete_service(f"default/web{number}")
    restarted.settle(rounds=6)
    assert_nothing_left(account)
    assert not cluster.objects["services"]


def test_without_a_checkpoint_details_are_read_once(account: AwsAccount, cluster: Cluster) -> None:
    Running(account, cluster).settle()

    restarted = Running(account, cluster).settle()

    assert restarted.calls.writes.total() == 0
    assert restarted.calls.of("elbv2 DescribeListeners") == SERVICES
    assert restarted.calls.of("elbv2 DescribeTargetHealth") == SERVICES * PORTS
    assert restarted.calls.of("elbv2 DescribeTags") == 2, "thirty things, twenty a call"


def test_what_somebody_did_while_no_process_ran_is_seen_in_spite_of_the_checkpoint(
    account: AwsAccount, cluster: Cluster
) -> None:
    kept = ConfigMaps()
    running = Running(account, cluster, checkpoint=kept).settle()
    assert running.checkpoint is not None
    running.checkpoint.save()
    victim = load_balancers(account)[0]
    account.elbv2.delete_load_balancer(LoadBalancerArn=victim["LoadBalancerArn"])

    Running(account, cluster, checkpoint=kept).settle()

    found = {lb["LoadBalancerName"]: lb for lb in load_balancers(account)}
    assert len(found) == SERVICES
    assert {*listeners(account, found[victim["LoadBalancerName"]])} == {80, 443}
