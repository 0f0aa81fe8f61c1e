"""What must happen for each Service to have exactly the load balancer that it asks for: pure functions.

A plan is for now: what can only follow (the status of a load balancer that is still being created, the finalizer of
one that is still being deleted) is in the plan of the next observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancer import LoadBalancerBuilder, LoadBalancerState, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancer_diff import diff, kept
from cloud_controller.load_balancer_operations import DeleteLoadBalancer
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
"""Upstream's, so that a cluster may change its controller."""

EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
_TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_FALSE_WORDS = frozenset({"0", "f", "F", "false", "False", "FALSE"})


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan depends on besides the objects.

    `backend_nodes`: `eligible` as upstream has it (KEP-3458: neither readiness nor cordon nor role matter), or
    `ready-workers`: ready workers that are not cordoned.
    """

    cluster_id: str
    classes: frozenset[str] = frozenset()
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the finalizer on the Service, before anything is made for it."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take it off: nothing is left in the cloud."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class SetIngress:
    """Write `status.loadBalancer.ingress`."""

    namespace: str
    name: str
    uid: str
    ingress: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """The plan for one Service. `warnings` are for its owner, by event reason.

    `failure`: the cloud gave up on the load balancer, and why.
    """

    plan: Plan
    warnings: tuple[tuple[str, str], ...] = ()
    failure: str | None = None


# ------------------------------------------------------------------------------------------------------ predicates


def wants_load_balancer(service: Object, classes: frozenset[str]) -> bool:
    """Whether the Service shall have a load balancer from this cloud."""
    spec, metadata = service["spec"], service["metadata"]
    load_balancer_class = spec.get("loadBalancerClass")
    return (
        spec.get("type") == "LoadBalancer"
        and not metadata.get("deletionTimestamp")
        and (load_balancer_class is None or load_balancer_class in classes)
    )


def has_finalizer(service: Object) -> bool:
    """Whether a load balancer may have been made for the Service."""
    return FINALIZER in (service["metadata"].get("finalizers") or [])


def eligible_nodes(nodes: Iterable[Object], rules: Rules) -> list[Object]:
    """The nodes that load balancers may send to (upstream: stableNodeSetPredicates), by name."""
    allowed = (node for node in nodes if _is_stable(node))
    if rules.backend_nodes == "ready-workers":
        allowed = (node for node in allowed if _is_ready_worker(node))
    return sorted(allowed, key=lambda node: str(node["metadata"]["name"]))


def node_traits(node: Object) -> tuple[Any, ...]:
    """What of a node decides whether and how it is a member."""
    metadata, spec, status = node["metadata"], node["spec"], node.get("status", {})
    ready = [c["status"] for c in status.get("conditions") or [] if c["type"] == "Ready"]
    return (
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        spec.get("providerID"),
        spec.get("taints"),
        spec.get("unschedulable"),
        status.get("addresses"),
        ready,
    )


def target_of(namespace: str, name: str) -> str:
    """A Service's target in plans."""
    return f"service/{namespace}/{name}"


# ------------------------------------------------------------------------------------------------------------ plans


def plan_service(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    nodes: Sequence[Object],
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> ServicePlan:
    """The plan for one Service, given all load balancers that it owns and the eligible nodes.

    Raises InvalidConfiguration, naming the Service's field or annotation, where it asks for what can't be.
    """
    if wants_load_balancer(service, rules.classes):
        return _ensure(service, observed, nodes, builder, rules)
    return _clean_up(service, observed, builder, rules)


def plan_orphans(orphans: Sequence[ObservedLoadBalancer], target: str) -> Plan:
    """The plan for load balancers whose Service does not exist any more (its finalizer was taken off by hand)."""
    actions = []
    for lb in orphans:
        if lb.state is LoadBalancerState.DELETING:
            reason = "it is being deleted already"
            actions.append(Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason=reason))
        else:
            summary = f"delete load balancer {lb.id} ({lb.model.name})"
            delete = DeleteLoadBalancer(lb.id)
            reason = "its Service does not exist any more"
            actions.append(Action(ActionKind.DELETE, target, summary, reason=reason, operation=delete))
    return Plan.of(actions)


def plan_all(
    services: Iterable[Object],
    observed: Iterable[ObservedLoadBalancer],
    nodes: Iterable[Object],
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> Plan:
    """The plan for every Service, ordered by namespace and name; a Service with a fault gets a line that says so."""
    eligible = eligible_nodes(nodes, rules)
    by_uid: dict[str, list[ObservedLoadBalancer]] = {}
    owners: dict[str, Owner] = {}
    for lb in observed:
        owner = lb.owner
        if owner is not None and owner.cluster_id == rules.cluster_id:
            by_uid.setdefault(owner.uid, []).append(lb)
            owners[owner.uid] = owner
    plans: list[tuple[str, Plan]] = []
    for service in services:
        metadata = service["metadata"]
        target = target_of(metadata["namespace"], metadata["name"])
        try:
            found = plan_service(service, by_uid.pop(metadata["uid"], []), eligible, builder, rules).plan
        except InvalidConfiguration as error:
            found = Plan.of([Action(ActionKind.IGNORE, target, "nothing is changed", reason=f"invalid: {error}")])
        plans.append((target, found))
    for uid, orphans in by_uid.items():
        if owners[uid].name:
            target = target_of(owners[uid].namespace, owners[uid].name)
            plans.append((target, plan_orphans(orphans, target)))
        else:
            target = target_of("unknown", uid)
            reason = "no tag names its Service, so that nobody can be asked whether it is gone"
            left = (Action(ActionKind.IGNORE, target, f"load balancer {lb.id} stays", reason=reason) for lb in orphans)
            plans.append((target, Plan.of(left)))
    return Plan.of(action for _, part in sorted(plans, key=lambda entry: entry[0]) for action in part)


# ----------------------------------------------------------------------------------------------------- one Service


def _ensure(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    nodes: Sequence[Object],
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> ServicePlan:
    namespace, name, uid = _identity(service)
    target = target_of(namespace, name)
    owner = Owner(rules.cluster_id, uid, namespace, name)
    built = builder.build(service, nodes)
    changes = diff(built.model, observed, builder.catalogue, target=target, client_token=owner.client_token)
    keeper = kept(built.model, observed, builder.catalogue)
    actions: list[Action] = []
    if not has_finalizer(service):
        add = AddFinalizer(namespace, name, uid)
        actions.append(Action(ActionKind.UPDATE, target, f"add finalizer {FINALIZER}", operation=add))
    for ignored in built.ignored:
        change = FieldChange(ignored.field, None, ignored.value)
        actions.append(Action(ActionKind.IGNORE, target, "not offered", (change,), reason=ignored.reason))
    # Clients are told of a new address before the old one goes.
    actions += [action for action in changes if not isinstance(action.operation, DeleteLoadBalancer)]
    if keeper is not None and keeper.state is LoadBalancerState.READY:
        actions += _status(service, [ingress.to_json() for ingress in keeper.ingress])
    actions += [action for action in changes if isinstance(action.operation, DeleteLoadBalancer)]
    warnings = [("NoIngressNodes", warning) for warning in built.warnings]
    if not any(pool.members for pool in built.model.pools):
        warnings.append(("UnAvailableLoadBalancer", "There are no available nodes for LoadBalancer"))
    return ServicePlan(
        Plan.of(actions),
        tuple(warnings),
        failure=_failure(keeper),
    )


def _clean_up(
    service: Object, observed: Sequence[ObservedLoadBalancer], builder: LoadBalancerBuilder, rules: Rules
) -> ServicePlan:
    """For a Service that wants nothing (any more): deleted, of another type, or of a class that others serve."""
    namespace, name, uid = _identity(service)
    target = target_of(namespace, name)
    if observed:
        token = Owner(rules.cluster_id, uid, namespace, name).client_token
        return ServicePlan(diff(None, observed, builder.catalogue, target=target, client_token=token))
    being_deleted = bool(service["metadata"].get("deletionTimestamp"))
    # Of a Service that another implementation serves, neither finalizer nor status is ours.
    if not has_finalizer(service) or not (being_deleted or service["spec"].get("type") != "LoadBalancer"):
        return ServicePlan(Plan())
    actions = [] if being_deleted else _status(service, [])
    remove = RemoveFinalizer(namespace, name, uid)
    actions.append(Action(ActionKind.UPDATE, target, f"remove finalizer {FINALIZER}", operation=remove))
    return ServicePlan(Plan.of(actions))


def _status(service: Object, wanted: list[dict[str, str]]) -> list[Action]:
    present = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
    if [_with_defaults(entry) for entry in present] == [_with_defaults(entry) for entry in wanted]:
        return []
    namespace, name, uid = _identity(service)
    return [
        Action(
            ActionKind.UPDATE,
            target_of(namespace, name),
            "set status",
            (FieldChange("status.loadBalancer.ingress", _addresses(present), _addresses(wanted)),),
            operation=SetIngress(namespace, name, uid, tuple(wanted)),
        )
    ]


def _with_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """As the API server stores it: an IP without a mode is a virtual one."""
    return {"ipMode": "VIP", **entry} if "ip" in entry else entry


def _addresses(ingress: Sequence[dict[str, Any]]) -> str | None:
    return ", ".join(str(entry.get("ip") or entry.get("hostname")) for entry in ingress) or None


def _failure(keeper: ObservedLoadBalancer | None) -> str | None:
    if keeper is None or keeper.state is not LoadBalancerState.FAILED:
        return None
    return f"load balancer {keeper.id} has failed: {keeper.state_reason or 'the cloud names no reason'}"


def _identity(service: Object) -> tuple[str, str, str]:
    metadata = service["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


# ----------------------------------------------------------------------------------------------------------- nodes


def _is_stable(node: Object) -> bool:
    metadata = node["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    excluded = (metadata.get("labels") or {}).get(EXCLUDE_LABEL)
    # As upstream parses it: anything but a clear "false", also an empty value, excludes.
    if excluded is not None and excluded not in _FALSE_WORDS:
        return False
    return not any(taint["key"] == _TO_BE_DELETED_TAINT for taint in node["spec"].get("taints") or [])


def _is_ready_worker(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    labels = node["metadata"].get("labels") or {}
    return ready and not node["spec"].get("unschedulable") and _CONTROL_PLANE_LABEL not in labels
