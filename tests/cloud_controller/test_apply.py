"""A plan is carried out in its order, in parallel within a group, with one result for each change."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from cloud_controller import apply
from cloud_controller.cloud import Conflict, Postponed
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, Plan


@dataclass(frozen=True)
class Say:
    word: str


@dataclass(frozen=True)
class Fail:
    word: str


@dataclass(frozen=True)
class Batch:
    word: str


@dataclass(frozen=True)
class Halt:
    stop: threading.Event


@dataclass(frozen=True)
class Meet:
    barrier: threading.Barrier


@dataclass(frozen=True)
class Step:
    word: str


@dataclass(frozen=True)
class Finish:
    word: str


said: list[str] = []


@apply.performs(Say)
def _say(operation: Say, run: apply.Run) -> None:
    said.append(f"{operation.word} after {sorted(run.failed)}")


@apply.performs(Fail)
def _fail(operation: Fail, _: apply.Run) -> None:
    raise Conflict(operation.word)


@apply.performs(Halt)
def _halt(operation: Halt, _: apply.Run) -> None:
    operation.stop.set()


@apply.performs(Meet)
def _meet(operation: Meet, _: apply.Run) -> None:
    operation.barrier.wait(timeout=60)


@apply.performs_batch(Batch)
def _batch(operations: Sequence[Batch], _: apply.Run) -> Sequence[apply.ActionError | None]:
    said.append("+".join(operation.word for operation in operations))
    return [Conflict("no") if operation.word == "bad" else None for operation in operations]


@apply.performs_in_order(Step, Finish)
def _step(operations: Sequence[Step | Finish], _: apply.Run) -> Iterator[apply.Outcome]:
    for operation in operations:
        if operation.word == "bad":
            yield apply.Outcome(operation, Conflict("no"))
            return
        if operation.word == "later":
            yield apply.Outcome(operation, Postponed("too early"))
        else:
            said.append(operation.word)
            yield apply.Outcome(operation, answer=operation.word.upper())


def action(operation: object, target: str = "t", kind: ActionKind = ActionKind.CREATE) -> Action:
    return Action(kind, target, "do", reason="because" if kind is ActionKind.IGNORE else None, operation=operation)


def carried_out(
    *actions: Action, metrics: Metrics | None = None, workers: int = 4, stop: threading.Event | None = None
) -> list[apply.ActionResult]:
    said.clear()
    nothing: Any = None
    plan = Plan.of(actions)
    return apply.run(
        plan, nothing, nothing, events=nothing, controller="test", metrics=metrics, workers=workers, stop=stop
    )


def test_results_come_in_the_plans_order_with_their_errors() -> None:
    results = carried_out(action(Say("x"), "a"), action(Fail("broken"), "b"), action(Say("y"), "c"))

    assert [str(result) for result in results] == ["a: done", "b: broken", "c: done"]
    assert [result.ok for result in results] == [True, False, True]


def test_an_action_sees_which_earlier_actions_of_the_plan_failed() -> None:
    carried_out(action(Fail("broken"), "b"), action(Say("y"), "c"))

    assert said == ["y after ['b']"]


def test_consecutive_actions_of_one_type_run_concurrently() -> None:
    barrier = threading.Barrier(3)

    results = carried_out(*(action(Meet(barrier), str(number)) for number in range(3)))

    assert all(result.ok for result in results)


def test_a_batch_performer_is_called_once_and_returns_one_error_per_action() -> None:
    results = carried_out(action(Batch("a"), "a"), action(Batch("bad"), "b"), action(Batch("c"), "c"))

    assert said == ["a+bad+c"]
    assert [result.ok for result in results] == [True, False, True]


def test_what_a_performer_of_ordered_actions_does_not_attempt_has_no_result() -> None:
    results = carried_out(
        action(Step("a1"), "service/x/a"),
        action(Step("bad"), "service/x/a/listener/80"),
        action(Finish("a3"), "service/x/a"),
        action(Step("b1"), "service/x/b"),
        action(Finish("b2"), "service/x/b"),
    )

    assert [word for word in said if word.startswith("a")] == ["a1"]
    assert [word for word in said if word.startswith("b")] == ["b1", "b2"]
    assert [result.ok for result in results] == [True, False, True, True]


def test_an_action_that_has_to_wait_is_no_failure() -> None:
    results = carried_out(action(Step("later"), "service/x/a"), action(Finish("a2"), "service/x/a"))

    assert [(result.ok, result.waits, result.answer) for result in results] == [
        (False, True, None),
        (True, False, "A2"),
    ]
    assert [*apply.failures(results)] == []


def test_ignored_differences_are_left_alone() -> None:
    assert carried_out(action(Say("x"), kind=ActionKind.IGNORE)) == []
    assert said == []


def test_after_stop_no_further_action_of_a_plan_starts() -> None:
    stop = threading.Event()
    group = [action(Halt(stop), name) for name in ("a", "b", "c")]

    results = carried_out(*group, action(Say("x"), "d"), action(Batch("y"), "e"), workers=1, stop=stop)

    assert [str(result) for result in results] == ["a: done"]
    assert said == []


def test_an_action_without_a_performer_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"t: no performer for NoneType; is the action assumed\?"):
        carried_out(action(None))


def test_actions_are_counted_by_kind_and_result() -> None:
    metrics = Metrics()

    carried_out(action(Say("x")), action(Fail("y")), action(None, kind=ActionKind.IGNORE), metrics=metrics)

    text = metrics.render().decode()
    assert 'cloud_controller_actions_total{controller="test",kind="create",result="done"} 1.0' in text
    assert 'cloud_controller_actions_total{controller="test",kind="create",result="failed"} 1.0' in text
