"""Plans the changes that turn the load balancers of one Service into exactly the desired one. Pure.

The plan creates and updates first, dependencies before dependents (pools before listeners, additions of members before
removals), and then deletes in reverse order. An unchanged port is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Catalogue, Mutability
from cloud_controller.load_balancers.differences import (
    Difference,
    check_values,
    differences,
    listener_differences,
    model_differences,
    pool_differences,
)
from cloud_controller.load_balancers.model import (
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.load_balancers.sharing import LEFT_TAG, is_left, serves_others, without_others
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange, Plan

ONLY_AT_CREATION = "it applies only when a load balancer is created"
MOST_NAMED = 20
"""Maximum number of members or listeners that a message lists (upstream limits node names in the same way)."""

# Load balancers in other states cannot become the desired one.
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

    - `desired`: None if the Service should have no load balancer.
    - `observed`: all load balancers that it owns. Of several, one that can keep its address is used.
    - `client_token`: the token of the Service's first load balancer. A replacement gets a token derived from both,
      because the first token is still in use.

    Parts of other Services are never touched: a load balancer that would be deleted is left to them instead.
    Raises InvalidConfiguration if a new one would need what a load balancer that is left to others keeps.
    """
    if desired is None:
        why = "the Service no longer needs a load balancer"
        return Plan.of(action for lb in _by_age(observed) for action in _end(lb, catalogue, target, why))
    current = find_current(desired, observed, catalogue)
    if current is None:
        whole = [lb for lb in _by_age(observed) if lb.state is not LoadBalancerState.PARTIAL]
        first = [action for lb in whole for action in _end_in_the_way(desired, lb, catalogue, target)]
        if first:
            return Plan.of(first)
        return Plan.of([_create(desired, whole, catalogue, target, client_token)])
    if current.state is LoadBalancerState.PENDING:
        # Other load balancers keep serving until this one is ready.
        waiting = Action(ActionKind.IGNORE, target, f"load balancer {current.id}", reason="it is still being created")
        return Plan.of([waiting])
    altered = [*_taken_back(desired, current, target)]
    altered += alter(desired, _own_alone(current), catalogue, target)
    if current.serves:
        others = (lb for lb in _by_age(observed) if lb is not current)
        why = f"{current.id} serves in its place"
        altered += [action for lb in others for action in _end(lb, catalogue, target, why, replaced=True)]
    return Plan.of(altered)


def find_current(
    desired: LoadBalancerModel, observed: Sequence[ObservedLoadBalancer], catalogue: Catalogue
) -> ObservedLoadBalancer | None:
    """The load balancer of the Service that is, or can become, the desired one."""
    by_age = _by_age(observed)
    usable = [lb for lb in by_age if lb.state in _PREFERENCE and not forced_differences(desired, lb, catalogue)]
    # A failed one is the last choice: an update may fix it, and its address must not be lost.
    return min(usable, key=lambda lb: _PREFERENCE[lb.state], default=None)


def forced_differences(desired: LoadBalancerModel, lb: ObservedLoadBalancer, catalogue: Catalogue) -> list[Difference]:
    """The differences that require a replacement. Absent and empty count as equal."""
    found = (d for d in differences(desired, lb.model) if d.before or d.after)
    return [d for d in found if catalogue.mutability(d.sets) is Mutability.REPLACE]


# ----------------------------------------------------------------------------------------------- one load balancer


def _create(
    desired: LoadBalancerModel,
    observed: Sequence[ObservedLoadBalancer],
    catalogue: Catalogue,
    target: str,
    client_token: str,
) -> Action:
    listeners = listed([str(listener) for listener in desired.listeners], MOST_NAMED) or "no listeners"
    backends = len({member.address for pool in desired.pools for member in pool.members})
    what = f"load balancer {desired.name}: {listeners}; {backends} {'backend' if backends == 1 else 'backends'}"
    changes = tuple(_made(desired))
    if not observed:
        operation = CreateLoadBalancer(desired, client_token)
        return Action(ActionKind.CREATE, target, f"create {what}", changes, operation=operation)
    old = observed[-1]
    operation = CreateLoadBalancer(desired, f"{client_token}-after-{old.id}")
    if old.state is LoadBalancerState.DELETING:
        reason = f"{old.id} is being deleted"
    else:
        changes = tuple(change.as_field_change() for change in forced_differences(desired, old, catalogue))
        reason = f"{', '.join(change.field for change in changes)} cannot be changed in place"
    return Action(
        ActionKind.REPLACE,
        target,
        f"replace {old.id} with new {what}; the address changes",
        changes,
        reason=reason,
        operation=operation,
    )


def _made(desired: LoadBalancerModel) -> Iterator[FieldChange]:
    """The settings of a new load balancer; settings that all its parts share are listed once."""
    yield from _given(sorted(desired.attributes.items()))
    listeners: dict[str, Mapping[str, object]] = {f"listener/{each}": each.attributes for each in desired.listeners}
    pools: dict[str, Mapping[str, object]] = {
        f"pool/{pool.name}": {**pool.attributes, "health_check": pool.health_check.protocol} for pool in desired.pools
    }
    for kind, parts in (("listener", listeners), ("pool", pools)):
        for key in sorted({key for values in parts.values() for key in values}):
            given = {name: values.get(key) for name, values in parts.items()}
            if len(given) > 1 and len(set(given.values())) == 1:
                given = {f"every {kind}": next(iter(given.values()))}
            yield from _given((f"{name}.{key}", value) for name, value in given.items())


def _given(values: Iterable[tuple[str, object]]) -> Iterator[FieldChange]:
    return (FieldChange(name, None, value) for name, value in values if value)


def _end(
    lb: ObservedLoadBalancer, catalogue: Catalogue, target: str, why: str, *, replaced: bool = False
) -> Iterator[Action]:
    """Delete it, or remove only its owner's parts if others use it."""
    if lb.state is LoadBalancerState.DELETING:
        yield Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason="it is already being deleted")
        return
    if serves_others(lb):
        yield from _leave(lb, catalogue, target, why)
        return
    left = "the remains of " if lb.state is LoadBalancerState.PARTIAL else ""
    yield Action(
        ActionKind.DELETE,
        target,
        f"delete {left}load balancer {lb.id} ({lb.model.name})",
        reason=why,
        operation=DeleteLoadBalancer(lb.id, replaced),
    )


def _end_in_the_way(
    desired: LoadBalancerModel, lb: ObservedLoadBalancer, catalogue: Catalogue, target: str
) -> Iterator[Action]:
    """Delete it before its successor is created, if that needs what it has. NOTHING SERVES MEANWHILE.

    Raises InvalidConfiguration if it stays, because others use it.
    """
    for field, setting in catalogue.exclusive.items():
        shared = ", ".join(sorted(_words(desired, field) & _words(lb.model, field)))
        if not shared:
            continue
        if serves_others(lb):
            why = f"{shared} cannot be moved to a new load balancer: {lb.id} has it, and other Services use {lb.id}"
            raise InvalidConfiguration(setting, why, "values that no load balancer has")
        why = f"the address changes: the new load balancer can be created only when {shared} is free"
        why += "; until it serves, clients cannot connect"
        yield from _end(lb, catalogue, target, why, replaced=True)
        return


def _words(model: LoadBalancerModel, field: str) -> set[str]:
    """The words of a field, or of its family (`eip.ZONE` of `eip`)."""
    values = (value for name, value in model.attributes.items() if value and name.partition(".")[0] == field)
    return {word for value in values for word in (value if isinstance(value, tuple) else (str(value),))}


def _leave(lb: ObservedLoadBalancer, catalogue: Catalogue, target: str, why: str) -> Iterator[Action]:
    later = "other Services use it; it is deleted with the last of them"
    if is_left(lb):
        yield Action(ActionKind.IGNORE, target, f"keep load balancer {lb.id}", reason=later)
        return
    own = replace(_own_alone(lb), state=LoadBalancerState.READY)
    empty = replace(own.model, listeners=(), pools=())
    yield from (replace(action, reason=why) for action in alter(empty, own, catalogue, target))
    # Last: the mark means that no part of the owner is left.
    marked = replace(lb.model, tags={**lb.model.tags, LEFT_TAG: "true"})
    yield Action(
        ActionKind.UPDATE,
        target,
        f"leave load balancer {lb.id} to other Services",
        (FieldChange(f"tags.{LEFT_TAG}", None, "true"),),
        reason=f"{why}; {later}",
        operation=UpdateLoadBalancer(lb.id, marked),
    )


def _taken_back(desired: LoadBalancerModel, lb: ObservedLoadBalancer, target: str) -> Iterator[Action]:
    """Remove the mark of an owner that had left it to others, so that it is not deleted with the last of them."""
    if LEFT_TAG in lb.model.tags:
        tags = {**_own_alone(lb).model.tags, **desired.tags}
        summary = f"take back load balancer {lb.id}"
        change = FieldChange(f"tags.{LEFT_TAG}", lb.model.tags[LEFT_TAG], None)
        operation = UpdateLoadBalancer(lb.id, replace(lb.model, tags=tags))
        yield Action(ActionKind.UPDATE, target, summary, (change,), operation=operation)


def _own_alone(lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    own = without_others(lb)
    if LEFT_TAG not in own.model.tags:
        return own
    tags = {key: value for key, value in own.model.tags.items() if key != LEFT_TAG}
    return replace(own, model=replace(own.model, tags=tags))


def alter(
    desired: LoadBalancerModel, current: ObservedLoadBalancer, catalogue: Catalogue, target: str
) -> Iterator[Action]:
    """The in-place changes of a load balancer."""
    actual = current.model
    if current.state is LoadBalancerState.FAILED:
        why = current.state_reason or "the cloud gives no reason"
        summary, reason = f"load balancer {current.id}", f"it has failed: {why}"
        yield Action(ActionKind.IGNORE, target, summary, reason=reason, attention=Attention.FAILED)
    yield from _ignored(differences(desired, actual), catalogue, target)
    changed = [c for c in model_differences(desired, actual) if c.in_place(catalogue)]
    if changed:
        yield Action(
            ActionKind.UPDATE,
            target,
            f"update load balancer {current.id}",
            tuple(change.as_field_change() for change in changed),
            # The cloud replaces all tags at once: keep those that others added.
            operation=UpdateLoadBalancer(current.id, replace(desired, tags={**actual.tags, **desired.tags})),
        )
    pools = {pool.name: pool for pool in actual.pools}
    wanted_pools = {pool.name: pool for pool in desired.pools}
    for pool in desired.pools:
        yield from _pool_made_or_changed(pool, pools.get(pool.name), catalogue, current.id, target)
    listeners = {listener.key: listener for listener in actual.listeners}
    wanted_listeners = {listener.key: listener for listener in desired.listeners}
    for listener in desired.listeners:
        yield from _listener_made_or_changed(listener, listeners.get(listener.key), catalogue, current.id, target)
    for pool in desired.pools:
        if pool.name in pools:
            yield from members_removed(pools[pool.name], pool.members, current.id, target)
    leaving = [each for each in reversed(actual.listeners) if each.key not in wanted_listeners]
    # One that redirects has no pool, and goes before what it leads to: clouds keep that otherwise.
    for listener in sorted(leaving, key=lambda each: bool(each.pool)):
        yield Action(
            ActionKind.DELETE,
            f"{target}/listener/{listener}",
            "delete listener",
            operation=DeleteListener(current.id, listener.protocol, listener.port),
        )
    for pool in reversed(actual.pools):
        if pool.name not in wanted_pools:
            delete = DeletePool(current.id, pool.name)
            yield Action(ActionKind.DELETE, f"{target}/pool/{pool.name}", "delete pool", operation=delete)


def members_added(actual: Pool, wanted: Sequence[Member], id: str, target: str) -> Iterator[Action]:
    """Add the members that a pool lacks, or whose weight differs."""
    known = set(actual.members)
    added = tuple(member for member in wanted if member not in known)
    if added:
        where = f"{target}/pool/{actual.name}/members"
        operation = AddMembers(id, actual.name, added)
        yield Action(ActionKind.UPDATE, where, f"add {shown(added)}", operation=operation)


def members_removed(actual: Pool, wanted: Sequence[Member], id: str, target: str) -> Iterator[Action]:
    """Remove the members that are not wanted."""
    rest = set(actual.members).difference(wanted)
    keys = {member.key for member in wanted} if rest else set()
    removed = tuple(member for member in actual.members if member in rest and member.key not in keys)
    if removed:
        where = f"{target}/pool/{actual.name}/members"
        all_at_once = len(removed) == len(actual.members)
        # Derived from the observed state, so that a controller that restarts in between also hands over.
        other_ports = {member.port for member in removed}.isdisjoint(member.port for member in wanted)
        hand_over = bool(wanted) and (all_at_once or other_ports)
        operation = RemoveMembers(id, actual.name, removed, tuple(wanted), hand_over=hand_over)
        yield Action(ActionKind.UPDATE, where, f"remove {shown(removed)}", operation=operation)


# ----------------------------------------------------------------------------------------------- pools and members


def _pool_made_or_changed(
    pool: Pool, actual: Pool | None, catalogue: Catalogue, id: str, target: str
) -> Iterator[Action]:
    where = f"{target}/pool/{pool.name}"
    if actual is None:
        changes = (
            *_given(sorted(pool.attributes.items())),
            *_given((f"health_check.{key}", value) for key, value in check_values(pool.health_check)),
        )
        summary = f"create pool with {shown(pool.members)}"
        yield Action(ActionKind.CREATE, where, summary, changes, operation=PutPool(id, pool, new=True))
        return
    changed = [c for c in pool_differences(pool, actual) if c.in_place(catalogue)]
    if changed:
        fields_ = tuple(change.as_field_change() for change in changed)
        kept_tags = replace(pool, tags={**actual.tags, **pool.tags})
        yield Action(ActionKind.UPDATE, where, "change pool", fields_, operation=PutPool(id, kept_tags, new=False))
    yield from members_added(actual, pool.members, id, target)


def shown(members: Sequence[Member]) -> str:
    """The members in the words of a plan."""
    names = [f"{member.instance_id} ({member.address}:{member.port})" for member in members]
    return listed(names, MOST_NAMED) or "no members"


# ------------------------------------------------------------------------------------------------------- listeners


def _listener_made_or_changed(
    listener: Listener, actual: Listener | None, catalogue: Catalogue, id: str, target: str
) -> Iterator[Action]:
    where = f"{target}/listener/{listener}"
    if actual is None:
        changes = tuple(_given(sorted(listener.attributes.items())))
        put = PutListener(id, listener)
        yield Action(ActionKind.CREATE, where, f"create listener to pool {listener.pool}", changes, operation=put)
        return
    changed = [c for c in listener_differences(listener, actual) if c.in_place(catalogue)]
    if changed:
        fields_ = tuple(change.as_field_change() for change in changed)
        put = PutListener(id, replace(listener, tags={**actual.tags, **listener.tags}))
        yield Action(ActionKind.UPDATE, where, "change listener", fields_, operation=put)


def _ignored(differences: Sequence[Difference], catalogue: Catalogue, target: str) -> Iterator[Action]:
    for difference in differences:
        if catalogue.mutability(difference.sets) is Mutability.CREATE_ONLY:
            yield Action(
                ActionKind.IGNORE,
                f"{target}{difference.part}",
                f"{difference.sets} differs",
                (difference.as_field_change(),),
                reason=ONLY_AT_CREATION,
            )


def _by_age(observed: Sequence[ObservedLoadBalancer]) -> list[ObservedLoadBalancer]:
    return sorted(observed, key=lambda lb: (lb.created_at, lb.id))
