"""The service controller: every Service that asks for a load balancer has exactly the one that it asks for.

`observe` and `plan` serve previews and the command line; `ServiceController` is the daemon's loop, Service by Service.
The rules are in `service_plan` and `service_rules`, the way to the world in `service_apply` and `service_cache`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

from cloud_controller.apply import Postponed
from cloud_controller.cloud import Cloud, CloudError, Throttled, Unavailable
from cloud_controller.controllers import service_plan, service_rules
from cloud_controller.controllers.service_apply import (
    KubeOperation,
    change_load_balancer,
    change_service,
    load_balancers_of,
)
from cloud_controller.controllers.service_cache import LoadBalancerCache
from cloud_controller.controllers.service_endpoints import ServiceEndpoints, by_service
from cloud_controller.controllers.service_events import ServiceEvents
from cloud_controller.controllers.service_plan import ServicePlan
from cloud_controller.controllers.service_rules import Rules, node_backend
from cloud_controller.controllers.service_timing import (
    FIRST_LOOK,
    GATHER_GONE,
    GATHER_NEW,
    LONGEST_PAUSE,
    Locks,
    NodeStorm,
    Polling,
)
from cloud_controller.events import Events
from cloud_controller.kube import (
    ENDPOINT_SLICES,
    NODES,
    SERVICES,
    ApiError,
    EventType,
    Informer,
    Kube,
    NotFoundError,
    Object,
    key,
)
from cloud_controller.load_balancer import LoadBalancerBuilder, LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancer_after import after
from cloud_controller.load_balancer_backends import Backends, NodeBackend
from cloud_controller.load_balancer_operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
)
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, Plan
from cloud_controller.workqueue import WorkQueue, work

NAME = "service"

RESYNC = "*resync"
NODES_CHANGED = "*nodes"
POLL = "*poll"
"""Keys of the queue that are no Service: NAMESPACE/NAME never begins with an asterisk."""

_RESYNC_RETRY = 15.0
"""Seconds after which a read of everything that failed is made again at the latest."""

_SECOND_LOOK = 30.0
"""Seconds after which everything is read once more where something may have been made that no list shows yet: by the
process before this one, or by a call whose answer was lost. If its Service is gone by then, nothing else finds it."""

_ENDPOINT_DELAY = 0.5
"""Seconds for which changes of a Service's pods are gathered: a roll-out is a few changes of members, not many."""

_ROUNDS = 5
"""Plans that one visit to a Service may carry out until one is empty."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How the controller works. Times are seconds.

    `resync`: how often everything is read from the cloud and drift is mended; 0: at the start alone. `backend_nodes`:
    see `Rules`.
    """

    workers: int = 3
    resync: float = 300.0
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"


@dataclass(frozen=True, slots=True)
class ServiceObservation:
    """Everything that a plan for all Services needs. `builder` is the pure half of the cloud's load balancers.

    `slices` are the EndpointSlices by Service (NAMESPACE/NAME), where one follows its pods.
    """

    services: Sequence[Object]
    nodes: Sequence[Object]
    load_balancers: Sequence[ObservedLoadBalancer]
    builder: LoadBalancerBuilder
    cluster_id: str
    classes: frozenset[str]
    slices: Mapping[str, Sequence[Object]] = field(default_factory=dict)


def observe(kube: Kube, cloud: Cloud) -> ServiceObservation:
    """Read all load balancers, Services, nodes and, where needed, EndpointSlices, in pages.

    Raises InvalidConfiguration for a cloud without any load balancers.
    """
    load_balancers = load_balancers_of(cloud)
    # In this order: a load balancer that is read, and whose Service is not found later, has none.
    found = {lb.id: lb for lb in load_balancers.read()}
    services = kube.list(SERVICES).items
    named = _named(services, load_balancers) - found.keys()
    if named:
        found |= {lb.id: lb for lb in load_balancers.read((), named)}
    follow = any(service_rules.follows_endpoints(service, load_balancers.catalogue) for service in services)
    return ServiceObservation(
        services=services,
        nodes=kube.list(NODES).items,
        load_balancers=[*found.values()],
        builder=load_balancers,
        cluster_id=cloud.cluster_id,
        classes=cloud.load_balancer_classes,
        slices=by_service(kube.list(ENDPOINT_SLICES).items) if follow else {},
    )


def plan(observation: ServiceObservation, options: ServiceOptions) -> Plan:
    """What is to be done for every Service; pure."""
    rules = Rules(observation.cluster_id, observation.classes, options.backend_nodes)
    return service_plan.plan_all(
        observation.services,
        observation.load_balancers,
        observation.nodes,
        observation.slices,
        observation.builder,
        rules,
    )


class ServiceController:
    """The loop. Its informers are started by whoever made them, after this was constructed."""

    def __init__(
        self,
        kube: Kube,
        cloud: Cloud,
        services: Informer,
        nodes: Informer,
        slices: Informer,
        events: Events,
        metrics: Metrics,
        options: ServiceOptions,
    ) -> None:
        self._kube = kube
        self._load_balancers = load_balancers_of(cloud)
        self._services = services
        self._nodes = nodes
        self._events = events
        self._metrics = metrics
        self._options = options
        self._rules = Rules(cloud.cluster_id, cloud.load_balancer_classes, options.backend_nodes)
        self._cache = LoadBalancerCache(self._load_balancers, cloud.cluster_id)
        self._endpoints = ServiceEndpoints(slices, self._endpoints_changed)
        self._backends: tuple[NodeBackend, ...] | None = None  # Found once for thousands of visits.
        self._storm = NodeStorm()
        self._polling = Polling()
        self._handovers = Polling()
        self._arrivals = Polling()
        self._locks = Locks()
        self._queue: WorkQueue[str] = WorkQueue()
        self._threads: list[threading.Thread] = []
        self._stop: threading.Event | None = None
        self._trouble: str | None = None
        metrics.watch_queue(NAME, self._queue)
        services.add_handler(self._service_changed)
        nodes.add_handler(self._node_changed)

    @property
    def name(self) -> str:
        """`service`."""
        return NAME

    def start(self, stop: threading.Event) -> None:
        """Work until `stop` is set; the informers must have synced."""
        self._stop = stop
        self._queue.add(RESYNC)
        for number in range(self._options.workers):
            worker = threading.Thread(target=work, args=(self._queue, self.handle), name=f"service-{number}")
            self._threads.append(worker)
        self._threads.append(threading.Thread(target=self._close_when, args=(stop,), name="service-stop"))
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def join(self, timeout: float) -> bool:
        """Wait for its threads after `stop` was set; False if they have not ended within `timeout` seconds."""
        end = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def ended(self) -> str | None:
        """See `Controller.ended`."""
        if self._stop is not None and not self._stop.is_set():
            gone = [thread.name for thread in self._threads if not thread.is_alive()]
            return f"thread {gone[0]} has ended" if gone else None
        return None

    def trouble(self) -> str | None:
        """Why the load balancers can't be read, or None."""
        return self.ended() or self._trouble

    def _close_when(self, stop: threading.Event) -> None:
        stop.wait()
        self._queue.close()

    # ------------------------------------------------------------------------------------------------ what happened

    def _service_changed(self, type: EventType, old: Object | None, new: Object | None) -> None:
        service = new or old
        if service is None or (old and new and service_rules.service_traits(old) == service_rules.service_traits(new)):
            return
        if type is EventType.DELETED or self._concerns_us(service) or self._cache.get(key(service)):
            self._queue.add(key(service))

    def _node_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        # A kubelet's status is posted every few seconds; only what members depend on counts.
        was = old and node_backend(old, self._load_balancers, self._rules)
        is_now = new and node_backend(new, self._load_balancers, self._rules)
        if was != is_now:
            self._storm.changed(GATHER_NEW if is_now else GATHER_GONE)
            self._queue.add_after(NODES_CHANGED, self._storm.wait())

    def _endpoints_changed(self, key: str) -> None:
        service = self._services.get(key)
        if service is not None and service_rules.follows_endpoints(service, self._load_balancers.catalogue):
            self._queue.add_after(key, _ENDPOINT_DELAY)

    def handle(self, key: str) -> None:
        """Work on one key of the queue. Raises CloudError or ApiError, which has been told at the Service."""
        with self._metrics.timed(NAME):
            if key == RESYNC:
                self._resync()
            elif key == NODES_CHANGED:
                self._take_nodes()
            elif key == POLL:
                self._poll()
            elif self._cache.loaded:  # Else the first resync brings every Service back.
                self._sync(key)

    def _concerns_us(self, service: Object) -> bool:
        return service_rules.wants_load_balancer(service, self._rules.classes) or service_rules.has_finalizer(service)

    def _resync(self) -> None:
        services = self._services.items()
        first = not self._cache.loaded
        if self._backends is None:
            self._backends = self._node_backends()
        try:
            uids = {service["metadata"]["uid"]: key(service) for service in services}
            self._cache.load(uids, _named(services, self._load_balancers))
        except CloudError as error:
            self._trouble = str(error)
            # Nothing works without it, so it never waits as long as a single Service's backoff may.
            self._queue.add_after(RESYNC, _RESYNC_RETRY)
            raise
        self._trouble = None
        self._enqueue_all()
        self._poll_later()
        if self._options.resync > 0:
            self._queue.add_after(RESYNC, self._options.resync)
        if first:
            self._queue.add_after(RESYNC, _SECOND_LOOK)

    def _take_nodes(self) -> None:
        wait = self._storm.wait()
        if wait > 0:  # More came: all of them shall be one change of members.
            self._queue.add_after(NODES_CHANGED, wait)
            return
        self._storm.over()
        self._backends = self._node_backends()
        self._enqueue_all()

    def _enqueue_all(self) -> None:
        wanted = (key(service) for service in self._services.items() if self._concerns_us(service))
        for each in sorted({*wanted, *self._cache.keys()}):
            self._queue.add(each)

    def _poll(self) -> None:
        """One batch for all Services that wait for the cloud, so that none of them holds a worker."""
        waiting = self._cache.unsettled()
        if not waiting:
            return
        before = {lb_id: self._cache.find(lb_id) for lb_id in waiting}
        try:
            self._cache.refresh((), waiting.keys())
        except Throttled:
            raise
        except CloudError:
            # All that wait for the cloud wait for this, so it never waits as long as a single Service's backoff may.
            self._queue.add_after(POLL, LONGEST_PAUSE)
            raise
        for lb_id, keys in waiting.items():
            if self._cache.find(lb_id) != before[lb_id]:
                for each in keys:
                    self._queue.add(each)
        self._poll_later()

    def _poll_later(self) -> None:
        waiting = self._cache.unsettled()
        if waiting:
            self._queue.add_after(POLL, self._polling.pause(waiting.keys()))

    # ------------------------------------------------------------------------------------------------- one Service

    def _sync(self, key: str) -> None:
        service = self._services.get(key)
        named = service_rules.reused_id(service, self._load_balancers.catalogue) if service else None
        shared = {lb.id for lb in self._cache.get(key) if lb.owner is None}
        # Two Services on one load balancer must not both find the same port free.
        with self._locks.held(shared | ({named} if named else set())):
            self._visit(key, service, named)
        self._poll_later()
        waits_for = self._cache.find(named) if named else None
        if waits_for is not None and not waits_for.settled and waits_for not in self._cache.get(key):
            self._cache.suspect(key)  # It has no part there yet, so no poll tells.
            self._queue.add_after(key, self._arrivals.pause_of(key))

    def _visit(self, key: str, service: Object | None, named: str | None) -> None:
        uid = service["metadata"]["uid"] if service else None
        ids = [named] if named else []
        if self._cache.is_suspect(key):
            uids = {owner.uid for owner in self._cache.owners(key)} | ({uid} if uid else set())
            self._cache.refresh([(key, each) for each in uids], ids)
        elif named and self._cache.find(named) is None:
            self._cache.refresh((), ids)
        orphans = [owner for owner in self._cache.owners(key) if owner.uid != uid]
        if orphans:
            self._remove_orphans(key, orphans)
        if service is not None:
            self._converge(key, service, named)

    def _remove_orphans(self, key: str, owners: Iterable[Owner]) -> None:
        """Delete what is left of a Service that is gone, or of another one that had its name."""
        namespace, _, name = key.partition("/")
        # The informer may be behind: the API server must say itself that the owner is gone.
        try:
            present = self._kube.get(SERVICES, name, namespace)["metadata"]["uid"]
        except NotFoundError:
            present = None
        for owner in owners:
            if owner.uid == present:
                continue
            plan = service_plan.plan_orphans(self._cache.get(key), owner, self._load_balancers.catalogue)
            try:
                self._carry_out(key, owner.uid, plan)
            except CloudError as error:
                gone = {"kind": "Service", "metadata": {"namespace": namespace, "name": name, "uid": owner.uid}}
                self._events.warning(gone, "DeleteLoadBalancerFailed", f"Error deleting load balancer: {error}")
                raise

    def _converge(self, key: str, service: Object, named: str | None) -> None:
        """Plan and apply until nothing is left to do now."""
        wanted = service_rules.wants_load_balancer(service, self._rules.classes)
        told = ServiceEvents(self._events, service, wanted=wanted)
        fresh = False
        try:
            for _ in range(_ROUNDS):
                found = self._plan(key, service, named)
                if not found.plan.changes:
                    self._rest(key, service, found, told)
                    return
                if named and not fresh and _makes_parts(found.plan, named):
                    # Another cluster's controller may have taken the port since; it can't be asked for a lock.
                    self._cache.refresh((), [named])
                    fresh = True
                    continue
                told.before(found)
                service, postponed = self._carry_out(key, service["metadata"]["uid"], found.plan, service)
                if postponed:
                    self._queue.add_after(key, self._handovers.pause_of(key))
                    return
                self._handovers.over(key)
                told.carried_out()
            raise CloudError(f"it does not come to rest; the last plan was: {found.plan}")
        except NotFoundError:
            _log.info("does not exist any more service=%s", key)
        except Throttled:
            # The Service is in order; it only has to wait.
            raise
        except (CloudError, ApiError) as error:
            told.failed(error)
            raise

    def _plan(self, key: str, service: Object, named: str | None) -> ServicePlan:
        observed = {lb.id: lb for lb in self._cache.get(key)}
        if named and (lb := self._cache.find(named)):
            observed[named] = lb
        follows = service_rules.follows_endpoints(service, self._load_balancers.catalogue)
        backends = Backends(self._backends or (), self._endpoints.get(key) if follows else ())
        return service_plan.plan_service(service, [*observed.values()], backends, self._load_balancers, self._rules)

    def _rest(self, key: str, service: Object, found: ServicePlan, told: ServiceEvents) -> None:
        """Nothing can be done now: say so, or why."""
        if found.fault is not None:
            self._cache.suspect(key)  # Others may free a port, or a load balancer, that it asks for.
            raise found.fault
        if found.failure is not None:
            self._cache.suspect(key)  # The cloud may mend it by itself.
            raise CloudError(found.failure)
        owner = service_plan.owner_of(service, self._rules.cluster_id)
        own = [lb for lb in self._cache.get(key) if owner in lb.owners]
        if all(lb.state is LoadBalancerState.READY for lb in own):
            told.at_rest()

    def _carry_out(self, key: str, uid: str, plan: Plan, service: Object | None = None) -> tuple[Object, bool]:
        """Apply, and remember what came of it; the Service as it is then, and whether something has to wait."""
        postponed = False
        self._metrics.planned(NAME, plan)
        self._metrics.load_balancer_syncs.inc()
        hosts_only = all(isinstance(action.operation, AddMembers | RemoveMembers) for action in plan.changes)
        try:
            with self._metrics.host_update() if hosts_only and plan.changes else nullcontext():
                for action in plan.changes:
                    try:
                        service = self._apply(key, uid, action) or service
                    except Postponed as reason:
                        _log.info("postponed controller=%s target=%s why=%r", NAME, action.target, str(reason))
                        postponed = True
        except (CloudError, ApiError):
            # Part of it is done, and a lost answer may hide more: the next visit reads before it plans.
            self._cache.suspect(key)
            raise
        return service or {}, postponed

    def _apply(self, key: str, uid: str, action: Action) -> Object | None:
        result = "failed"
        operation = action.operation
        changed: Object | None = None
        try:
            if isinstance(operation, KubeOperation):
                changed = change_service(self._kube, operation)
            elif isinstance(operation, Operation):
                handing_over = self._handovers.waits_for(key)
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
                self._queue.add_after(RESYNC, _SECOND_LOOK)
            raise
        finally:
            self._metrics.actions.labels(NAME, action.kind.value, result).inc()
        _log.info("done controller=%s kind=%s target=%s summary=%r", NAME, action.kind, action.target, action.summary)
        return changed

    def _remember(self, key: str, uid: str, operation: Operation, made: ObservedLoadBalancer | None) -> None:
        if isinstance(operation, CreateLoadBalancer):
            known = made
        else:
            before = self._cache.find(operation.id)
            known = before and after(before, operation)
        if known is not None:
            self._cache.put(key, uid, known)
        if isinstance(operation, DeleteListener) and known is not None and known.owner is None:
            self._wake_those_on(operation.id)

    def _wake_those_on(self, id: str) -> None:
        """A port of a shared load balancer is free now, for which another Service may wait."""
        for service in self._services.items():
            if service_rules.reused_id(service, self._load_balancers.catalogue) == id:
                self._queue.add_after(key(service), FIRST_LOOK)

    def _node_backends(self) -> tuple[NodeBackend, ...]:
        return service_rules.node_backends(self._nodes.items(), self._load_balancers, self._rules)


# --------------------------------------------------------------------------------------------------------- helpers


def _named(services: Iterable[Object], builder: LoadBalancerBuilder) -> set[str]:
    """The load balancers that Services name by annotation."""
    found = (service_rules.reused_id(service, builder.catalogue) for service in services)
    return {named for named in found if named is not None}


def _makes_parts(plan: Plan, id: str) -> bool:
    operations = (action.operation for action in plan.changes)
    return any(isinstance(operation, PutListener | PutPool) and operation.id == id for operation in operations)
