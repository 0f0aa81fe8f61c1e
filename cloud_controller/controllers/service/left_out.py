"""Remembers which members a cloud refused, so that no reconcile sends them again before that may help.

The observed load balancer lacks them, so every plan adds them. They are sent again after a full read, once their node
becomes ready, or once they change.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

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
from cloud_controller.plan import Plan

_NAMED = 5

_Member = tuple[str, int, str]
"""Address, port and instance; a weight changes often and helps nothing."""
_Part = tuple[str, str]
"""The ID of a load balancer and a pool; "": the load balancer itself."""


@dataclass(slots=True)
class _Refused:
    why: str
    again: bool = False


class LeftOutMembers:
    """What clouds left out of each Service's load balancers (by NAMESPACE/NAME). Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: dict[str, dict[_Part, dict[_Member, _Refused]]] = {}
        self._wholes: dict[str, dict[str, str]] = {}

    def note(self, key: str, result: OperationResult) -> None:
        """An operation was attempted."""
        left = result.error if isinstance(result.error, LeftOut) else None
        if result.done is None:
            return
        with self._lock:
            if isinstance(result.operation, UpdateLoadBalancer):
                wholes = self._wholes.setdefault(key, {})
                wholes.pop(result.operation.id, None)
                if left is not None:
                    wholes[result.operation.id] = str(left)
            elif (found := _members_of(result.operation)) is not None:
                part, members = found
                known = self._members.setdefault(key, {}).setdefault(part, {})
                for each in members:
                    known.pop(_identity(each), None)
                    if left is not None and each.key in left.members:
                        known[_identity(each)] = _Refused(left.members[each.key])

    def without(self, key: str, plan: Plan, load_balancers: Collection[str]) -> Plan:
        """The plan without members that are not sent again yet; forgets those that it no longer has."""
        with self._lock:
            wholes = self._wholes.get(key, {})
            self._wholes[key] = {each: why for each, why in wholes.items() if each in load_balancers}
            known = self._members.get(key)
            if not known:
                return plan
            rest: dict[_Part, dict[_Member, _Refused]] = {}
            kept = []
            for action in plan:
                operation = action.operation
                if isinstance(operation, AddMembers) and (refused := known.get((operation.id, operation.pool))):
                    wanted = {_identity(each): each for each in operation.members}
                    refused = {each: why for each, why in refused.items() if each in wanted}
                    rest[operation.id, operation.pool] = refused
                    due = tuple(each for name, each in wanted.items() if name not in refused or refused[name].again)
                    if not due:
                        continue
                    if len(due) < len(operation.members):
                        action = replace(action, summary=f"add {shown(due)}", operation=replace(operation, members=due))
                kept.append(action)
            self._members[key] = rest
            return Plan.of(kept)

    def retry(self, instance_id: str | None = None) -> bool:
        """Send this machine's members again, or all; whether there are any."""
        with self._lock:
            found = [
                refused
                for parts in self._members.values()
                for members in parts.values()
                for (_, _, instance), refused in members.items()
                if instance_id in (None, instance)
            ]
            for each in found:
                each.again = True
            return bool(found)

    def retries(self, key: str, plan: Plan) -> bool:
        """Whether the plan only sends members again: nothing that its author has not been told of."""
        with self._lock:
            known = {each for members in self._members.get(key, {}).values() for each in members}
            return all(
                isinstance(each.operation, AddMembers) and known.issuperset(map(_identity, each.operation.members))
                for each in plan.changes
            )

    def told(self, key: str, nodes: Mapping[str, str]) -> str | None:
        """What is left out now and why, for an event. `nodes`: the names of nodes by their instances."""
        with self._lock:
            reasons: dict[str, str] = {}
            for members in self._members.get(key, {}).values():
                for (address, _, instance), refused in members.items():
                    name = f"node {nodes[instance]} ({instance})" if instance in nodes else address
                    reasons.setdefault(name, refused.why)
            told = [f"{name}: {reasons[name]}" for name in sorted(reasons)]
            more = [f"{len(told) - _NAMED} more"] if len(told) > _NAMED else []
            return "; ".join([*told[:_NAMED], *more, *self._wholes.get(key, {}).values()]) or None

    def forget(self, key: str) -> None:
        """The Service is gone."""
        with self._lock:
            self._members.pop(key, None)
            self._wholes.pop(key, None)


def _identity(member: Member) -> _Member:
    return member.address, member.port, member.instance_id


def _members_of(operation: Operation) -> tuple[_Part, tuple[Member, ...]] | None:
    if isinstance(operation, AddMembers):
        return (operation.id, operation.pool), operation.members
    if isinstance(operation, PutPool) and operation.new:
        return (operation.id, operation.pool.name), operation.pool.members
    return None
