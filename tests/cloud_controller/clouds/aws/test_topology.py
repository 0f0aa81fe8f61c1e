"""Labels of where a machine stands: zone ids for all, a place in the network where AWS tells one, few calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cloud_controller.cloud_errors import AccessDenied, InvalidConfiguration, NotFound, Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.topology import Topology
from cloud_controller.clouds.common.cache import Cache
from tests.clock import Clock

ZONES = {"AvailabilityZones": [{"ZoneName": "z-1a", "ZoneId": "z1-az1"}, {"ZoneName": "z-1b", "ZoneId": "z1-az2"}]}


class FakeApi(Api):
    """Answers as these functions say; moto has no DescribeInstanceTopology."""

    def __init__(self, topology: Callable[[list[str]], dict[str, Any]], **config: Any) -> None:
        super().__init__(Config("c", region="z-1", **config))
        self.asked: list[list[str]] = []
        self.zone_calls = 0
        self._topology = topology

    def call(
        self, _service: str, operation: str, /, *, idempotent: bool | None = None, **params: Any
    ) -> dict[str, Any]:
        assert idempotent is None
        if operation == "DescribeAvailabilityZones":
            self.zone_calls += 1
            return ZONES
        assert operation == "DescribeInstanceTopology"
        self.asked.append(params["InstanceIds"])
        return self._topology(params["InstanceIds"])


def instance(id: str, type: str = "m5.large", zone: str = "z-1a", state: str = "running") -> dict[str, Any]:
    return {"InstanceId": id, "InstanceType": type, "Placement": {"AvailabilityZone": zone}, "State": {"Name": state}}


def places(ids: Sequence[str]) -> dict[str, Any]:
    return {"Instances": [{"InstanceId": each, "NetworkNodes": ["nn-far", "nn-mid", f"nn-{each}"]} for each in ids]}


def none(_ids: Sequence[str]) -> dict[str, Any]:
    return {"Instances": []}


def fail(error: Exception) -> Callable[[list[str]], dict[str, Any]]:
    def topology(_ids: list[str]) -> dict[str, Any]:
        raise error

    return topology


def test_every_machine_gets_its_zones_id_and_zones_are_asked_for_once() -> None:
    api = FakeApi(none)
    topology = Topology(api, Cache())

    labels = topology.labels([instance("i-1"), instance("i-2", zone="z-1b")])
    topology.labels([instance("i-3", zone="z-1b")])

    assert labels["i-1"] == {"topology.k8s.aws/zone-id": "z1-az1"}
    assert labels["i-2"] == {"topology.k8s.aws/zone-id": "z1-az2"}
    assert api.zone_calls == 1


def test_zones_are_not_asked_for_where_the_machines_tell_their_ids() -> None:
    api = FakeApi(none)
    told = instance("i-1")
    told["Placement"]["AvailabilityZoneId"] = "z1-az9"

    labels = Topology(api, Cache()).labels([told])

    assert labels["i-1"] == {"topology.k8s.aws/zone-id": "z1-az9"}
    assert api.zone_calls == 0


def test_a_zone_that_has_come_since_is_asked_for() -> None:
    api = FakeApi(none)
    topology = Topology(api, Cache())
    topology.labels([instance("i-1")])

    topology.labels([instance("i-2", zone="z-1c")])

    assert api.zone_calls == 2


def test_a_machine_for_big_computations_gets_its_place_in_the_network() -> None:
    labels = Topology(FakeApi(places), Cache()).labels([instance("i-1", "p5.48xlarge")])

    assert labels["i-1"] == {
        "topology.k8s.aws/zone-id": "z1-az1",
        "topology.k8s.aws/network-node-layer-1": "nn-far",
        "topology.k8s.aws/network-node-layer-2": "nn-mid",
        "topology.k8s.aws/network-node-layer-3": "nn-i-1",
    }


@pytest.mark.parametrize("type", ["m5.large", "c6i.xlarge", "pt1.large", "g6.xlarge"])
def test_of_other_types_nobody_asks(type: str) -> None:
    api = FakeApi(places)

    Topology(api, Cache()).labels([instance("i-1", type)])

    assert api.asked == []


@pytest.mark.parametrize("type", ["hpc7a.96xlarge", "trn1.32xlarge", "p4d.24xlarge", "p6-b200.48xlarge", "g6e.xlarge"])
def test_the_types_of_aws_own_page_are_asked_for(type: str) -> None:
    api = FakeApi(places)

    Topology(api, Cache()).labels([instance("i-1", type)])

    assert api.asked == [["i-1"]]


def test_the_config_may_name_other_types() -> None:
    api = FakeApi(places, topology_types=r"m5\.")

    Topology(api, Cache()).labels([instance("i-1", "m5.large"), instance("i-2", "p5.48xlarge")])

    assert api.asked == [["i-1"]]


def test_places_are_asked_for_a_hundred_at_once_and_once_each() -> None:
    api = FakeApi(places)
    topology = Topology(api, Cache())
    machines = [instance(f"i-{number}", "p5.48xlarge") for number in range(250)]

    topology.labels(machines)
    topology.labels(machines)

    assert [len(batch) for batch in api.asked] == [100, 100, 50]


def test_a_machine_that_does_not_run_has_no_place() -> None:
    api = FakeApi(places)

    Topology(api, Cache()).labels([instance("i-1", "p5.48xlarge", state="pending")])

    assert api.asked == []


def test_what_was_not_told_is_asked_for_again_after_five_minutes() -> None:
    clock, api = Clock(1000.0), FakeApi(none)
    topology = Topology(api, Cache(clock))
    machine = instance("i-1", "p5.48xlarge")

    topology.labels([machine])
    clock.now += 60
    topology.labels([machine])
    assert len(api.asked) == 1

    clock.now += 300
    topology.labels([machine])
    assert len(api.asked) == 2


@pytest.mark.parametrize("error", [AccessDenied("no"), InvalidConfiguration("AWS", "UnsupportedOperation: no")])
def test_without_the_right_or_in_a_region_without_it_nodes_do_without(error: Exception) -> None:
    api = FakeApi(fail(error))
    topology = Topology(api, Cache())

    labels = topology.labels([instance("i-1", "p5.48xlarge")])
    topology.labels([instance("i-2", "p5.48xlarge")])

    assert labels["i-1"] == {"topology.k8s.aws/zone-id": "z1-az1"}
    assert len(api.asked) == 1


def test_one_that_goes_meanwhile_keeps_nobody_from_being_told_later() -> None:
    api = FakeApi(fail(NotFound("i-1")))
    topology = Topology(api, Cache())
    topology.labels([instance("i-1", "p5.48xlarge"), instance("i-2", "p5.48xlarge")])
    api._topology = places

    assert len(topology.labels([instance("i-2", "p5.48xlarge")])["i-2"]) == 4


def test_no_answer_is_an_error_and_not_a_machine_without_a_place() -> None:
    with pytest.raises(Unavailable):
        Topology(FakeApi(fail(Unavailable("no"))), Cache()).labels([instance("i-1", "p5.48xlarge")])


def test_what_is_not_listed_any_more_is_forgotten() -> None:
    api = FakeApi(places)
    topology = Topology(api, Cache())
    topology.labels([instance("i-1", "p5.48xlarge"), instance("i-2", "p5.48xlarge")])

    topology.forget_all_but(["i-2"])
    topology.labels([instance("i-1", "p5.48xlarge"), instance("i-2", "p5.48xlarge")])

    assert api.asked == [["i-1", "i-2"], ["i-1"]]
