"""How few calls the cloud gets though several controllers ask, and that nobody gets an answer too old to act on."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from cloud_controller.cloud import Conflict, Instance, InstanceRef, InstanceState, Unavailable
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.kube import Object
from tests.clock import Clock
from tests.cloud_controller.conftest import FakeCloud, make_instance

T = TypeVar("T")

LIFETIME = 5.0


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def snapshot(cloud: FakeCloud, clock: Clock) -> InstanceSnapshot:
    return InstanceSnapshot(cloud, LIFETIME, clock=clock)


def node(name: str, *, identified: bool = True, uid: str | None = None) -> Object:
    spec = {"providerID": f"fake://zone-a/i-{name}"} if identified else {}
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}"}, "spec": spec}


def fleet(cloud: FakeCloud, count: int, *, identified: bool = True) -> list[Object]:
    names = [f"n{number:04}" for number in range(count)]
    for name in names:
        cloud.machine(name)
    return [node(name, identified=identified) for name in names]


def calls(cloud: FakeCloud) -> tuple[int, int]:
    """Lists, and batches asked for."""
    return cloud.lists, len(cloud.describes)


def test_few_machines_are_read_with_one_describe_call(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    nodes = fleet(cloud, 100)

    found, errors = snapshot.describe(nodes)

    assert (len(found), errors) == (100, {})
    assert calls(cloud) == (0, 1)


def test_many_machines_are_read_with_one_list(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    found, _ = snapshot.describe(fleet(cloud, 500))

    assert all(found.values())
    assert calls(cloud) == (1, 0)


def test_a_small_share_of_many_machines_is_described_not_listed(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    nodes = fleet(cloud, 1000)
    snapshot.describe(nodes)
    clock.now += LIFETIME + 1

    snapshot.describe(nodes[:300])

    assert calls(cloud) == (1, 3)


def test_nodes_that_register_by_the_dozen_are_listed_once_they_are_many(
    cloud: FakeCloud, snapshot: InstanceSnapshot
) -> None:
    nodes = fleet(cloud, 1000)

    for start in range(0, 1000, 20):
        snapshot.describe(nodes[start : start + 20])

    assert calls(cloud) == (1, 5)


def test_single_new_nodes_of_a_big_cluster_are_described_not_listed(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    snapshot.describe(fleet(cloud, 1000))
    for number in range(150):
        clock.now += LIFETIME + 1
        cloud.machine(f"late{number}")
        snapshot.describe([node(f"late{number}")])

    assert calls(cloud) == (1, 150)


def test_within_its_lifetime_a_cached_machine_serves_all_callers(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    nodes = fleet(cloud, 500)
    snapshot.describe(nodes)
    clock.now += LIFETIME

    snapshot.describe(nodes[100:300])
    snapshot.cluster_machines()

    assert calls(cloud) == (1, 0)


def test_after_its_lifetime_a_cached_machine_is_described_again(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    nodes = fleet(cloud, 2)
    snapshot.describe(nodes)
    cloud.machine("n0001", state=InstanceState.STOPPED)
    clock.now += LIFETIME + 1

    found, _ = snapshot.describe(nodes)

    assert found["n0001"] is not None and found["n0001"].state is InstanceState.STOPPED


def test_a_caller_that_accepts_an_older_machine_costs_no_call(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    nodes = fleet(cloud, 3)
    snapshot.describe(nodes)
    clock.now += 100

    snapshot.describe(nodes, max_age=300)

    assert calls(cloud) == (0, 1)


@dataclass
class Slow(FakeCloud):
    """Its lists, or its describe calls, answer only when they may go on, with what was there when they were asked."""

    slow: str = "list"
    asked: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def list(self) -> Sequence[Instance]:
        return self._late("list", super().list())

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        return self._late("describe", super().describe(refs))

    def _late(self, call: str, answer: T) -> T:
        if call == self.slow:
            self.asked.set()
            assert self.go_on.wait(60)
        return answer


@pytest.mark.parametrize(("count", "slow", "made"), [(500, "list", (1, 0)), (5, "describe", (0, 1))])
def test_concurrent_callers_share_one_call(count: int, slow: str, made: tuple[int, int]) -> None:
    cloud = Slow(slow=slow)
    nodes, snapshot = fleet(cloud, count), InstanceSnapshot(cloud, 60)

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(snapshot.describe, nodes) for _ in range(4)]
        assert cloud.asked.wait(60)
        cloud.go_on.set()
        assert all(all(answer.result()[0].values()) for answer in answers)

    assert calls(cloud) == made


def test_describing_few_machines_does_not_wait_for_a_list_and_its_newer_result_stays() -> None:
    cloud = Slow()
    nodes, snapshot = fleet(cloud, 500), InstanceSnapshot(cloud, 60)

    with ThreadPoolExecutor(1) as pool:
        everything = pool.submit(snapshot.describe, nodes)
        assert cloud.asked.wait(60)
        cloud.machine("n0003", state=InstanceState.STOPPED)
        try:
            snapshot.describe(nodes[3:4])
        finally:
            cloud.go_on.set()
        everything.result()

    seen = snapshot.describe(nodes[3:4])[0]["n0003"]
    assert seen is not None and seen.state is InstanceState.STOPPED
    assert cloud.describes == [1]


def test_a_machine_missing_from_the_list_is_described(clock: Clock) -> None:
    class Lagging(FakeCloud):
        """Its lists do not show the newest machine yet."""

        def list(self) -> Sequence[Instance]:
            return super().list()[:-1]

    cloud = Lagging()

    found, _ = InstanceSnapshot(cloud, LIFETIME, clock=clock).describe(fleet(cloud, 500))

    assert found["n0499"] is not None
    assert cloud.describes == [1]


def test_a_listed_terminated_machine_is_gone_but_still_belongs_to_the_cluster(
    cloud: FakeCloud, snapshot: InstanceSnapshot
) -> None:
    nodes = fleet(cloud, 500)
    cloud.machine("n0007", state=InstanceState.TERMINATED)

    found, _ = snapshot.describe(nodes)

    assert found["n0007"] is None
    assert "i-n0007" in snapshot.cluster_machines()


def test_a_machine_newer_than_the_list_belongs_to_the_cluster(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    snapshot.cluster_machines(max_age=600)
    cloud.machine("new")

    assert "i-new" in snapshot.cluster_machines(max_age=600, among=["i-new"])


def test_an_id_outside_the_cluster_costs_only_one_list(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    fleet(cloud, 3)
    for _ in range(5):
        assert "i-foreign" not in snapshot.cluster_machines(max_age=600, among=["i-foreign", "i-n0001"])

    assert calls(cloud) == (1, 0)


def test_describe_afresh_never_uses_a_list(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    nodes = fleet(cloud, 500)
    snapshot.describe(nodes)
    del cloud.machines["n0003"]

    assert snapshot.describe(nodes[:5])[0]["n0003"] is not None
    assert snapshot.describe_afresh(nodes[:5])[0]["n0003"] is None
    assert snapshot.describe(nodes[:5])[0]["n0003"] is None, "what is known better is told to all"


def test_a_gone_machine_is_not_cached_for_long(cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock) -> None:
    late = node("late")
    assert snapshot.describe([late])[0] == {"late": None}
    cloud.machine("late")
    clock.now += LIFETIME + 1

    assert snapshot.describe([late], max_age=600)[0]["late"] is not None


def test_describe_surely_requires_two_reports_that_a_machine_is_gone(cloud: FakeCloud, clock: Clock) -> None:
    class Late:
        """Its first answer lacks the machine."""

        asked = 0

        def list(self) -> Sequence[Instance]:
            return []

        def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
            self.asked += 1
            if self.asked == 2:
                cloud.machine("a")
            return cloud.describe(refs)

    found, errors = InstanceSnapshot(Late(), LIFETIME, clock=clock).describe_surely([node("a"), node("b")])

    assert found["a"] is not None
    assert (found["b"], errors) == (None, {})


def test_a_hundred_new_nodes_known_by_name_cost_one_call_and_none_once_they_have_provider_ids(
    cloud: FakeCloud, snapshot: InstanceSnapshot
) -> None:
    nodes = fleet(cloud, 1000, identified=False)

    snapshot.describe(nodes)
    snapshot.describe(nodes)
    snapshot.describe([node(each["metadata"]["name"]) for each in nodes])

    assert cloud.describes == [100] * 10
    assert cloud.lists == 0


def test_a_missing_machine_name_is_never_cached(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    late = node("late", identified=False)
    assert snapshot.describe([late])[0] == {"late": None}
    cloud.machine("late")

    assert snapshot.describe([late])[0]["late"] is not None


def test_a_recreated_node_may_have_another_machine(cloud: FakeCloud, snapshot: InstanceSnapshot) -> None:
    cloud.machine("a")
    snapshot.describe([node("a", identified=False, uid="first")])
    other = make_instance("b")
    cloud.machine("a", id=other.id, provider_id=other.provider_id)

    found, _ = snapshot.describe([node("a", identified=False, uid="second")])

    assert found["a"] is not None and found["a"].id == "i-b"


def test_a_failed_request_raises_and_keeps_the_cached_machines(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    nodes = fleet(cloud, 3)
    snapshot.describe(nodes)
    cloud.error = Unavailable("down")
    clock.now += LIFETIME + 1

    with pytest.raises(Unavailable):
        snapshot.describe(nodes)
    assert all(snapshot.describe(nodes, max_age=60)[0].values())


def test_an_invalid_node_gets_an_error_and_the_others_their_machines(cloud: FakeCloud, clock: Clock) -> None:
    nodes = fleet(cloud, 10)

    class Picky:
        def list(self) -> Sequence[Instance]:
            return []

        def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
            if any(ref.node_name == "n0004" for ref in refs):
                raise Conflict("two machines have this name")
            return cloud.describe(refs)

    found, errors = InstanceSnapshot(Picky(), LIFETIME, clock=clock).describe(nodes)

    assert len(found) == 9
    assert list(errors) == ["n0004"]


class Choosy(FakeCloud):
    """A cloud that leaves nodes alone whose name begins with "alone"."""

    def leaves_alone(self, node: Mapping[str, Any]) -> bool:
        return bool(node["metadata"]["name"].startswith("alone"))


def test_nodes_that_the_cloud_leaves_alone_are_neither_asked_for_nor_in_any_result(clock: Clock) -> None:
    cloud = Choosy()
    cloud.machine("a")
    snapshot = InstanceSnapshot(cloud, LIFETIME, clock=clock)
    nodes = [node("a"), node("alone-1"), node("alone-2", identified=False)]

    for ask in (snapshot.describe, snapshot.describe_surely, snapshot.describe_afresh):
        found, errors = ask(nodes)
        assert ([*found], errors) == (["a"], {})

    assert cloud.describes == [1, 1]


def test_a_list_serves_a_node_whose_provider_id_is_spelled_otherwise_once_it_was_described(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    machine = cloud.machine("a")
    spelled = {"metadata": {"name": "a", "uid": "uid-a"}, "spec": {"providerID": "fake://i-a"}}
    cloud.machines["other spelling"] = replace(machine, provider_id="fake://i-a")
    snapshot.describe([spelled])
    del cloud.machines["other spelling"]
    clock.now += LIFETIME + 1

    snapshot.cluster_machines()

    assert snapshot.anchored([spelled])
    assert snapshot.describe([spelled]) == ({"a": machine}, {})
    assert len(cloud.describes) == 1


class Spelling(FakeCloud):
    """A cloud that describes each machine by its bare ID, those of other clusters too."""

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        self.describes.append(len(refs))
        return {ref: make_instance((ref.provider_id or "").removeprefix("i-")) for ref in refs}


@pytest.mark.parametrize(("spelled", "anchored"), [("i-a", True), ("i-theirs", False)])
def test_a_provider_id_that_is_spelled_otherwise_is_an_anchor_if_its_machine_is_listed(
    clock: Clock, spelled: str, anchored: bool
) -> None:
    cloud = Spelling()
    cloud.machine("a")
    snapshot = InstanceSnapshot(cloud, LIFETIME, clock=clock)
    nodes = [{"metadata": {"name": f"n{i}", "uid": f"{i}"}, "spec": {"providerID": spelled}} for i in range(250)]

    assert snapshot.anchored(nodes) is anchored
    assert calls(cloud) == (1, 1), "a hundred Nodes are enough"


def test_an_anchor_is_looked_for_again_where_the_last_list_is_older_than_the_doubt(
    cloud: FakeCloud, snapshot: InstanceSnapshot, clock: Clock
) -> None:
    (one,) = fleet(cloud, 1)
    assert snapshot.anchored([one])
    clock.now += 1
    doubted_at = clock.now
    cloud.machines.clear()  # As with the credentials of another account.

    assert snapshot.anchored([one])
    assert not snapshot.anchored([one], after=doubted_at)
    assert calls(cloud) == (2, 1)


def test_nodes_without_a_provider_id_are_no_anchor_and_cost_no_call(
    cloud: FakeCloud, snapshot: InstanceSnapshot
) -> None:
    assert not snapshot.anchored(fleet(cloud, 3, identified=False))
    assert calls(cloud) == (0, 0)


def test_each_successful_read_of_the_cloud_is_announced_and_no_failed_one(cloud: FakeCloud, clock: Clock) -> None:
    announced: list[int] = []
    snapshot = InstanceSnapshot(cloud, LIFETIME, clock=clock, read=lambda: announced.append(1))
    few = fleet(cloud, 3)

    snapshot.describe(few)
    snapshot.describe(few)  # from the cache
    assert len(announced) == 1
    snapshot.cluster_machines()
    assert len(announced) == 2

    cloud.error = Unavailable("down")
    with pytest.raises(Unavailable):
        snapshot.describe_afresh(few)
    assert len(announced) == 2
