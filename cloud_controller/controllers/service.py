"""The service controller: every Service that asks for a load balancer has exactly the one that it asks for.

`observe` and `plan` serve previews and the command line; `ServiceController` is the daemon's loop, Service by Service.
The rules are in `service_plan`, the way to the world in `service_apply` and `service_cache`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cloud_controller.cloud import Cloud, CloudError, InvalidConfiguration, Throttled
from cloud_controller.controllers import service_plan
from cloud_controller.controllers.service_apply import apply_action
from cloud_controller.controllers.service_cache import LoadBalancerCache
from cloud_controller.controllers.service_events import ServiceEvents
from cloud_controller.controllers.service_plan import Rules
from cloud_controller.events import Events
from cloud_controller.kube import NODES, SERVICES, ApiError, EventType, Informer, Kube, NotFoundError, Object, key
from cloud_controller.load_balancer import LoadBalancerBuilder, LoadBalancerState, ObservedLoadBalancer
from cloud_controller.load_balancer_operations import LoadBalancers, Operation
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

_ROUNDS = 4
"""Plans that one visit to a Service may carry out until one is empty."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How the controller works. Times are seconds.

    `resync`: how often everything is read from the cloud and drift is mended. `poll`: how often the cloud is asked
    about what it is still at work on. `node_delay`: how long changes of nodes are gathered before members follow.
    `backend_nodes`: see `Rules`.
    """

    workers: int = 3
    resync: float = 300.0
    poll: float = 0.3
    node_delay: float = 0.5
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"


@dataclass(frozen=True, slots=True)
class ServiceObservation:
    """Everything that a plan for all Services needs. `builder` is the pure half of the cloud's load balancers."""

    services: Sequence[Object]
    nodes: Sequence[Object]
    load_balancers: Sequence[ObservedLoadBalancer]
    builder: LoadBalancerBuilder
    cluster_id: str
    classes: frozenset[str]


def observe(kube: Kube, cloud: Cloud) -> ServiceObservation:
    """Read all load balancers, Services and nodes, in pages. Raises InvalidConfiguration for a cloud without any."""
    load_balancers = _load_balancers(cloud)
    # In this order: a load balancer that is read, and whose Service is not found later, has none.
    found = load_balancers.read()
    return ServiceObservation(
        services=kube.list(SERVICES).items,
        nodes=kube.list(NODES).items,
        load_balancers=found,
        builder=load_balancers,
        cluster_id=cloud.cluster_id,
        classes=cloud.load_balancer_classes,
    )


def plan(observation: ServiceObservation, options: ServiceOptions) -> Plan:
    """What is to be done for every Service; pure."""
    rules = Rules(observation.cluster_id, observation.classes, options.backend_nodes)
    return service_plan.plan_all(
        observation.services, observation.load_balancers, observation.nodes, observation.builder, rules
    )


class ServiceController:
    """The loop. Its informers are started by whoever made them, after this was constructed."""

    def __init__(
        self,
        kube: Kube,
        cloud: Cloud,
        services: Informer,
        nodes: Informer,
        events: Events,
        metrics: Metrics,
        options: ServiceOptions,
    ) -> None:
        self._kube = kube
        self._load_balancers = _load_balancers(cloud)
        self._services = services
        self._nodes = nodes
        self._events = events
        self._metrics = metrics
        self._options = options
        self._rules = Rules(cloud.cluster_id, cloud.load_balancer_classes, options.backend_nodes)
        self._cache = LoadBalancerCache(self._load_balancers, cloud.cluster_id)
        self._eligible: list[Object] | None = None
        self._queue: WorkQueue[str] = WorkQueue()
        self._threads: list[threading.Thread] = []
        self._trouble: str | None = None
        services.add_handler(self._service_changed)
        nodes.add_handler(self._node_changed)

    @property
    def name(self) -> str:
        """`service`."""
        return NAME

    def start(self, stop: threading.Event) -> None:
        """Work until `stop` is set; the informers must have synced."""
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

    def trouble(self) -> str | None:
        """Why the load balancers can't be read, or None."""
        return self._trouble

    def _close_when(self, stop: threading.Event) -> None:
        stop.wait()
        self._queue.close()

    # ------------------------------------------------------------------------------------------------ what happened

    def _service_changed(self, type: EventType, old: Object | None, new: Object | None) -> None:
        service = new or old
        if service is None:
            return
        if (
            type is EventType.DELETED
            or service_plan.wants_load_balancer(service, self._rules.classes)
            or service_plan.has_finalizer(service)
            or self._cache.get(key(service))
        ):
            self._queue.add(key(service))

    def _node_changed(self, type: EventType, old: Object | None, new: Object | None) -> None:
        # A kubelet's status is posted every few seconds; only what members depend on counts.
        if (
            type is EventType.MODIFIED
            and old is not None
            and new is not None
            and service_plan.node_traits(old) == service_plan.node_traits(new)
        ):
            return
        self._eligible = None
        self._queue.add_after(NODES_CHANGED, self._options.node_delay)

    def handle(self, key: str) -> None:
        """Work on one key of the queue. Raises CloudError or ApiError, which has been told at the Service."""
        self._metrics.queue_depth.labels(NAME).set(len(self._queue))
        with self._metrics.timed(NAME):
            if key == RESYNC:
                self._resync()
            elif key == NODES_CHANGED:
                self._eligible = None
                self._enqueue_all()
            elif key == POLL:
                self._poll()
            elif self._cache.loaded:  # Else the first resync brings every Service back.
                self._sync(key)

    def _resync(self) -> None:
        try:
            self._cache.load({service["metadata"]["uid"]: key(service) for service in self._services.items()})
        except CloudError as error:
            self._trouble = str(error)
            # Nothing works without it, so it never waits as long as a single Service's backoff may.
            self._queue.add_after(RESYNC, _RESYNC_RETRY)
            raise
        self._trouble = None
        self._enqueue_all()
        if self._cache.unsettled():
            self._queue.add_after(POLL, self._options.poll)
        self._queue.add_after(RESYNC, self._options.resync)

    def _enqueue_all(self) -> None:
        wanted = (
            key(service)
            for service in self._services.items()
            if service_plan.wants_load_balancer(service, self._rules.classes) or service_plan.has_finalizer(service)
        )
        for each in sorted({*wanted, *self._cache.keys()}):
            self._queue.add(each)

    def _poll(self) -> None:
        """One batch for all Services that wait for the cloud, so that none of them holds a worker."""
        waiting = self._cache.unsettled()
        if not waiting:
            return
        before = {key: self._cache.get(key) for key in waiting.values()}
        self._cache.refresh((key, uid) for uid, key in waiting.items())
        for each, known in before.items():
            if self._cache.get(each) != known:
                self._queue.add(each)
        if self._cache.unsettled():
            self._queue.add_after(POLL, self._options.poll)

    # ------------------------------------------------------------------------------------------------- one Service

    def _sync(self, key: str) -> None:
        service = self._services.get(key)
        uid = service["metadata"]["uid"] if service else None
        if self._cache.is_suspect(key):
            known = {lb.owner.uid for lb in self._cache.get(key) if lb.owner} | ({uid} if uid else set())
            self._cache.refresh((key, each) for each in known)
        orphans = [lb for lb in self._cache.get(key) if lb.owner and lb.owner.uid != uid]
        if orphans:
            self._remove_orphans(key, orphans)
        if service is not None:
            self._converge(key, service)
        if any(not lb.settled for lb in self._cache.get(key)):
            self._queue.add_after(POLL, self._options.poll)

    def _remove_orphans(self, key: str, orphans: Sequence[ObservedLoadBalancer]) -> None:
        """Delete what is left of a Service that is gone, or of another one that had its name."""
        namespace, _, name = key.partition("/")
        # The informer may be behind: the API server must say itself that the owner is gone.
        try:
            present = self._kube.get(SERVICES, name, namespace)["metadata"]["uid"]
        except NotFoundError:
            present = None
        gone = [lb for lb in orphans if lb.owner and lb.owner.uid != present]
        plan = service_plan.plan_orphans(gone, service_plan.target_of(namespace, name))
        if plan.changes:
            for action in plan.changes:
                self._apply(action)
            self._cache.refresh((key, lb.owner.uid) for lb in gone if lb.owner)

    def _converge(self, key: str, service: Object) -> None:
        """Plan and apply until nothing is left to do now."""
        uid = service["metadata"]["uid"]
        wanted = service_plan.wants_load_balancer(service, self._rules.classes)
        told = ServiceEvents(self._events, service, wanted=wanted)
        try:
            for _ in range(_ROUNDS):
                own = [lb for lb in self._cache.get(key) if lb.owner and lb.owner.uid == uid]
                found = service_plan.plan_service(
                    service, own, self._eligible_nodes(), self._load_balancers, self._rules
                )
                if not found.plan.changes:
                    if found.failure is not None:
                        self._cache.suspect(key)  # The cloud may mend it by itself.
                        raise CloudError(found.failure)
                    if all(lb.state is LoadBalancerState.READY for lb in own):
                        told.at_rest()
                    return
                told.before(found)
                service = self._carry_out(key, service, found.plan)
            raise CloudError(f"it does not come to rest; the last plan was: {found.plan}")
        except NotFoundError:
            _log.info("%s does not exist any more", key)
        except Throttled:
            # The Service is in order; it only has to wait.
            raise
        except (CloudError, ApiError) as error:
            told.failed(error)
            raise

    def _carry_out(self, key: str, service: Object, plan: Plan) -> Object:
        """Apply, and read what came of it; the Service as it is then."""
        try:
            for action in plan.changes:
                service = self._apply(action) or service
            if any(isinstance(action.operation, Operation) for action in plan.changes):
                self._cache.refresh([(key, service["metadata"]["uid"])])
        except (CloudError, ApiError):
            # Part of it is done, and a lost answer may hide more: the next visit reads before it plans.
            self._cache.suspect(key)
            raise
        return service

    def _apply(self, action: Action) -> Object | None:
        result = "failed"
        try:
            changed = apply_action(action, self._kube, self._load_balancers)
            result = "done"
        finally:
            self._metrics.actions.labels(NAME, action.kind.value, result).inc()
        _log.info("%s", action)
        return changed

    def _eligible_nodes(self) -> list[Object]:
        # Found once for all visits until nodes change: there may be thousands of both. A list that is out of date by
        # a race is put right by the visits that the change itself brings.
        nodes = self._eligible
        if nodes is None:
            nodes = self._eligible = service_plan.eligible_nodes(self._nodes.items(), self._rules)
        return nodes


# --------------------------------------------------------------------------------------------------------- helpers


def _load_balancers(cloud: Cloud) -> LoadBalancers:
    if cloud.load_balancers is None:
        why = f"cloud {cloud.provider_name} has no load balancers"
        raise InvalidConfiguration("controllers", why, "every controller but service")
    return cloud.load_balancers
