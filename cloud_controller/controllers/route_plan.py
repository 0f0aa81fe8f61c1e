"""Plans the route table: each node's pod CIDRs have a route to its machine. Pure functions.

Only routes inside the pod CIDRs matter. Foreign routes are reported and kept, unless `delete_foreign` (upstream deletes
them). If the cloud's routes have no tags, a route belongs to the cluster if it is inside a pod CIDR and its target is
one of the cluster's machines, including terminated ones, or an unknown machine that is gone. Routes that exceed the
quota are not attempted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from cloud_controller.cloud import CloudError, Instance, InvalidConfiguration, Route
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import NOT_ANCHORED
from cloud_controller.kube import Object, name
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan, hold

CONDITION = "NetworkUnavailable"
CREATED = ("False", "RouteCreated", "RouteController created a route")
NOT_CREATED = ("True", "NoRouteCreated", "RouteController failed to create a route")
"""Status, reason and message of the condition. Upstream's texts: other components compare them."""
QUOTA_WARNING = 0.8
"""The share of the route quota from which its use is reported."""


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """The controller's options.

    - `cluster_cidrs`: the pod CIDRs.
    - `declared`: names of expected nodes; those that have not registered yet get assumed actions.
    - `removed`: names of nodes whose routes to delete because their machines are about to be removed.
    """

    cluster_cidrs: tuple[str, ...]
    delete_foreign: bool = False
    declared: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        networks = [_network("cluster-cidr", cidr) for cidr in self.cluster_cidrs]
        if not networks or len(networks) > 2 or len({network.version for network in networks}) != len(networks):
            why = f"{', '.join(self.cluster_cidrs)!r} is not valid"
            raise InvalidConfiguration("cluster-cidr", why, "one CIDR, or one IPv4 and one IPv6 CIDR")


@dataclass(frozen=True, slots=True)
class RouteObservation:
    """The route table, the nodes, and the machine of each node with pod CIDRs.

    - `machines`: the ids of the cluster's machines, including terminated ones; needed if a route's `owned` is None.
    - `quota`: the route quota of the table, if known.
    - `refused`: routes in backoff after an error, by destination, with the error.
    - `anchored`: at least one Node has a machine of this cluster (`InstanceSnapshot.anchored`); otherwise deletions are
      held.
    - `left`: the ids of machines whose Node's deletion this process has seen.
    - `nodeless`: the cluster's living machines without a Node, except those in `left`.
    """

    routes: tuple[Route, ...]
    nodes: tuple[Object, ...]
    instances: Mapping[str, Instance | None]
    errors: Mapping[str, CloudError] = field(default_factory=dict)
    machines: frozenset[str] = frozenset()
    quota: int | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    anchored: bool = True
    left: frozenset[str] = frozenset()
    nodeless: frozenset[str] = frozenset()

    def doubt(self, route: Route) -> str | None:
        """Why this route may still be needed although no Node has its CIDR; None if it is certainly obsolete.

        Nodes have no finalizer: a missing Node was either deleted, or lost when etcd was restored.
        """
        if route.target_instance in self.left:
            return None
        if not self.anchored:
            return NOT_ANCHORED
        if route.target_instance in self.nodeless:
            return f"its machine {_machine(route)} exists, and the deletion of its Node was not seen"
        return None

    def owns(self, route: Route, cluster_cidrs: Iterable[str]) -> bool:
        """Whether the route belongs to this cluster."""
        if route.owned is None:
            ours = route.target_instance in self.machines or (route.blackhole and not route.target_instance)
            return ours and _within(route.destination_cidr, cluster_cidrs)
        return route.owned


@dataclass(frozen=True, slots=True)
class CreateRoute:
    """Create the route of a node."""

    route: Route
    node: Object


@dataclass(frozen=True, slots=True)
class ReplaceRoute:
    """Delete a route with a wrong target, and create the node's."""

    old: Route
    route: Route
    node: Object


@dataclass(frozen=True, slots=True)
class DeleteRoute:
    """Delete a route."""

    route: Route


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Marks an ignored action: the pods of this node are unreachable, because a route cannot be created."""

    node: Object


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Marks an ignored action: the table is full or nearly full."""

    used: int
    quota: int


@dataclass(frozen=True, slots=True)
class SetNetworkAvailable:
    """Set the node's NetworkUnavailable condition. `needs`: targets of the actions that must succeed before."""

    node: Object
    available: bool
    needs: frozenset[str]


def plan(observation: RouteObservation, options: RouteOptions) -> Plan:
    """Delete obsolete routes, replace wrong ones, create missing ones, then set the nodes' conditions."""
    nodes = sorted((node for node in observation.nodes if name(node) not in options.removed), key=name)
    taken = dict(_taken(nodes, options.cluster_cidrs))
    wanted = dict(_wanted(nodes, observation.instances, taken))
    existing = {_canonical(route.destination_cidr): route for route in observation.routes}
    deletes = list(_obsolete(existing, wanted, nodes, taken, observation, options))
    replaces: list[Action] = []
    creates: list[Action] = []
    blocked = [_unreachable(cidr, node, why) for (_, cidr), (node, why) in taken.items()]
    for cidr, (node, instance) in wanted.items():
        found = existing.get(cidr)
        route = Route(cidr, instance.id)
        summary = f"route pods of {name(node)} to {instance.name}"
        right = found is not None and found.target_instance == instance.id and not found.blackhole
        if right and not (found and found.partial):
            continue
        if cidr in observation.refused:
            blocked.append(_unreachable(cidr, node, observation.refused[cidr]))
        elif not _within(cidr, options.cluster_cidrs):
            outside = f"it is outside --cluster-cidr={','.join(options.cluster_cidrs)}"
            blocked.append(_unreachable(cidr, node, outside))
        elif found is None or right:
            change = FieldChange("next_hop", None, instance.id)
            creates.append(_action(ActionKind.CREATE, cidr, summary, CreateRoute(route, node), change))
        elif options.delete_foreign or observation.owns(found, options.cluster_cidrs):
            change = FieldChange("next_hop", _hop(found), instance.id)
            replaces.append(_action(ActionKind.REPLACE, cidr, summary, ReplaceRoute(found, route, node), change))
        else:
            blocked.append(_unreachable(cidr, node, _why_foreign(found)))
    if not observation.anchored:
        replaces = [_held(action, NOT_ANCHORED) for action in replaces]
    removed = sum(action.kind is ActionKind.DELETE and action.pending for action in deletes)
    creates, left_out, report = _within_quota(creates, len(observation.routes) - removed, observation.quota)
    blocked += left_out
    settled = {action.target for action in [*creates, *replaces]}
    # By node, because two nodes may have the same CIDR, but only one has the route.
    hindered = {
        (name(each.operation.node), each.target)
        for each in (*blocked, *replaces)
        if isinstance(each.operation, Unreachable | ReplaceRoute) and not each.pending
    }
    conditions = list(_conditions(nodes, observation, settled, hindered))
    missing = options.declared - {name(node) for node in observation.nodes}
    return Plan.of([*report, *deletes, *blocked, *replaces, *creates, *conditions]) + plan_assumed(missing)


def plan_assumed(names: Iterable[str]) -> Plan:
    """The assumed actions for declared nodes that have not registered yet, and whose pod CIDRs are unknown."""
    return Plan.of(
        Action(ActionKind.CREATE, f"route/pods-of-{node}", f"route pods of {node} to its machine", assumed=True)
        for node in sorted(names)
    )


def plan_teardown(observation: RouteObservation, options: RouteOptions) -> Plan:
    """Delete every route of this cluster, because the cluster is being removed."""
    inside = [route for route in observation.routes if _inside(route.destination_cidr, options.cluster_cidrs)]
    return Plan.of(
        _delete(_canonical(route.destination_cidr), route, "the cluster is being removed")
        for route in sorted(inside, key=lambda route: route.destination_cidr)
        if observation.owns(route, options.cluster_cidrs)
    )


def _wanted(
    nodes: Iterable[Object], instances: Mapping[str, Instance | None], taken: Collection[tuple[str, str]]
) -> Iterator[tuple[str, tuple[Object, Instance]]]:
    for node in nodes:
        if instance := instances.get(name(node)):
            for cidr in map(_canonical, view.pod_cidrs(node)):
                if (name(node), cidr) not in taken:
                    yield cidr, (node, instance)


def _taken(
    nodes: Iterable[Object], cluster_cidrs: Iterable[str]
) -> Iterator[tuple[tuple[str, str], tuple[Object, str]]]:
    """The CIDRs that overlap an older node's, by node and CIDR, with the node and the reason.

    The older node keeps its CIDR whatever its machine's state. OTHERWISE A NODE COULD STEAL ANOTHER'S POD TRAFFIC.
    """
    ranges = [
        (node, network)
        for node in sorted(nodes, key=view.age)
        for cidr in view.pod_cidrs(node)
        if _within(cidr, cluster_cidrs) and (network := _parsed(cidr))
    ]
    # Look up by prefix length, of which there are one or two: comparing all pairs of nodes would be quadratic.
    lengths = {(network.version, network.prefixlen) for _, network in ranges}
    holders: dict[IPv4Network | IPv6Network, tuple[Object, str]] = {}
    inside: dict[IPv4Network | IPv6Network, tuple[Object, str]] = {}
    for node, network in ranges:
        around = [
            network if length == network.prefixlen else network.supernet(new_prefix=length)
            for version, length in lengths
            if version == network.version and length <= network.prefixlen
        ]
        overlapped = next((holders[each] for each in around if each in holders), inside.get(network))
        if overlapped is not None:
            older, cidr = overlapped
            if older is not node:
                why = f"it overlaps {cidr} of the older node {name(older)}"
                yield (name(node), str(network)), (node, why)
            continue
        holders[network] = (node, str(network))
        for each in around:
            inside.setdefault(each, (node, str(network)))


def _obsolete(
    existing: Mapping[str, Route],
    wanted: Mapping[str, object],
    nodes: Iterable[Object],
    taken: Mapping[tuple[str, str], tuple[Object, str]],
    observation: RouteObservation,
    options: RouteOptions,
) -> Iterator[Action]:
    ranges = {(name(node), _canonical(cidr)) for node in nodes for cidr in view.pod_cidrs(node)}
    allocated = {cidr for _, cidr in ranges - taken.keys()}
    overlaps = {cidr: why for (_, cidr), (_, why) in taken.items()}
    for cidr, route in sorted(existing.items()):
        if cidr in wanted or not _inside(cidr, options.cluster_cidrs):
            continue
        if cidr in allocated and not route.blackhole:
            continue  # The node exists; that its machine is unknown may be an error of the cloud.
        why = overlaps.get(cidr, "it is not a pod CIDR of any node")
        why = f"its machine {_machine(route)} is gone" if route.blackhole else why
        if cidr in observation.refused:
            yield Action(ActionKind.IGNORE, f"route/{cidr}", "keep for now", reason=observation.refused[cidr])
        elif options.delete_foreign or observation.owns(route, options.cluster_cidrs):
            deletion = _delete(cidr, route, why)
            doubt = observation.doubt(route)
            yield _held(deletion, doubt) if doubt else deletion
        else:
            yield Action(ActionKind.IGNORE, f"route/{cidr}", "keep", reason=_why_foreign(route))


def _within_quota(
    creates: list[Action], used: int, quota: int | None
) -> tuple[list[Action], list[Action], list[Action]]:
    """The routes within the quota, those beyond it, and a report if the table is (nearly) full."""
    if quota is None:
        return creates, [], []
    fit = max(0, quota - used)
    full = f"the quota of {quota} routes is used up; request a higher quota"
    left_out = [
        _unreachable(action.target.removeprefix("route/"), action.operation.node, full)
        for action in creates[fit:]
        if isinstance(action.operation, CreateRoute)
    ]
    creates = creates[:fit]
    will_be = used + len(creates)
    if will_be < QUOTA_WARNING * quota:
        return creates, left_out, []
    summary = f"{will_be} of {quota} routes are used"
    reason = f"{full}: {len(left_out)} more are needed" if left_out else "request a higher quota before adding nodes"
    operation = QuotaUse(will_be, quota)
    return creates, left_out, [Action(ActionKind.IGNORE, "route-table", summary, reason=reason, operation=operation)]


def _conditions(
    nodes: Iterable[Object], observation: RouteObservation, settled: set[str], hindered: set[tuple[str, str]]
) -> Iterator[Action]:
    for node in nodes:
        targets = frozenset(f"route/{_canonical(cidr)}" for cidr in view.pod_cidrs(node))
        if not targets or name(node) not in observation.instances:
            continue
        available = observation.instances.get(name(node)) is not None
        available = available and not any((name(node), target) in hindered for target in targets)
        state = CREATED if available else NOT_CREATED
        if network_state(node) == state[:2]:
            continue
        before = view.condition(node, CONDITION)
        yield Action(
            ActionKind.UPDATE,
            f"node/{name(node)}/network-unavailable",
            "mark its pod network as available" if available else "mark its pod network as unavailable",
            (FieldChange(f"status.conditions[{CONDITION}]", before and before["status"], state[0]),),
            operation=SetNetworkAvailable(node, available, targets & settled),
        )


def _action(kind: ActionKind, cidr: str, summary: str, operation: object, change: FieldChange) -> Action:
    return Action(kind, f"route/{cidr}", summary, (change,), operation=operation)


def _delete(cidr: str, route: Route, why: str) -> Action:
    change = FieldChange("next_hop", _hop(route), None)
    return Action(ActionKind.DELETE, f"route/{cidr}", "delete", (change,), reason=why, operation=DeleteRoute(route))


def _held(action: Action, why: str) -> Action:
    """Hold the action; destination and machine identify the route."""
    hops = (str(change.before) for change in action.changes)
    return hold([action], f"{action.target} {' '.join(hops)}", why)[0]


def _unreachable(cidr: str, node: Object, why: str) -> Action:
    summary = f"pods of {name(node)} are unreachable"
    return Action(ActionKind.IGNORE, f"route/{cidr}", summary, reason=why, operation=Unreachable(node))


def _why_foreign(route: Route) -> str:
    return f"foreign: {_machine(route)} is not a machine of this cluster; --delete-foreign-routes deletes it"


def _hop(route: Route) -> str:
    return f"{_machine(route)} (gone)" if route.blackhole else route.target_instance


def _machine(route: Route) -> str:
    return route.target_instance or "(unknown)"


def network_state(node: Object) -> tuple[str, str] | None:
    """Status and reason of the node's NetworkUnavailable condition."""
    found = view.condition(node, CONDITION)
    return (found["status"], found.get("reason", "")) if found else None


def _network(what: str, cidr: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(cidr)
    except ValueError as error:
        raise InvalidConfiguration(what, f"{cidr!r} is not a CIDR: {error}", "for example 10.20.0.0/16") from None


# Cached: each pass parses the CIDRs of thousands of nodes several times.
@lru_cache(maxsize=1 << 15)
def _parsed(cidr: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=1 << 15)
def _canonical(cidr: str) -> str:
    return str(_parsed(cidr) or cidr)


def _within(cidr: str, cluster_cidrs: Iterable[str]) -> bool:
    network = _parsed(cidr)
    for cluster in map(_parsed, cluster_cidrs):
        if isinstance(network, IPv4Network) and isinstance(cluster, IPv4Network) and network.subnet_of(cluster):
            return True
        if isinstance(network, IPv6Network) and isinstance(cluster, IPv6Network) and network.subnet_of(cluster):
            return True
    return False


def _inside(cidr: str, cluster_cidrs: Iterable[str]) -> bool:
    """As upstream: whether the first or last address is inside a pod CIDR. False for an invalid CIDR."""
    network = _parsed(cidr)
    return network is not None and any(
        network.network_address in cluster or network.broadcast_address in cluster
        for cluster in map(_parsed, cluster_cidrs)
        if cluster is not None and cluster.version == network.version
    )
