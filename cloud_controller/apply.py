"""Carries out a plan: each action by its operation's performer, with bounded concurrency and one result per action.

A performer handles one type of operation, is idempotent, and raises `CloudError` or `ApiError` on failure. Consecutive
actions of the same type form a group; groups run one after another, in the plan's order.
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
"""The errors that an action may fail with; any other exception is a bug and ends the run."""

O = TypeVar("O")  # noqa: E741 - the operation

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of one action."""

    action: Action
    error: ActionError | None = None
    answer: object = None
    """What the performer returned, for example the object's new state in the cloud; None for a batch."""

    @property
    def ok(self) -> bool:
        """Whether the action was carried out."""
        return self.error is None

    def __str__(self) -> str:
        return f"{self.action.target}: {self.error or 'done'}"


@dataclass(slots=True)
class Run:
    """The performers' context; `failed` holds the targets of this run's failed actions so far."""

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
    """Register the decorated function as the performer of this type of operation."""

    def register(function: Perform[O]) -> Perform[O]:
        _single[operation] = function
        return function

    return register


def performs_batch(operation: type[O]) -> Callable[[PerformBatch[O]], PerformBatch[O]]:
    """Register a performer of many operations of this type in few calls; it returns one error or None for each."""

    def register(function: PerformBatch[O]) -> PerformBatch[O]:
        _batch[operation] = function
        return function

    return register


def performs_in_order(*operations: type) -> Callable[[Perform[O]], Perform[O]]:
    """Register a performer of operations that must keep the plan's order per object (`service/NAMESPACE/NAME`).

    An object's operations stop at the first failure; different objects run concurrently.
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
    """Carry out the plan's changes and return one result each, in the plan's order.

    `controller` labels logs and metrics. `done` is called with each result as soon as it is known. Once `stop` is set,
    no further action starts, because another process may lead; actions that did not start have no result. Raises
    ValueError for an assumed action: it has no operation, so plan again once the cluster exists.
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
    """The failed results."""
    return (result for result in results if not result.ok)


class _InOrder:
    """The group of all operations that are performed in order, whatever their type."""


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
        raise ValueError(f"{actions[0].target}: no performer for {operation.__name__}; is the action assumed?")
    perform = _single[operation]

    def one(action: Action) -> ActionResult:
        # Checked for each action: the interpreter waits at exit until a pool's queue is empty.
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
    return Postponed("the run stopped before this action started")


def _sequences(actions: Sequence[Action]) -> list[list[Action]]:
    """The actions grouped by object."""
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
