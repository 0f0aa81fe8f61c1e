"""Keeps a load balancer's last members where only a label of their nodes would take them out. Pure.

Whoever may label Nodes could empty every load balancer otherwise, as with upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.controllers.service.rules import EXCLUDE_LABEL, members_of
from cloud_controller.listed import listed
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import is_of

_ADDRESS = attrgetter("address")


def with_last_members(
    backends: Backends,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> tuple[Backends, str | None]:
    """The backends, and why excluded nodes are among them: they serve the Service, and without them nothing would."""
    serving = _serving(backends, service, observed, builder, owner) if backends.excluded else ()
    if not serving:
        return backends, None
    nodes = listed([each.node for each in serving])
    return replace(backends, nodes=serving), f"without {nodes}, excluded by label {EXCLUDE_LABEL}, it has none"


def _serving(
    backends: Backends,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    builder: LoadBalancerBuilder,
    owner: Owner,
) -> tuple[NodeBackend, ...]:
    """The excluded nodes of the present members, if no node that is not excluded gives the Service any."""
    # Before anything is built: most excluded nodes are for good, such as a control plane's, and no members.
    addresses = _addresses(backends)
    known = {address for of_node in addresses.values() for address in of_node}
    pools = [pool for lb in observed for pool in lb.model.pools if is_of(owner, pool.tags, lb)]
    pools = [pool for pool in pools if not known.isdisjoint(map(_ADDRESS, pool.members))]
    if not pools:
        return ()
    present = {member.key for pool in pools for member in pool.members if member.address in known}
    on = {address for address, _ in present}
    nodes = tuple(node for node in backends.excluded if not on.isdisjoint(addresses[node.node]))
    try:
        if any(members_of(service, backends, builder, observed).values()):
            return ()
        possible = members_of(service, replace(backends, nodes=nodes), builder, observed)
    except InvalidConfiguration:
        return ()  # The build refuses the wrong setting too, and says which.
    stay = {each.address for members in possible.values() for each in members if each.key in present}
    return tuple(node for node in nodes if not stay.isdisjoint(addresses[node.node]))


def _addresses(backends: Backends) -> dict[str, set[str]]:
    """By excluded node the addresses that its members may have: its own, its machine's ID, and those of its pods."""
    found = {node.node: {node.address, node.instance_id} for node in backends.excluded}
    for each in backends.slices:
        for endpoint in each.get("endpoints") or []:
            if endpoint.get("nodeName") in found:
                found[endpoint["nodeName"]].add(endpoint["addresses"][0])
    return found
