"""What nodes cost on AWS, from the start of the daemon on: calls for hundreds and for thousands of them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud_errors import NotFound
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.config import Config
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.controllers.route import RouteController, RouteOptions
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.controllers.nodes_in_memory import Cluster

if TYPE_CHECKING:
    from tests.cloud_controller.calls import Calls
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

CONTROLLERS = ("node", "node-lifecycle", "service")
PODS = "100.64.0.0/12"


class Ec2:
    """Answers of EC2 about thousands of instances, in pages as it gives them; moto takes minutes to make them."""

    def __init__(self, count: int) -> None:
        self.calls: Counter[str] = Counter()
        self.instances = {f"i-{number:017x}": self._instance(number) for number in range(count)}

    def call(self, service: str, operation: str, /, **params: Any) -> dict[str, Any]:
        self.calls[f"{service} {operation}"] += 1
        match operation:
            case "GetCallerIdentity":
                return {"Arn": "arn:aws:sts::123456789012:assumed-role/ccm/i-1"}
            case "DescribeAvailabilityZones":
                return {"AvailabilityZones": [{"ZoneName": f"z-1{zone}", "ZoneId": f"z1-{zone}"} for zone in "abc"]}
            case "DescribeInstances":
                return self._described(params)
        raise AssertionError(f"{service} {operation}")

    def _described(self, params: dict[str, Any]) -> dict[str, Any]:
        if ids := params.get("InstanceIds"):
            if missing := [each for each in ids if each not in self.instances]:
                raise NotFound(f"The instance IDs '{', '.join(missing)}' do not exist")
            return self._page([self.instances[each] for each in ids])
        (named,) = params["Filters"]
        found = [*self.instances.values()]
        if named["Name"] == "instance-id":
            found = [self.instances[each] for each in named["Values"] if each in self.instances]
        assert named["Name"] in ("instance-id", "tag-key"), named
        start, most = int(params.get("NextToken", 0)), params["MaxResults"]
        further = {"NextToken": str(start + most)} if start + most < len(found) else {}
        return self._page(found[start : start + most]) | further

    def _page(self, found: list[dict[str, Any]]) -> dict[str, Any]:
        return {"Reservations": [{"Instances": [each]} for each in found]}

    def _instance(self, number: int) -> dict[str, Any]:
        address = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
        return {
            "InstanceId": f"i-{number:017x}",
            "InstanceType": "m5.large",
            "State": {"Name": "running"},
            "Placement": {"AvailabilityZone": f"z-1{'abc'[number % 3]}"},
            "PrivateDnsName": f"ip-{address.replace('.', '-')}.z-1.compute.internal",
            "NetworkInterfaces": [
                {"Status": "in-use", "PrivateIpAddresses": [{"PrivateIpAddress": address}]},
            ],
        }


class Daemon:
    """The controllers of nodes on a cluster in memory."""

    def __init__(self, cloud: Aws) -> None:
        self.cluster = Cluster(FakeCloud())
        self.cluster.cloud = cloud  # type: ignore[assignment]
        self.cluster.machines = InstanceSnapshot(cloud.instances, 5.0, clock=self.cluster.clock)
        self.node = NodeController(self.cluster.context)
        self.lifecycle = NodeLifecycleController(self.cluster.context)

    def register(self, name: str, provider_id: str, **more: Any) -> None:
        """What a kubelet does; it may have been told its provider ID."""
        self.cluster.register(name, **more)
        if provider_id:
            self.cluster.stored[name]["spec"]["providerID"] = provider_id

    def work(self) -> None:
        """One pass of each, and what follows from their own writes."""
        for controller in (self.node, self.lifecycle):
            assert [*controller.reconcile(None)] == []
            assert [*controller.reconcile(self.cluster.triggered(controller))] == []


def started(ec2: Ec2, *, identified: bool = True) -> Daemon:
    """A daemon on a cluster all of whose nodes have registered, with their provider IDs or without."""
    cloud = Aws(Config("c", region="z-1"))
    cloud._api.call = ec2.call  # type: ignore[method-assign]
    daemon = Daemon(cloud)
    cloud._cache.clock = daemon.cluster.clock
    for machine, instance in ec2.instances.items():
        zone = instance["Placement"]["AvailabilityZone"]
        daemon.register(instance["PrivateDnsName"], f"aws:///{zone}/{machine}" if identified else "")
    cloud.check_access(CONTROLLERS)
    return daemon


def _of_many(count: int, identified: bool) -> Any:
    """Takes seconds of a processor."""
    return pytest.param(count, identified, marks=pytest.mark.integration)


@pytest.mark.parametrize(
    ("count", "identified"), [(200, True), (1000, True), (200, False), _of_many(5000, True), _of_many(2000, False)]
)
def test_nodes_are_initialised_with_a_call_a_thousand_and_two_more(count: int, identified: bool) -> None:
    ec2 = Ec2(count)
    daemon = started(ec2, identified=identified)

    daemon.work()

    assert not any(has_taint(node, UNINITIALIZED_TAINT) for node in daemon.cluster.items())
    assert ec2.calls.total() <= math.ceil(count / 1000) + 3
    assert ec2.calls == {
        "sts GetCallerIdentity": 1,
        "ec2 DescribeInstances": math.ceil(count / 1000),
        "ec2 DescribeAvailabilityZones": 1,
    }


def test_at_rest_nodes_cost_one_snapshot_a_period_however_many_ask() -> None:
    ec2 = Ec2(1100)
    daemon = started(ec2)
    daemon.work()
    ec2.calls.clear()

    for _ in range(3):
        daemon.cluster.clock.now += 300
        daemon.work()

    assert ec2.calls == {"ec2 DescribeInstances": 3 * 2}


def test_ready_nodes_cost_nothing_between_two_snapshots() -> None:
    ec2 = Ec2(200)
    daemon = started(ec2)
    daemon.work()
    ec2.calls.clear()

    for _ in range(50):
        daemon.cluster.clock.now += 5
        assert [*daemon.lifecycle.reconcile(None)] == []

    assert ec2.calls == {}


def test_a_hundred_machines_that_vanish_at_once_cost_two_calls_and_their_nodes_go(monkeypatch: Any) -> None:
    ec2 = Ec2(300)
    daemon = started(ec2)
    daemon.work()
    gone = [*ec2.instances.values()][:100]
    monkeypatch.setattr("cloud_controller.clouds.aws.instances.error_code", lambda _: "InvalidInstanceID.NotFound")
    for instance in gone:
        del ec2.instances[instance["InstanceId"]]
        node = daemon.cluster.stored[instance["PrivateDnsName"]]
        node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    daemon.cluster.clock.now += 6
    ec2.calls.clear()

    assert [*daemon.lifecycle.reconcile(None)] == []

    assert len(daemon.cluster.stored) == 200
    # Once to see it and once more to be sure, each by a filter and by the ids that it lacks.
    assert ec2.calls == {"ec2 DescribeInstances": 4}


def test_on_the_simulator_nodes_and_routes_stay_within_their_budget(account: AwsAccount, calls: Calls) -> None:
    launched = account.launch(40)
    cloud = Aws(account.config())
    cloud.observe_calls(calls)
    daemon = Daemon(cloud)
    for number, machine in enumerate(launched):
        zone = machine["Placement"]["AvailabilityZone"]
        provider_id = f"aws:///{zone}/{machine['InstanceId']}"
        daemon.register(machine["PrivateDnsName"], provider_id, pod_cidr=f"100.64.{number}.0/24")
    route = RouteController(daemon.cluster.context, RouteOptions((PODS,)))
    cloud.check_access((*CONTROLLERS, "route"))

    daemon.work()
    assert calls.counts.total() <= 4
    calls.clear()
    assert [*route.reconcile(None)] == []

    assert calls.writes == {"ec2 CreateRoute": 40, "ec2 ModifyInstanceAttribute": 40}
    assert calls.of("ec2 DescribeRouteTables") == 1
    table = {(found.destination_cidr, found.target_instance) for found in cloud.routes.list()}
    assert table >= {(f"100.64.{number}.0/24", each["InstanceId"]) for number, each in enumerate(launched)}
    calls.clear()
    assert [*route.reconcile(None)] == []
    assert calls.made == ["ec2 DescribeRouteTables"]
