"""What must happen on a load balancer that a Service shares, or at least did not make: only to its own parts. Pure.

Each Service's listeners and pools carry its tags; only they are changed or removed. A port that another has is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from cloud_controller.catalogue import Catalogue
from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancer import (
    Built,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
    Reuse,
)
from cloud_controller.load_balancer_diff import alter
from cloud_controller.load_balancer_operations import PutListener, PutPool
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

PRESERVE = "preserve-on-delete"


def diff_parts(
    built: Built, reuse: Reuse, lb: ObservedLoadBalancer | None, owner: Owner, catalogue: Catalogue, *, target: str
) -> Plan:
    """The actions for the parts of `owner` on the load balancer that it names (None: there is none of this id).

    Raises InvalidConfiguration where it may not be shared, or has one of the ports for somebody else.
    """
    field = f"annotation {catalogue.by_argument['id'].name}"
    if lb is None:
        raise InvalidConfiguration(field, f"there is no load balancer {reuse.id}", "the id of one that exists")
    if lb.owner is not None:
        whose = "this Service itself" if owner.owns(lb.model.tags) else str(lb.owner)
        allowed = "a load balancer that was made for nobody, or was preserved"
        raise InvalidConfiguration(field, f"{reuse.id} belongs to {whose}", allowed)
    if lb.state is LoadBalancerState.DELETING:
        raise InvalidConfiguration(field, f"{reuse.id} is being deleted", "the id of one that stays")
    _require_free_ports(built.model, reuse, lb, owner, catalogue)
    if lb.state is LoadBalancerState.PENDING:
        reason = "it is still being created"
        return Plan.of([Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason=reason)])
    taken = {listener.key for listener in built.model.listeners}
    view = _own_view(lb, owner, also=taken if reuse.force else ())
    return Plan.of(alter(_neutral(_with_present_pools(built.model, view), lb), view, catalogue, target))


def leave(lb: ObservedLoadBalancer, owner: Owner, catalogue: Catalogue, *, target: str, why: str) -> Plan:
    """The actions by which everything of `owner` goes from a load balancer that is not its own."""
    view = _own_view(lb, owner)
    # A taking-over that broke off may have left our mark on a pool whose listener is not ours: it is in use.
    foreign = {each.pool for each in lb.model.listeners if not owner.owns(each.tags)}
    lent = [pool for pool in view.model.pools if pool.name in foreign]
    rest = replace(view.model, pools=tuple(pool for pool in view.model.pools if pool not in lent))
    actions = alter(_neutral(LoadBalancerModel(""), lb), replace(view, model=rest), catalogue, target)
    return Plan.of(
        [
            *(replace(action, reason=why) for action in actions if action.kind is not ActionKind.IGNORE),
            *(_released_pool(lb, pool, owner, target, "a listener of others uses it") for pool in lent),
        ]
    )


def release(lb: ObservedLoadBalancer, owner: Owner, *, target: str) -> Plan:
    """The actions by which the parts of `owner` stay and are nobody's."""
    return Plan.of(_released(lb, owner, target))


def has_parts(lb: ObservedLoadBalancer, owner: Owner) -> bool:
    """Whether the load balancer is not the owner's, but has listeners or pools of it."""
    return not owner.owns(lb.model.tags) and any(owner.owns(tags) for tags in lb.model.part_tags)


# --------------------------------------------------------------------------------------------------------- helpers


def _require_free_ports(
    desired: LoadBalancerModel, reuse: Reuse, lb: ObservedLoadBalancer, owner: Owner, catalogue: Catalogue
) -> None:
    present = {listener.key: listener for listener in lb.model.listeners}
    for index, wanted in enumerate(desired.listeners):
        holder = present.get(wanted.key)
        if holder is None or owner.owns(holder.tags):
            continue
        field, where = f"spec.ports[{index}].port", f"{wanted.protocol} {wanted.port} of load balancer {lb.id}"
        other = Owner.of_tags(holder.tags)
        if other is not None:
            raise InvalidConfiguration(field, f"{where} is taken by {other}", "a port that is free there")
        if not reuse.force:
            force = catalogue.by_argument["force_override_listeners"].name
            why = f"{where} has a listener that no Service owns"
            raise InvalidConfiguration(field, why, f'a port that is free there, or annotation {force}: "true"')


def _own_view(
    lb: ObservedLoadBalancer, owner: Owner, *, also: Collection[tuple[str, int]] = ()
) -> ObservedLoadBalancer:
    """The load balancer as if only the owner's parts were on it, and the listeners `also` that it takes over.

    The pool of a listener that is taken over comes with it, unless somebody else owns or uses it: so its traffic goes
    on without a change of pools.
    """
    model = lb.model
    listeners = tuple(each for each in model.listeners if owner.owns(each.tags) or each.key in also)
    users = Counter(each.pool for each in model.listeners)
    taken = {each.pool for each in listeners if users[each.pool] == 1}
    pools = tuple(
        each
        for each in model.pools
        if owner.owns(each.tags) or (each.name in taken and Owner.of_tags(each.tags) is None)
    )
    return replace(lb, model=replace(model, listeners=listeners, pools=pools))


def _with_present_pools(desired: LoadBalancerModel, view: ObservedLoadBalancer) -> LoadBalancerModel:
    """The desired parts, each pool under the name of the one that the listener has already, if that is the owner's."""
    own = {pool.name for pool in view.model.pools}
    present = {each.key: each.pool for each in view.model.listeners if each.pool in own}
    names = {each.pool: present.get(each.key, each.pool) for each in desired.listeners}
    return replace(
        desired,
        listeners=tuple(replace(each, pool=names[each.pool]) for each in desired.listeners),
        pools=tuple(replace(each, name=names.get(each.name, each.name)) for each in desired.pools),
    )


def _neutral(desired: LoadBalancerModel, lb: ObservedLoadBalancer) -> LoadBalancerModel:
    """Nothing of the load balancer itself is the Service's to change."""
    return replace(desired, name=lb.model.name, attributes={}, tags={})


def _released(lb: ObservedLoadBalancer, owner: Owner, target: str) -> Iterator[Action]:
    for listener in lb.model.listeners:
        if owner.owns(listener.tags):
            put = PutListener(lb.id, replace(listener, tags=owner.released(listener.tags)))
            yield _release(f"{target}/listener/{listener}", lb, put, PRESERVE)
    for pool in lb.model.pools:
        if owner.owns(pool.tags):
            yield _released_pool(lb, pool, owner, target, PRESERVE)


def _released_pool(lb: ObservedLoadBalancer, pool: Pool, owner: Owner, target: str, why: str) -> Action:
    put = PutPool(lb.id, replace(pool, tags=owner.released(pool.tags)), new=False)
    return _release(f"{target}/pool/{pool.name}", lb, put, why)


def _release(where: str, lb: ObservedLoadBalancer, operation: PutListener | PutPool, why: str) -> Action:
    changes = (FieldChange("owner", "this Service", None),)
    summary = f"leave it on load balancer {lb.id}, without an owner"
    return Action(ActionKind.UPDATE, where, summary, changes, reason=why, operation=operation)
