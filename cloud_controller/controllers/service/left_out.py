"""Remembers what a cloud left out of changes, so that no reconcile sends it again before that may help.

The observed load balancer lacks it, so every plan has it. It is sent again after a full read, once its node becomes
ready, or once it changes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cloud_controller.cloud_errors import LeftOut
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.diff import shown
from cloud_controller.load_balancers.operations import (
    AddMembers,
    Operation,
    OperationResult,
    PutPool,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Action, Plan

_NAMED = 5

_Member = tuple[str, str, str, int, str]
"""Load balancer, pool, address, port and instance; a weight changes often and helps nothing."""


@dataclass(slots=True)
class _Refused:
    """Why, of which operation (for settings), and whether it is sent again."""

    why: str
    operation: Operation | None = None
    again: bool = False


@dataclass(slots=True)
class _OfService:
    members: dict[_Member, _Refused] = field(default_factory=dict)
    settings: dict[str, _Refused] = field(default_factory=dict)
    """By load balancer."""


class LeftOutParts:
    """What clouds left out of each Service's load balancers (by NAMESPACE/NAME). Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._services: dict[str, _OfService] = {}

    def note(self, key: str, result: OperationResult) -> None:
        """An operation was attempted."""
        if result.error is not None and not isinstance(result.error, LeftOut):
            return
        left, operation = result.error, result.operation
        with self._lock:
            known = self._services.setdefault(key, _OfService())
            if isinstance(operation, UpdateLoadBalancer):
                known.settings.pop(operation.id, None)
                if left is not None:
                    known.settings[operation.id] = _Refused(str(left), operation)
            for name, member in _members_of(operation):
                known.members.pop(name, None)
                if left is not None and member.key in left.members:
                    known.members[name] = _Refused(left.members[member.key])

    def without(self, key: str, plan: Plan) -> Plan:
        """The plan without what is not sent again yet; forgets what the plan does not have any more."""
        with self._lock:
            known = self._services.get(key)
            if known is None:
                return plan
            wanted = {name for action in plan for name, _ in _members_of(action.operation)}
            updated = {action.operation.id for action in plan if isinstance(action.operation, UpdateLoadBalancer)}
            known.members = {name: each for name, each in known.members.items() if name in wanted}
            known.settings = {lb: each for lb, each in known.settings.items() if lb in updated}
            if not known.members and not known.settings:
                del self._services[key]
                return plan
            return Plan.of(rest for action in plan if (rest := _due(action, known)) is not None)

    def repeats(self, key: str, plan: Plan) -> bool:
        """Whether the plan only sends again what was left out."""
        with self._lock:
            known = self._services.get(key, _OfService())
            return all(
                {name for name, _ in _members_of(each.operation)} <= known.members.keys()
                if isinstance(each.operation, AddMembers)
                else isinstance(each.operation, UpdateLoadBalancer) and each.operation.id in known.settings
                for each in plan.changes
            )

    def retry(self, instance_id: str | None = None) -> bool:
        """Send this machine's members again, or all; whether there is anything."""
        with self._lock:
            due = [
                each
                for known in self._services.values()
                for name, each in (*known.members.items(), *((None, each) for each in known.settings.values()))
                if instance_id is None or name is None or name[-1] == instance_id
            ]
            for each in due:
                each.again = True
            return bool(due)

    def told(self, key: str, nodes: Mapping[str, str]) -> str | None:
        """What is left out now and why, for an event. `nodes`: the names of nodes by their instances."""
        with self._lock:
            known = self._services.get(key, _OfService())
            reasons: dict[str, str] = {}
            for (_, _, address, _, instance), each in known.members.items():
                name = f"node {nodes[instance]} ({instance})" if instance in nodes else address
                reasons.setdefault(name, each.why)
            told = [f"{name}: {reasons[name]}" for name in sorted(reasons)]
            more = [f"and {len(told) - _NAMED} more"] if len(told) > _NAMED else []
            return "; ".join([*told[:_NAMED], *more, *(each.why for each in known.settings.values())]) or None

    def forget(self, key: str) -> None:
        """The Service is gone."""
        with self._lock:
            self._services.pop(key, None)


def _due(action: Action, known: _OfService) -> Action | None:
    operation = action.operation
    if isinstance(operation, UpdateLoadBalancer):
        refused = known.settings.get(operation.id)
        return None if refused and refused.operation == operation and not refused.again else action
    if not isinstance(operation, AddMembers):
        return action
    due = tuple(each for name, each in _members_of(operation) if name not in known.members or known.members[name].again)
    if len(due) == len(operation.members):
        return action
    return replace(action, summary=f"add {shown(due)}", operation=replace(operation, members=due)) if due else None


def _members_of(operation: object) -> Iterator[tuple[_Member, Member]]:
    if isinstance(operation, AddMembers):
        pool, members = operation.pool, operation.members
    elif isinstance(operation, PutPool) and operation.new:
        pool, members = operation.pool.name, operation.pool.members
    else:
        return
    for each in members:
        yield (operation.id, pool, each.address, each.port, each.instance_id), each
