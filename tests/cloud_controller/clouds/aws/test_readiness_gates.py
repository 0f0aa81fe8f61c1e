"""What readiness gates wait for behind the load balancers of AWS: targets of either type, and classic ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.services import classic, named, nlb
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.gates import counted, unready_slice, verdict
from tests.cloud_controller.load_balancing import Running, port


def settled(account: AwsAccount, cluster: Cluster) -> Running:
    """A controller for which the waiting pod counts as ready."""
    running = Running(account, cluster)
    for each in counted(running):
        running.take_slice(each)
    return running.settle()


def test_a_pod_target_waits_until_it_is_healthy(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    node = next(iter(cluster.objects["nodes"]))
    address = _another(cluster, node)
    cluster.put_slice(unready_slice(node, address))
    running = settled(account, cluster)

    assert verdict(running, node, address) == (True, "Healthy")
    load_balancers = running.cloud.load_balancers
    unfit = dict.fromkeys(load_balancers.health(running.observed()[0].id), False)
    load_balancers.health = lambda _: unfit
    assert verdict(running, node, address) == (False, "Unhealthy")
    load_balancers.health = lambda _: {}
    assert verdict(running, node, address) == (False, "HealthUnknown")


def test_a_pod_that_is_no_target_yet_waits(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    node = next(iter(cluster.objects["nodes"]))
    running = Running(account, cluster).settle()
    cluster.put_slice(unready_slice(node, _another(cluster, node)))

    assert verdict(running, node, _another(cluster, node)) == (False, "NotRegistered")


@pytest.mark.parametrize("make", [classic, nlb])
def test_behind_instances_the_node_is_enough(account: AwsAccount, cluster: Cluster, make: Any) -> None:
    cluster.put(make({}, port(80)))
    node = next(iter(cluster.objects["nodes"]))
    cluster.put_slice(unready_slice(node, "10.244.0.5"))
    running = settled(account, cluster)

    assert verdict(running, node, "10.244.0.5") == (True, "Registered")


def _another(cluster: Cluster, node: str) -> str:
    """An address beside the node's."""
    first, _, last = cluster.address(node).rpartition(".")
    return f"{first}.{(int(last) + 100) % 250}"
