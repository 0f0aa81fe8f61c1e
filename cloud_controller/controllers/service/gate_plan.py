"""Decides when a pod's readiness gate opens: pure functions.

A pod that is a member itself must be healthy in the load balancer of each Service that its gate waits for. Behind a
node port, the health of a member says nothing about one pod, and without a ready pod no member would ever be healthy:
there the gate waits until the pod's node is a member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cloud_controller.controllers.service.last_members import with_last_members
from cloud_controller.controllers.service.plan import allowed, owner_of
from cloud_controller.controllers.service.rules import Rules, members_of
from cloud_controller.controllers.service.status import is_published
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object, ObservedLoadBalancer
from cloud_controller.load_balancers.sharing import is_of

UNKNOWN_PATIENCE = 600.0
"""Seconds after which a member of unknown health counts as healthy: its cloud does not check it. Longer than the first
checks of any cloud, which may take minutes."""


class Verdict(NamedTuple):
    """Whether the gate may open as far as one Service is concerned, and why (for the pod's condition)."""

    opens: bool
    reason: str
    message: str


class Target(NamedTuple):
    """A member whose health decides."""

    load_balancer: str
    pool: str
    address: str
    port: int


class Registered(NamedTuple):
    """The members behind one listener of a load balancer."""

    load_balancer: str
    listener: tuple[str, int]
    pool: str
    is_checked: bool
    members: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class ServiceView:
    """What the verdicts about the pods of one Service depend on.

    - `by_pod`: its members are the pods themselves.
    - `wanted`: the members that each listener should have; `registered`: those that the load balancers have whose
      addresses are in the Service's status.
    - `serves`: whether it has such load balancers.
    - `endpoints`: the UIDs of the pods in its EndpointSlices.
    - `nodes`: the machine of each eligible node; `known_nodes`: all nodes.
    """

    name: str
    by_pod: bool
    wanted: Mapping[tuple[str, int], tuple[Member, ...]]
    registered: tuple[Registered, ...] = ()
    serves: bool = False
    endpoints: frozenset[str] = frozenset()
    nodes: Mapping[str, str] = field(default_factory=dict)
    known_nodes: Collection[str] = ()


def view_of(
    service: Object,
    load_balancers: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
) -> ServiceView:
    """The view of this Service. `backends`: with its EndpointSlices, in which waiting pods count as ready.

    Raises InvalidConfiguration if the Service has a fault that affects its members.
    """
    by_pod = builder.pod_ranges(service, facts) is not None
    usable, _ = allowed(service, backends, builder, facts)
    owner = owner_of(service, rules.cluster_id)
    usable, _ = with_last_members(usable, service, load_balancers, builder, owner)
    serving: Sequence[ObservedLoadBalancer] = ()
    if ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        # Clients use the address in the status: while a load balancer is replaced, the old one decides. An annotation
        # may have put a name there that no load balancer has.
        serving = [lb for lb in load_balancers if is_published(service, lb)] or load_balancers
    registered = []
    for lb in serving:
        pools = {pool.name: pool for pool in lb.model.pools}
        for listener in lb.model.listeners:
            pool = pools.get(listener.pool)
            if pool is not None and is_of(owner, listener.tags, lb):
                members = frozenset(member.key for member in pool.members)
                registered.append(Registered(lb.id, listener.key, pool.name, listener.checks(pool), members))
    return ServiceView(
        name=owner.name,
        by_pod=by_pod,
        wanted=members_of(service, usable, builder, serving),
        registered=tuple(registered),
        serves=bool(serving),
        endpoints=frozenset(_pod_uids(backends.slices)),
        nodes={node.node: node.instance_id for node in usable.nodes},
        known_nodes=backends.pods.of_nodes.keys(),
    )


def registration(pod: Object, view: ServiceView) -> Verdict | tuple[Target, ...]:
    """The members whose health decides; or the verdict, if it needs no health."""
    if not view.serves:
        return Verdict(False, "NoLoadBalancer", f"Service {view.name} has no load balancer that serves yet")
    members = _members_of(pod, view)
    if isinstance(members, Verdict):
        return members
    targets: set[Target] = set()
    for lb in {each.load_balancer for each in view.registered}:
        present = {each.listener: each for each in view.registered if each.load_balancer == lb}
        for listener, wanted in members.items():
            found = present.get(listener)
            if found is None or not wanted <= found.members:
                where = f"listener {listener[1]}/{listener[0]} of load balancer {lb}"
                return Verdict(False, "NotRegistered", f"Service {view.name}: not a member of {where} yet")
            if view.by_pod and found.is_checked:
                targets |= {Target(lb, found.pool, *key) for key in wanted}
    if not targets:
        return Verdict(True, "Registered", f"Service {view.name}: a member, or reached through one")
    return tuple(sorted(targets))


def judged(
    targets: Collection[Target], health: Mapping[str, Mapping[tuple[str, str, int], bool]], waited: float, name: str
) -> Verdict:
    """The verdict by the health of a pod's members.

    `health`: by load balancer, as `LoadBalancers.health` returns it. `waited`: seconds that the pod has waited so far.
    """
    states = [health[each.load_balancer].get((each.pool, each.address, each.port)) for each in targets]
    if False in states:
        return Verdict(False, "Unhealthy", f"Service {name}: not healthy in its load balancer yet")
    if None in states and waited < UNKNOWN_PATIENCE:
        return Verdict(False, "HealthUnknown", f"Service {name}: its load balancer has not checked the pod yet")
    if None in states:
        return Verdict(True, "HealthUnknown", f"Service {name}: a member; its load balancer reports no health")
    return Verdict(True, "Healthy", f"Service {name}: healthy in its load balancer")


def with_waiting(slices: Sequence[Object], waiting: Collection[str]) -> tuple[Object, ...]:
    """The slices, in which the endpoints of these pods (UIDs) are ready.

    A gate keeps its pod's endpoint from being ready: without this, no such pod would ever become a member.
    """
    if not waiting:
        return tuple(slices)
    return tuple(
        {**each, "endpoints": [_as_ready(endpoint, waiting) for endpoint in each.get("endpoints") or []]}
        for each in slices
    )


def _as_ready(endpoint: Object, waiting: Collection[str]) -> Object:
    conditions = endpoint.get("conditions") or {}
    uid = (endpoint.get("targetRef") or {}).get("uid")
    if uid not in waiting or conditions.get("ready") is not False or conditions.get("terminating"):
        return endpoint
    return {**endpoint, "conditions": {**conditions, "ready": True}}


def _members_of(pod: Object, view: ServiceView) -> Verdict | dict[tuple[str, int], frozenset[tuple[str, int]]]:
    """The members by which the pod is reached, by listener; or the verdict, if there are none."""
    node = pod["spec"].get("nodeName", "")
    if view.by_pod:
        addresses = {each["ip"] for each in pod["status"].get("podIPs") or []}
        found = _matching(view, lambda member: member.address in addresses)
        if found:
            return found
        if pod["metadata"]["uid"] not in view.endpoints:
            return Verdict(False, "NotAnEndpoint", f"Service {view.name}: not in its EndpointSlices yet")
    if node not in view.known_nodes:
        return Verdict(False, "NodeUnknown", f"Service {view.name}: node {node} is new")
    if view.by_pod:
        return Verdict(True, "NotAMember", f"Service {view.name}: its load balancer may not send traffic to this pod")
    # No node port of this node: the pod is reached through other nodes.
    machine = view.nodes.get(node)
    return _matching(view, lambda member: member.instance_id == machine)


def _matching(
    view: ServiceView, is_of_pod: Callable[[Member], bool]
) -> dict[tuple[str, int], frozenset[tuple[str, int]]]:
    found = {listener: frozenset(m.key for m in members if is_of_pod(m)) for listener, members in view.wanted.items()}
    return {listener: keys for listener, keys in found.items() if keys}


def _pod_uids(slices: Sequence[Object]) -> list[str]:
    endpoints = (endpoint for each in slices for endpoint in each.get("endpoints") or [])
    return [str((endpoint.get("targetRef") or {}).get("uid")) for endpoint in endpoints]
