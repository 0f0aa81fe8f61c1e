"""Carries out a plan: each action by its operation's performer, with bounded concurrency and one result per action.

A performer handles one type of operation, is idempotent, and raises `CloudError` or `ApiError` on failure. Consecutive
actions of the same type form a group; groups run one after another, in the plan's order. The daemon, `CloudController`,
`cloud-controller apply` and `cleanup` all run their plans here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from typing import Any, TypeVar

from cloud_controller.cloud import Cloud, CloudError, LeftOut, Postponed
from cloud_controller.events import Events
from cloud_controller.kube import ApiError, KubeApi
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, Plan, object_of

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

    @property
    def waits(self) -> bool:
        """Whether the action has to wait for the cloud; it is planned again."""
        return isinstance(self.error, Postponed)

    @property
    def failed(self) -> bool:
        """Whether it was not carried out, though it could have been; a part of it that is invalid is left out."""
        return not (self.ok or isinstance(self.error, Postponed | LeftOut))

    def __str__(self) -> str:
        return f"{self.action.target}: {self.error or 'done'}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a performer of an object's operations reports of one that it attempted; `answer` as in `ActionResult`."""

    operation: object
    error: ActionError | None = None
    answer: object = None


@dataclass(slots=True)
class Run:
    """The performers' context; `failed` holds the targets of this run's failed actions so far."""

    kube: KubeApi
    cloud: Cloud
    events: Events
    load_balancers: Mapping[str, ObservedLoadBalancer] = field(default_factory=dict)
    """By ID, as the plan found them."""
    changing: Changing = nullcontext
    stop: threading.Event = field(default_factory=threading.Event)
    """Once it is set, performers of several operations begin no further one."""
    failed: set[str] = field(default_factory=set)


Changing = Callable[[], AbstractContextManager[None]]
"""Held while a load balancer is changed. Raises ApiError or CloudError if it must not be changed now."""
Perform = Callable[[O, Run], object]
PerformBatch = Callable[[Sequence[O], Run], Sequence[ActionError | None]]
PerformInOrder = Callable[[Sequence[O], Run], Iterable[Outcome]]

_single: dict[type, Perform[Any]] = {}
_batch: dict[type, PerformBatch[Any]] = {}
_in_order: dict[type, PerformInOrder[Any]] = {}


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


def performs_in_order(*operations: type) -> Callable[[PerformInOrder[O]], PerformInOrder[O]]:
    """Register a performer of all consecutive operations of these types on one object (`service/NAMESPACE/NAME`).

    It keeps their order and reports each one that it attempts; different objects run concurrently.
    """

    def register(function: PerformInOrder[O]) -> PerformInOrder[O]:
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
    load_balancers: Mapping[str, ObservedLoadBalancer] | None = None,
    changing: Changing = nullcontext,
    metrics: Metrics | None = None,
    workers: int = DEFAULT_WORKERS,
    stop: threading.Event | None = None,
    done: Callable[[ActionResult], None] = lambda _: None,
) -> list[ActionResult]:
    """Carry out the plan's changes and return one result each, in the plan's order.

    `controller` labels logs and metrics. `load_balancers` and `changing`: see `Run`. `done` is called with each result
    as soon as it is known. Once `stop` is set, no further action starts, because another process may lead. Actions that
    were not attempted have no result. Raises ValueError for an assumed action: it has no operation, so plan again once
    the cluster exists.
    """
    context = Run(kube, cloud, events, load_balancers or {}, changing, stop or threading.Event())
    results: list[ActionResult] = []
    with ThreadPoolExecutor(workers, thread_name_prefix=f"apply-{controller}") as pool:
        for operation, group in groupby(plan.changes, _kind):
            actions = list(group)
            for result in _perform(operation, actions, context, pool):
                if result is None:
                    continue
                results.append(result)
                done(result)
                if result.failed:
                    context.failed.add(result.action.target)
                _record(controller, result, metrics)
    return results


def failures(results: Sequence[ActionResult]) -> Iterator[ActionResult]:
    """The failed results; what only waits, or was made but for a part, has not failed."""
    return (result for result in results if result.failed)


class _InOrder:
    """The group of all operations that are performed in order, whatever their type."""


def _kind(action: Action) -> type:
    operation = type(action.operation)
    return _InOrder if operation in _in_order else operation


def _perform(
    operation: type, actions: Sequence[Action], run: Run, pool: ThreadPoolExecutor
) -> Iterable[ActionResult | None]:
    if run.stop.is_set():
        return []
    if operation in _batch:
        return _batch_results(operation, actions, run)
    if operation is not _InOrder:
        return pool.map(partial(_result, run=run), actions) if len(actions) > 1 else [_result(actions[0], run)]
    objects = _by_object(actions)
    if len(objects) == 1:
        return _in_order_results(actions, run)
    return chain.from_iterable(pool.map(lambda of_object: [*_in_order_results(of_object, run)], objects))


def _batch_results(operation: type, actions: Sequence[Action], run: Run) -> list[ActionResult]:
    try:
        errors = _batch[operation]([action.operation for action in actions], run)
    except (CloudError, ApiError) as error:
        errors = [error] * len(actions)
    return [ActionResult(action, error) for action, error in zip(actions, errors, strict=True)]


def _result(action: Action, run: Run) -> ActionResult | None:
    operation = type(action.operation)
    if operation not in _single:
        raise ValueError(f"{action.target}: no performer for {operation.__name__}; is the action assumed?")
    # Checked for each action: the interpreter waits at exit until a pool's queue is empty.
    if run.stop.is_set():
        return None
    try:
        return ActionResult(action, answer=_single[operation](action.operation, run))
    except (CloudError, ApiError) as error:
        return ActionResult(action, error)


def _in_order_results(actions: Sequence[Action], run: Run) -> Iterator[ActionResult]:
    """The results of one object's actions."""
    left = iter(actions)
    for outcome in _in_order[type(actions[0].operation)]([action.operation for action in actions], run):
        action = next(each for each in left if each.operation is outcome.operation)
        yield ActionResult(action, outcome.error, outcome.answer)


def _by_object(actions: Sequence[Action]) -> list[list[Action]]:
    by_object: dict[str, list[Action]] = {}
    for action in actions:
        by_object.setdefault(object_of(action.target), []).append(action)
    return [*by_object.values()]


def _record(controller: str, result: ActionResult, metrics: Metrics | None) -> None:
    action, outcome = result.action, "postponed" if result.waits else "failed" if result.failed else "done"
    _log.log(
        logging.INFO if result.ok or result.waits else logging.WARNING,
        "%s controller=%s kind=%s target=%s summary=%r%s",
        *(outcome, controller, action.kind, action.target, action.summary),
        "" if result.ok else f" error={str(result.error)!r}",
    )
    if metrics is not None:
        metrics.actions.labels(controller, action.kind.value, outcome).inc()
