"""When a controller looks again, and what for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cloud import Throttled, Unavailable
from cloud_controller.controllers.loop import EVERYTHING, ControllerContext, LoopController
from cloud_controller.kube import NODES, Object
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, Plan
from tests.cloud_controller.guard import guard
from tests.fake_kubernetes import FakeKubernetes

PATIENCE = 60.0


def node(name: str, beat: int = 0) -> Object:
    return {"metadata": {"name": name}, "beat": beat}


@dataclass
class Passes:
    """The keys of each pass, and what the pass shall do then."""

    seen: list[frozenset[str] | None] = field(default_factory=list)
    outcomes: list[Exception | list[str]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, count: int) -> list[frozenset[str] | None]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, PATIENCE), self.seen
            return self.seen


class Recording(LoopController):
    name = "test"

    def __init__(self, context: ControllerContext, passes: Passes, period: float = 1000.0) -> None:
        super().__init__(context, "test-controller", period=period, window=0.01)
        self.passes = passes

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        return old is None or new is None or old["beat"] == new["beat"]

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        with self.passes.changed:
            self.passes.seen.append(keys)
            outcome = self.passes.outcomes.pop(0) if self.passes.outcomes else []
            self.passes.changed.notify()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@dataclass
class Bench:
    api: FakeKubernetes
    passes: Passes
    metrics: Metrics
    controller: Recording
    stop: threading.Event


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("cloud_controller.controllers.loop.FIRST_RETRY", 0.001)
    nothing: Any = None
    api, metrics, passes, stop = FakeKubernetes(), Metrics(), Passes(), threading.Event()
    context = ControllerContext(api, nothing, api.informer(NODES), metrics, nothing, guard())
    controller = Recording(context, passes)
    yield Bench(api, passes, metrics, controller, stop)
    stop.set()
    assert controller.join(PATIENCE)


def test_the_first_pass_looks_at_everything(bench: Bench) -> None:
    bench.controller.start(bench.stop)

    assert bench.passes.wait(1) == [None]


def test_what_changes_during_a_pass_is_one_pass_after_it(bench: Bench) -> None:
    reconcile, told = bench.controller.reconcile, threading.Event()

    def slow(keys: frozenset[str] | None) -> Iterable[str]:
        again = reconcile(keys)
        assert told.wait(PATIENCE)
        return again

    bench.controller.reconcile = slow  # type: ignore[method-assign]
    bench.controller.start(bench.stop)
    bench.passes.wait(1)

    for name in "abc":
        bench.api.put(NODES, node(name))
    told.set()

    assert bench.passes.wait(2) == [None, frozenset("abc")]


def test_a_change_that_does_not_concern_it_is_no_pass(bench: Bench) -> None:
    bench.api.put(NODES, node("heartbeat", 1), node("gone"))
    bench.controller.start(bench.stop)
    bench.passes.wait(1)

    bench.api.put(NODES, node("heartbeat", 2))
    bench.api.remove(NODES, "gone")

    assert bench.passes.wait(2) == [None, frozenset({"gone"})]


def test_a_pass_that_fails_is_repeated_for_the_same_keys(bench: Bench) -> None:
    bench.passes.outcomes = [Unavailable("down"), Throttled("later", 0.001), []]
    bench.controller.start(bench.stop)

    assert bench.passes.wait(3) == [None, None, None]
    assert 'cloud_controller_reconcile_errors_total{controller="test",error="Unavailable"} 1.0' in text(bench)


def test_a_pass_that_fails_does_not_wait_for_a_key_that_has_failed_often(bench: Bench) -> None:
    class Stop(threading.Event):
        waited = 0.0

        def wait(self, timeout: float | None = None) -> bool:
            self.waited = timeout or 0.0
            return False

    for _ in range(20):
        bench.controller._queue.add_rate_limited("often")
    bench.passes.outcomes = [Unavailable("down")]
    stop = Stop()

    bench.controller._pass(frozenset({"often", "new"}), stop)

    assert 0 < stop.waited < 1


def test_trouble_is_told_while_it_lasts(bench: Bench) -> None:
    told: list[str | None] = []
    bench.passes.outcomes = [Unavailable("down"), []]
    reconcile = bench.controller.reconcile

    def watched(keys: frozenset[str] | None) -> Iterable[str]:
        told.append(bench.controller.trouble())
        return reconcile(keys)

    bench.controller.reconcile = watched  # type: ignore[method-assign]
    bench.controller.start(bench.stop)
    bench.passes.wait(2)
    bench.api.put(NODES, node("a"))
    bench.passes.wait(3)

    assert told == [None, "Unavailable: down", None]


def test_keys_that_a_pass_asks_for_come_back_and_no_others(bench: Bench) -> None:
    bench.passes.outcomes = [["a"], []]
    bench.controller.start(bench.stop)

    assert bench.passes.wait(2) == [None, frozenset({"a"})]


def test_a_key_that_fails_for_ever_comes_back_once_a_backoff_however_often_it_is_triggered(bench: Bench) -> None:
    bench.passes.outcomes = [["a"] for _ in range(1000)]
    controller = bench.controller
    for _ in range(5):
        controller._pass(frozenset({"a"}), bench.stop)

    assert list(controller._queue._due) == ["a"]
    assert controller._queue.failures("a") == 5
    bench.passes.outcomes = []
    controller._pass(frozenset({"a"}), bench.stop)
    assert controller._queue.failures("a") == 0


def test_a_full_pass_does_not_end_the_backoff_of_a_key_that_still_waits(bench: Bench) -> None:
    controller = bench.controller
    bench.passes.outcomes = [["a"]]
    controller._pass(frozenset({"a"}), bench.stop)

    controller._pass(frozenset({EVERYTHING}), bench.stop)

    assert controller._queue.failures("a") == 1


def test_ignored_differences_are_counted(bench: Bench) -> None:
    bench.controller.apply(Plan.of([Action(ActionKind.IGNORE, "node/a", "stays", reason="somebody made it")]))

    assert 'cloud_controller_ignored_differences{controller="test"} 1.0' in text(bench)


class Waits(threading.Event):
    """A stop event whose waits the test makes: each lets so many keys come."""

    def __init__(self, controller: LoopController, *arrivals: int) -> None:
        super().__init__()
        self.controller = controller
        self.arrivals = [*arrivals]
        self.waited = 0

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002
        for number in range(self.arrivals.pop(0) if self.arrivals else 0):
            self.controller.trigger(f"{self.waited}-{number}")
        self.waited += 1
        return False


@pytest.mark.parametrize(
    ("arrivals", "waited"),
    [((0,), 1), ((30, 30, 0), 3), ((30, 30, 30, 30, 30), 4), ((99,), 1)],
    ids=["one alone", "until no more come", "not for ever", "until a batch is full"],
)
def test_a_pass_waits_while_more_and_more_keys_come(bench: Bench, arrivals: tuple[int, ...], waited: int) -> None:
    queue = bench.controller._queue
    assert queue.get_batch() == {EVERYTHING}
    bench.controller.trigger("first")
    stop = Waits(bench.controller, *arrivals)

    assert bench.controller._gather(stop)

    assert len(queue.get_batch()) == 1 + sum(arrivals[:waited])
    assert stop.waited == waited


def test_a_warning_is_told_again_only_when_it_changes_or_after_a_while(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(bench.controller.events, "warning", lambda _obj, _reason, message: told.append(message))
    now = 1000.0
    monkeypatch.setattr("cloud_controller.controllers.loop.time", SimpleNamespace(monotonic=lambda: now))

    for message in ("down", "down", "refused", "refused"):
        bench.controller.warn(node("a"), "NotSynced", message)
    bench.controller.warn(node("b"), "NotSynced", "refused")
    assert told == ["down", "refused", "refused"]

    now += 600
    assert bench.controller.warn(node("a"), "NotSynced", "refused")
    assert told == ["down", "refused", "refused", "refused"]


def test_two_warnings_about_one_object_are_told_once_each(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(bench.controller.events, "warning", lambda _obj, _reason, message: told.append(message))

    for _ in range(3):
        bench.controller.warn(node("a"), "FailedToCreateRoute", "10.1.0.0/24")
        bench.controller.warn(node("a"), "FailedToCreateRoute", "fd00::/64")

    assert told == ["10.1.0.0/24", "fd00::/64"]


def test_a_bug_ends_the_thread_and_shows(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())
    bench.passes.outcomes = [KeyError("bug")]
    bench.controller.start(bench.stop)

    assert died.wait(PATIENCE)
    assert bench.controller.join(PATIENCE)
    assert bench.controller.trouble() == "its thread has stopped"


def test_the_last_events_of_a_controller_count_to_the_time_that_it_has_to_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def close(timeout: float) -> bool:
        given.append(timeout)
        return False  # They are not all written.

    with monkeypatch.context() as patched:
        patched.setattr(bench.controller.events, "close", close)
        assert not bench.controller.join(2.0)

    (seconds,) = given
    assert 0 < seconds <= 2.0


def text(bench: Bench) -> str:
    return bench.metrics.render().decode()


@pytest.mark.parametrize("reads", [True, False])
def test_only_a_controller_that_reads_machines_says_when_they_were_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    monkeypatch.setattr(Recording, "reads_machines", reads)

    bench.controller.start(bench.stop)

    assert ("cloud_controller_machines_read_timestamp_seconds" in text(bench)) is reads
