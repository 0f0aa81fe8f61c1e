"""What must happen for each Service to have exactly the load balancer that it asks for: pure functions.

A plan is for now: what can only follow (the status of a load balancer that is still being created, the finalizer of
one that is still being deleted) is in the plan of the next observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cloud_controller.binding import Binding
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.service.adoption import adopt, left_alone
from cloud_controller.controllers.service.rules import (
    FINALIZER,
    Rules,
    backends_of,
    finalizers,
    preserves,
    reused_id,
    wants_load_balancer,
)
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.diff import diff, find_current, members_added, members_removed
from cloud_controller.load_balancers.model import (
    CLUSTER_UID_TAG,
    Built,
    LoadBalancerBuilder,
    LoadBalancerState,
    Object,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    DeleteLoadBalancer,
    Operation,
    PutListener,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.load_balancers.parts import PRESERVE, diff_parts, has_parts, leave, release
from cloud_controller.load_balancers.pods import admitted
from cloud_controller.load_balancers.sharing import LEFT_TAG, is_left, is_of, require_free_ports
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan, hold

NO_NODES = "UnAvailableLoadBalancer"
"""Upstream's reason for a load balancer that has nobody to send to."""
NOT_OFFERED = "NotOffered"
"""The reason of events about what a Service asks for and its cloud does not honour."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the finalizer on the Service, before anything is made for it."""

    namespace: str
    name: str
    uid: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Take it off: nothing is left in the cloud."""

    namespace: str
    name: str
    uid: str
    finalizer: str


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

    `failure`: the cloud gave up on the load balancer, and why. `fault`: what is wrong with the Service; the plan is
    what can be done all the same (members follow the nodes). `preserves`: what is left behind, on purpose. `waits`: the
    Service gets its address only when the cloud has gone on. `again`: what an earlier visit left is tried once more.
    `left_out`: endpoints of the Service that may not be members, and why.
    """

    plan: Plan
    warnings: tuple[tuple[str, str], ...] = ()
    failure: str | None = None
    fault: InvalidConfiguration | None = None
    preserves: str | None = None
    waits: bool = False
    again: bool = False
    left_out: str | None = None


def target_of(namespace: str, name: str) -> str:
    """A Service's target in plans."""
    return f"service/{namespace}/{name}"


def owner_of(service: Object, cluster_id: str) -> Owner:
    """The Service as what is made for it names it."""
    metadata = service["metadata"]
    return Owner(cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])


# ------------------------------------------------------------------------------------------------------------ plans


def plan_service(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> ServicePlan:
    """The plan for one Service, given the load balancers that it owns, has parts on, names, or may adopt."""
    if not rules.without_class:
        # Upstream's controller works beside this one: what it made is its own.
        observed = [lb for lb in observed if lb.adoptable is None]
    if not wants_load_balancer(service, rules, builder):
        return _clean_up(service, observed, builder, rules)
    try:
        backends, left_out = _allowed(service, backends, builder)
    except InvalidConfiguration as fault:
        return ServicePlan(Plan(), fault=fault)
    found = _ensure(service, observed, backends, builder, rules)
    if left_out is None:
        return found
    target = target_of(service["metadata"]["namespace"], service["metadata"]["name"])
    ignored = Action(ActionKind.IGNORE, target, "endpoints are left out", reason=left_out)
    return replace(found, plan=found.plan + Plan.of([ignored]), left_out=left_out)


def plan_orphans(
    observed: Sequence[ObservedLoadBalancer], owner: Owner, catalogue: Catalogue, binding: Binding, *, deleted: bool
) -> Plan:
    """The plan for what is left of a Service that does not exist any more (its finalizer was taken off by hand).

    Unless its deletion was seen (`deleted`), everything is held: a Service that vanished without one is what a lost or
    restored etcd, or another cluster's kubeconfig, looks like.
    """
    target = target_of(owner.namespace, owner.name)
    why = "its Service does not exist any more"
    plan = Plan()
    for lb in observed:
        mine = owner.owns(lb.model.tags)
        if not mine and not has_parts(lb, owner):
            continue
        tags = next(each for each in (lb.model.tags, *lb.model.part_tags) if owner.owns(each))
        if foreign := binding.foreign_uid(tags):
            reason = f"it was made for the Kubernetes cluster {foreign}"
            plan += Plan.of([Action(ActionKind.IGNORE, target, f"load balancer {lb.id} stays", reason=reason)])
            continue
        if mine:
            gone = [replace(a, reason=why) if a.operation else a for a in _deletions([lb], owner, catalogue, target)]
        else:
            gone = [*leave(lb, owner, catalogue, target=target, why=why)]
        # Its owner itself had left it to others: nothing is lost when it goes after them. Nor with the remains of one
        # that is gone: who confirmed its end need not do so again.
        ours = bool(binding.uid) and tags.get(CLUSTER_UID_TAG) == binding.uid
        remains = ours and lb.state is LoadBalancerState.PARTIAL
        seen = deleted or remains or (mine and LEFT_TAG in lb.model.tags)
        plan += Plan.of(gone if seen else hold(gone, f"{lb.id} {owner.uid}", f"{why}, and its deletion was not seen"))
    return plan


def plan_all(
    services: Iterable[Object],
    observed: Iterable[ObservedLoadBalancer],
    nodes: Iterable[Object],
    slices: Mapping[str, Sequence[Object]],
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> Plan:
    """The plan for every Service, ordered by namespace and name; a Service with a fault gets a line that says so.

    `slices` are the EndpointSlices by NAMESPACE/NAME of their Service.
    """
    eligible = backends_of(nodes, builder, rules)
    present = {lb.id: lb for lb in observed}
    owners: dict[str, Owner] = {}
    present_of: dict[str, list[str]] = {}
    adoptable_of: dict[str, list[str]] = {}
    for lb in present.values():
        if lb.adoptable and rules.without_class:
            adoptable_of.setdefault(lb.adoptable.name, []).append(lb.id)
        for owner in lb.owners:
            if owner.cluster_id == rules.cluster_id:
                owners[owner.uid] = owner
                present_of.setdefault(owner.uid, []).append(lb.id)
    plans: list[tuple[str, Plan]] = []
    # The older Service has a port that two want on a load balancer which they share.
    for service in sorted(services, key=_by_age):
        metadata = service["metadata"]
        adoptable = adoptable_of.pop(builder.foreign_name(owner_of(service, rules.cluster_id)) or "", [])
        own = dict.fromkeys([*present_of.pop(metadata["uid"], []), *adoptable, reused_id(service, builder.catalogue)])
        concerned = [present[lb_id] for lb_id in own if lb_id in present]
        backends = replace(eligible, slices=tuple(slices.get(f"{metadata['namespace']}/{metadata['name']}", ())))
        found = plan_service(service, concerned, backends, builder, rules)
        _carry_out(found.plan, present)
        target = target_of(metadata["namespace"], metadata["name"])
        plans.append((target, found.plan + _fault(found, target)))
    for uid, left in present_of.items():
        owner, orphans = owners[uid], [present[lb_id] for lb_id in left]
        if owner.name:
            left_over = plan_orphans(orphans, owner, builder.catalogue, rules.binding, deleted=False)
            _carry_out(left_over, present)
            plans.append((target_of(owner.namespace, owner.name), left_over))
        else:
            target = target_of("unknown", uid)
            reason = "no tag names its Service, so that nobody can be asked whether it is gone"
            stays = (Action(ActionKind.IGNORE, target, f"load balancer {lb.id} stays", reason=reason) for lb in orphans)
            plans.append((target, Plan.of(stays)))
    for lb in (present[lb_id] for ids in adoptable_of.values() for lb_id in ids):
        whose = lb.adoptable.service if lb.adoptable else ""
        target = f"service/{whose}" if whose else target_of("unknown", lb.id)
        plans.append((target, Plan.of(left_alone(lb, target))))
    return Plan.of(action for _, part in sorted(plans, key=lambda entry: entry[0]) for action in part)


def _carry_out(plan: Plan, present: dict[str, ObservedLoadBalancer]) -> None:
    """What the next Service finds where several share a load balancer."""
    for operation in (action.operation for action in plan.changes):
        if isinstance(operation, Operation) and not isinstance(operation, CreateLoadBalancer):
            present[operation.id] = apply_operation(present[operation.id], operation)


def _by_age(service: Object) -> tuple[str, str, str]:
    metadata = service["metadata"]
    return str(metadata.get("creationTimestamp")), metadata["namespace"], metadata["name"]


def _fault(found: ServicePlan, target: str) -> Plan:
    if found.fault is None:
        return Plan()
    left = "nothing else is changed" if found.plan.changes else "nothing is changed"
    return Plan.of([Action(ActionKind.IGNORE, target, left, reason=f"invalid: {found.fault}")])


# ----------------------------------------------------------------------------------- a Service that wants a balancer


def _allowed(service: Object, backends: Backends, builder: LoadBalancerBuilder) -> tuple[Backends, str | None]:
    """Those of the backends that the Service may send to, and which endpoints are left out and why.

    A node that is about to go serves on where its connections would be cut: its pods may still be there.
    """
    if builder.drains(service):
        backends = replace(backends, nodes=tuple(node for node in backends.nodes if not node.leaving))
    ranges = builder.pod_ranges(service)
    if ranges is None:
        return backends, None
    slices, left_out = admitted(backends.slices, service["metadata"]["namespace"], backends.pods, ranges)
    return replace(backends, slices=slices), left_out


def _ensure(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    rules: Rules,
) -> ServicePlan:
    owner = owner_of(service, rules.cluster_id)
    target = target_of(owner.namespace, owner.name)
    try:
        built = rules.binding.tagged(builder.build(service, backends))
        rules.nameable.require(built.named)
        tags = {**owner.tags, **rules.binding.tags}
        adoption = adopt(built.model, observed, owner, builder, target=target, tags=tags)
        changes, current, serves = _wanted(built, adoption.observed, owner, builder.catalogue, rules, target)
    except InvalidConfiguration as fault:
        followed = _followed(service, observed, backends, builder, owner, target)
        return ServicePlan(Plan.of(followed), fault=fault)
    if _pods_unknown(service, backends, builder):
        changes = Plan.of(_kept_as_it_is(action) for action in changes)
    elsewhere = _elsewhere(built, adoption.observed, current, owner)
    if elsewhere and not serves:
        why = f"in place of {', '.join(lb.id for lb in elsewhere)}; the address changes"
        changes = Plan.of(replace(a, reason=a.reason or why) if a.operation else a for a in changes)
    actions: list[Action] = []
    if rules.finalizer not in finalizers(service):
        add = AddFinalizer(owner.namespace, owner.name, owner.uid, rules.finalizer)
        actions.append(Action(ActionKind.UPDATE, target, f"add finalizer {add.finalizer}", operation=add))
    for ignored in built.ignored:
        change = FieldChange(ignored.field, None, ignored.value)
        actions.append(Action(ActionKind.IGNORE, target, "not offered", (change,), reason=ignored.reason))
    actions += adoption.actions
    # Clients are told of a new address before the old one goes.
    actions += [action for action in changes if not _ends_another(action, current)]
    status = _status(service, [ingress.to_json() for ingress in current.ingress]) if current is not None else []
    if serves:
        actions += status
    actions += [action for action in changes if _ends_another(action, current)]
    if current is not None and serves:
        actions += _left_behind(elsewhere, current, owner, builder.catalogue, target)
    warnings = [*built.warnings]
    warnings += [(NOT_OFFERED, f"{each.field} has no effect: {each.reason}") for each in built.ignored]
    if not any(pool.members for pool in built.model.pools):
        missing = "ready pods" if backends.nodes else "available nodes"
        warnings.append((NO_NODES, f"There are no {missing} for LoadBalancer"))
    waits = not serves and (current is None or bool(status))
    return ServicePlan(Plan.of(actions), tuple(warnings), failure=_failure(current), waits=waits)


def _ends_another(action: Action, current: ObservedLoadBalancer | None) -> bool:
    """Whether it takes something away from a load balancer in whose place another one serves."""
    operation = action.operation
    if not isinstance(operation, Operation) or isinstance(operation, CreateLoadBalancer):
        return False
    return isinstance(operation, DeleteLoadBalancer) or (current is not None and operation.id != current.id)


def _wanted(
    built: Built,
    observed: Sequence[ObservedLoadBalancer],
    owner: Owner,
    catalogue: Catalogue,
    rules: Rules,
    target: str,
) -> tuple[Plan, ObservedLoadBalancer | None, bool]:
    """What is to be done on the load balancer that shall serve, which one that is, and whether it does already."""
    if built.reuse is None:
        own = [lb for lb in observed if owner.owns(lb.model.tags)]
        current = find_current(built.model, own, catalogue)
        if current is not None:
            require_free_ports(built.model, current, owner, force=False)
        changes = diff(built.model, own, catalogue, target=target, client_token=owner.client_token)
        return changes, current, current is not None and current.state is LoadBalancerState.READY
    current = next((lb for lb in observed if lb.id == built.reuse.id), None)
    changes = diff_parts(built, built.reuse, current, owner, catalogue, target=target, sharing=rules.sharing)
    if current is None or current.state is not LoadBalancerState.READY or not current.settled:
        return changes, current, False
    opened = {listener.key for listener in current.model.listeners if owner.owns(listener.tags)}
    return changes, current, {listener.key for listener in built.model.listeners} <= opened


def _pods_unknown(service: Object, backends: Backends, builder: LoadBalancerBuilder) -> bool:
    """Whether nobody has told yet which pods the Service has; a Service without any has a slice that says so."""
    told = bool(backends.slices) or not service["spec"].get("selector")
    return not told and builder.follows_endpoints(service)


def _kept_as_it_is(action: Action) -> Action:
    """Members, and a listener that is taken over, stay as they are until the Service's pods are known."""
    reason = "no EndpointSlice tells of the Service's pods yet"
    if isinstance(action.operation, RemoveMembers):
        return Action(ActionKind.IGNORE, action.target, "members stay", reason=reason)
    if isinstance(action.operation, PutListener) and action.operation.instead_of:
        return Action(ActionKind.IGNORE, action.target, "listener is not taken over yet", reason=reason)
    return action


def _elsewhere(
    built: Built, observed: Sequence[ObservedLoadBalancer], current: ObservedLoadBalancer | None, owner: Owner
) -> list[ObservedLoadBalancer]:
    """Where the Service had its listeners before its annotation named another load balancer or none.

    Those that are wholly its own, where it shall have one of its own, are `diff`'s.
    """
    others = (lb for lb in observed if current is None or lb.id != current.id)
    return [lb for lb in others if has_parts(lb, owner) or (built.reuse and owner.owns(lb.model.tags))]


def _left_behind(
    elsewhere: Sequence[ObservedLoadBalancer],
    current: ObservedLoadBalancer,
    owner: Owner,
    catalogue: Catalogue,
    target: str,
) -> Iterator[Action]:
    """The removal of what the Service had elsewhere."""
    why = f"the Service uses {current.id} now; the address changes"
    for lb in elsewhere:
        if has_parts(lb, owner):
            yield from leave(lb, owner, catalogue, target=target, why=why)
    own = [lb for lb in elsewhere if owner.owns(lb.model.tags)]
    yield from (replace(a, reason=why) if a.operation else a for a in _deletions(own, owner, catalogue, target))


def _followed(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    owner: Owner,
    target: str,
) -> list[Action]:
    """What a Service with a fault still gets: the listeners that it has stay as they are, and lead to today's nodes."""
    try:
        wanted = builder.members(service, backends)
    except InvalidConfiguration:
        return []
    added: list[Action] = []
    removed: list[Action] = []
    for lb in observed:
        pools = {pool.name: pool for pool in lb.model.pools if is_of(owner, pool.tags, lb)}
        if lb.state in (LoadBalancerState.DELETING, LoadBalancerState.PARTIAL):
            continue
        for listener in lb.model.listeners:
            if listener.key in wanted and is_of(owner, listener.tags, lb):
                pool = pools.pop(listener.pool, None)
                if pool is not None:
                    added += members_added(pool, wanted[listener.key], lb.id, target)
                    removed += members_removed(pool, wanted[listener.key], lb.id, target)
    if _pods_unknown(service, backends, builder):
        removed = [_kept_as_it_is(action) for action in removed]
    return added + removed


# ---------------------------------------------------------------------------------------- a Service that wants none


def _clean_up(
    service: Object, observed: Sequence[ObservedLoadBalancer], builder: LoadBalancerBuilder, rules: Rules
) -> ServicePlan:
    """For a Service that wants nothing (any more): deleted, of another type, or of a class that others serve."""
    owner = owner_of(service, rules.cluster_id)
    target = target_of(owner.namespace, owner.name)
    being_deleted = bool(service["metadata"].get("deletionTimestamp"))
    of_type = service["spec"].get("type") == "LoadBalancer"
    if of_type and not being_deleted:
        # Whatever another controller made for it may serve it still.
        observed = [lb for lb in observed if lb.adoptable is None]
    try:
        tags = {**owner.tags, **rules.binding.tags}
        adoption = adopt(None, observed, owner, builder, target=target, tags=tags)
    except InvalidConfiguration as fault:
        return ServicePlan(Plan(), fault=fault)
    observed = adoption.observed
    # Others' parts on what was the Service's do not keep its finalizer.
    own = [lb for lb in observed if owner.owns(lb.model.tags) and not is_left(lb)]
    shared = [lb for lb in observed if has_parts(lb, owner)]
    if own or shared:
        try:
            stays = preserves(service, builder.catalogue)
        except InvalidConfiguration as fault:
            return ServicePlan(Plan(), fault=fault)
        if stays:
            # One that was to take another's place and does not serve yet is no use to anybody, nor are mere parts.
            whole = [lb for lb in own if lb.state is not LoadBalancerState.PARTIAL]
            serving = [lb for lb in whole if _told(service, lb)] or whole
            spare = [lb for lb in own if lb not in serving]
            preserved = _preserve(serving, shared, owner, target)
            # First, for what serves tells which one is spare.
            deletions = _deletions(spare, owner, builder.catalogue, target)
            return replace(preserved, plan=Plan(adoption.actions) + deletions + preserved.plan)
        plan = Plan(adoption.actions) + _deletions(own, owner, builder.catalogue, target)
        for lb in shared:
            why = "the Service wants no load balancer"
            plan += leave(lb, owner, builder.catalogue, target=target, why=why)
        return ServicePlan(plan, again=not shared and all(lb.state is LoadBalancerState.PARTIAL for lb in own))
    # Of a Service that another implementation serves, neither finalizer nor status is ours, until it is deleted:
    # then, as upstream, the finalizer goes, for nobody else may know it.
    removed = finalizers(service)
    if of_type and not rules.without_class and service["spec"].get("loadBalancerClass") is None:
        # Upstream's is another controller's here, which has a load balancer to delete before it may go.
        removed = [each for each in removed if each != FINALIZER]
    if not removed or (of_type and not being_deleted):
        return ServicePlan(Plan())
    actions = [] if being_deleted else _status(service, [])
    for finalizer in removed:
        remove = RemoveFinalizer(owner.namespace, owner.name, owner.uid, finalizer)
        actions.append(Action(ActionKind.UPDATE, target, f"remove finalizer {finalizer}", operation=remove))
    return ServicePlan(Plan.of(actions))


def _preserve(
    own: Sequence[ObservedLoadBalancer], shared: Sequence[ObservedLoadBalancer], owner: Owner, target: str
) -> ServicePlan:
    actions: list[Action] = []
    for lb in own:
        if lb.state is LoadBalancerState.DELETING:
            reason = "it is being deleted already"
            actions.append(Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason=reason))
            continue
        free = replace(lb.model, tags=owner.released(lb.model.tags))
        changes = (FieldChange("owner", "this Service", None),)
        summary = f"leave load balancer {lb.id} ({lb.model.name}), without an owner"
        operation = UpdateLoadBalancer(lb.id, free)
        actions.append(Action(ActionKind.UPDATE, target, summary, changes, reason=PRESERVE, operation=operation))
    for lb in shared:
        actions += release(lb, owner, target=target)
    kept_ids = ", ".join(lb.id for lb in (*own, *shared) if lb.state is not LoadBalancerState.DELETING)
    return ServicePlan(Plan.of(actions), preserves=kept_ids or None)


def _deletions(own: Sequence[ObservedLoadBalancer], owner: Owner, catalogue: Catalogue, target: str) -> Plan:
    return diff(None, own, catalogue, target=target, client_token=owner.client_token)


# ---------------------------------------------------------------------------------------------------------- status


def _status(service: Object, wanted: list[dict[str, str]]) -> list[Action]:
    present = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
    if [_with_defaults(entry) for entry in present] == [_with_defaults(entry) for entry in wanted]:
        return []
    metadata = service["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    return [
        Action(
            ActionKind.UPDATE,
            target_of(namespace, name),
            "set status",
            (FieldChange("status.loadBalancer.ingress", _addresses(present), _addresses(wanted)),),
            operation=SetIngress(namespace, name, metadata["uid"], tuple(wanted)),
        )
    ]


def _told(service: Object, lb: ObservedLoadBalancer) -> bool:
    """Whether clients are sent to it."""
    present = (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or []
    return any(entry.items() >= ingress.to_json().items() for ingress in lb.ingress for entry in present)


def _with_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """As the API server stores it: an IP without a mode is a virtual one."""
    return {"ipMode": "VIP", **entry} if "ip" in entry else entry


def _addresses(ingress: Sequence[dict[str, Any]]) -> str | None:
    return ", ".join(str(entry.get("ip") or entry.get("hostname")) for entry in ingress) or None


def _failure(current: ObservedLoadBalancer | None) -> str | None:
    if current is None or current.state is not LoadBalancerState.FAILED:
        return None
    return f"load balancer {current.id} has failed: {current.state_reason or 'the cloud names no reason'}"
