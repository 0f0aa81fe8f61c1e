"""Keeps the last members of a load balancer that only labels of nodes would take out. Pure.

Whoever may label Nodes could empty every load balancer otherwise. Upstream empties them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cloud_controller.controllers.service.rules import EXCLUDE_LABEL
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.model import Built, LoadBalancerBuilder, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import is_of

Members = Mapping[tuple[str, int], tuple[Member, ...]]
"""The members of each listener."""
_NAMED = 5
"""Nodes that a message names."""


def with_last(
    wanted: Members,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> Members:
    """The same, where a listener that would have no members keeps those that only a label excludes."""
    if not backends.excluded or all(wanted.values()):
        return wanted
    pools = [pool for lb in observed for pool in lb.model.pools if is_of(owner, pool.tags, lb)]
    present = {member.key for pool in pools for member in pool.members}
    excluded = builder.members(service, replace(backends, nodes=backends.excluded)) if present else {}
    last = {key: tuple(each for each in members if each.key in present) for key, members in excluded.items()}
    return {key: members or last.get(key, ()) for key, members in wanted.items()}


def keep_last(
    built: Built,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> tuple[Built, str | None]:
    """The same with such members, and which nodes stay, if any do."""
    pools = {pool.name: pool for pool in built.model.pools}
    wanted = {each.key: pools[each.pool].members for each in built.model.listeners if each.pool in pools}
    found = with_last(wanted, service, observed, backends, builder, owner)
    by_pool = {each.pool: found[each.key] for each in built.model.listeners if each.key in found}
    kept = {member.instance_id for key, members in found.items() if not wanted[key] for member in members}
    if not kept:
        return built, None
    model = replace(built.model, pools=tuple(replace(p, members=by_pool.get(p.name, ())) for p in built.model.pools))
    nodes = [each.node for each in backends.excluded if each.instance_id in kept]
    named = ", ".join(nodes[:_NAMED]) + (f" and {len(nodes) - _NAMED} others" if len(nodes) > _NAMED else "")
    return replace(built, model=model), f"label {EXCLUDE_LABEL} would leave it without members, so these stay: {named}"
