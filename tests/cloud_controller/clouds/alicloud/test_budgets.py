"""What nodes and routes cost on Alibaba Cloud, from the start on, and what becomes of them.

The recordings of Alibaba's own controller (`nodes/` there) have the same steps.
"""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.cloud_controller.clouds.alicloud.daemon import Daemon


def running(account: Account, count: int, **more: Any) -> Daemon:
    account.standin.world.quotas.custom_routes = 300
    daemon = Daemon(account)
    for number in range(count):
        daemon.add_node(number, **more)
    return daemon


@pytest.mark.parametrize("identified", [True, False])
def test_five_nodes_are_initialised_and_routed_in_the_fewest_calls(alicloud: Account, identified: bool) -> None:
    daemon = running(alicloud, 5, identified=identified)

    calls = daemon.work()

    assert calls == {
        "ecs.DescribeInstances": 1 if identified else 2,
        "vpc.DescribeRouteTableList": 1,
        "vpc.DescribeRouteEntryList": 1,
        "ecs.DescribeNetworkInterfaces": 1,
        "ecs.ModifyNetworkInterfaceAttribute": 5,
        "quotas.GetProductQuota": 1,
        "vpc.CreateRouteEntries": 1,
    }
    for node in daemon.cluster.items():
        assert not has_taint(node, UNINITIALIZED_TAINT)
        assert node["spec"]["providerID"].startswith("cn-hangzhou.i-")
        assert node["metadata"]["labels"]["alibabacloud.com/instance-type-family"] == "ecs.g7"
        assert {"type": "InternalIP", "address": node["status"]["addresses"][0]["address"]} in node["status"][
            "addresses"
        ]
    assert len(daemon.routes()) == 5


def test_a_restart_with_nothing_changed_costs_three_reads_as_alibabas_controllers_and_the_quota(
    alicloud: Account,
) -> None:
    first = running(alicloud, 5)
    first.work()

    calls = Daemon(alicloud, first.cluster.api).work()

    assert calls == {
        "ecs.DescribeInstances": 1,
        "vpc.DescribeRouteTableList": 1,
        "vpc.DescribeRouteEntryList": 1,
        "quotas.GetProductQuota": 1,
    }


def test_two_hundred_nodes_cost_a_page_each_hundred_of_both_tags(alicloud: Account) -> None:
    daemon = running(alicloud, 200)

    calls = daemon.work()

    assert calls["ecs.DescribeInstances"] == 3  # Two of our tag, one empty one of ACK's.
    assert calls["vpc.CreateRouteEntries"] == 4
    assert calls["ecs.DescribeNetworkInterfaces"] == 2
    assert len(daemon.routes()) == 200


def test_nodes_with_provider_ids_as_uris_are_served_by_lists_too(alicloud: Account) -> None:
    daemon = running(alicloud, 120)
    for node in daemon.cluster.stored.values():
        machine = node["spec"]["providerID"].partition(".")[2]
        node["spec"]["providerID"] = f"alicloud:///cn-hangzhou-h/{machine}"
    daemon.work()
    assert len(daemon.routes()) == 120
    daemon.cluster.clock.now += 300

    assert daemon.work() == {"ecs.DescribeInstances": 3, "vpc.DescribeRouteEntryList": 2}
