"""Reconciles one Service: plans, applies, updates the cache and reports events, until nothing is left to do now.

Never blocks on the cloud: the Service is requeued until slow operations have finished.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import cast

from cloud_controller import apply
from cloud_controller.apply import ActionResult
from cloud_controller.cloud import Cloud, CloudError, InvalidConfiguration, Postponed, Throttled, Unavailable
from cloud_controller.controllers.seen_deletions import SeenDeletions
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.service import rules as service_rules
from cloud_controller.controllers.service.anchor import Anchor
from cloud_controller.controllers.service.apply import KubeOperation, load_balancers_of
from cloud_controller.controllers.service.attention import ServicesNeedingAttention
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.controllers.service.checkpoint import Checkpoint
from cloud_controller.controllers.service.drift import Left, Observed, corrections
from cloud_controller.controllers.service.events import ServiceEvents
from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.left_out import LeftOutParts
from cloud_controller.controllers.service.plan import ServicePlan
from cloud_controller.controllers.service.rules import Rules
from cloud_controller.controllers.service.timing import Locks, Polling
from cloud_controller.controllers.service.waits import Waits
from cloud_controller.events import Events
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import SERVICES, ApiError, KubeApi, NotFoundError, Object
from cloud_controller.kube import key as key_of
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    OperationResult,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.load_balancers.sharing import may_serve_others, owner_of_part
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, Plan
from cloud_controller.safeguard import Safeguard

CONTROLLER = "service"

_ROUNDS = 5
"""Maximum number of plans that one reconcile applies until one is empty."""

_log = logging.getLogger(__name__)


class ServiceReconciler:
    """Reconciles Services; only one thread at a time may work on the same Service.

    `requeue(key, seconds)`: reconcile it again later. `part_freed(load balancer, key)`: called when a Service has freed
    a part that another may wait for. `creation_lost()`: called when a load balancer may exist that lists do not show.
    """

    def __init__(
        self,
        kube: KubeApi,
        cloud: Cloud,
        cache: LoadBalancerCache,
        events: Events,
        metrics: Metrics,
        rules: Rules,
        *,
        requeue: Callable[[str, float], None],
        part_freed: Callable[[str, str], None],
        creation_lost: Callable[[], None],
        safeguard: Safeguard,
        anchor: Anchor,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._kube = kube
        self._cloud = cloud
        self._load_balancers = load_balancers_of(cloud)
        self._builder = self._load_balancers.builder
        self._cache = cache
        self._events = events
        self._metrics = metrics
        self._rules = rules
        self._requeue = requeue
        self._part_freed = part_freed
        self._creation_lost = creation_lost
        self._safeguard = safeguard
        self._anchor = anchor
        self._doubted: dict[str, tuple[Action, ...]] = {}
        """What is held because the cloud may be another cluster's."""
        self._deletions = SeenDeletions()
        self._checkpoint = checkpoint
        self._waits = Waits()
        self._others = Polling()
        self._locks = Locks()
        self._told: dict[str, dict[str, str]] = {}
        self._attention = ServicesNeedingAttention(metrics)
        self._left = Left()
        self.left_out = LeftOutParts()
        self._corrections = metrics.drift_corrections.labels(CONTROLLER)

    def reconcile(self, key: str, service: Object | None, backends: Backends) -> None:
        """Reconcile this Service (None: it is gone). Raises CloudError or ApiError after reporting it in an event."""
        if service is not None:
            self.note_deletion(service)
        named = self._named(service) if service else None
        present = {lb.id for lb in self._cache.get(key)}
        # Two Services that share a load balancer must not both claim the same free port.
        with self._locks.held(present | ({named} if named else set())):
            self._read_if_needed(key, service, named)
            uid = service["metadata"]["uid"] if service else None
            if service is None:
                self._doubted.pop(key, None)
            owners = [owner for owner in self._cache.owners(key) if owner.uid != uid]
            waits, held = self._remove_orphans(key, owners)
            if service is not None:
                self._converge(key, service, named, backends, held)
            else:
                self._waits.clear(key)
                self._told.pop(key, None)
                self.left_out.forget(key)
                self._attention.note(key, None)
                self._left.forget([key])
        waits_for = self._cache.find(named) if named else None
        if waits_for is not None and not waits_for.settled and waits_for not in self._cache.get(key):
            self._cache.mark_dirty(key)  # It has no part there yet, so polling does not cover it.
            waits = True
        if waits:
            self._requeue(key, self._others.pause_of(key))
        else:
            self._others.stop(key)

    def note_deletion(self, service: Object) -> None:
        """If the Service is being deleted: what it had may go with it, even if somebody removes its finalizer.

        Not if that was to be preserved, by its latest word; then its deletion is held.
        """
        if not service["metadata"].get("deletionTimestamp"):
            return
        try:
            stays = service_rules.preserves(service, self._builder.catalogue)
        except InvalidConfiguration:
            stays = True
        if stays:
            self._deletions.forget(service["metadata"]["uid"])
        else:
            self._deletions.remember(service["metadata"]["uid"])

    def forget(self, key: str) -> None:
        """The Service no longer wants a load balancer, and never had one."""
        self._attention.note(key, None)

    def _read_if_needed(self, key: str, service: Object | None, named: str | None) -> None:
        if self._cache.is_dirty(key):
            uids = {owner.uid for owner in self._cache.owners(key)}
            uids |= {service["metadata"]["uid"]} if service else set()
            self._read([(key, each) for each in uids], [], service, named)
        elif self._waits.for_cloud(key):
            # The change may be partly done; reverting it requires the present state.
            self._read([], [lb.id for lb in self._cache.get(key)], service, named)
        elif named and self._cache.find(named) is None:
            self._read([], [], service, named)

    def _read(
        self, owners: Collection[tuple[str, str]], ids: Collection[str], service: Object | None, named: str | None
    ) -> None:
        try:
            self._cache.refresh(owners, {*ids, named} if named else ids)
        except (Throttled, Unavailable):
            raise
        except CloudError as error:
            if named is None or service is None:
                raise
            if not self._wanted(service):
                # Of what may not be seen, nothing can be taken off: the finalizer stays.
                self._events.warning(service, "DeleteLoadBalancerFailed", f"Error deleting load balancer: {error}")
                raise
            # The cloud may refuse to show it. The plan says so, and what the Service has still follows the nodes.
            _log.warning("left out load_balancer=%s error=%r", named, str(error))
            self._cache.refresh(owners, ids)

    def _remove_orphans(self, key: str, owners: Collection[Owner]) -> tuple[bool, list[Action]]:
        """Delete load balancers of deleted Services with this name; hold those whose deletion was not seen.

        Return whether the cloud is not ready for a deletion, and what is held.
        """
        namespace, _, name = key.partition("/")
        if owners:
            # The informer may lag: ask the API server itself whether the owner is gone.
            try:
                present = self._kube.get(SERVICES, name, namespace)["metadata"]["uid"]
            except NotFoundError:
                present = None
            owners = [owner for owner in owners if owner.uid != present]
        plans = {owner: self._orphans_of(key, owner) for owner in owners}
        held = [action for plan in plans.values() for action in plan.held]
        target = service_plan.target_of(namespace, name)
        self._safeguard.report(CONTROLLER, [*held, *self._doubted.get(key, ())], self._events, about={target})
        waits = False
        for owner, plan in plans.items():
            if not plan.changes:
                continue
            try:
                self._safeguard.verify()
                if at_stake := self._at_stake(plan, owner.uid):
                    self._cache.refresh((), at_stake)
                    plan = self._orphans_of(key, owner)
                results = self._apply(key, owner.uid, plan)
                self._safeguard.used(plan, [result.action for result in results if result.ok])
                _raise_failure(results)
            except Throttled:
                raise
            except CloudError as error:
                gone = {"kind": "Service", "metadata": {"namespace": namespace, "name": name, "uid": owner.uid}}
                self._events.warning(gone, "DeleteLoadBalancerFailed", f"Error deleting load balancer: {error}")
                raise
            waits = waits or any(result.waits for result in results)
        return waits, held

    def _orphans_of(self, key: str, owner: Owner) -> Plan:
        catalogue, binding = self._builder.catalogue, self._safeguard.binding
        deleted = owner.uid in self._deletions
        plan = service_plan.plan_orphans(self._cache.get(key), owner, catalogue, binding, deleted=deleted)
        return self._safeguard.released(plan)

    def _converge(
        self, key: str, service: Object, named: str | None, backends: Backends, held: Sequence[Action]
    ) -> None:
        """Plan and apply until nothing is left to do now. `held`: of earlier Services of this name."""
        wanted = self._wanted(service)
        events = ServiceEvents(self._events, service, wanted=wanted, reported=self._waits.reported(key))
        read_again: set[str] = set()
        try:
            for _ in range(_ROUNDS):
                found = self._found(key, service, named, backends)
                self._tell_once(key, service, "EndpointsLeftOut", "Excluded endpoints", found.excluded_endpoints)
                self._tell_once(key, service, "NotApplied", "The load balancer keeps what it has", found.not_applied)
                self._tell_once(key, service, "MembersKept", "The load balancer keeps its last members", found.keeps)
                self._attention.note(key, found.attention)
                # Re-read before touching it: another cluster's controller or a person may have changed it.
                while at_stake := self._at_stake(found.plan, service["metadata"]["uid"]) - read_again:
                    self._cache.refresh((), at_stake)
                    read_again |= at_stake
                    found = self._found(key, service, named, backends)
                if self._in_doubt(key, found, held):
                    return
                if not found.plan.changes:
                    if not found.waits:
                        nodes = {node.instance_id: node.node for node in backends.nodes}
                        told = self.left_out.told(key, nodes, self._observed(key, named))
                        self._tell_once(key, service, "MembersLeftOut", "The load balancer does without", told)
                    self._finish(key, named, found, events)
                    return
                events.before(found, again=self.left_out.repeats(key, found.plan))
                if self._drifted(key, service, named, backends):
                    # Counted before the repair, whose first attempt may fail: the next one counts as our own change.
                    self._corrections.inc(corrections(found.plan))
                plan = _held_back(found.plan) if self._waits.handing_over(key) else found.plan
                results = self._apply(key, service["metadata"]["uid"], plan, events)
                postponed = [result.error for result in results if isinstance(result.error, Postponed)]
                # Even if another part failed: old members keep serving until the new ones are healthy.
                pause = self._waits.postpone(key, postponed, events) if postponed else None
                self._safeguard.used(plan, [result.action for result in results if result.ok])
                _raise_failure(results)
                if pause is not None:
                    self._requeue(key, pause)
                    return
                changed = [result.answer for result in results if isinstance(result.action.operation, KubeOperation)]
                service = cast("Object", changed[-1]) if changed else service
                self._waits.clear(key)
                events.applied()
                if (self._wanted(service), self._named(service)) != (wanted, named):
                    return  # It was changed meanwhile. The informer tells, and the next visit sees what it needs.
            raise CloudError(f"did not converge after {_ROUNDS} rounds; last plan: {found.plan}")
        except NotFoundError:
            self._attention.note(key, None)
            _log.info("Service is gone service=%s", key)
        except Throttled:
            # Not an error of the Service: it only has to wait.
            raise
        except WriteRefused:
            raise
        except (CloudError, ApiError) as error:
            events.failed(error)
            raise
        except Exception as bug:
            events.failed(CloudError(f"{type(bug).__name__}, a bug of the controller, whose log has more"))
            raise

    def _wanted(self, service: Object) -> bool:
        return service_rules.wants_load_balancer(service, self._rules, self._builder)

    def _named(self, service: Object) -> str | None:
        return service_rules.reused_id(service, self._builder.catalogue)

    def _tell_once(self, key: str, service: Object, reason: str, message: str, details: str | None) -> None:
        """Report what has no effect once per change, even if nothing else changes: its author expects the effect."""
        told = self._told.setdefault(key, {})
        if details is None:
            told.pop(reason, None)
        elif told.get(reason) != details:
            told[reason] = details
            self._events.warning(service, reason, f"{message}: {details}")

    def _found(self, key: str, service: Object, named: str | None, backends: Backends) -> ServicePlan:
        """The next plan; held, unless it is confirmed, where the cloud may be another cluster's."""
        observed = self._observed(key, named)
        found = self._plan(service, observed, backends)
        self.left_out.forget_unwanted(key, found.plan)
        found = replace(found, plan=self.left_out.without(key, found.plan, observed))
        if not found.plan.changes or not self._anchor.doubts(service, observed):
            return found
        found = service_plan.doubted(found, service)
        return replace(found, plan=self._safeguard.released(found.plan))

    def _in_doubt(self, key: str, found: ServicePlan, held: Sequence[Action]) -> bool:
        """Whether the plan is held because the cloud may be another cluster's; report that."""
        doubted = tuple(action for action in found.plan.held if not action.acknowledgement)
        if doubted != self._doubted.get(key, ()):
            target = service_plan.target_of(*key.split("/"))
            self._safeguard.report(CONTROLLER, [*held, *doubted], self._events, about={target})
            self._doubted[key] = doubted
        return bool(doubted)

    def _plan(self, service: Object, observed: Observed, backends: Backends) -> ServicePlan:
        facts = facts_for([service], {key_of(service): backends.slices}, self._load_balancers, self._rules)
        return service_plan.plan_service(service, observed, backends, self._builder, facts, self._rules)

    def _observed(self, key: str, named: str | None) -> Observed:
        observed = {lb.id: lb for lb in self._cache.get(key)}
        if named and (lb := self._cache.find(named)):
            observed[named] = lb
        return [*observed.values()]

    def _drifted(self, key: str, service: Object, named: str | None, backends: Backends) -> bool:
        def planned(left: Observed) -> Plan:
            return self.left_out.without(key, self._plan(service, left, backends).plan, left)

        return self._left.differs(key, self._observed(key, named), planned)

    def _at_stake(self, plan: Plan, uid: str) -> set[str]:
        """The load balancers to re-read first: deleted, with all tags rewritten, or shared with other owners."""
        found = set()
        for operation in (action.operation for action in plan.changes):
            if isinstance(operation, AdoptLoadBalancer | UpdateLoadBalancer | DeleteLoadBalancer):
                lb = self._cache.find(operation.id)
                # A partly deleted one was just polled, and its deletion may be retried many times.
                if lb is None or lb.state is not LoadBalancerState.PARTIAL:
                    found.add(operation.id)
            elif isinstance(operation, PutPool | PutListener | DeleteListener | DeletePool):
                lb = self._cache.find(operation.id)
                if lb is not None and (lb.owner is None or lb.owner.uid != uid or may_serve_others(lb)):
                    found.add(operation.id)
        return found

    def _finish(self, key: str, named: str | None, found: ServicePlan, events: ServiceEvents) -> None:
        """Nothing can be done now: report success, or raise the reason."""
        unsettled = [lb for lb in self._observed(key, named) if not lb.settled]
        # Polling them is enough until then: this visit only reports how long it has taken.
        if (pause := self._waits.rest(key, unsettled, events)) is not None:
            self._requeue(key, pause)
        if found.fault is not None:
            if named or any(may_serve_others(lb) for lb in self._cache.get(key)):
                self._cache.mark_dirty(key)  # Another owner may free the port or load balancer that it asks for.
            raise found.fault
        if found.denied is not None:
            raise found.denied
        if found.failure is not None:
            self._cache.mark_dirty(key)  # The cloud may recover by itself.
            raise CloudError(found.failure)
        if not found.waits:
            events.completed()
            self._left.note(key, self._observed(key, named))

    def _apply(self, key: str, uid: str, plan: Plan, events: ServiceEvents | None = None) -> list[ActionResult]:
        """Apply the plan, update the cache, and return the results."""
        self._metrics.planned(CONTROLLER, plan)
        self._metrics.load_balancer_syncs.inc()
        changing = {lb.id: lb for each in plan.changes if (lb := self._changed_by(each.operation))}
        self._left.forget({key}.union(*map(self._cache.keys_of, changing)))
        hosts_only = all(isinstance(action.operation, AddMembers | RemoveMembers) for action in plan.changes)
        try:
            with self._metrics.host_update() if hosts_only and plan.changes else nullcontext():
                results = apply.run(
                    plan,
                    self._kube,
                    self._cloud,
                    events=self._events,
                    controller=CONTROLLER,
                    load_balancers=changing,
                    changing=self._checkpoint.writing if self._checkpoint else nullcontext,
                    metrics=self._metrics,
                    done=lambda result: self._remember(key, uid, result, events),
                )
        except Exception:
            # A bug: what was made before it may be unknown here, as if a response had been lost.
            self._cache.mark_dirty(key)
            if any(isinstance(each.operation, CreateLoadBalancer) for each in plan.changes):
                self._creation_lost()
            raise
        if any(apply.failures(results)):
            # The plan is partly applied, and a response may be lost: the next reconcile reads before it plans.
            self._cache.mark_dirty(key)
        return results

    def _changed_by(self, operation: object) -> ObservedLoadBalancer | None:
        if not isinstance(operation, Operation) or isinstance(operation, CreateLoadBalancer):
            return None
        return self._cache.find(operation.id)

    def _remember(self, key: str, uid: str, result: ActionResult, events: ServiceEvents | None) -> None:
        operation = result.action.operation
        if isinstance(result.answer, OperationResult):
            self.left_out.note(key, result.answer)
            operation = result.answer.done
        elif not result.ok:
            operation = None
        if operation is not None and events is not None:
            events.done(replace(result.action, operation=operation), self._changed_by(operation))
        if isinstance(result.action.operation, CreateLoadBalancer) and isinstance(result.error, Unavailable):
            self._creation_lost()
        if not isinstance(result.answer, OperationResult) or not isinstance(operation, Operation):
            return
        if result.answer.created is not None:
            self._cache.put(key, uid, result.answer.created)
        elif (before := self._changed_by(operation)) is not None:
            known, settled = apply_operation(before, operation), result.answer.settled
            if settled is not None:
                known = replace(known, settled=settled and before.settled)
            if settled and isinstance(operation, DeleteLoadBalancer):
                # Whoever waits for it learns of it now: nothing reads it again.
                self._part_freed(known.id, key)
                self._cache.drop(known.id)
            else:
                self._cache.put(key, uid, known)
                if _frees(operation, known):
                    self._part_freed(known.id, key)
        self._anchor.changed(uid, self._cache.get(key))


def _raise_failure(results: Sequence[ActionResult]) -> None:
    """Raise the first error, if any; preferably that of a cloud that does not answer."""
    errors = [result.error for result in apply.failures(results) if result.error]
    if errors:
        raise next((error for error in errors if isinstance(error, Throttled | Unavailable)), errors[0])


def _held_back(plan: Plan) -> Plan:
    """The plan, in which every removed member waits for a healthy successor."""
    return Plan.of(
        replace(action, operation=replace(action.operation, hand_over=True))
        if isinstance(action.operation, RemoveMembers)
        else action
        for action in plan
    )


def _frees(operation: Operation, lb: ObservedLoadBalancer) -> bool:
    """Whether the operation makes a port of the load balancer, or all of it, available to other Services."""
    match operation:
        case PutListener(listener=listener):
            return owner_of_part(listener.tags, lb) is None
        case PutPool(pool=pool):
            return owner_of_part(pool.tags, lb) is None
        case UpdateLoadBalancer():
            return lb.owner is None
    return isinstance(operation, DeleteListener | DeletePool)
