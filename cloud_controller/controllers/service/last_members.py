"""Keeps a load balancer's last members where only a label of their nodes would take them out. Pure.

Whoever may label Nodes could empty every load balancer otherwise, as with upstream.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.controllers.service.rules import EXCLUDE_LABEL, members_of
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import is_of

_ADDRESS, _INSTANCE = attrgetter("address"), attrgetter("instance_id")


def with_last_members(
    backends: Backends,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> tuple[Backends, str | None]:
    """The backends, and why excluded nodes are among them: they serve the Service, and without them nothing would."""
    if not backends.excluded:
        return backends, None
    pools = (pool for lb in observed for pool in lb.model.pools if is_of(owner, pool.tags, lb))
    present = [*chain.from_iterable(pool.members for pool in pools)]
    # Mostly no excluded node has a member, which takes no model to see.
    candidates = _with_members(backends, {*map(_ADDRESS, present), *map(_INSTANCE, present)})

    def keys(of: Backends) -> set[tuple[str, int]]:
        return {each.key for members in members_of(service, of, builder, observed).values() for each in members}

    serving: tuple[NodeBackend, ...] = ()
    with suppress(InvalidConfiguration):  # The build refuses a wrong setting, and says which.
        if candidates and not keys(backends):
            registered = {member.key for member in present}
            serving = tuple(node for node in candidates if keys(replace(backends, nodes=(node,))) & registered)
    if not serving:
        return backends, None
    nodes = listed([each.node for each in serving])
    return replace(backends, nodes=serving), f"without {nodes}, excluded by label {EXCLUDE_LABEL}, it has none"


def _with_members(backends: Backends, present: Set[str]) -> tuple[NodeBackend, ...]:
    """The excluded nodes that may be members, or whose pods may. `present`: addresses and instances of members."""
    with_pods = {
        endpoint.get("nodeName")
        for each in backends.slices
        for endpoint in each.get("endpoints") or []
        if present & {*endpoint["addresses"]}
    }
    return tuple(
        node
        for node in backends.excluded
        if node.instance_id in present or node.address in present or node.node in with_pods
    )
