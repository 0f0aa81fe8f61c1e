"""Members of pools on the real Octavia: nodes whose subnet is unknown, or that somebody else has changed."""

from __future__ import annotations

import pytest

from cloud_controller.clouds.openstack.octavia import topology
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.octavia.services import named, nodes
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import changed, left_out, port, served, service

pytestmark = pytest.mark.integration

ELSEWHERE = "172.16.0.9"
"""An address that no subnet of the project has."""


def with_odd_node(*names: str, cluster: Cluster | None = None) -> Cluster:
    """A cluster with these nodes, and one on a network that the project does not see."""
    cluster = nodes(*names, cluster=cluster)
    cluster.put_node("odd", "openstack:///00000000-0000-4000-8000-00000000000f", ELSEWHERE)
    return cluster


def members(account: OctaviaAccount) -> list[str]:
    return [each["name"] for pool in account.parts("pools") for each in account.members(pool)]


def test_a_node_in_no_subnet_is_told_and_left_out_while_all_others_serve(account: OctaviaAccount) -> None:
    cluster = with_odd_node("node1", "node2")

    running = served(account, cluster, service({}, port(80)))

    (told,) = left_out(cluster)
    assert f"no subnet of the project has the node's address {ELSEWHERE}" in told
    assert members(account) == ["node1", "node2"]

    nodes("node3", cluster=cluster)
    del cluster.objects["nodes"]["node1"]
    running.take_nodes()
    running.settle()

    assert members(account) == ["node2", "node3"]
    assert running.calls.writes == {"PUT load-balancer lbaas/pools/ID/members": 1}
    assert left_out(cluster) == [told]
    assert "SyncLoadBalancerFailed" not in cluster.reasons


def test_old_members_leave_although_one_of_their_successors_is_left_out(account: OctaviaAccount) -> None:
    cluster = with_odd_node("node1")
    running = served(account, cluster, service({}, port(80)))

    changed(cluster, ports=[port(80, nodePort=31000)])
    running.take_nodes()
    running.settle(rounds=8)

    (pool,) = account.parts("pools")
    assert [each["protocol_port"] for each in account.members(pool)] == [31000]


def test_unhealthy_members_stay_while_none_of_their_successors_can_be_added(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    (member,) = account.members(account.parts("pools")[0])
    account.site.peer.admin.put("load-balancer-peer", f"members/{member['id']}", {"operating_status": "ERROR"})

    with_odd_node(cluster=cluster)
    del cluster.objects["nodes"]["node1"]
    running.take_nodes()
    running.settle(rounds=2)

    assert members(account) == ["node1"]
    (told,) = left_out(cluster)
    assert "no subnet of the project" in told


def test_a_node_in_a_subnet_that_has_just_been_made_becomes_a_member(
    account: OctaviaAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "_MISSED_SECONDS", 0.0)
    cluster = nodes("node1")
    running = served(account, cluster, service(named(internal=True), port(80)))

    account.site.project.network("more", "10.7.0.0/24")
    cluster.put_node("node2", "openstack:///00000000-0000-4000-8000-00000000000e", "10.7.0.9")
    running.take_nodes()
    running.settle()

    assert members(account) == ["node1", "node2"]
