"""One visit to a Service: what is planned for it is carried out, remembered and told, until nothing is left to do now.

A visit never waits for the cloud: what takes long is left to a later one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext

from cloud_controller.cloud import CloudError, Postponed, Throttled, Unavailable
from cloud_controller.controllers.seen_deletions import SeenDeletions
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.service import rules as service_rules
from cloud_controller.controllers.service.apply import (
    KubeOperation,
    change_load_balancer,
    change_service,
)
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.controllers.service.checkpoint import Checkpoint
from cloud_controller.controllers.service.events import ServiceEvents
from cloud_controller.controllers.service.plan import ServicePlan
from cloud_controller.controllers.service.rules import Rules
from cloud_controller.controllers.service.timing import Locks, Polling
from cloud_controller.controllers.service.waits import Waits
from cloud_controller.events import Events
from cloud_controller.kube import SERVICES, ApiError, Kube, NotFoundError, Object
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
    LoadBalancers,
    Operation,
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
"""Plans that one visit to a Service may carry out until one is empty."""

_log = logging.getLogger(__name__)


class ServiceReconciler:
    """Visits of any Services, each by one thread at a time.

    `come_back(key, seconds)` asks for another visit. `part_freed(load balancer, key)`: another Service may have waited
    for this one to give it up. `creation_lost()`: something may have been made that no list shows yet.
    """

    def __init__(
        self,
        kube: Kube,
        load_balancers: LoadBalancers,
        cache: LoadBalancerCache,
        events: Events,
        metrics: Metrics,
        rules: Rules,
        *,
        come_back: Callable[[str, float], None],
        part_freed: Callable[[str, str], None],
        creation_lost: Callable[[], None],
        safeguard: Safeguard,
        deletions: SeenDeletions,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._kube = kube
        self._load_balancers = load_balancers
        self._cache = cache
        self._events = events
        self._metrics = metrics
        self._rules = rules
        self._come_back = come_back
        self._part_freed = part_freed
        self._creation_lost = creation_lost
        self._safeguard = safeguard
        self._deletions = deletions
        self._checkpoint = checkpoint
        self._waits = Waits()
        self._arrivals = Polling()
        self._locks = Locks()
        self._left_out: dict[str, str] = {}

    def reconcile(self, key: str, service: Object | None, backends: Backends) -> None:
        """See to the Service of this key (None: it is gone). Raises CloudError or ApiError, which has been told."""
        if service is not None:
            self._deletions.note(service)
        named = service_rules.reused_id(service, self._load_balancers.catalogue) if service else None
        present = {lb.id for lb in self._cache.get(key)}
        # Two Services on one load balancer must not both find the same port free.
        with self._locks.held(present | ({named} if named else set())):
            self._read_if_needed(key, service, named)
            uid = service["metadata"]["uid"] if service else None
            self._remove_orphans(key, [owner for owner in self._cache.owners(key) if owner.uid != uid])
            if service is not None:
                self._converge(key, service, named, backends)
            else:
                self._waits.over(key)
                self._left_out.pop(key, None)
        waits_for = self._cache.find(named) if named else None
        if waits_for is not None and not waits_for.settled and waits_for not in self._cache.get(key):
            self._cache.mark_dirty(key)  # It has no part there yet, so no poll tells.
            self._come_back(key, self._arrivals.pause_of(key))
        else:
            self._arrivals.over(key)

    def _read_if_needed(self, key: str, service: Object | None, named: str | None) -> None:
        ids = [named] if named else []
        if self._cache.is_dirty(key):
            uids = {owner.uid for owner in self._cache.owners(key)}
            uids |= {service["metadata"]["uid"]} if service else set()
            self._cache.refresh([(key, each) for each in uids], ids)
        elif self._waits.for_cloud(key):
            # A part of the change may be done: to take it back is a change, too.
            self._cache.refresh((), {*ids, *(lb.id for lb in self._cache.get(key))})
        elif named and self._cache.find(named) is None:
            self._cache.refresh((), ids)

    def _remove_orphans(self, key: str, owners: Collection[Owner]) -> None:
        """Delete what is left of a Service that is gone, or of another one that had its name; hold what is doubtful."""
        namespace, _, name = key.partition("/")
        if owners:
            # The informer may be behind: the API server must say itself that the owner is gone.
            try:
                present = self._kube.get(SERVICES, name, namespace)["metadata"]["uid"]
            except NotFoundError:
                present = None
            owners = [owner for owner in owners if owner.uid != present]
        plans = {owner: self._orphans_of(key, owner) for owner in owners}
        held = [action for plan in plans.values() for action in plan.held]
        target = service_plan.target_of(namespace, name)
        self._safeguard.report(CONTROLLER, held, self._events, about={target})
        for owner, plan in plans.items():
            if not plan.changes:
                continue
            try:
                self._safeguard.verify()
                if at_stake := self._at_stake(plan, owner.uid):
                    self._cache.refresh((), at_stake)
                    plan = self._orphans_of(key, owner)
                self._carry_out(key, owner.uid, plan, [])
            except CloudError as error:
                gone = {"kind": "Service", "metadata": {"namespace": namespace, "name": name, "uid": owner.uid}}
                self._events.warning(gone, "DeleteLoadBalancerFailed", f"Error deleting load balancer: {error}")
                raise
            self._safeguard.used(plan.changes)

    def _orphans_of(self, key: str, owner: Owner) -> Plan:
        catalogue, binding = self._load_balancers.catalogue, self._safeguard.binding
        deleted = owner.uid in self._deletions
        plan = service_plan.plan_orphans(self._cache.get(key), owner, catalogue, binding, deleted=deleted)
        return self._safeguard.released(plan)

    def _converge(self, key: str, service: Object, named: str | None, backends: Backends) -> None:
        """Plan and apply until nothing is left to do now."""
        wanted = service_rules.wants_load_balancer(service, self._rules, self._load_balancers)
        told = ServiceEvents(self._events, service, wanted=wanted, said=self._waits.said(key))
        read_again: set[str] = set()
        try:
            for _ in range(_ROUNDS):
                found = self._plan(key, service, named, backends)
                self._tell_left_out(key, service, found.left_out)
                # Others may have written there since, another cluster's controller or a person; no lock holds them.
                while at_stake := self._at_stake(found.plan, service["metadata"]["uid"]) - read_again:
                    self._cache.refresh((), at_stake)
                    read_again |= at_stake
                    found = self._plan(key, service, named, backends)
                if not found.plan.changes:
                    self._rest(key, named, found, told)
                    return
                told.before(found)
                postponed: list[Postponed] = []
                try:
                    service = self._carry_out(key, service["metadata"]["uid"], found.plan, postponed, service)
                finally:
                    # Also where another part failed: old members serve on until the new ones are healthy.
                    pause = self._waits.begin_or_go_on(key, postponed, told) if postponed else None
                if pause is not None:
                    self._come_back(key, pause)
                    return
                self._waits.over(key)
                told.carried_out()
            raise CloudError(f"did not converge; the last plan was: {found.plan}")
        except NotFoundError:
            _log.info("does not exist any more service=%s", key)
        except Throttled:
            # The Service is in order; it only has to wait.
            raise
        except (CloudError, ApiError) as error:
            told.failed(error)
            raise

    def _tell_left_out(self, key: str, service: Object, left_out: str | None) -> None:
        """Once, though no visit changes anything because of it: its author expects traffic."""
        if left_out is None:
            self._left_out.pop(key, None)
        elif self._left_out.get(key) != left_out:
            self._left_out[key] = left_out
            self._events.warning(service, "EndpointsLeftOut", f"Endpoints are left out: {left_out}")

    def _plan(self, key: str, service: Object, named: str | None, backends: Backends) -> ServicePlan:
        observed = {lb.id: lb for lb in self._cache.get(key)}
        if named and (lb := self._cache.find(named)):
            observed[named] = lb
        return service_plan.plan_service(service, [*observed.values()], backends, self._load_balancers, self._rules)

    def _at_stake(self, plan: Plan, uid: str) -> set[str]:
        """The load balancers that are deleted, whose tags are all written, or whose parts others may have too."""
        found = set()
        for operation in (action.operation for action in plan.changes):
            if isinstance(operation, AdoptLoadBalancer | UpdateLoadBalancer | DeleteLoadBalancer):
                lb = self._cache.find(operation.id)
                # Of one that is left in part a poll has just told; it may be tried many times until the last part goes.
                if lb is None or lb.state is not LoadBalancerState.PARTIAL:
                    found.add(operation.id)
            elif isinstance(operation, PutPool | PutListener | DeleteListener | DeletePool):
                lb = self._cache.find(operation.id)
                if lb is not None and (lb.owner is None or lb.owner.uid != uid or may_serve_others(lb)):
                    found.add(operation.id)
        return found

    def _rest(self, key: str, named: str | None, found: ServicePlan, told: ServiceEvents) -> None:
        """Nothing can be done now: say so, or why."""
        self._waits.over(key)
        if found.fault is not None:
            if named or any(may_serve_others(lb) for lb in self._cache.get(key)):
                self._cache.mark_dirty(key)  # Others may free the port, or the load balancer, that it asks for.
            raise found.fault
        if found.failure is not None:
            self._cache.mark_dirty(key)  # The cloud may mend it by itself.
            raise CloudError(found.failure)
        if not found.waits:
            told.at_rest()

    def _carry_out(
        self, key: str, uid: str, plan: Plan, postponed: list[Postponed], service: Object | None = None
    ) -> Object:
        """Apply, and remember what came of it; the Service as it is then. `postponed` gets why something has to wait.

        Raises the first failure. Members follow the nodes all the same, where it is not that the cloud is out of reach:
        a setting that it refuses, or a right that lacks, must not keep dead nodes in.
        """
        failed: list[tuple[object, CloudError]] = []
        self._metrics.planned(CONTROLLER, plan)
        self._metrics.load_balancer_syncs.inc()
        hosts_only = all(isinstance(action.operation, AddMembers | RemoveMembers) for action in plan.changes)
        try:
            with self._metrics.host_update() if hosts_only and plan.changes else nullcontext():
                for action in plan.changes:
                    if failed and not _may_follow(action.operation, [operation for operation, _ in failed]):
                        continue
                    try:
                        service = self._apply(key, uid, action) or service
                    except Postponed as reason:
                        _log.info("postponed controller=%s target=%s why=%r", CONTROLLER, action.target, str(reason))
                        postponed.append(reason)
                    except (Throttled, Unavailable):
                        raise
                    except CloudError as error:
                        failed.append((action.operation, error))
            if failed:
                raise failed[0][1]
        except (CloudError, ApiError):
            # Part of it is done, and a lost answer may hide more: the next visit reads before it plans.
            self._cache.mark_dirty(key)
            raise
        return service or {}

    def _apply(self, key: str, uid: str, action: Action) -> Object | None:
        result = "failed"
        operation = action.operation
        changed: Object | None = None
        try:
            if isinstance(operation, KubeOperation):
                changed = change_service(self._kube, operation)
            elif isinstance(operation, Operation):
                handing_over = self._waits.handing_over(key)
                with self._checkpoint.writing() if self._checkpoint else nullcontext():
                    made = change_load_balancer(self._load_balancers, operation, handing_over=handing_over)
                self._remember(key, uid, operation, made)
            else:
                raise TypeError(f"{action.target}: {type(operation).__name__} is no operation of a service plan")
            result = "done"
        except Postponed:
            result = "postponed"
            raise
        except Unavailable:
            if isinstance(operation, CreateLoadBalancer):
                self._creation_lost()
            raise
        finally:
            self._metrics.actions.labels(CONTROLLER, action.kind.value, result).inc()
        _log.info(
            "done controller=%s kind=%s target=%s summary=%r", CONTROLLER, action.kind, action.target, action.summary
        )
        return changed

    def _remember(self, key: str, uid: str, operation: Operation, made: ObservedLoadBalancer | None) -> None:
        if isinstance(operation, CreateLoadBalancer):
            known = made
        else:
            before = self._cache.find(operation.id)
            known = before and apply_operation(before, operation)
        if known is not None:
            self._cache.put(key, uid, known)
        if known is not None and _frees(operation, known):
            self._part_freed(known.id, key)


def _may_follow(operation: object, failed: Iterable[object]) -> bool:
    """Whether it is done though these have failed: a change of members, none of which depends on one of them."""
    if isinstance(operation, AddMembers):
        return True
    # Those that go must have a successor.
    return isinstance(operation, RemoveMembers) and not any(
        isinstance(each, AddMembers) and each.pool == operation.pool for each in failed
    )


def _frees(operation: Operation, lb: ObservedLoadBalancer) -> bool:
    """Whether the load balancer, or a port of it, can be another's after it, or has nobody left on it."""
    match operation:
        case PutListener(listener=listener):
            return owner_of_part(listener.tags, lb) is None
        case PutPool(pool=pool):
            return owner_of_part(pool.tags, lb) is None
        case UpdateLoadBalancer():
            return lb.owner is None
    return isinstance(operation, DeleteListener | DeletePool)
