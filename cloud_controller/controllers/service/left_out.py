"""Remembers what a cloud left out of changes, so that no reconcile sends it again before that may help.

The observed load balancer lacks it, so every plan has it. It is sent again after a full read (a node's member only if
the node is ready then), once its node becomes ready, or once it changes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pprint import pformat

from cloud_controller.cloud_errors import LeftOut, Postponed
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.diff import shown
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    AddMembers,
    OperationResult,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Action, ActionKind, Plan

_Member = tuple[str, str, str, int, str]
"""Load balancer, pool, address, port and instance; a weight changes often and helps nothing."""


@dataclass(slots=True)
class _Refused:
    """Why, the digest of the settings ("": of a member), and whether it is sent again."""

    why: str
    digest: str = ""
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
        if result.error is not None and not isinstance(result.error, LeftOut | Postponed):
            return
        left, operation = result.error, result.operation
        done = not isinstance(left, Postponed)
        with self._lock:
            known = self._services.setdefault(key, _OfService())
            if isinstance(operation, UpdateLoadBalancer) and done:
                known.settings.pop(operation.id, None)
                if left is not None:
                    known.settings[operation.id] = _Refused(str(left), _digest(operation))
            for name, member in _members_of(operation):
                if left is not None and member.key in left.members:
                    known.members[name] = _Refused(left.members[member.key])
                elif done:
                    known.members.pop(name, None)

    def forget_unwanted(self, key: str, plan: Plan) -> None:
        """Forget what the whole plan does not have any more."""
        with self._lock:
            known = self._services.get(key)
            if known is None:
                return
            wanted = {name for action in plan for name, _ in _members_of(action.operation)}
            updated = {action.operation.id for action in plan if isinstance(action.operation, UpdateLoadBalancer)}
            known.members = {name: each for name, each in known.members.items() if name in wanted}
            known.settings = {lb: each for lb, each in known.settings.items() if lb in updated}
            if not known.members and not known.settings:
                del self._services[key]

    def without(self, key: str, plan: Plan, observed: Iterable[ObservedLoadBalancer]) -> Plan:
        """The plan without what is not sent again yet. A pool's last members stay if all successors are refused."""
        with self._lock:
            known = self._services.get(key)
            if known is None:
                return plan
            present = _present(observed)
            return Plan.of(rest for action in plan if (rest := _due(action, known, present)) is not None)

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

    def retry(self, instance_id: str) -> bool:
        """Send this machine's members, and settings, again; whether there is anything."""
        return self._retry(lambda instance: instance == instance_id)

    def retry_all(self, *, but: Collection[str]) -> None:
        """Send everything again but the members of these machines."""
        self._retry(lambda instance: instance not in but)

    def _retry(self, is_due: Callable[[str], bool]) -> bool:
        due: list[_Refused] = []
        with self._lock:
            for known in self._services.values():
                due += known.settings.values()
                due += (each for name, each in known.members.items() if is_due(name[-1]))
            for each in due:
                each.again = True
        return bool(due)

    def told(self, key: str, nodes: Mapping[str, str], observed: Iterable[ObservedLoadBalancer]) -> str | None:
        """What is left out now and why, for an event. `nodes`: the names of nodes by their instances."""
        with self._lock:
            known = self._services.get(key, _OfService())
            reasons: dict[str, str] = {}
            present = _present(observed)
            for member, each in known.members.items():
                _, _, address, _, instance = member
                name = f"node {nodes[instance]} ({instance})" if instance in nodes else address
                reasons.setdefault(
                    f"a new weight of {name}, which keeps its weight" if member in present else name, each.why
                )
            told = [f"{name}: {reasons[name]}" for name in sorted(reasons)]
            some = [listed(told, separator="; ")] if told else []
            return "; ".join([*some, *(each.why for each in known.settings.values())]) or None

    def forget(self, key: str) -> None:
        """The Service is gone."""
        with self._lock:
            self._services.pop(key, None)


def _digest(operation: UpdateLoadBalancer) -> str:
    """Unlike `repr`, the same for mappings in another order."""
    return hashlib.sha256(pformat(operation).encode()).hexdigest()


def _present(observed: Iterable[ObservedLoadBalancer]) -> set[_Member]:
    return {
        (lb.id, pool.name, each.address, each.port, each.instance_id)
        for lb in observed
        for pool in lb.model.pools
        for each in pool.members
    }


def _due(action: Action, known: _OfService, present: Collection[_Member]) -> Action | None:
    operation = action.operation
    if isinstance(operation, UpdateLoadBalancer):
        refused = known.settings.get(operation.id)
        return None if refused and not refused.again and refused.digest == _digest(operation) else action
    if isinstance(operation, RemoveMembers) and known.members:
        return _with_successors(action, operation, known, present)
    if not isinstance(operation, AddMembers):
        return action
    due = tuple(each for name, each in _members_of(operation) if name not in known.members or known.members[name].again)
    if len(due) == len(operation.members):
        return action
    return replace(action, summary=f"add {shown(due)}", operation=replace(operation, members=due)) if due else None


def _with_successors(
    action: Action, operation: RemoveMembers, known: _OfService, present: Collection[_Member]
) -> Action:
    """The removal, which waits for no refused successor; ignored if nothing else would be in the pool."""
    left, refused = [], None
    for each in operation.successors:
        name = (operation.id, operation.pool, each.address, each.port, each.instance_id)
        if name in present or name not in known.members or known.members[name].again:
            left.append(each)
        else:
            refused = known.members[name]
    if refused is None:
        return action
    if left:
        return replace(action, operation=replace(operation, successors=tuple(left)))
    why = f"the cloud refuses all that would replace them: {refused.why}"
    return Action(ActionKind.IGNORE, action.target, "keep members", reason=why)


def _members_of(operation: object) -> Iterator[tuple[_Member, Member]]:
    if isinstance(operation, AddMembers):
        pool, members = operation.pool, operation.members
    elif isinstance(operation, PutPool) and operation.new:
        pool, members = operation.pool.name, operation.pool.members
    else:
        return
    for each in members:
        yield (operation.id, pool, each.address, each.port, each.instance_id), each
