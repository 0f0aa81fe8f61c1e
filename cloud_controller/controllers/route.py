"""Runs the route controller: every node's pod CIDRs have a route to its machine.

Observes, applies, and loops; the rules are in `route_plan`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cloud_controller import apply
from cloud_controller.binding import Evidence
from cloud_controller.cloud import (
    AccessDenied,
    Cloud,
    CloudError,
    Instance,
    InvalidConfiguration,
    QuotaExceeded,
    Route,
    RouteFailure,
    Routes,
    Throttled,
)
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.controllers.queue import Cause
from cloud_controller.controllers.route_plan import (
    CONDITION,
    CREATED,
    NOT_CREATED,
    CreateRoute,
    DeleteRoute,
    QuotaUse,
    ReplaceRoute,
    RouteObservation,
    RouteOptions,
    SetNetworkAvailable,
    Unreachable,
    network_state,
    plan,
    plan_assumed,
    plan_teardown,
)
from cloud_controller.controllers.seen_deletions import SeenDeletions
from cloud_controller.events import CLUSTER
from cloud_controller.kube import NODES, KubeApi, Object, PatchType, name, uid
from cloud_controller.plan import Plan

__all__ = [
    "RouteController",
    "RouteObservation",
    "RouteOptions",
    "evidence",
    "observe",
    "observe_nodes",
    "observe_table",
    "plan",
    "plan_assumed",
    "plan_teardown",
]

NAME = "route"
EVIDENCE = "routes"
COMPONENT = "route_controller"
"""The source of its events (upstream's name)."""


_MACHINES_AGE = 600.0
"""Maximum age in seconds: a node's machine never changes, and a blackhole route shows that it is gone."""
_QUOTA_AGE = 600.0
"""Seconds for which the quota is cached; if the table is full, every full pass reads it again."""

_NOT_WRITTEN = (QuotaExceeded, Throttled, AccessDenied)
"""Errors after which a route has certainly not been created."""

_log = logging.getLogger(__name__)


def observe(kube: KubeApi, cloud: Cloud, machines: InstanceSnapshot) -> RouteObservation:
    """Read the route table and all nodes. Raises `InvalidConfiguration` if the cloud does not support routes."""
    observation = observe_nodes(kube.list(NODES).items, cloud, machines)
    return replace(observation, quota=_quota(cloud))


def observe_nodes(
    nodes: Iterable[Object],
    cloud: Cloud,
    machines: InstanceSnapshot,
    *,
    routes: Sequence[Route] | None = None,
    max_age: float | None = None,
    left: frozenset[str] = frozenset(),
) -> RouteObservation:
    """Read the route table and the machines of `nodes`, which must be ALL nodes: other routes count as obsolete.

    `routes`: the table, if known. `max_age`: see `InstanceSnapshot`. `left`: see `RouteObservation`.
    """
    nodes = tuple(nodes)
    table = tuple(_table(cloud).list() if routes is None else routes)
    described = machines.describe_surely((node for node in nodes if view.pod_cidrs(node)), max_age)
    instances, errors = machines.exclusive(described, nodes)
    known = frozenset(instance.id for instance in instances.values() if instance is not None)
    owned = [route for route in table if route.owned is not False]
    targets = {route.target_instance for route in owned} - known
    if not targets and not any(_contradicts(node, instances.get(name(node)), owned) for node in nodes):
        return RouteObservation(table, nodes, instances, errors, known, left=left)
    # Ownership of the other targets depends on all machines, including terminated ones. One whose Node has left was the
    # cluster's, even if it went before any list showed it.
    ours = known | left | machines.cluster_machines(max_age, targets - left - {""})
    doubtful = (targets & ours) - left
    return RouteObservation(
        table,
        nodes,
        instances,
        errors,
        ours,
        anchored=machines.anchored(nodes),
        left=left,
        nodeless=machines.living(doubtful) if doubtful else frozenset(),
    )


def observe_table(cloud: Cloud) -> RouteObservation:
    """Read only the route table, for its teardown."""
    table = tuple(_table(cloud).list())
    ours: frozenset[str] = frozenset()
    if any(route.owned is None for route in table):
        ours = InstanceSnapshot(cloud.instances).cluster_machines()
    return RouteObservation(table, (), {}, machines=ours)


def evidence(observation: RouteObservation, options: RouteOptions) -> Evidence:
    """Which cluster the routes belong to. Routes to missing machines prove nothing."""
    routes = (route for route in observation.routes if not route.blackhole)
    own = [route for route in routes if observation.owns(route, options.cluster_cidrs)]
    of_nodes = {instance.id for instance in observation.instances.values() if instance is not None}
    return Evidence(EVIDENCE, len(own), sum(route.target_instance in of_nodes for route in own))


@apply.performs_batch(DeleteRoute)
def delete_routes(operations: Sequence[DeleteRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """Delete the routes, in batches."""
    routes = [operation.route for operation in operations]
    return _errors(routes, _table(run.cloud).delete(routes))


@apply.performs_batch(ReplaceRoute)
def replace_routes(operations: Sequence[ReplaceRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """Delete the old routes, and create the new ones where that succeeded."""
    olds = [operation.old for operation in operations]
    removed = _errors(olds, _table(run.cloud).delete(olds))
    ready = [operation for operation, error in zip(operations, removed, strict=True) if error is None]
    creates = [CreateRoute(operation.route, operation.node) for operation in ready]
    written = iter(create_routes(creates, run))
    return [next(written) if error is None else error for error in removed]


@apply.performs_batch(CreateRoute)
def create_routes(operations: Sequence[CreateRoute], run: apply.Run) -> Sequence[apply.ActionError | None]:
    """Create the routes, in batches, and report failures in events and conditions of the nodes."""
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
    """Set the condition, unless a route of the node failed, which has already set it."""
    if not operation.needs & run.failed:
        _write_condition(operation.node, CREATED if operation.available else NOT_CREATED, run)


class RouteController(LoopController):
    """The daemon's loop: reconciles at once when nodes change, using the cached route table.

    The table is read again every `period` seconds, and after a write with unknown outcome.
    """

    name = NAME
    reads_machines = True

    def __init__(self, context: ControllerContext, options: RouteOptions, period: float = 30.0) -> None:
        super().__init__(context, COMPONENT, period=period)
        self._options = options
        self._routes: dict[str, Route] | None = None
        self._preloaded: tuple[Route, ...] | None = None
        self._corrections = context.metrics.drift_corrections.labels(NAME)
        self._refused: dict[str, str] = {}
        self._quota: int | None = None
        self._quota_until = -math.inf
        self._machines: dict[str, str] = {}
        """Machine id by Node UID."""
        self._left = SeenDeletions()
        """The UIDs of Nodes whose deletion was seen, and the ids of the machines that they had."""
        context.nodes.add_deletion_handler(self._on_deletion)

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """See `LoopController.concerns`."""
        return old is None or new is None or _facts(old) != _facts(new)

    def evidence(self) -> Evidence:
        """See `Controller.evidence`. The first pass reuses this read of the table."""
        nodes, machines = self.context.nodes.items(), self.context.machines
        observation = observe_nodes(nodes, self.context.cloud, machines, max_age=_MACHINES_AGE)
        self._preloaded = observation.routes
        self._machines = _machines_of(observation)
        return evidence(observation, self._options)

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Run one pass over the whole table, whatever triggered it."""
        self.context.metrics.route_syncs.inc()
        cloud = self.context.cloud
        left = self._routes
        known = self._preloaded if keys is None or left is None else [*left.values()]
        self._preloaded = None
        observation = observe_nodes(
            self.context.nodes.items(),
            cloud,
            self.context.machines,
            routes=known,
            max_age=_MACHINES_AGE,
            left=self._left.uids(),
        )
        present = {uid(node) for node in observation.nodes}
        self._machines = {of: its for of, its in self._machines.items() if of in present} | _machines_of(observation)
        for of, machine in self._machines.items():
            if of not in self._left:
                self._left.forget(machine)  # It has registered again.
        waiting = {
            target.removeprefix("route/"): why
            for target, why in self._refused.items()
            if self._queue.must_wait(target, Cause.ROUTINE)
        }
        observation = replace(observation, refused=waiting, quota=self._known_quota(cloud, everything=keys is None))
        planned = plan(observation, self._options)
        self._routes = None
        results = self.apply(planned)
        self._routes = _table_after(observation.routes, results)
        if known is None and left is not None:
            self._corrections.inc(_corrections(results, left))
        self._report(planned, waiting)
        failures = {result.action.target: result.error for result in apply.failures(results)}
        if any(isinstance(error, QuotaExceeded) for error in failures.values()):
            self._quota_until = -math.inf
        still = {target: why for target, why in self._refused.items() if target.removeprefix("route/") in waiting}
        self._refused = still | {target: str(error) for target, error in failures.items()}
        throttled = [error for error in failures.values() if isinstance(error, Throttled)]
        if throttled:
            # The retry time of the cloud applies to the whole pass.
            raise max(throttled, key=lambda error: error.retry_after)
        return failures

    def _on_deletion(self, node: Object) -> None:
        if machine := self._machines.get(uid(node)):
            self._left.remember(uid(node))
            self._left.remember(machine)

    def _known_quota(self, cloud: Cloud, *, everything: bool) -> int | None:
        now = time.monotonic()
        if everything and now >= self._quota_until:
            self._quota = _quota(cloud)
            self._quota_until = now + _QUOTA_AGE
        return self._quota

    def _report(self, planned: Plan, waiting: Collection[str]) -> None:
        """Emit events for unreachable pods and a nearly full table, and update the metrics."""
        metrics = self.context.metrics
        metrics.routes.set(len(self._routes or ()))
        metrics.route_quota.set(self._quota or 0)
        for action in planned:
            cidr = action.target.removeprefix("route/")
            if isinstance(action.operation, Unreachable) and cidr not in waiting:
                message = f"Could not create route {cidr}: {action.reason}"
                self.warn(action.operation.node, "FailedToCreateRoute", message)
            if isinstance(action.operation, QuotaUse):
                if action.operation.used >= action.operation.quota:
                    self._quota_until = -math.inf
                if self.warn(CLUSTER, "RouteQuotaNearlyUsed", f"{action.summary}: {action.reason}"):
                    _log.warning(
                        "route quota nearly used used=%d quota=%d", action.operation.used, action.operation.quota
                    )


def _contradicts(node: Object, instance: Instance | None, routes: Iterable[Route]) -> bool:
    """Whether the machine, which only the node's name tells, has a route of other pods: another cluster may have a
    machine of this name."""
    if instance is None or node["spec"].get("providerID"):
        return False
    pods = set(view.pod_cidrs(node))
    return any(route.target_instance == instance.id and route.destination_cidr not in pods for route in routes)


def _machines_of(observation: RouteObservation) -> dict[str, str]:
    found = ((node, observation.instances.get(name(node))) for node in observation.nodes)
    return {uid(node): instance.id for node, instance in found if instance is not None}


def _corrections(results: Iterable[apply.ActionResult], left: Mapping[str, Route]) -> int:
    """How many of these changes bring back the table that we left, by destination: others follow from nodes.

    Failed ones count too: their repetition, planned from what we left, does not. Those of blackholes do not count: the
    cloud itself makes a route one when its machine has ended.
    """

    def corrects(operation: object) -> bool:
        match operation:
            case CreateRoute(route=route):
                return _target(left, route.destination_cidr) == route.target_instance
            case ReplaceRoute(old=old, route=route):
                return not old.blackhole and _target(left, route.destination_cidr) == route.target_instance
            case DeleteRoute(route=route):
                return not route.blackhole and _target(left, route.destination_cidr) != route.target_instance
        return False

    return sum(corrects(result.action.operation) for result in results)


def _target(table: Mapping[str, Route], cidr: str) -> str | None:
    route = table.get(cidr)
    return route.target_instance if route is not None else None


def _table_after(routes: Iterable[Route], results: Sequence[apply.ActionResult]) -> dict[str, Route] | None:
    """The route table after these results; None if it is uncertain."""
    table = {route.destination_cidr: route for route in routes}
    for result in results:
        operation = result.action.operation
        if isinstance(operation, SetNetworkAvailable):
            continue
        if not result.ok:
            if isinstance(operation, CreateRoute) and isinstance(result.error, _NOT_WRITTEN):
                continue
            return None
        if isinstance(operation, DeleteRoute):
            table.pop(operation.route.destination_cidr, None)
        elif isinstance(operation, ReplaceRoute):
            table.pop(operation.old.destination_cidr, None)
            table[operation.route.destination_cidr] = operation.route
        elif isinstance(operation, CreateRoute):
            table[operation.route.destination_cidr] = operation.route
    return table


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


def _quota(cloud: Cloud) -> int | None:
    """The route quota; None if it is unknown: that prevents no route."""
    try:
        return _table(cloud).quota()
    except CloudError as error:
        _log.warning("could not read route quota error=%r", str(error))
        return None


def _table(cloud: Cloud) -> Routes:
    if cloud.routes is None:
        raise InvalidConfiguration(
            "controllers", f"cloud {cloud.provider_name} does not support routes", "every controller but route"
        )
    return cloud.routes


def _facts(node: Object) -> tuple[object, ...]:
    return view.pod_cidrs(node), node["spec"].get("providerID"), view.addresses(node), network_state(node)
