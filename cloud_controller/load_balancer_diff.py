"""What must happen to the load balancers of one Service so that exactly the wanted one exists: a pure function.

Order of the actions: what is made or changed first, each thing before what needs it (pools before listeners, members
added before others are removed), then what is deleted, in reverse. An unchanged port is never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from cloud_controller.catalogue import Catalogue, Mutability
from cloud_controller.load_balancer import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    HealthCheck,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    Member,
    ObservedLoadBalancer,
    Pool,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

LOGGED_MEMBERS = 20
"""The most members that a line for a person names (as upstream limits node names)."""

_PREFERENCE = {LoadBalancerState.READY: 0, LoadBalancerState.PENDING: 1, LoadBalancerState.FAILED: 2}


def diff(
    desired: LoadBalancerModel | None,
    observed: Sequence[ObservedLoadBalancer],
    catalogue: Catalogue,
    *,
    target: str,
    client_token: str,
) -> Plan:
    """The actions for the Service `target` (`service/NAMESPACE/NAME`).

    `observed` are all the load balancers that it owns; `desired` is None where it shall have none. Of several, the one
    that can become the wanted one without changing its address is kept. `client_token` is that of the Service's first
    load balancer; one that replaces another gets a token derived from both, for the cloud still holds the first.
    """
    if desired is None:
        return Plan.of(_delete(lb, target, "the Service wants no load balancer") for lb in _by_age(observed))
    keeper = kept(desired, observed, catalogue)
    if keeper is None:
        return Plan.of([_create(desired, _by_age(observed), catalogue, target, client_token)])
    if keeper.state is LoadBalancerState.PENDING:
        # The others, if there are any, serve until this one does.
        waiting = Action(ActionKind.IGNORE, target, f"load balancer {keeper.id}", reason="it is still being created")
        return Plan.of([waiting])
    altered = [*_alter(desired, keeper, catalogue, target)]
    if keeper.state is LoadBalancerState.READY:
        others = (lb for lb in _by_age(observed) if lb is not keeper)
        altered += [_delete(lb, target, f"{keeper.id} serves in its place") for lb in others]
    return Plan.of(altered)


def kept(
    desired: LoadBalancerModel, observed: Sequence[ObservedLoadBalancer], catalogue: Catalogue
) -> ObservedLoadBalancer | None:
    """Of the load balancers that a Service owns, the one that is, or can become, the wanted one."""
    usable = [
        lb
        for lb in _by_age(observed)
        if lb.state is not LoadBalancerState.DELETING and not _forced(desired, lb, catalogue)
    ]
    # A failed one is kept too if there is no better: a change may mend it, and its address must not be lost.
    return min(usable, key=lambda lb: _PREFERENCE[lb.state], default=None)


# ----------------------------------------------------------------------------------------------- one load balancer


def _create(
    desired: LoadBalancerModel,
    observed: Sequence[ObservedLoadBalancer],
    catalogue: Catalogue,
    target: str,
    client_token: str,
) -> Action:
    listeners = ", ".join(map(str, desired.listeners)) or "no listeners"
    members = len({member.address for pool in desired.pools for member in pool.members})
    what = f"load balancer {desired.name}: {listeners}; {members} {'node' if members == 1 else 'nodes'}"
    changes = tuple(FieldChange(key, None, value) for key, value in sorted(desired.attributes.items()))
    if not observed:
        operation = CreateLoadBalancer(desired, client_token)
        return Action(ActionKind.CREATE, target, f"create {what}", changes, operation=operation)
    old = observed[-1]
    operation = CreateLoadBalancer(desired, f"{client_token}-after-{old.id}")
    if old.state is LoadBalancerState.DELETING:
        reason = f"{old.id} is being deleted"
    else:
        changes = tuple(change.as_field_change() for change in _forced(desired, old, catalogue))
        reason = f"{', '.join(change.field for change in changes)} cannot be changed in place"
    return Action(
        ActionKind.REPLACE,
        target,
        f"replace {old.id} by a new {what}; the address changes",
        changes,
        reason=reason,
        operation=operation,
    )


def _delete(lb: ObservedLoadBalancer, target: str, why: str) -> Action:
    if lb.state is LoadBalancerState.DELETING:
        return Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason="it is being deleted already")
    return Action(
        ActionKind.DELETE,
        target,
        f"delete load balancer {lb.id} ({lb.model.name})",
        reason=why,
        operation=DeleteLoadBalancer(lb.id),
    )


def _alter(
    desired: LoadBalancerModel, keeper: ObservedLoadBalancer, catalogue: Catalogue, target: str
) -> Iterator[Action]:
    """The actions on a load balancer that stays."""
    actual = keeper.model
    if keeper.state is LoadBalancerState.FAILED:
        why = keeper.state_reason or "the cloud names no reason"
        yield Action(ActionKind.IGNORE, target, f"load balancer {keeper.id}", reason=f"it has failed: {why}")
    yield from _ignored(_differences(desired, actual), catalogue, target)
    changed = [c for c in _model_differences(desired, actual) if c.in_place(catalogue)]
    if changed:
        yield Action(
            ActionKind.UPDATE,
            target,
            f"update load balancer {keeper.id}",
            tuple(change.as_field_change() for change in changed),
            # The cloud replaces all tags at once; those that somebody else added are theirs.
            operation=UpdateLoadBalancer(keeper.id, replace(desired, tags={**actual.tags, **desired.tags})),
        )
    pools = {pool.name: pool for pool in actual.pools}
    wanted_pools = {pool.name: pool for pool in desired.pools}
    for pool in desired.pools:
        yield from _pool_made_or_changed(pool, pools.get(pool.name), catalogue, keeper.id, target)
    listeners = {listener.key: listener for listener in actual.listeners}
    wanted_listeners = {listener.key: listener for listener in desired.listeners}
    for listener in desired.listeners:
        yield from _listener_made_or_changed(listener, listeners.get(listener.key), catalogue, keeper.id, target)
    for pool in desired.pools:
        yield from _members_removed(pool, pools.get(pool.name), keeper.id, target)
    for listener in reversed(actual.listeners):
        if listener.key not in wanted_listeners:
            yield Action(
                ActionKind.DELETE,
                f"{target}/listener/{listener}",
                "delete listener",
                operation=DeleteListener(keeper.id, listener.protocol, listener.port),
            )
    for pool in reversed(actual.pools):
        if pool.name not in wanted_pools:
            delete = DeletePool(keeper.id, pool.name)
            yield Action(ActionKind.DELETE, f"{target}/pool/{pool.name}", "delete pool", operation=delete)


# ----------------------------------------------------------------------------------------------- pools and members


def _pool_made_or_changed(
    pool: Pool, actual: Pool | None, catalogue: Catalogue, id: str, target: str
) -> Iterator[Action]:
    where = f"{target}/pool/{pool.name}"
    if actual is None:
        changes = (
            *(FieldChange(key, None, value) for key, value in sorted(pool.attributes.items())),
            *(FieldChange(f"health_check.{key}", None, value) for key, value in _check_values(pool.health_check)),
        )
        summary = f"create pool with {_shown(pool.members)}"
        yield Action(ActionKind.CREATE, where, summary, changes, operation=PutPool(id, pool, new=True))
        return
    changed = [c for c in _pool_differences(pool, actual) if c.in_place(catalogue)]
    if changed:
        fields_ = tuple(change.as_field_change() for change in changed)
        yield Action(ActionKind.UPDATE, where, "change pool", fields_, operation=PutPool(id, pool, new=False))
    known = {member.key: member for member in actual.members}
    added = tuple(member for member in pool.members if known.get(member.key) != member)
    if added:
        operation = AddMembers(id, pool.name, added)
        yield Action(ActionKind.UPDATE, f"{where}/members", f"add {_shown(added)}", operation=operation)


def _members_removed(pool: Pool, actual: Pool | None, id: str, target: str) -> Iterator[Action]:
    if actual is None:
        return
    wanted = {member.key for member in pool.members}
    removed = tuple(member for member in actual.members if member.key not in wanted)
    if removed:
        where = f"{target}/pool/{pool.name}/members"
        operation = RemoveMembers(id, pool.name, removed)
        yield Action(ActionKind.UPDATE, where, f"remove {_shown(removed)}", operation=operation)


def _shown(members: Sequence[Member]) -> str:
    if not members:
        return "no members"
    names = [f"{member.instance_id} ({member.address}:{member.port})" for member in members[:LOGGED_MEMBERS]]
    more = f" and {len(members) - LOGGED_MEMBERS} more" if len(members) > LOGGED_MEMBERS else ""
    return f"{', '.join(names)}{more}"


# ------------------------------------------------------------------------------------------------------- listeners


def _listener_made_or_changed(
    listener: Listener, actual: Listener | None, catalogue: Catalogue, id: str, target: str
) -> Iterator[Action]:
    where = f"{target}/listener/{listener}"
    put = PutListener(id, listener)
    if actual is None:
        changes = tuple(FieldChange(key, None, value) for key, value in sorted(listener.attributes.items()))
        yield Action(ActionKind.CREATE, where, f"create listener to pool {listener.pool}", changes, operation=put)
        return
    changed = [c for c in _listener_differences(listener, actual) if c.in_place(catalogue)]
    if changed:
        fields_ = tuple(change.as_field_change() for change in changed)
        yield Action(ActionKind.UPDATE, where, "change listener", fields_, operation=put)


# ----------------------------------------------------------------------------------------------------- differences


@dataclass(frozen=True, slots=True)
class _Difference:
    """One field that differs. `scope` and `field` together are what a catalogue entry `sets`."""

    scope: str
    part: str
    field: str
    before: object
    after: object

    @property
    def sets(self) -> str:
        return f"{self.scope}.{self.field}" if self.scope else self.field

    def in_place(self, catalogue: Catalogue) -> bool:
        return catalogue.mutability(self.sets) is Mutability.IN_PLACE

    def as_field_change(self) -> FieldChange:
        prefix = "health_check." if self.scope == "health_check" else ""
        return FieldChange(f"{prefix}{self.field}", self.before, self.after)


def _forced(desired: LoadBalancerModel, lb: ObservedLoadBalancer, catalogue: Catalogue) -> list[_Difference]:
    """The differences that only a new load balancer can bring about."""
    return [d for d in _differences(desired, lb.model) if catalogue.mutability(d.sets) is Mutability.REPLACE]


def _ignored(differences: Sequence[_Difference], catalogue: Catalogue, target: str) -> Iterator[Action]:
    for difference in differences:
        if catalogue.mutability(difference.sets) is Mutability.CREATE_ONLY:
            yield Action(
                ActionKind.IGNORE,
                f"{target}{difference.part}",
                f"{difference.sets} differs",
                (difference.as_field_change(),),
                reason="it is used only when a load balancer is made",
            )


def _differences(desired: LoadBalancerModel, actual: LoadBalancerModel) -> list[_Difference]:
    found = _model_differences(desired, actual)
    pools = {pool.name: pool for pool in actual.pools}
    listeners = {listener.key: listener for listener in actual.listeners}
    for pool in desired.pools:
        if pool.name in pools:
            found += _pool_differences(pool, pools[pool.name])
    for listener in desired.listeners:
        if listener.key in listeners:
            found += _listener_differences(listener, listeners[listener.key])
    return found


def _model_differences(desired: LoadBalancerModel, actual: LoadBalancerModel) -> list[_Difference]:
    found = _compare("", "", desired.attributes, actual.attributes)
    if desired.name != actual.name:
        found.append(_Difference("", "", "name", actual.name, desired.name))
    return found + [
        _Difference("", "", f"tags.{key}", actual.tags.get(key), value)
        for key, value in sorted(desired.tags.items())
        if actual.tags.get(key) != value
    ]


def _pool_differences(desired: Pool, actual: Pool) -> list[_Difference]:
    part = f"/pool/{desired.name}"
    checks = (dict(_check_values(desired.health_check)), dict(_check_values(actual.health_check)))
    return [
        *_compare("pool", part, desired.attributes, actual.attributes),
        *_compare("health_check", part, *checks),
    ]


def _listener_differences(desired: Listener, actual: Listener) -> list[_Difference]:
    part = f"/listener/{desired}"
    found = _compare("listener", part, desired.attributes, actual.attributes)
    if desired.pool != actual.pool:
        found.append(_Difference("listener", part, "pool", actual.pool, desired.pool))
    return found


def _compare(scope: str, part: str, desired: Mapping[str, object], actual: Mapping[str, object]) -> list[_Difference]:
    return [
        _Difference(scope, part, key, actual.get(key), value)
        for key, value in sorted(desired.items())
        if actual.get(key) != value
    ]


def _check_values(check: HealthCheck) -> list[tuple[str, object]]:
    return [(entry.name, getattr(check, entry.name)) for entry in fields(check)]


def _by_age(observed: Sequence[ObservedLoadBalancer]) -> list[ObservedLoadBalancer]:
    return sorted(observed, key=lambda lb: (lb.created_at, lb.id))
