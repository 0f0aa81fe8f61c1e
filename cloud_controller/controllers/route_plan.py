"""What must change so that the route table leads each node's pod range to its machine: pure functions.

Only routes inside the cluster's pod ranges are looked at. One that is not the cluster's own is left alone and reported,
unless `delete_foreign`: upstream deletes it. Where the cloud's routes carry no mark, a route is the cluster's own if it
lies inside a pod range and leads to one of the cluster's machines, terminated ones included, or to a machine that is
gone and that the cloud does not tell any more. What does not fit into the table is not tried.
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
"""Status, reason and message of the condition, in upstream's words: other components compare them."""
QUOTA_WARNING = 0.8
"""The share of the table's quota from which on its use is reported."""


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """`cluster_cidrs`: the pod ranges of the cluster. `declared`: machines that shall be nodes; those not registered
    yet are planned as assumed. `removed`: nodes whose machines are about to be removed; their routes go first."""

    cluster_cidrs: tuple[str, ...]
    delete_foreign: bool = False
    declared: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        networks = [_network("cluster-cidr", cidr) for cidr in self.cluster_cidrs]
        if not networks or len(networks) > 2 or len({network.version for network in networks}) != len(networks):
            given = ", ".join(self.cluster_cidrs) or "nothing"
            raise InvalidConfiguration("cluster-cidr", f"{given} is given", "one range, or one IPv4 and one IPv6 range")


@dataclass(frozen=True, slots=True)
class RouteObservation:
    """The route table, the nodes, and the machine of each node that has a pod range.

    `machines`: the ids of the cluster's machines, terminated ones too; needed where a route's `owned` is None.
    `quota`: how many routes the table may hold, where that is known. `refused`: why the cloud did not write or remove
    a route (by its destination), as long as it shall not be asked again. `anchored`: at least one Node is a machine of
    the cluster (`InstanceSnapshot.anchored`); else no route is removed unconfirmed. `left`: the ids of machines whose
    Node was deleted while this process watched. `nodeless`: those of the cluster's living machines that have none, and
    are not among `left`.
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
        """Why this route may be needed though no Node is known to have its range; None where nobody needs it.

        Nodes have no finalizer: one that is missing was deleted, or etcd was restored and does not know it any more.
        """
        if route.target_instance in self.left:
            return None
        if not self.anchored:
            return NOT_ANCHORED
        if route.target_instance in self.nodeless:
            return f"its machine {_machine(route)} exists, and the deletion of its Node was not seen"
        return None

    def owns(self, route: Route, cluster_cidrs: Iterable[str]) -> bool:
        """Whether the route is the cluster's own."""
        if route.owned is None:
            ours = route.target_instance in self.machines or (route.blackhole and not route.target_instance)
            return ours and _within(route.destination_cidr, cluster_cidrs)
        return route.owned


@dataclass(frozen=True, slots=True)
class CreateRoute:
    """Write the route of a node."""

    route: Route
    node: Object


@dataclass(frozen=True, slots=True)
class ReplaceRoute:
    """Remove a route that leads elsewhere and write the node's."""

    old: Route
    route: Route
    node: Object


@dataclass(frozen=True, slots=True)
class DeleteRoute:
    """Remove a route."""

    route: Route


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Of an ignored action: the pods of this node can't be reached, because a route can't be written."""

    node: Object


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Of an ignored action: the table is full, or nearly."""

    used: int
    quota: int


@dataclass(frozen=True, slots=True)
class SetNetworkAvailable:
    """Say in the node's status that pods there can be reached, or (`available` False) that they can't.

    `needs` are the targets of the actions that must have succeeded before."""

    node: Object
    available: bool
    needs: frozenset[str]


def plan(observation: RouteObservation, options: RouteOptions) -> Plan:
    """Obsolete routes go, wrong ones are replaced, missing ones are written, then the nodes' conditions follow."""
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
        summary = f"lead the pods of {name(node)} to {instance.name}"
        if found is not None and found.target_instance == instance.id and not found.blackhole:
            continue
        if cidr in observation.refused:
            blocked.append(_unreachable(cidr, node, observation.refused[cidr]))
        elif not _within(cidr, options.cluster_cidrs):
            outside = f"it lies outside --cluster-cidr={','.join(options.cluster_cidrs)}"
            blocked.append(_unreachable(cidr, node, outside))
        elif found is None:
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
    # By node: two may have the same range, of which one has the route.
    hindered = {
        (name(each.operation.node), each.target)
        for each in (*blocked, *replaces)
        if isinstance(each.operation, Unreachable | ReplaceRoute) and not each.pending
    }
    conditions = list(_conditions(nodes, observation, settled, hindered))
    missing = options.declared - {name(node) for node in observation.nodes}
    return Plan.of([*report, *deletes, *blocked, *replaces, *creates, *conditions]) + plan_assumed(missing)


def plan_assumed(names: Iterable[str]) -> Plan:
    """What will be written for declared machines that are no nodes yet: their pod ranges are not allocated."""
    return Plan.of(
        Action(ActionKind.CREATE, f"route/pods-of-{node}", f"lead the pods of {node} to it", assumed=True)
        for node in sorted(names)
    )


def plan_teardown(observation: RouteObservation, options: RouteOptions) -> Plan:
    """Remove every route that this cluster owns, because the cluster goes."""
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
    """By node and range: the ranges that overlap an older node's, with their node and why they get no route.

    The older keeps its range whatever its machine does: else another node could draw its pods' traffic.
    """
    ranges = [
        (node, network)
        for node in sorted(nodes, key=view.age)
        for cidr in view.pod_cidrs(node)
        if _within(cidr, cluster_cidrs) and (network := _parsed(cidr))
    ]
    # There are one or two lengths of prefix, and thousands of nodes: pairs of nodes would be millions.
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
                why = f"it overlaps {cidr} of node {name(older)}, which is older"
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
            continue  # The node is there; only its machine is unknown, which may be the cloud's mistake.
        why = overlaps.get(cidr, "it is no node's pod range")
        why = f"its machine {_machine(route)} is gone" if route.blackhole else why
        if cidr in observation.refused:
            yield Action(ActionKind.IGNORE, f"route/{cidr}", "stays for now", reason=observation.refused[cidr])
        elif options.delete_foreign or observation.owns(route, options.cluster_cidrs):
            deletion = _delete(cidr, route, why)
            doubt = observation.doubt(route)
            yield _held(deletion, doubt) if doubt else deletion
        else:
            yield Action(ActionKind.IGNORE, f"route/{cidr}", "stays", reason=_why_foreign(route))


def _within_quota(
    creates: list[Action], used: int, quota: int | None
) -> tuple[list[Action], list[Action], list[Action]]:
    """The routes that fit into the table, those that do not, and the report where it is full or nearly."""
    if quota is None:
        return creates, [], []
    fit = max(0, quota - used)
    full = f"the route table holds its quota of {quota} routes; ask the cloud for more"
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
    reason = f"{full}: {len(left_out)} more are wanted" if left_out else "ask the cloud for more before nodes are added"
    operation = QuotaUse(will_be, quota)
    return creates, left_out, [Action(ActionKind.IGNORE, "route-table", summary, reason=reason, operation=operation)]


def _conditions(
    nodes: Iterable[Object], observation: RouteObservation, settled: set[str], hindered: set[tuple[str, str]]
) -> Iterator[Action]:
    for node in nodes:
        targets = frozenset(f"route/{_canonical(cidr)}" for cidr in view.pod_cidrs(node))
        if not targets or name(node) in observation.errors:
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
            "the network of its pods is there" if available else "the network of its pods is missing",
            (FieldChange(f"status.conditions[{CONDITION}]", before and before["status"], state[0]),),
            operation=SetNetworkAvailable(node, available, targets & settled),
        )


def _action(kind: ActionKind, cidr: str, summary: str, operation: object, change: FieldChange) -> Action:
    return Action(kind, f"route/{cidr}", summary, (change,), operation=operation)


def _delete(cidr: str, route: Route, why: str) -> Action:
    change = FieldChange("next_hop", _hop(route), None)
    return Action(ActionKind.DELETE, f"route/{cidr}", "remove", (change,), reason=why, operation=DeleteRoute(route))


def _held(action: Action, why: str) -> Action:
    """The removal of a route, held: its destination and its machine are what is at stake."""
    hops = (str(change.before) for change in action.changes)
    return hold([action], f"{action.target} {' '.join(hops)}", why)[0]


def _unreachable(cidr: str, node: Object, why: str) -> Action:
    summary = f"pods of {name(node)} can't be reached"
    return Action(ActionKind.IGNORE, f"route/{cidr}", summary, reason=why, operation=Unreachable(node))


def _why_foreign(route: Route) -> str:
    return f"foreign: {_machine(route)} never was this cluster's; --delete-foreign-routes removes it"


def _hop(route: Route) -> str:
    return f"{_machine(route)} (gone)" if route.blackhole else route.target_instance


def _machine(route: Route) -> str:
    return route.target_instance or "(not told)"


def network_state(node: Object) -> tuple[str, str] | None:
    """Status and reason of the node's NetworkUnavailable condition."""
    found = view.condition(node, CONDITION)
    return (found["status"], found.get("reason", "")) if found else None


def _network(what: str, cidr: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(cidr)
    except ValueError as error:
        raise InvalidConfiguration(what, f"{cidr!r} is no network: {error}", "for example 10.20.0.0/16") from None


# Thousands of nodes have thousands of ranges, and each pass asks for each of them several times.
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
    """As upstream: the first or the last address lies in a cluster range; what can't be read is not ours."""
    network = _parsed(cidr)
    return network is not None and any(
        network.network_address in cluster or network.broadcast_address in cluster
        for cluster in map(_parsed, cluster_cidrs)
        if cluster is not None and cluster.version == network.version
    )
