"""Says in a few words what a reconcile has changed, for the event at its end."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Action, ActionKind

_Keys = frozenset[tuple[object, ...]]


class Summary:
    """What has been changed so far."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._members: dict[tuple[str, str], tuple[_Keys, _Keys]] = {}

    def add(self, action: Action, before: ObservedLoadBalancer | None) -> None:
        """Add an action that was carried out. `before`: the load balancer as it was, if there was one."""
        operation = action.operation
        if isinstance(operation, AddMembers | RemoveMembers):
            if before is not None and operation.members:
                pool = (operation.id, operation.pool)
                was = _members(before, operation.pool)
                first, _ = self._members.get(pool, (was, was))
                self._members[pool] = (first, _members(apply_operation(before, operation), operation.pool))
        elif (words := _words(action)) is not None:
            self._done.append(words)

    def __str__(self) -> str:
        return "; ".join([*self._done, *self._told_members()])

    def _told_members(self) -> Iterator[str]:
        pools = {pool: _change(was, now) for (_, pool), (was, now) in self._members.items()}
        if len({*pools.values()}) == 1:
            yield f"members {next(iter(pools.values()))}"
        else:
            yield from (f"members of pool {pool} {change}" for pool, change in pools.items())


def _members(lb: ObservedLoadBalancer, pool: str) -> _Keys:
    return frozenset(member.key for each in lb.model.pools if each.name == pool for member in each.members)


def _change(was: _Keys, now: _Keys) -> str:
    if was == now:
        return "have other weights"
    return f"{len(was)} -> {len(now)}" + (f" ({len(now - was)} replaced)" if len(was) == len(now) else "")


def _words(action: Action) -> str | None:
    changes = ", ".join(map(str, action.changes))
    match action.operation:
        case SetIngress():
            (address,) = action.changes
            if address.before is None:
                return f"address {address.after}"
            return f"address changed {address.before} -> {address.after or '(none)'}"
        case CreateLoadBalancer(model=model):
            return f"load balancer created with {', '.join(map(str, model.listeners)) or 'no listeners'}"
        case AdoptLoadBalancer(id=id):
            return f"load balancer {id} adopted"
        case DeleteLoadBalancer(id=id):
            return f"load balancer {id} deleted"
        case UpdateLoadBalancer():
            return changes
        case PutListener(listener=listener) if action.kind is ActionKind.CREATE:
            return f"listener {listener} added"
        case PutListener(listener=listener):
            return f"listener {listener} changed ({changes})"
        case DeleteListener(protocol=protocol, port=port):
            return f"listener {port}/{protocol} removed"
        case PutPool(pool=pool, new=False):
            return f"pool {pool.name} changed ({changes})"
    return None
