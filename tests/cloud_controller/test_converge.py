"""`cloud-controller apply`: rounds of plan and apply, until nothing is left that could be done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller import apply, converge
from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    ForeignCluster,
    InvalidConfiguration,
    Postponed,
    Unavailable,
)
from cloud_controller.converge import Converge, Refused, Report
from cloud_controller.daemon.leader import LeaderElector
from cloud_controller.fence import Fence, WriteRefused
from cloud_controller.kube import ApiError, ForbiddenError
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.planning import Found
from cloud_controller.safeguard import Safeguard
from tests.cloud_controller.guard import guard
from tests.fake_kubernetes import FakeKubernetes


@dataclass(frozen=True)
class Do:
    work: Callable[[], None]


@apply.performs_in_order(Do)
def _do(operations: Sequence[Do], _: apply.Run) -> Iterator[apply.Outcome]:
    for operation in operations:
        try:
            operation.work()
        except CloudError as error:
            yield apply.Outcome(operation, error)
            return
        yield apply.Outcome(operation)


@dataclass
class World:
    """Tasks by name that are to be done, each as often as it fails first; `busy`: rounds that the cloud is at work."""

    tasks: dict[str, list[CloudError]]
    busy: int = 0
    errors: list[CloudError | ApiError] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    agrees: bool = True
    begun_after: list[int] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> threading.Event:
        """From now on a signal does not end the process in the middle."""
        self.begun_after = [*self.asked]
        return self.stop

    def find(self) -> Found:
        if self.errors:
            raise self.errors.pop(0)
        actions = [
            Action(ActionKind.UPDATE, name, "do it", operation=Do(lambda name=name: self.work(name)))  # type: ignore[misc]
            for name in self.tasks
        ]
        self.busy -= 1
        return Found(Plan.of(actions), busy=("the machine room",) if self.busy >= 0 else ())

    def work(self, name: str) -> None:
        if failures := self.tasks[name]:
            raise failures.pop(0)
        del self.tasks[name]

    def approve(self, changes: int) -> bool:
        self.asked.append(changes)
        return self.agrees

    def run(
        self,
        deadline: float = 60.0,
        *,
        leader: LeaderElector | None = None,
        kube: FakeKubernetes | None = None,
        cloud: Any = None,
    ) -> Report:
        kube = kube or FakeKubernetes()
        return Converge(
            kube,
            cloud or SimpleNamespace(cluster_id="c-1"),
            {"node": self.find},
            prove=lambda _: None,
            show=lambda _, found: self.shown.append(len(found.plan)),
            approve=self.approve,
            done=lambda result: self.told.append(str(result)),
            safeguard=guard(kube),
        ).run(leader, deadline, self.begin)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converge, "round_pause", lambda _: 0.001)


def test_where_nothing_is_to_be_done_nobody_is_asked() -> None:
    world = World({})

    assert world.run().complete
    assert world.asked == []


def test_what_was_agreed_to_is_done_and_told() -> None:
    world = World({"a": [], "b": []})

    report = world.run()

    assert (report.complete, report.applied) == (True, 2)
    assert (world.asked, world.shown) == ([2], [2])
    assert world.told == ["a: done", "b: done"]


def test_without_consent_nothing_is_done() -> None:
    world = World({"a": []}, agrees=False)

    with pytest.raises(Refused, match="nothing was changed"):
        world.run()
    assert world.tasks == {"a": []}
    assert world.begun_after is None


def test_what_is_done_is_fenced_by_the_lease_and_ends_when_that_is_lost() -> None:
    fences: list[Fence] = []

    class Client(FakeKubernetes):
        def fenced(self, fence: Fence) -> FakeKubernetes:
            fences.append(fence)
            return super().fenced(fence)

    leader = LeaderElector(FakeKubernetes(), "kube-system", "lease")
    world = World({"a": []})

    def work(name: str) -> None:
        assert name == "a"
        leader.release()
        for fence in fences:
            fence()

    world.work = work  # type: ignore[method-assign]
    cloud = SimpleNamespace(cluster_id="c-1", fence_writes=fences.append)

    with pytest.raises(WriteRefused):
        world.run(leader=leader, kube=Client(), cloud=cloud)
    assert fences == [leader.fence] * 3  # Of the client, the cloud and the safeguard.


def test_the_time_in_which_somebody_reads_the_plan_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(converge, "time", SimpleNamespace(monotonic=lambda: now))
    world = World({"a": []})

    def approve(changes: int) -> bool:
        nonlocal now
        now += 1000
        return changes > 0

    world.approve = approve  # type: ignore[method-assign]

    assert world.run(deadline=300).complete


def test_a_signal_before_anybody_has_agreed_ends_the_process_as_ever() -> None:
    world = World({"a": []})

    world.run()

    assert world.begun_after == [1]


def test_what_may_go_better_the_next_time_is_tried_again_and_told_once() -> None:
    world = World({"a": [Conflict("taken"), Conflict("taken"), Conflict("taken")]})

    report = world.run()

    assert report.complete
    assert world.told == ["a: taken", "a: done"]


def test_the_cloud_is_waited_for() -> None:
    world = World({"a": []}, busy=5)

    assert world.run().complete
    assert world.busy < 0


def test_a_plan_that_can_not_be_made_for_a_while_is_made_later() -> None:
    world = World({"a": []})
    ask = world.approve

    def approve(changes: int) -> bool:
        world.errors = [Unavailable("down"), Unavailable("down")]
        return ask(changes)

    world.approve = approve  # type: ignore[method-assign]

    assert world.run().complete


@pytest.mark.parametrize("error", [AccessDenied("no right"), ForbiddenError(403, "Forbidden", "no right")])
def test_what_is_done_is_reported_though_a_later_plan_cannot_be_made(error: CloudError | ApiError) -> None:
    world = World({"a": []})
    do = world.work

    def work(name: str) -> None:
        do(name)
        world.errors = [error]

    world.work = work  # type: ignore[method-assign]
    report = world.run(deadline=3600)

    assert (report.applied, report.complete) == (1, False)
    assert report.failed == ("node: no right",)


def test_what_is_done_is_reported_though_the_clusters_identity_cannot_be_read_before_a_later_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World({"a": []})

    def verify(_: Safeguard) -> None:
        if not world.tasks:
            raise ForbiddenError(403, "Forbidden", "no right")

    def find() -> Found:
        name = "a" if world.tasks else "b"
        return Found(Plan.of([Action(ActionKind.DELETE, name, "do it", operation=Do(lambda: world.work(name)))]))

    monkeypatch.setattr(Safeguard, "verify", verify)
    world.find = find  # type: ignore[method-assign]
    report = world.run(deadline=3600)

    assert (report.applied, report.complete) == (1, False)
    assert report.failed == ("node: no right",)


def test_a_later_plan_for_another_cluster_ends_the_work() -> None:
    world = World({"a": []})
    ask = world.approve

    def approve(changes: int) -> bool:
        world.errors = [ForeignCluster("not this cluster's")]
        return ask(changes)

    world.approve = approve  # type: ignore[method-assign]
    with pytest.raises(ForeignCluster):
        world.run()
    assert "a" in world.tasks


def test_what_no_repetition_mends_ends_the_work_long_before_its_deadline() -> None:
    refusals: list[CloudError] = [InvalidConfiguration("port", "80 is not served") for _ in range(100)]
    world = World({"a": refusals, "b": []})

    report = world.run(deadline=3600)

    assert not report.complete
    assert report.failed == ("a: port: 80 is not served",)
    assert "b" not in world.tasks
    assert len(refusals) > 90


def test_what_was_put_off_is_done_in_a_later_round() -> None:
    world = World({"a": [Postponed("too early"), Postponed("still too early")]})

    report = world.run(deadline=3600)

    assert report.complete
    assert world.told == ["a: done"]


def test_when_time_is_over_it_says_what_failed_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(converge, "time", SimpleNamespace(monotonic=lambda: now))
    world = World({"a": [Conflict("taken")] * 100})
    try_it = world.work

    def work(name: str) -> None:
        nonlocal now
        now += 1
        try_it(name)

    world.work = work  # type: ignore[method-assign]

    report = world.run(deadline=5)

    assert report.failed == ("a: taken",)
    assert report.left == ("~  a: do it",)
    assert report.to_json()["failed"] == ["a: taken"]


def test_what_was_done_and_is_to_be_done_again_when_time_is_over_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(converge, "time", SimpleNamespace(monotonic=lambda: now))
    world = World({})
    find = world.find

    def found_again() -> Found:
        nonlocal now
        now += 1
        world.tasks["a"] = []
        return find()

    world.find = found_again  # type: ignore[method-assign]

    report = world.run(deadline=3)

    assert report.applied > 0
    assert (report.failed, report.left) == ((), ("~  a: do it",))


def test_once_stopped_nothing_more_is_begun() -> None:
    world = World({"a": []})
    world.stop.set()

    report = world.run()

    assert (report.applied, report.left) == (0, ("~  a: do it",))
    assert "a" in world.tasks
