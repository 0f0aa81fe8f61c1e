"""Plans each Service's load balancer: pure functions.

A plan holds only what can be done now. Follow-up changes (the status once a load balancer exists, the finalizer once it
is deleted) are planned from the next observation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cloud_controller.binding import Binding
from cloud_controller.cloud import AccessDenied, InvalidConfiguration
from cloud_controller.controllers.instance_snapshot import NOT_ANCHORED
from cloud_controller.controllers.service.address_changes import (
    CONDITION,
    HELD,
    AddressChange,
    AddressChanges,
    as_served,
    at_its_addresses,
    given_up,
    leaving,
)
from cloud_controller.controllers.service.adoption import adopt, left_alone
from cloud_controller.controllers.service.anchor import shows
from cloud_controller.controllers.service.last_members import with_last_members
from cloud_controller.controllers.service.rules import (
    FINALIZER,
    Rules,
    backends_of,
    catalogue_of,
    finalizers,
    lacks_controller,
    members_of,
    preserves,
    reused_id,
    wants_load_balancer,
)
from cloud_controller.controllers.service.status import (
    condition_changes,
    ingress_changes,
    is_published,
)
from cloud_controller.controllers.service.status import target_of as target_of
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.diff import ONLY_AT_CREATION, diff, find_current, members_added, members_removed
from cloud_controller.load_balancers.facts import Facts
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
from cloud_controller.load_balancers.readiness_gates import ANNOTATION, OPTION, ReadinessGates
from cloud_controller.load_balancers.sharing import LEFT_TAG, is_left, is_of, require_free_ports
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange, Plan, hold

NO_NODES = "UnAvailableLoadBalancer"
"""Event reason for a load balancer without members, as upstream."""
NOT_OFFERED = "NotOffered"
"""Event reason for settings of a Service that its cloud does not support."""
IN_DOUBT = f"the cloud shows no load balancer of Services that have one, and {NOT_ANCHORED}"
"""The reason for holding what `anchor` does not allow."""
INVALID = "invalid: "
"""Begins the reason of the ignored action of a Service with a fault."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Add the finalizer before any cloud resource exists, so that a deleted Service cannot leave one behind."""

    namespace: str
    name: str
    uid: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove the finalizer: nothing is left in the cloud."""

    namespace: str
    name: str
    uid: str
    finalizer: str


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """The plan for one Service.

    - `warnings`: events for the Service, as (reason, message).
    - `failure`: why the cloud failed to provide the load balancer.
    - `fault`: what is wrong with the Service; the plan then holds what is possible anyway (member updates).
    - `denied`: a missing right, without which the cloud's facts are unknown; the plan then holds the same.
    - `preserves`: the load balancers that are kept on purpose.
    - `deleted`: the plan completes the deletion of what the Service had.
    - `waits`: the Service gets its address once the cloud has made progress.
    - `again`: the plan retries what an earlier reconcile began.
    - `excluded_endpoints`: endpoints that may not be members, and why.
    - `not_applied`: settings that an existing load balancer does not get, and why.
    - `lacks`: why a load balancer that serves has no members.
    - `keeps`: which members stay although a label excludes their nodes, and why.
    - `leaves`: the change for which the Service leaves its load balancer or its addresses.
    """

    plan: Plan
    warnings: tuple[tuple[str, str], ...] = ()
    failure: str | None = None
    fault: InvalidConfiguration | None = None
    denied: AccessDenied | None = None
    preserves: str | None = None
    deleted: bool = False
    waits: bool = False
    again: bool = False
    excluded_endpoints: str | None = None
    not_applied: str | None = None
    leaves: AddressChange | None = None
    lacks: str | None = None
    keeps: str | None = None

    @property
    def attention(self) -> Attention | None:
        """Why the Service needs attention."""
        if self.fault is not None:
            return Attention.REFUSED
        if self.denied is not None:
            return Attention.FAILED
        found = next((action.attention for action in self.plan if action.attention), None)
        by_members = Attention.EXCLUDED if self.keeps else Attention.NO_BACKENDS if self.lacks else None
        return found or by_members


def owner_of(service: Object, cluster_id: str) -> Owner:
    """The Service as the owner of its cloud resources."""
    metadata = service["metadata"]
    return Owner(cluster_id, metadata["uid"], metadata["namespace"], metadata["name"])


# ------------------------------------------------------------------------------------------------------------ plans


def plan_service(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
) -> ServicePlan:
    """The plan for one Service, given the load balancers that it owns, shares, names or may adopt.

    `facts`: what the cloud's build needs to know; unused for a Service that wants no load balancer.
    """
    if not rules.without_class:
        # Upstream's controller runs too, and still manages the load balancers that it created.
        observed = [lb for lb in observed if lb.adoptable is None]
    found = _plan(service, observed, backends, builder, facts, rules)
    change = found.leaves
    message = None
    if change and rules.address_changes is AddressChanges.ACKNOWLEDGE and not change.is_acknowledged_by(service):
        found = _held(change, service, observed, backends, builder, facts, rules)
        message = change.message
    elif change or found.waits or found.fault or found.denied or service["metadata"].get("deletionTimestamp"):
        return found  # The condition goes when the address has changed.
    conditions = [*condition_changes(service, CONDITION, HELD, message)]
    # First, so that it is there even if another change fails.
    return replace(found, plan=Plan.of(conditions) + found.plan) if conditions else found


def doubted(found: ServicePlan, service: Object) -> ServicePlan:
    """The plan of a Service of which the cloud shows nothing, held: the cloud may be another cluster's (`anchor`)."""
    ends = any(isinstance(action.operation, RemoveFinalizer) for action in found.plan)
    subject = f"{service['metadata']['uid']} {'ends' if ends else 'begins'}"
    return replace(found, plan=Plan.of(hold(found.plan, subject, IN_DOUBT, in_steps=True)))


def plan_orphans(
    observed: Sequence[ObservedLoadBalancer], owner: Owner, catalogue: Catalogue, binding: Binding, *, deleted: bool
) -> Plan:
    """The plan for load balancers whose Service no longer exists (for example, its finalizer was removed by hand).

    Unless this process saw the deletion (`deleted`), all actions are held: Services also vanish when etcd is lost or
    restored, or with another cluster's kubeconfig.
    """
    target = target_of(owner.namespace, owner.name)
    why = "its Service no longer exists"
    plan = Plan()
    for lb in observed:
        mine = owner.owns(lb.model.tags)
        if not mine and not has_parts(lb, owner):
            continue
        tags = next(each for each in (lb.model.tags, *lb.model.part_tags) if owner.owns(each))
        if foreign := binding.foreign_uid(tags):
            reason = f"it belongs to the Kubernetes cluster with UID {foreign}"
            plan += Plan.of([Action(ActionKind.IGNORE, target, f"keep load balancer {lb.id}", reason=reason)])
            continue
        if mine:
            gone = [replace(a, reason=why) if a.operation else a for a in _deletions([lb], owner, catalogue, target)]
        else:
            gone = [*leave(lb, owner, catalogue, target=target, why=why)]
        # No hold if the owner had left it to other Services, which are gone now, or for the remains of a load balancer
        # whose deletion has already begun.
        ours = bool(binding.uid) and tags.get(CLUSTER_UID_TAG) == binding.uid
        remains = ours and lb.state is LoadBalancerState.PARTIAL
        seen = deleted or remains or (mine and LEFT_TAG in lb.model.tags)
        if not seen:
            parts = not any(isinstance(action.operation, DeleteLoadBalancer) for action in gone)
            unseen = f"{why}, and no deletion was seen that takes it along"
            gone = hold(gone, f"{lb.id} {owner.uid}", unseen, in_steps=parts)
        plan += Plan.of(gone)
    return plan


def plan_all(
    services: Iterable[Object],
    observed: Iterable[ObservedLoadBalancer],
    nodes: Iterable[Object],
    slices: Mapping[str, Sequence[Object]],
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
    hidden: Collection[str] = (),
    *,
    anchored: bool,
) -> Plan:
    """The plan for every Service, ordered by namespace and name; a fault of a Service becomes an ignored action.

    `slices`: EndpointSlices by Service (NAMESPACE/NAME). `hidden`: the load balancers that annotations name and the
    cloud refuses to show. `anchored`: see `ServiceObservation`. Raises AccessDenied if a right to read facts is
    missing.
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
    # If two Services want the same port of a shared load balancer, the older one gets it.
    for service in sorted(services, key=_by_age):
        metadata = service["metadata"]
        adoptable = adoptable_of.pop(builder.foreign_name(owner_of(service, rules.cluster_id)) or "", [])
        named = reused_id(service, builder.catalogue)
        own = dict.fromkeys([*present_of.pop(metadata["uid"], []), *adoptable, named])
        if named in hidden and finalizers(service) and not wants_load_balancer(service, rules, builder):
            target = target_of(metadata["namespace"], metadata["name"])
            why = f"the cloud does not show load balancer {named}, on which it may have parts"
            plans.append((target, Plan.of([Action(ActionKind.IGNORE, target, "keep its finalizer", reason=why)])))
            continue
        concerned = [present[lb_id] for lb_id in own if lb_id in present]
        backends = replace(eligible, slices=tuple(slices.get(f"{metadata['namespace']}/{metadata['name']}", ())))
        found = plan_service(service, concerned, backends, builder, facts, rules)
        if found.denied is not None:
            raise found.denied
        if not anchored and not shows(concerned, metadata["uid"]):
            found = doubted(found, service)
        _carry_out(found.plan, present)
        target = target_of(metadata["namespace"], metadata["name"])
        plans.append((target, found.plan + _findings(found, target) + _not_served(service, rules, builder)))
    for uid, left in present_of.items():
        owner, orphans = owners[uid], [present[lb_id] for lb_id in left]
        if owner.name:
            left_over = plan_orphans(orphans, owner, builder.catalogue, rules.binding, deleted=False)
            _carry_out(left_over, present)
            plans.append((target_of(owner.namespace, owner.name), left_over))
        else:
            target = target_of("unknown", uid)
            reason = "no tag names its Service, so it cannot be checked whether the Service still exists"
            stays = (Action(ActionKind.IGNORE, target, f"keep load balancer {lb.id}", reason=reason) for lb in orphans)
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


def _findings(found: ServicePlan, target: str) -> Plan:
    if found.lacks is not None:
        lacking = Action(ActionKind.IGNORE, target, "no backends", reason=found.lacks, attention=Attention.NO_BACKENDS)
        return Plan.of([lacking])
    if found.keeps is not None and found.fault is None:
        kept = Action(ActionKind.IGNORE, target, "keep members", reason=found.keeps, attention=Attention.EXCLUDED)
        return Plan.of([kept])
    if found.fault is None:
        return Plan()
    left = "nothing else is changed" if found.plan.changes else "nothing is changed"
    reason = f"{INVALID}{found.fault}"
    return Plan.of([Action(ActionKind.IGNORE, target, left, reason=reason, attention=Attention.REFUSED)])


def _not_served(service: Object, rules: Rules, builder: LoadBalancerBuilder) -> Plan:
    """The finding that a Service has no address and is left to another controller, which may not exist."""
    if not lacks_controller(service, rules, builder):
        return Plan()
    given = service["spec"].get("loadBalancerClass")
    served = ", ".join(sorted(rules.classes)) or "none"
    left = f"class {given} is not one of this controller's ({served})" if given else "it is left to another controller"
    reason = f"{left}, and no other has given it an address"
    target = target_of(service["metadata"]["namespace"], service["metadata"]["name"])
    return Plan.of([Action(ActionKind.IGNORE, target, "not served", reason=reason, attention=Attention.NOT_SERVED)])


def _plan(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
    keep: ObservedLoadBalancer | None = None,
) -> ServicePlan:
    """The plan, whatever becomes of the Service's address. `keep`: the load balancer that keeps its addresses."""
    if not wants_load_balancer(service, rules, builder):
        return _clean_up(service, observed, builder, rules)
    try:
        backends, excluded = allowed(service, backends, builder, facts)
    except (InvalidConfiguration, AccessDenied) as error:
        return _refused(error, [])
    owner = owner_of(service, rules.cluster_id)
    backends, keeps = with_last_members(backends, service, observed, builder, owner)
    found = replace(_ensure(service, observed, backends, builder, facts, rules, keep), keeps=keeps)
    if excluded is None:
        return found
    target = target_of(service["metadata"]["namespace"], service["metadata"]["name"])
    ignored = Action(ActionKind.IGNORE, target, "exclude endpoints", reason=excluded)
    return replace(found, plan=found.plan + Plan.of([ignored]), excluded_endpoints=excluded)


def _held(
    change: AddressChange,
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
) -> ServicePlan:
    """The plan by which the Service keeps its load balancer; without one, nothing at all is changed."""

    def build(served: Object) -> Built:
        if not wants_load_balancer(served, rules, builder):
            raise InvalidConfiguration("annotations", "leave the Service to another controller")
        return builder.build(served, allowed(served, backends, builder, facts)[0], facts)

    owner = owner_of(service, rules.cluster_id)
    served = as_served(service, change, owner, catalogue_of(service, builder.catalogue), build)
    found = ServicePlan(Plan())
    if served is not None:
        found = _plan(served, observed, backends, builder, facts, rules, keep=change.load_balancer)
    if found.leaves or found.fault:
        found = ServicePlan(Plan())
    held = change.held(target_of(owner.namespace, owner.name))
    return replace(found, plan=found.plan + Plan.of([held]))


# ----------------------------------------------------------------------------------- a Service that wants a balancer


def allowed(
    service: Object, backends: Backends, builder: LoadBalancerBuilder, facts: Facts
) -> tuple[Backends, str | None]:
    """The backends that the Service may use, and which endpoints are excluded and why.

    A node that is about to be removed stays unless the load balancer drains connections: its pods may still serve.
    """
    if builder.drains(service):
        nodes, left_out = (tuple(n for n in of if not n.leaving) for of in (backends.nodes, backends.excluded))
        backends = replace(backends, nodes=nodes, excluded=left_out)
    ranges = builder.pod_ranges(service, facts)
    if ranges is None:
        return backends, None
    slices, excluded = admitted(backends.slices, service["metadata"]["namespace"], backends.pods, ranges)
    return replace(backends, slices=slices), excluded


def _ensure(
    service: Object,
    observed: Sequence[ObservedLoadBalancer],
    backends: Backends,
    builder: LoadBalancerBuilder,
    facts: Facts,
    rules: Rules,
    keep: ObservedLoadBalancer | None,
) -> ServicePlan:
    owner = owner_of(service, rules.cluster_id)
    target = target_of(owner.namespace, owner.name)
    catalogue = catalogue_of(service, builder.catalogue)
    try:
        asks_for_gates = (rules.gates or ReadinessGates()).asked(service)
        built = rules.binding.tagged(builder.build(service, backends, facts))
        built = at_its_addresses(built, keep, catalogue) if keep else built
        rules.nameable.require(built.named)
        tags = {**owner.tags, **rules.binding.tags}
        adoption = adopt(built.model, observed, owner, builder, catalogue, target=target, tags=tags)
        changes, current, serves = _wanted(built, adoption.observed, owner, catalogue, rules, target)
    except (InvalidConfiguration, AccessDenied) as error:
        return _refused(error, _followed(service, observed, backends, builder, owner, target))
    if _pods_unknown(service, backends, builder):
        changes = Plan.of(_unless_pods_unknown(action) for action in changes)
    elsewhere = _elsewhere(built, adoption.observed, current, owner)
    if elsewhere and not serves:
        why = f"replaces {', '.join(lb.id for lb in elsewhere)}; the address changes"
        changes = Plan.of(replace(a, reason=a.reason or why) if a.operation else a for a in changes)
    actions: list[Action] = []
    if rules.finalizer not in finalizers(service):
        add = AddFinalizer(owner.namespace, owner.name, owner.uid, rules.finalizer)
        actions.append(Action(ActionKind.UPDATE, target, f"add finalizer {add.finalizer}", operation=add))
    for ignored in built.ignored:
        change = FieldChange(ignored.field, None, ignored.value)
        actions.append(Action(ActionKind.IGNORE, target, "not supported", (change,), reason=ignored.reason))
    actions += adoption.actions
    # Publish the new address before the old load balancer is removed.
    actions += [action for action in changes if not _ends_another(action, current)]
    addresses = (built.published or current.ingress) if current is not None and current.ingress else ()
    status = ingress_changes(service, [ingress.to_json() for ingress in addresses]) if addresses else []
    if serves:
        actions += status
    actions += [action for action in changes if _ends_another(action, current)]
    if current is not None and serves:
        actions += _left_behind(elsewhere, current, owner, catalogue, target)
    warnings = [*built.warnings]
    warnings += [(NOT_OFFERED, f"{each.field} has no effect: {each.reason}") for each in built.ignored]
    if asks_for_gates and rules.gates is None:
        warnings.append((NOT_OFFERED, f"annotation {ANNOTATION} has no effect: the controller runs without {OPTION}"))
    lacks = None
    if not any(pool.members for pool in built.model.pools):
        missing = "ready pods" if backends.nodes else "available nodes"
        warnings.append((NO_NODES, f"There are no {missing} for LoadBalancer"))
        lacks = f"there are no {missing} for it" if serves else None
    waits = not serves and (current is None or not current.ingress or bool(status))
    late = "; ".join(f"{', '.join(map(str, a.changes))}: {a.reason}" for a in changes if a.reason == ONLY_AT_CREATION)
    leaves = leaving(service, built, adoption.observed, current, owner, catalogue, serves=serves)
    return ServicePlan(
        Plan.of(actions),
        tuple(warnings),
        failure=_failure(current),
        waits=waits,
        not_applied=late or None,
        leaves=leaves,
        lacks=lacks,
    )


def _refused(error: InvalidConfiguration | AccessDenied, followed: Sequence[Action]) -> ServicePlan:
    if isinstance(error, InvalidConfiguration):
        return ServicePlan(Plan.of(followed), fault=error)
    return ServicePlan(Plan.of(followed), denied=error)


def _ends_another(action: Action, current: ObservedLoadBalancer | None) -> bool:
    """Whether the action removes something from a load balancer that `current` replaces."""
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
    """The changes for the Service's load balancer, the current one if there is one, and whether it serves already."""
    if built.reuse is None:
        own = [lb for lb in observed if owner.owns(lb.model.tags)]
        current = find_current(built.model, own, catalogue)
        if current is not None:
            require_free_ports(built.model, current, owner, force=False)
        changes = diff(built.model, own, catalogue, target=target, client_token=owner.client_token)
        return changes, current, current is not None and current.serves
    current = next((lb for lb in observed if lb.id == built.reuse.id), None)
    changes = diff_parts(
        built, built.reuse, current, owner, catalogue, target=target, sharing=rules.sharing, share=rules.share
    )
    if current is None or not current.serves or not current.settled:
        return changes, current, False
    opened = {listener.key for listener in current.model.listeners if owner.owns(listener.tags)}
    return changes, current, {listener.key for listener in built.model.listeners} <= opened


def _pods_unknown(service: Object, backends: Backends, builder: LoadBalancerBuilder) -> bool:
    """Whether the Service's pods are still unknown: even without pods, a Service has an (empty) EndpointSlice."""
    known = bool(backends.slices) or not service["spec"].get("selector")
    return not known and builder.follows_endpoints(service)


def _unless_pods_unknown(action: Action) -> Action:
    """Keep members and listeners of others as they are until the Service's pods are known."""
    reason = "the Service has no EndpointSlice yet"
    if isinstance(action.operation, RemoveMembers):
        return Action(ActionKind.IGNORE, action.target, "keep members", reason=reason)
    if isinstance(action.operation, PutListener) and action.operation.instead_of:
        return Action(ActionKind.IGNORE, action.target, "do not take over the listener yet", reason=reason)
    return action


def _elsewhere(
    built: Built, observed: Sequence[ObservedLoadBalancer], current: ObservedLoadBalancer | None, owner: Owner
) -> list[ObservedLoadBalancer]:
    """The other load balancers that the Service used before its annotation changed.

    If the Service should have a load balancer of its own, `diff` handles those that it owns.
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
    """The removal of the Service's parts on its previous load balancers."""
    why = f"the Service now uses {current.id}; the address changes"
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
    """What a Service with a fault still gets: its existing listeners stay, and their members are updated."""
    try:
        wanted = members_of(service, backends, builder, observed)
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
        removed = [_unless_pods_unknown(action) for action in removed]
    return added + removed


# ---------------------------------------------------------------------------------------- a Service that wants none


def _clean_up(
    service: Object, observed: Sequence[ObservedLoadBalancer], builder: LoadBalancerBuilder, rules: Rules
) -> ServicePlan:
    """The plan for a Service that wants no load balancer: deleted, of another type, or of another class."""
    owner = owner_of(service, rules.cluster_id)
    target = target_of(owner.namespace, owner.name)
    being_deleted = bool(service["metadata"].get("deletionTimestamp"))
    of_type = service["spec"].get("type") == "LoadBalancer"
    if of_type and not being_deleted:
        # A load balancer of another controller may still serve it.
        observed = [lb for lb in observed if lb.adoptable is None]
    try:
        tags = {**owner.tags, **rules.binding.tags}
        adoption = adopt(None, observed, owner, builder, builder.catalogue, target=target, tags=tags)
    except InvalidConfiguration as fault:
        return ServicePlan(Plan(), fault=fault)
    observed = adoption.observed
    # Parts of other Services on its former load balancer do not keep its finalizer.
    own = [lb for lb in observed if owner.owns(lb.model.tags) and not is_left(lb)]
    shared = [lb for lb in observed if has_parts(lb, owner)]
    try:
        stays = preserves(service, builder.catalogue)
    except InvalidConfiguration as fault:
        if own or shared:
            return ServicePlan(Plan(), fault=fault)
        stays = False
    if own or shared:
        if stays:
            # Do not preserve replacements that do not serve yet, or partly deleted load balancers.
            whole = [lb for lb in own if lb.state is not LoadBalancerState.PARTIAL]
            serving = [lb for lb in whole if is_published(service, lb)] or whole
            spare = [lb for lb in own if lb not in serving]
            preserved = _preserve(serving, shared, owner, target)
            # Deletions first: once the others are released, nothing distinguishes the spare ones.
            deletions = _deletions(spare, owner, builder.catalogue, target)
            plan = Plan(adoption.actions) + deletions + preserved.plan
            return replace(preserved, plan=plan, leaves=given_up(service, observed, owner))
        plan = Plan(adoption.actions) + _deletions(own, owner, builder.catalogue, target)
        for lb in shared:
            why = "the Service no longer needs a load balancer"
            plan += leave(lb, owner, builder.catalogue, target=target, why=why)
        again = not shared and all(lb.state is LoadBalancerState.PARTIAL for lb in own)
        return ServicePlan(plan, again=again, leaves=given_up(service, observed, owner))
    # If another controller serves the Service, its finalizer and status are not ours. Once the Service is deleted,
    # remove our finalizer anyway, as upstream does: no other controller may know it.
    removed = finalizers(service)
    if of_type and not rules.without_class and service["spec"].get("loadBalancerClass") is None:
        # Here, upstream's finalizer belongs to another controller, which has to delete its load balancer first.
        removed = [each for each in removed if each != FINALIZER]
    if not removed or (of_type and not being_deleted):
        return ServicePlan(Plan())
    actions = [] if being_deleted else ingress_changes(service, [])
    for finalizer in removed:
        remove = RemoveFinalizer(owner.namespace, owner.name, owner.uid, finalizer)
        actions.append(Action(ActionKind.UPDATE, target, f"remove finalizer {finalizer}", operation=remove))
    return ServicePlan(Plan.of(actions), deleted=not stays)


def _preserve(
    own: Sequence[ObservedLoadBalancer], shared: Sequence[ObservedLoadBalancer], owner: Owner, target: str
) -> ServicePlan:
    actions: list[Action] = []
    for lb in own:
        if lb.state is LoadBalancerState.DELETING:
            reason = "it is already being deleted"
            actions.append(Action(ActionKind.IGNORE, target, f"load balancer {lb.id}", reason=reason))
            continue
        free = replace(lb.model, tags=owner.released(lb.model.tags))
        changes = (FieldChange("owner", "this Service", None),)
        summary = f"release load balancer {lb.id} ({lb.model.name}) without deleting it"
        operation = UpdateLoadBalancer(lb.id, free)
        actions.append(Action(ActionKind.UPDATE, target, summary, changes, reason=PRESERVE, operation=operation))
    for lb in shared:
        actions += release(lb, owner, target=target)
    kept_ids = ", ".join(lb.id for lb in (*own, *shared) if lb.state is not LoadBalancerState.DELETING)
    return ServicePlan(Plan.of(actions), preserves=kept_ids or None)


def _deletions(own: Sequence[ObservedLoadBalancer], owner: Owner, catalogue: Catalogue, target: str) -> Plan:
    return diff(None, own, catalogue, target=target, client_token=owner.client_token)


def _failure(current: ObservedLoadBalancer | None) -> str | None:
    if current is None or current.state is not LoadBalancerState.FAILED:
        return None
    return f"load balancer {current.id} has failed: {current.state_reason or 'the cloud gives no reason'}"
