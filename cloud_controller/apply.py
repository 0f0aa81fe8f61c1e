"""How a plan is carried out: each action by its operation's performer, a bounded number at once, one result each.

A performer belongs to one type of operation, does one idempotent thing, and raises `CloudError` or `ApiError` where it
fails. Neighbouring actions of one type form a group; groups follow one another in the plan's order.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, TypeVar

from cloud_controller.cloud import Cloud, CloudError, Postponed
from cloud_controller.events import Events
from cloud_controller.kube import ApiError, KubeApi
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, Plan, object_of

DEFAULT_WORKERS = 16

ActionError = CloudError | ApiError
"""What an action may fail with; anything else is a bug and ends the run."""

O = TypeVar("O")  # noqa: E741 - the operation

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What became of one action."""

    action: Action
    error: ActionError | None = None
    answer: object = None
    """What the performer returned, for example the object as the cloud has it now; nothing for a batch."""

    @property
    def ok(self) -> bool:
        """Whether the action was carried out."""
        return self.error is None

    def __str__(self) -> str:
        return f"{self.action.target}: {self.error or 'done'}"


@dataclass(slots=True)
class Run:
    """What performers work with; `failed` holds the targets of this run's actions that failed so far."""

    kube: KubeApi
    cloud: Cloud
    events: Events
    failed: set[str] = field(default_factory=set)


Perform = Callable[[O, Run], object]
PerformBatch = Callable[[Sequence[O], Run], Sequence[ActionError | None]]

_single: dict[type, Perform[Any]] = {}
_batch: dict[type, PerformBatch[Any]] = {}
_in_order: dict[type, Perform[Any]] = {}


def performs(operation: type[O]) -> Callable[[Perform[O]], Perform[O]]:
    """Decorate the function that performs one operation of this type."""

    def register(function: Perform[O]) -> Perform[O]:
        _single[operation] = function
        return function

    return register


def performs_batch(operation: type[O]) -> Callable[[PerformBatch[O]], PerformBatch[O]]:
    """Decorate the function that performs many operations of this type in few calls; it answers one error each."""

    def register(function: PerformBatch[O]) -> PerformBatch[O]:
        _batch[operation] = function
        return function

    return register


def performs_in_order(*operations: type) -> Callable[[Perform[O]], Perform[O]]:
    """Decorate the function that performs one operation of these types, of which one object may need several.

    Those of one object (`service/NAMESPACE/NAME`) follow one another in the plan's order, and end with the first that
    fails; other objects go on meanwhile.
    """

    def register(function: Perform[O]) -> Perform[O]:
        _in_order.update(dict.fromkeys(operations, function))
        return function

    return register


def run(
    plan: Plan,
    kube: KubeApi,
    cloud: Cloud,
    *,
    events: Events,
    controller: str,
    metrics: Metrics | None = None,
    workers: int = DEFAULT_WORKERS,
    stop: threading.Event | None = None,
    done: Callable[[ActionResult], None] = lambda _: None,
) -> list[ActionResult]:
    """Carry out the plan's changes; one result for each, in the plan's order. `controller` labels logs and metrics.

    `done` is told of each result, in the same order, as soon as it is there.

    Once `stop` is set no further action is begun: another process may lead. What was not begun has no result.
    Ignored differences are left alone, as the word says. An assumed action has nothing to perform: observe and plan
    again once the cluster is there (ValueError).
    """
    world = Run(kube, cloud, events)
    stop = stop or threading.Event()
    results: list[ActionResult] = []
    with ThreadPoolExecutor(workers, thread_name_prefix=f"apply-{controller}") as pool:
        for operation, group in groupby(plan.changes, _kind):
            actions = list(group)
            for result in _perform(operation, actions, world, pool, stop):
                if isinstance(result.error, Postponed):
                    continue
                results.append(result)
                done(result)
                if result.error is not None:
                    world.failed.add(result.action.target)
                _record(controller, result.action, result.error, metrics)
    if metrics is not None:
        metrics.ignored.labels(controller).set(plan.counts.get(ActionKind.IGNORE, 0))
    return results


def failures(results: Sequence[ActionResult]) -> Iterator[ActionResult]:
    """The results that are failures."""
    return (result for result in results if not result.ok)


class _InOrder:
    """Stands for all operations that are performed in order, whatever their type."""


def _kind(action: Action) -> type:
    operation = type(action.operation)
    return _InOrder if operation in _in_order else operation


def _perform(
    operation: type, actions: Sequence[Action], world: Run, pool: ThreadPoolExecutor, stop: threading.Event
) -> Iterable[ActionResult]:
    if stop.is_set():
        return [ActionResult(action, _not_begun()) for action in actions]
    if operation in _batch:
        try:
            errors = _batch[operation]([action.operation for action in actions], world)
        except (CloudError, ApiError) as error:
            return [ActionResult(action, error) for action in actions]
        return [ActionResult(action, error) for action, error in zip(actions, errors, strict=True)]
    if operation is _InOrder:
        return chain.from_iterable(pool.map(lambda each: _one_by_one(each, world, stop), _sequences(actions)))
    if operation not in _single:
        raise ValueError(f"{actions[0].target}: nothing performs a {operation.__name__}; is the action an assumed one?")
    perform = _single[operation]

    def one(action: Action) -> ActionResult:
        # Asked for each: the interpreter's exit waits for a pool until its queue is empty.
        if stop.is_set():
            return ActionResult(action, _not_begun())
        try:
            return ActionResult(action, answer=perform(action.operation, world))
        except (CloudError, ApiError) as error:
            return ActionResult(action, error)

    return pool.map(one, actions) if len(actions) > 1 else [one(actions[0])]


def _one_by_one(actions: Sequence[Action], world: Run, stop: threading.Event) -> list[ActionResult]:
    results = []
    for action in actions:
        if stop.is_set():
            break
        try:
            results.append(ActionResult(action, answer=_in_order[type(action.operation)](action.operation, world)))
        except Postponed as reason:
            _log.info("postponed target=%s why=%r", action.target, str(reason))
        except (CloudError, ApiError) as error:
            results.append(ActionResult(action, error))
            break
    return results


def _not_begun() -> Postponed:
    return Postponed("the run was stopped before the action's turn")


def _sequences(actions: Sequence[Action]) -> list[list[Action]]:
    """The actions of each object."""
    by_object: dict[str, list[Action]] = {}
    for action in actions:
        by_object.setdefault(object_of(action.target), []).append(action)
    return [*by_object.values()]


def _record(controller: str, action: Action, error: ActionError | None, metrics: Metrics | None) -> None:
    if error is None:
        _log.info("done controller=%s kind=%s target=%s", controller, action.kind, action.target)
    else:
        _log.warning(
            "failed controller=%s kind=%s target=%s error=%r", controller, action.kind, action.target, str(error)
        )
    if metrics is not None:
        metrics.actions.labels(controller, action.kind.value, "failed" if error else "done").inc()
