"""Plans a Service's parts on a load balancer that it does not own. Pure.

Each Service's listeners and pools carry its tags, and only those are changed or removed; a port of another Service is
an error. A listener that is taken over by force gets a pool of the Service, and what it was is recorded (`taken_over`),
so that it can be given back when the Service leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Catalogue, Value
from cloud_controller.load_balancers.diff import alter
from cloud_controller.load_balancers.model import (
    Built,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
    Reuse,
)
from cloud_controller.load_balancers.operations import DeleteListener, PutListener, PutPool
from cloud_controller.load_balancers.sharing import (
    SHARE,
    Sharing,
    require_free_ports,
    require_permission,
    require_share,
)
from cloud_controller.load_balancers.taken_over import (
    before_takeover,
    lost,
    with_copies_of,
    with_records,
    without_records,
)
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

PRESERVE = "preserve-on-delete"


def diff_parts(
    built: Built,
    reuse: Reuse,
    lb: ObservedLoadBalancer | None,
    owner: Owner,
    catalogue: Catalogue,
    *,
    target: str,
    sharing: Sharing,
    share: int = SHARE,
) -> Plan:
    """The actions for the owner's parts on the load balancer that it names (None: it does not exist).

    Raises InvalidConfiguration if the load balancer may not be shared, is in another network or not as required, has
    one of the ports in use, or would have more listeners of the namespace than its `share`.
    """
    field = f"annotation {catalogue.by_argument['id'].name}"
    if lb is None:
        raise InvalidConfiguration(
            field,
            f"load balancer {reuse.id} does not exist, or the cloud does not show it",
            "the id of an existing one",
        )
    if owner.owns(lb.model.tags):
        allowed = "no annotation, or the id of another load balancer"
        raise InvalidConfiguration(field, f"load balancer {reuse.id} belongs to this Service itself", allowed)
    require_permission(lb, owner, sharing, field)
    if lb.state is LoadBalancerState.DELETING:
        raise InvalidConfiguration(field, f"load balancer {reuse.id} is being deleted", "the id of another one")
    if lb.network and reuse.network and lb.network != reuse.network:
        why = f"load balancer {reuse.id} is in network {lb.network}, which has no nodes of this cluster"
        raise InvalidConfiguration(field, why, f"a load balancer in network {reuse.network}")
    for each in reuse.required:
        if (actual := lb.model.attributes.get(each.attribute)) != each.value:
            why = (
                f"{each.attribute} of load balancer {reuse.id} is {_shown(actual)}, and only its owner can change that"
            )
            raise InvalidConfiguration(each.setting, why, f"a load balancer that has {_shown(each.value)} there")
    forcing = catalogue.by_argument.get("force_override_listeners")
    force_by = forcing.name if forcing else None
    require_free_ports(built.model, lb, owner, force=reuse.force, force_by=force_by)
    require_share(built.model, lb, owner, share)
    if lb.state is LoadBalancerState.PENDING:
        reason = "it is still being created"
        return Plan.of([Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason=reason)])
    desired = with_records(_neutral(built.model, lb), lb.model, owner)
    actions = alter(desired, _own_view(lb, owner), catalogue, target)
    ports = {each.key for each in desired.listeners}
    return Plan.of(
        [
            *_returned(lb, owner, target, ports),
            *(_giving_back(_taking_over(action, lb, owner), lb, owner) for action in actions),
            *_forgotten(desired, lb, owner, target, ports),
        ]
    )


def leave(lb: ObservedLoadBalancer, owner: Owner, catalogue: Catalogue, *, target: str, why: str) -> Plan:
    """Remove the owner's parts from a load balancer of another owner."""
    view = _own_view(lb, owner)
    # A listener of someone else may use our pool: keep the pool.
    foreign = {each.pool for each in lb.model.listeners if not owner.owns(each.tags)}
    lent = [pool for pool in view.model.pools if pool.name in foreign]
    rest = replace(view.model, pools=tuple(pool for pool in view.model.pools if pool not in lent))
    actions = alter(_neutral(LoadBalancerModel(""), lb), replace(view, model=rest), catalogue, target)
    changes = (_giving_back(action, lb, owner) for action in actions if action.kind is not ActionKind.IGNORE)
    return Plan.of(
        [
            *_returned(lb, owner, target),
            *(replace(action, reason=action.reason or why) for action in changes),
            *(_released_pool(lb, pool, owner, target, "a listener of another owner uses it") for pool in lent),
        ]
    )


def release(lb: ObservedLoadBalancer, owner: Owner, *, target: str) -> Plan:
    """Keep the owner's parts, but release them from their owner."""
    return Plan.of([*_returned(lb, owner, target), *_released(lb, owner, target)])


def has_parts(lb: ObservedLoadBalancer, owner: Owner) -> bool:
    """Whether the load balancer has parts of the owner but belongs to another owner."""
    return not owner.owns(lb.model.tags) and any(owner.owns(tags) for tags in lb.model.part_tags)


# --------------------------------------------------------------------------------------------------------- helpers


def _shown(value: Value | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value or "empty")


def _own_view(lb: ObservedLoadBalancer, owner: Owner) -> ObservedLoadBalancer:
    """The load balancer as if only the owner's parts were on it."""
    listeners = tuple(each for each in lb.model.listeners if owner.owns(each.tags))
    pools = tuple(each for each in lb.model.pools if owner.owns(each.tags))
    return replace(lb, model=replace(lb.model, listeners=listeners, pools=pools))


def _neutral(desired: LoadBalancerModel, lb: ObservedLoadBalancer) -> LoadBalancerModel:
    """Make the desired model change nothing of the load balancer itself."""
    return replace(desired, name=lb.model.name, attributes={}, tags={})


def _taking_over(action: Action, lb: ObservedLoadBalancer, owner: Owner) -> Action:
    """Turn the creation of a listener into a takeover, if an unowned listener has the port."""
    put = action.operation
    if not isinstance(put, PutListener):
        return action
    before = next((each for each in lb.model.listeners if each.key == put.listener.key), None)
    if before is None or owner.owns(before.tags):
        return action
    changes = (FieldChange("owner", None, "this Service"), FieldChange("pool", before.pool, put.listener.pool))
    return replace(
        action,
        kind=ActionKind.UPDATE,
        summary=f"take over listener from pool {before.pool}; it is given back when the Service leaves",
        changes=changes,
        operation=replace(put, instead_of=before.pool),
    )


def _giving_back(action: Action, lb: ObservedLoadBalancer, owner: Owner) -> Action:
    """Turn the deletion of a taken-over listener into giving it back, if its previous pool still exists."""
    delete = action.operation
    if not isinstance(delete, DeleteListener):
        return action
    listener = next(each for each in lb.model.listeners if each.key == (delete.protocol, delete.port))
    before = before_takeover(listener, owner)
    if before is None:
        return action
    if all(before.pool != pool.name for pool in lb.model.pools):
        return replace(action, reason=f"it cannot be given back: its previous pool {before.pool} no longer exists")
    changes = (FieldChange("owner", "this Service", None), FieldChange("pool", listener.pool, before.pool))
    return replace(
        action,
        kind=ActionKind.UPDATE,
        summary=f"give listener back to pool {before.pool}",
        changes=changes,
        operation=PutListener(lb.id, before),
    )


def _returned(
    lb: ObservedLoadBalancer, owner: Owner, target: str, wanted: Collection[tuple[str, int]] = ()
) -> Iterator[Action]:
    """Create the listeners that were lost while they were given back; those on `wanted` ports the Service has again."""
    pools = {pool.name for pool in lb.model.pools}
    for listener in lost(lb.model, owner):
        was = before_takeover(listener, owner)
        if was is not None and was.key not in wanted and was.pool in pools:
            where = f"{target}/listener/{was}"
            # It is the Service's until all of it is as it was.
            for kind, summary, put in (
                (ActionKind.CREATE, "create listener again that was taken over", listener),
                (ActionKind.UPDATE, f"give listener back to pool {was.pool}", was),
            ):
                yield Action(kind, where, summary, operation=PutListener(lb.id, put))


def _forgotten(
    desired: LoadBalancerModel,
    lb: ObservedLoadBalancer,
    owner: Owner,
    target: str,
    wanted: Collection[tuple[str, int]],
) -> Iterator[Action]:
    """Drop records of listeners that are given back, before somebody deletes or changes those."""
    present = {pool.name: pool for pool in _own_view(lb, owner).model.pools}
    for pool in desired.pools:
        actual = present.get(pool.name, pool)
        if actual != (left := with_copies_of(actual, wanted)):
            put = PutPool(lb.id, replace(pool, tags={**left.tags, **pool.tags}), new=False)
            where, summary = f"{target}/pool/{pool.name}", "forget what a listener was that is given back"
            yield Action(ActionKind.UPDATE, where, summary, operation=put)


def _released(lb: ObservedLoadBalancer, owner: Owner, target: str) -> Iterator[Action]:
    for listener in lb.model.listeners:
        if owner.owns(listener.tags):
            put = PutListener(lb.id, replace(listener, tags=owner.released(without_records(listener.tags))))
            yield _release(f"{target}/listener/{listener}", lb, put, PRESERVE)
    for pool in lb.model.pools:
        if owner.owns(pool.tags):
            yield _released_pool(lb, pool, owner, target, PRESERVE)


def _released_pool(lb: ObservedLoadBalancer, pool: Pool, owner: Owner, target: str, why: str) -> Action:
    put = PutPool(lb.id, replace(pool, tags=owner.released(without_records(pool.tags))), new=False)
    return _release(f"{target}/pool/{pool.name}", lb, put, why)


def _release(where: str, lb: ObservedLoadBalancer, operation: PutListener | PutPool, why: str) -> Action:
    changes = (FieldChange("owner", "this Service", None),)
    summary = f"release it without deleting it from load balancer {lb.id}"
    return Action(ActionKind.UPDATE, where, summary, changes, reason=why, operation=operation)
