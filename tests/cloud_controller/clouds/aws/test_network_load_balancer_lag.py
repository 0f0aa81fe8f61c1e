"""AWS's lists are behind for a while: what they do not show yet is there all the same."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Unavailable
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Behind
from tests.cloud_controller.clouds.aws.in_the_account import load_balancers
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, port, served
from tests.contract.aws_account import snapshot


def test_what_a_list_does_not_show_yet_is_not_made_again(account: AwsAccount, cluster: Cluster) -> None:
    served(account, cluster, nlb(named(connection_idle_timeout=60), port(80), port(443)))
    wanted = snapshot()
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    with pytest.raises(Unavailable, match="already exists"):
        running.settle()
    assert len(load_balancers(account)) == 1

    lists.behind = False
    running.settle()
    assert snapshot() == wanted


def test_what_this_process_has_made_and_no_list_shows_is_not_made_again(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb({}, port(80), port(443)))
    cluster.put(nlb({}, port(80), port(443), name="second"))
    lists = Behind()
    running = Running(account, cluster, wrap=lists)

    running.settle()
    running.resync()
    running.settle()
    lists.behind = False
    running.resync()
    running.settle()

    made = ("CreateLoadBalancer", "CreateTargetGroup", "CreateListener", "RegisterTargets")
    assert [running.calls.of(f"elbv2 {operation}") for operation in made] == [2, 4, 4, 4]
    assert running.calls.of("elbv2 DescribeListeners") == 0, "nothing had to be read of them"
    assert cluster.ingress
