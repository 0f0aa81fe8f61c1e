"""The benchmarks of Alibaba Cloud, without daemon and API server: what is counted, the Services, and our calls."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.alicloud import fewest, recorded
from benchmarks.alicloud.account import Account
from benchmarks.alicloud.cluster import Kinds, services
from benchmarks.alicloud.workloads import NODES, figures
from benchmarks.counts import Counted
from benchmarks.daemons import Spent
from cloud_controller.cloud import CloudError
from cloud_controller.clouds.alicloud import CLOUD
from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.clouds.alicloud.config import parse
from cloud_controller.clouds.alicloud.nlb import jobs, reads
from cloud_controller.controllers.service import cache
from cloud_controller.controllers.service.checkpoint import LIMIT
from cloud_controller.kube import key
from local.alicloud.clb_balancers import CLB
from local.alicloud.nlb_jobs import BALANCER as NLB
from local.alicloud.nlb_jobs import GROUP
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running

pytestmark = pytest.mark.integration

TEN = Kinds(clb=10, nlb=10)
LONG = 1.0


class Served:
    """The account of a benchmark over HTTP, and a cluster in memory with its nodes and Services."""

    def __init__(self, account: Account, config: str) -> None:
        self.account = account
        self.cluster = Cluster()
        self._config = parse(config)
        self._before = account.cloud.counted()

    def new_cloud(self, **_: Any) -> AliCloud:
        return AliCloud(self._config)

    def settle(self) -> None:
        """Nothing: jobs are done when they are asked for."""

    def add_nodes(self, count: int) -> None:
        for machine in self.account.add_machines(count):
            self.cluster.put_node(machine.name, machine.provider_id, machine.address)

    def add_services(self, kinds: Kinds) -> None:
        for number, each in enumerate(services(self.account, kinds)):
            service = copy.deepcopy(each)
            service["metadata"] |= {"uid": f"uid-{number}", "finalizers": []}
            service["spec"]["ports"][0] |= {"nodePort": 30000 + number, "protocol": "TCP"}
            self.cluster.put({**service, "status": {}})

    def start(self, prepare: Callable[[Any], None] = lambda _: None) -> Running:
        """A controller that has seen to every Service."""
        running = Running(self, self.cluster, wrap=prepare).settle(rounds=1)
        for each in self.cluster.objects["services"].values():
            assert each["status"]["loadBalancer"]["ingress"], (key(each), self.cluster.events)
        return running

    def calls(self) -> Counted:
        """Since the last call of this."""
        before, self._before = self._before, self.account.cloud.counted()
        return self._before.since(before)


@pytest.fixture
def served() -> Iterator[Served]:
    account = Account()
    with account.served() as config:
        yield Served(account, config)


def within(calls: Counted, least: int) -> bool:
    print(json.dumps(dict(calls.calls)), "fewest", least)
    return not calls.failed and least <= calls.total <= fewest.limit(least)


def test_successful_and_failed_calls_are_counted_apart(served: Served) -> None:
    cloud = served.new_cloud()
    served.account.cloud.faults.clear()
    served.account.cloud.faults.add(Fault("ecs.DescribeInstances", error=Refusal(400, "InvalidParameter", "no")))

    with pytest.raises(CloudError):
        cloud.instances.list()
    cloud.instances.list()

    counted = served.calls()
    assert counted.failed == {"ecs.DescribeInstances InvalidParameter": 1}
    assert counted.calls == {"ecs.DescribeInstances": 2}  # One for each tag.
    assert (counted.total, counted.busy) == (3, 0)


def test_five_thousand_machines_are_listed_in_the_fewest_calls_and_a_look_for_acks_tag(served: Served) -> None:
    served.account.add_machines(5000)

    assert len(served.new_cloud().instances.list()) == 5000

    assert served.calls().total == fewest.initialised(5000) + 1


def test_ten_classic_load_balancers_are_made_within_the_limit(served: Served) -> None:
    served.add_nodes(NODES)
    served.add_services(Kinds(clb=10))

    served.start()

    assert within(served.calls(), fewest.made(Kinds(clb=10)))


def test_ten_network_load_balancers_are_made_within_the_limit_of_ten_made_alone(served: Served) -> None:
    served.add_nodes(NODES)
    served.add_services(Kinds(nlb=10))

    served.start()

    # One worker shares no look at jobs.
    assert within(served.calls(), 10 * (fewest.made(Kinds(nlb=1)) - 1) + 1)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared calls wait longer for workers: the machine may be busy."""
    monkeypatch.setattr(cache, "_GATHER", LONG)
    for module in (jobs, reads):
        monkeypatch.setattr(module, "GATHER", LONG)


@pytest.mark.usefixtures("patient")
def test_the_clouds_workers_make_and_delete_ten_of_each_kind_within_the_limits(served: Served) -> None:
    served.add_nodes(1)
    served.add_services(TEN)
    running, services = Running(served, served.cluster), sorted(served.cluster.objects["services"])
    running.controller._cache.workers = CLOUD.concurrent_services
    with ThreadPoolExecutor(CLOUD.concurrent_services) as workers:
        [*workers.map(running.handle, services)]
        assert within(served.calls(), fewest.made(TEN))

        for each in services:
            served.cluster.delete_service(each)
        [*workers.map(running.handle, services)]
        assert within(served.calls(), fewest.deleted(TEN))

    assert not served.cluster.objects["services"]
    assert not [each for kind in (CLB, NLB, GROUP) for each in served.account.objects(kind)]


def test_restarts_an_idle_period_and_a_node_are_within_the_limits(served: Served) -> None:
    served.add_nodes(NODES)
    served.add_services(TEN)
    memory = served.start().cloud.load_balancers.dump(LIMIT)
    served.calls()

    served.start(lambda cloud: cloud.load_balancers.restore(memory))
    assert within(served.calls(), fewest.lists(TEN))

    running = served.start()
    assert within(served.calls(), fewest.all_read(TEN))

    running.resync()
    assert within(served.calls(), fewest.lists(TEN))

    served.add_nodes(1)
    running.take_nodes()
    running.settle(rounds=1)
    # Nodes are another controller's here; one worker shares no look at jobs.
    assert served.calls().total == 10 * (fewest.node_added(Kinds(1, 1)) - 1)


def test_a_deletion_takes_fewer_calls_than_the_recorded_peers(served: Served) -> None:
    served.add_nodes(1)
    served.add_services(TEN)
    running = served.start()
    served.calls()

    for each in [*served.cluster.objects["services"]]:
        served.cluster.delete_service(each)
    running.settle(rounds=2)

    assert not served.cluster.objects["services"]
    assert fewest.deleted(TEN) <= served.calls().total < recorded.deleted(TEN)


def test_the_bounds_are_the_promise_and_the_recorded_peer() -> None:
    counted = Counted({"ecs.DescribeInstances": 3}, {}, 0, 0.0)

    calls, peer, *others = figures("alicloud-nodes-200", Spent(counted, 1.0, 0.5, 90.0), 2, 204)

    assert json.loads(calls.to_json()) == {
        "name": "alicloud-nodes-200.calls",
        "value": 3,
        "unit": "calls",
        "bound": 12.2,
        "ratio": 0.246,
        "floor": 2,
    }
    assert (peer.value, peer.bound) == (3, 204)
    assert [(each.unit, each.bound) for each in others] == [("s", None), ("s", None), ("MiB", None)]


def test_the_rules_that_extend_the_recording_give_what_was_recorded() -> None:
    # Machines, the route table and its routes; the table, its routes and the new one.
    assert recorded.restart(recorded.RESTARTED) + 3 == recorded.RESTART
    assert recorded.node_joins(recorded.RESTARTED) + 3 == recorded.NODE_JOINS
    # nodes/many-nodes-two-tables; without its looks for a table.
    assert recorded.initialised(120) == 124
    # nodes/init-and-routes, where one of five checks was off already.
    assert recorded.routed(5) == 14 + 1
