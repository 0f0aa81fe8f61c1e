"""Computes a load balancer's state after an operation. Pure.

So a change need not be followed by a read, and tests can check every step of a plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer, Pool
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)


def apply_operation(lb: ObservedLoadBalancer, operation: Operation) -> ObservedLoadBalancer:
    """`lb` after the operation; unsettled if the cloud may keep working on it (listeners, deletion)."""
    model = lb.model
    match operation:
        case CreateLoadBalancer():
            raise ValueError("CreateLoadBalancer does not apply to an existing load balancer")
        case AdoptLoadBalancer(tags=tags):
            return replace(lb, model=replace(model, tags={**model.tags, **tags}), adoptable=None)
        case UpdateLoadBalancer(model=wanted):
            attributes = {**model.attributes, **wanted.attributes}
            return replace(lb, model=replace(model, name=wanted.name, tags=wanted.tags, attributes=attributes))
        case PutPool(pool=pool, new=new):
            return replace(lb, model=_with_pool(model, pool, keep_members=not new))
        case AddMembers(pool=name, members=members):
            return replace(lb, model=_with_members(model, name, members, ()))
        case RemoveMembers(pool=name, members=members):
            return replace(lb, model=_with_members(model, name, (), members))
        case PutListener(listener=listener):
            listeners = {**{each.key: each for each in model.listeners}, listener.key: listener}
            return replace(lb, model=replace(model, listeners=tuple(listeners.values())), settled=False)
        case DeleteListener(protocol=protocol, port=port):
            rest = tuple(each for each in model.listeners if each.key != (protocol, port))
            return replace(lb, model=replace(model, listeners=rest), settled=False)
        case DeletePool(name=name):
            return replace(lb, model=replace(model, pools=tuple(each for each in model.pools if each.name != name)))
        case DeleteLoadBalancer():
            return replace(lb, state=LoadBalancerState.DELETING, settled=False)
        case _:
            assert_never(operation)


def _with_pool(model: LoadBalancerModel, pool: Pool, *, keep_members: bool) -> LoadBalancerModel:
    pools = {each.name: each for each in model.pools}
    if keep_members and pool.name in pools:
        pool = replace(pool, members=pools[pool.name].members)
    return replace(model, pools=tuple({**pools, pool.name: pool}.values()))


def _with_members(
    model: LoadBalancerModel, name: str, added: Iterable[Member], removed: Iterable[Member]
) -> LoadBalancerModel:
    gone = {member.key for member in removed}
    pools = []
    for pool in model.pools:
        if pool.name == name:
            members = {each.key: each for each in pool.members if each.key not in gone}
            members |= {each.key: each for each in added}
            pool = replace(pool, members=tuple(members.values()))
        pools.append(pool)
    return replace(model, pools=tuple(pools))
