"""Keeps a load balancer's last members where only a label of their nodes would take them out. Pure.

Whoever may label Nodes could empty every load balancer otherwise, as with upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.controllers.service.rules import EXCLUDE_LABEL
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import is_of

_NAMED = 5
"""Nodes that a message names."""


def with_last_members(
    backends: Backends,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> tuple[Backends, str | None]:
    """The backends, and why excluded nodes are among them: they serve the Service, and without them nothing would."""
    serving: tuple[NodeBackend, ...] = ()
    # The build refuses a wrong setting, and says which.
    with suppress(InvalidConfiguration):
        if backends.excluded and not any(builder.members(service, backends).values()):
            pools = [pool for lb in observed for pool in lb.model.pools if is_of(owner, pool.tags, lb)]
            present = {member.key for pool in pools for member in pool.members}
            possible = builder.members(service, replace(backends, nodes=backends.excluded))
            machines = {each.instance_id for members in possible.values() for each in members if each.key in present}
            serving = tuple(node for node in backends.excluded if node.instance_id in machines)
    if not serving:
        return backends, None
    more = f" and {len(serving) - _NAMED} others" if len(serving) > _NAMED else ""
    nodes = ", ".join(each.node for each in serving[:_NAMED])
    return replace(backends, nodes=serving), f"without {nodes}{more}, excluded by label {EXCLUDE_LABEL}, it has none"
