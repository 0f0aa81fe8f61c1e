"""The route table leads every node's pod range to its machine: observed, carried out, and kept so by a loop.

The rules are in `route_plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from cloud_controller import apply
from cloud_controller import nodes as view
from cloud_controller.cloud import Cloud, InvalidConfiguration, Route, RouteFailure, Routes
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.controllers.route_plan import (
    CONDITION,
    CREATED,
    NOT_CREATED,
    CreateRoute,
    DeleteRoute,
    ReplaceRoute,
    RouteObservation,
    RouteOptions,
    SetNetworkAvailable,
    network_state,
    plan,
    plan_assumed,
    plan_teardown,
)
from cloud_controller.kube import NODES, Kube, Object, PatchType

__all__ = [
    "RouteController",
    "RouteObservation",
    "RouteOptions",
    "observe",
    "observe_nodes",
    "plan",
    "plan_assumed",
    "plan_teardown",
]

NAME = "route"
COMPONENT = "route_controller"
"""The source of its events (upstream's name)."""


def observe(kube: Kube, cloud: Cloud) -> RouteObservation:
    """The route table and every node. Raises `InvalidConfiguration` for a cloud without routes."""
    return observe_nodes(kube.list(NODES).items, cloud)


def observe_nodes(nodes: Iterable[Object], cloud: Cloud) -> RouteObservation:
    """The route table, and the machines of these nodes (all nodes: a route of none of them is obsolete)."""
    nodes = tuple(nodes)
    routes = tuple(_table(cloud).list())
    instances, errors = view.describe(cloud, (node for node in nodes if view.pod_cidrs(node)))
    return RouteObservation(routes, nodes, instances, errors)


@apply.performs_batch(DeleteRoute)
def delete_routes(operations: Sequence[DeleteRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """All of them in the cloud's batches."""
    routes = [operation.route for operation in operations]
    return _errors(routes, _table(run.cloud).delete(routes))


@apply.performs_batch(ReplaceRoute)
def replace_routes(operations: Sequence[ReplaceRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """Old ones go, and where that worked the new ones come."""
    olds = [operation.old for operation in operations]
    removed = _errors(olds, _table(run.cloud).delete(olds))
    ready = [operation for operation, error in zip(operations, removed, strict=True) if error is None]
    creates = [CreateRoute(operation.route, operation.node) for operation in ready]
    written = iter(create_routes(creates, run))
    return [next(written) if error is None else error for error in removed]


@apply.performs_batch(CreateRoute)
def create_routes(operations: Sequence[CreateRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """All of them in the cloud's batches; the node of one that failed says so."""
    if not operations:
        return []
    routes = [operation.route for operation in operations]
    errors = _errors(routes, _table(run.cloud).create(routes))
    for operation, error in zip(operations, errors, strict=True):
        if error is not None:
            cidr = operation.route.destination_cidr
            run.events.warning(operation.node, "FailedToCreateRoute", f"Could not create route {cidr}: {error}")
            if network_state(operation.node) != NOT_CREATED[:2]:
                _write_condition(operation.node, NOT_CREATED, run)
    return errors


@apply.performs(SetNetworkAvailable)
def set_network_available(operation: SetNetworkAvailable, run: apply.Run) -> None:
    """Does nothing where a route of the node failed: that has set the condition itself."""
    if not operation.needs & run.failed:
        _write_condition(operation.node, CREATED if operation.available else NOT_CREATED, run)


class RouteController(LoopController):
    """The daemon's loop: at once when a node comes, goes or gets its pod range, and every `period` seconds."""

    name = NAME

    def __init__(self, context: ControllerContext, options: RouteOptions, period: float = 30.0) -> None:
        super().__init__(context, COMPONENT, period=period)
        self._options = options

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """See `LoopController.concerns`."""
        return old is None or new is None or _facts(old) != _facts(new)

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:  # noqa: ARG002 - the table is one
        """One pass over the whole table, whatever triggered it."""
        observation = observe_nodes(self.context.nodes.items(), self.context.cloud)
        results = self.apply(plan(observation, self._options))
        return [NAME] if any(True for _ in apply.failures(results)) else []


def _write_condition(node: Object, state: tuple[str, str, str], run: apply.Run) -> None:
    status, reason, message = state
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": CONDITION, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now}
    before = view.condition(node, CONDITION)
    if before is None or before["status"] != status:
        condition["lastTransitionTime"] = now
    view.patch_status(run.kube, node, {"conditions": [condition]}, PatchType.STRATEGIC)  # Merged by type.


def _errors(routes: Sequence[Route], failures: Sequence[RouteFailure]) -> list[apply.ActionError | None]:
    by_cidr = {failure.route.destination_cidr: failure.error for failure in failures}
    return [by_cidr.get(route.destination_cidr) for route in routes]


def _table(cloud: Cloud) -> Routes:
    if cloud.routes is None:
        raise InvalidConfiguration("controllers", f"cloud {cloud.provider_name} has no routes; leave out 'route'")
    return cloud.routes


def _facts(node: Object) -> tuple[object, ...]:
    return view.pod_cidrs(node), node["spec"].get("providerID"), network_state(node)
