"""Runs the service controller: every Service that asks for a load balancer gets exactly that one.

`observe` and `plan` serve previews and the command line; `ServiceController` is the daemon's loop, one Service at a
time. `reconcile` handles one Service; the rules are in `plan` and `rules`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from cloud_controller.binding import UNBOUND, Binding, Evidence, of_load_balancers
from cloud_controller.cloud import Cloud, CloudError
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.queue import Cause, WorkQueue, work
from cloud_controller.controllers.service import adoption as service_adoption
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.service import rules as service_rules
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.anchor import Anchor, lacking
from cloud_controller.controllers.service.apply import load_balancers_of
from cloud_controller.controllers.service.cache import LoadBalancerCache, read_named
from cloud_controller.controllers.service.checkpoint import Checkpoint
from cloud_controller.controllers.service.endpoints import ServiceEndpoints, by_service
from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.gate_plan import with_waiting
from cloud_controller.controllers.service.gates import PodGates
from cloud_controller.controllers.service.reconcile import CONTROLLER, ServiceReconciler
from cloud_controller.controllers.service.rules import Rules
from cloud_controller.controllers.service.timing import (
    DEBOUNCE_CHANGED,
    DEBOUNCE_REMOVED,
    SHORTEST_PAUSE,
    NodeDebouncer,
    Polling,
    Round,
)
from cloud_controller.events import Events
from cloud_controller.kube import (
    ENDPOINT_SLICES,
    NODES,
    PODS,
    SERVICES,
    EventType,
    KubeApi,
    Object,
    ObjectCache,
    key,
    uid,
)
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.model import LoadBalancerBuilder, ObservedLoadBalancer
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.readiness_gates import ReadinessGates, counts_as_ready
from cloud_controller.load_balancers.sharing import SHARE, Sharing
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Attention, Plan, object_of
from cloud_controller.safeguard import Safeguard

NAME = CONTROLLER
GATES = "readiness-gates"

RESYNC = "*resync"
NODES_CHANGED = "*nodes"
POLL = "*poll"
CHECKPOINT = "*checkpoint"
"""Queue keys that do not stand for a Service: NAMESPACE/NAME never starts with an asterisk."""

_SECOND_RESYNC = 30.0
"""Seconds until a second full read if a load balancer may exist that lists do not show yet: created by the previous
process, or by a call whose response was lost. If its Service is gone by then, nothing else would find it."""

_CHECKPOINT_PERIOD = 10.0
"""Seconds between checks whether the controller is idle, so that the checkpoint can be saved."""

_ENDPOINT_DELAY = 0.5
"""Seconds for which endpoint changes of a Service are batched: a rollout then needs only a few member changes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The controller's options; times are seconds.

    `resync`: how often all load balancers are read and drift is repaired; 0: only at startup. For the others, see
    `Rules`.
    """

    workers: int = 3
    resync: float = 300.0
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"
    without_class: bool = True
    pod_ranges: tuple[str, ...] = ()
    sharing: Sharing = Sharing.TAGGED
    share: int = SHARE
    nameable: Nameable = field(default_factory=Nameable)
    gates: ReadinessGates | None = None
    address_changes: AddressChanges = AddressChanges.ALLOW

    def rules(self, cluster_id: str, classes: frozenset[str], binding: Binding) -> Rules:
        """The rules for plans of this cluster."""
        return Rules(
            cluster_id,
            classes,
            self.backend_nodes,
            self.without_class,
            binding,
            self.pod_ranges,
            self.sharing,
            self.share,
            self.nameable,
            self.gates,
            self.address_changes,
        )


@dataclass(frozen=True, slots=True)
class ServiceObservation:
    """Everything that a plan for all Services depends on: values only, nothing that calls the cloud.

    - `builder`: the pure half of the cloud's load balancers; `facts`: what its builds need to know of the cloud.
    - `slices`: EndpointSlices by Service (NAMESPACE/NAME); empty unless a Service has pods as members.
    - `hidden`: the load balancers that annotations name and the cloud refuses to show.
    - `anchored`: whether to believe that Services have nothing in the cloud of which it shows nothing (`anchor`).
    """

    services: Sequence[Object]
    nodes: Sequence[Object]
    load_balancers: Sequence[ObservedLoadBalancer]
    builder: LoadBalancerBuilder
    facts: Facts
    cluster_id: str
    classes: frozenset[str]
    slices: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    binding: Binding = UNBOUND
    hidden: Collection[str] = ()
    anchored: bool = True


def observe(
    kube: KubeApi,
    cloud: Cloud,
    options: ServiceOptions,
    binding: Binding = UNBOUND,
    applied: Collection[Object] = (),
    machines: InstanceSnapshot | None = None,
) -> ServiceObservation:
    """Read all load balancers, Services, nodes, the facts for builds and, if needed, EndpointSlices and machines.

    `applied`: Services as they would be stored, which take the places of those that are stored. `machines`: what other
    controllers have read.
    Raises InvalidConfiguration if the cloud does not support load balancers.
    """
    load_balancers = load_balancers_of(cloud)
    builder = load_balancers.builder
    rules = options.rules(cloud.cluster_id, cloud.load_balancer_classes, binding)
    # Load balancers first: if the Service of one is not in the later list, it is really gone.
    found = {lb.id: lb for lb in load_balancers.read()}
    stored = {key(service): service for service in kube.list(SERVICES).items}
    services = [*{**stored, **{key(service): service for service in applied}}.values()]
    named = _named(services, builder) - found.keys()
    shown, hidden = read_named(load_balancers, named)
    found |= {lb.id: lb for lb in shown}
    follow = any(builder.follows_endpoints(service) for service in services)
    slices: Mapping[str, Sequence[Object]] = by_service(kube.list(ENDPOINT_SLICES).items) if follow else {}
    if follow and (gates := options.gates) is not None:
        namespaces = {service["metadata"]["namespace"] for service in services if builder.follows_endpoints(service)}
        pods = [pod for namespace in sorted(namespaces) for pod in kube.list(PODS, namespace).items]
        now = datetime.now(UTC)
        waiting = {uid(pod) for pod in pods if gates.of_pod(pod) and counts_as_ready(pod, gates, now)}
        slices = {service: with_waiting(each, waiting) for service, each in slices.items()}
    nodes, machines = kube.list(NODES).items, machines or InstanceSnapshot(cloud.instances)
    lacks = lacking(services, [*found.values()], builder, rules, identified=machines.identifies(nodes))
    return ServiceObservation(
        services=services,
        nodes=nodes,
        load_balancers=[*found.values()],
        builder=builder,
        facts=facts_for(services, slices, load_balancers, rules),
        cluster_id=cloud.cluster_id,
        classes=cloud.load_balancer_classes,
        slices=slices,
        binding=binding,
        hidden=hidden,
        anchored=not lacks or machines.anchored(nodes),
    )


def evidence(observation: ServiceObservation) -> Evidence:
    """Which cluster the load balancers belong to, by their tags."""
    services = {service["metadata"]["uid"] for service in observation.services}
    return of_load_balancers(observation.load_balancers, services, observation.cluster_id, observation.binding)


def plan(observation: ServiceObservation, options: ServiceOptions) -> Plan:
    """The plan for all Services; pure."""
    return service_plan.plan_all(
        observation.services,
        observation.load_balancers,
        observation.nodes,
        observation.slices,
        observation.builder,
        observation.facts,
        rules_of(observation, options),
        observation.hidden,
        anchored=observation.anchored,
    )


def rules_of(observation: ServiceObservation, options: ServiceOptions) -> Rules:
    """The rules for a plan of this observation."""
    return options.rules(observation.cluster_id, observation.classes, observation.binding)


class ServiceController:
    """The daemon's loop. The caller starts the informers after constructing this object."""

    def __init__(
        self,
        kube: KubeApi,
        cloud: Cloud,
        services: ObjectCache,
        nodes: ObjectCache,
        slices: ObjectCache,
        events: Events,
        metrics: Metrics,
        options: ServiceOptions,
        safeguard: Safeguard,
        machines: InstanceSnapshot,
        checkpoint: Checkpoint | None = None,
        pods: ObjectCache | None = None,
    ) -> None:
        """`pods`: those with readiness gates of this cloud that are not ready (`is_held`); None without gates."""
        self._kube = kube
        load_balancers = load_balancers_of(cloud)
        self._builder = load_balancers.builder
        self._services = services
        self._nodes = nodes
        self._events = events
        self._metrics = metrics
        self._options = options
        self._checkpoint = checkpoint
        self._rules = options.rules(cloud.cluster_id, cloud.load_balancer_classes, safeguard.binding)
        self._safeguard = safeguard
        self._preloaded = False
        self._cache = LoadBalancerCache(load_balancers, cloud.cluster_id)
        self._anchor = Anchor(machines, nodes, self._cache, self._builder, self._rules)
        self._endpoints = ServiceEndpoints(slices, self._endpoints_changed)
        self._backends: Backends | None = None  # Computed once for thousands of Services.
        self._debouncer = NodeDebouncer()
        self._node_sync = Round()
        self._polling = Polling()
        self._queue: WorkQueue[str] = WorkQueue(of_many=(RESYNC, NODES_CHANGED, POLL, CHECKPOINT))
        self._threads: list[threading.Thread] = []
        self._stop: threading.Event | None = None
        self._trouble: str | None = None
        self._unclaimed: set[str] = set()
        self._reconciler = ServiceReconciler(
            kube,
            cloud,
            self._cache,
            events,
            metrics,
            self._rules,
            requeue=lambda key, seconds: self._queue.add_after(key, seconds),
            part_freed=self._wake_those_on,
            creation_lost=lambda: self._queue.add_after(RESYNC, _SECOND_RESYNC),
            safeguard=safeguard,
            anchor=self._anchor,
            checkpoint=checkpoint,
        )
        metrics.watch_queue(NAME, self._queue)
        metrics.attention.labels(Attention.NOT_SERVED.value).set_function(self._count_not_served)
        metrics.attention.labels(Attention.NO_READY_ENDPOINTS.value).set_function(self._count_without_endpoints)
        self._gates: PodGates | None = None
        if pods is not None and options.gates is not None:
            self._gates = PodGates(
                kube,
                load_balancers,
                self._cache,
                services,
                pods,
                self._endpoints,
                self._rules,
                options.gates,
                events,
                backends=lambda: self._backends,
                members_changed=self._endpoints_changed,
            )
            metrics.watch_queue(GATES, self._gates.queue)
        services.add_handler(self._service_changed)
        nodes.add_handler(self._node_changed)

    @property
    def name(self) -> str:
        """`service`."""
        return NAME

    def evidence(self) -> Evidence:
        """Read all load balancers; the first resync does not read them again. Raises `CloudError`."""
        self._load()
        self._preloaded = True
        services = {service["metadata"]["uid"] for service in self._services.items()}
        return of_load_balancers(self._cache.all(), services, self._rules.cluster_id, self._rules.binding)

    def confirmed(self, targets: Collection[str]) -> None:
        """See `Controller.confirmed`."""
        for target in targets:
            self._queue.add(object_of(target).removeprefix("service/"), Cause.OBJECT)

    def start(self, stop: threading.Event) -> None:
        """Start the workers, which run until `stop` is set. The informers must have synced."""
        self._stop = stop
        self._queue.add(RESYNC)
        self._cache.workers = self._options.workers
        for number in range(self._options.workers):
            worker = threading.Thread(target=work, args=(self._queue, self.handle), name=f"service-{number}")
            self._threads.append(worker)
        if self._gates is not None:
            for number in range(self._options.workers):
                gates = threading.Thread(
                    target=work, args=(self._gates.queue, self._gates.handle), name=f"readiness-gates-{number}"
                )
                self._threads.append(gates)
        self._threads.append(threading.Thread(target=self._close_when, args=(stop,), name="service-stop"))
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def join(self, timeout: float) -> bool:
        """Wait for the workers after `stop` is set; False if they have not ended within `timeout` seconds."""
        end = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        if ended and self._checkpoint and self._cache.loaded:
            self._checkpoint.save()
        return ended

    def ended(self) -> str | None:
        """See `Controller.ended`."""
        if self._stop is not None and not self._stop.is_set():
            gone = [thread.name for thread in self._threads if not thread.is_alive()]
            return f"thread {gone[0]} has stopped" if gone else None
        return None

    def trouble(self) -> str | None:
        """Why the load balancers cannot be read, or None."""
        return self.ended() or self._trouble

    def _close_when(self, stop: threading.Event) -> None:
        stop.wait()
        self._queue.close()
        if self._gates is not None:
            self._gates.queue.close()

    # ----------------------------------------------------------------------------------------------------- handlers

    def _service_changed(self, type: EventType, old: Object | None, new: Object | None) -> None:
        for each in (old, new):
            if each is not None:
                self._reconciler.note_deletion(each)
        service = new or old
        if service is None or (old and new and service_rules.service_traits(old) == service_rules.service_traits(new)):
            return
        if type is EventType.DELETED or self._concerns_us(service) or self._cache.get(key(service)):
            # Echoes of our own writes (finalizer, status) must not bypass the backoff of a failed Service.
            asked = old is None or new is None or service_rules.asked_traits(old) != service_rules.asked_traits(new)
            self._queue.add(key(service), Cause.OBJECT if asked else Cause.ROUTINE)
        else:
            self._reconciler.forget(key(service))

    def _node_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        # Kubelets post their status every few seconds: ignore what does not affect members.
        was = old and service_rules.node_traits(old, self._builder, self._rules)
        is_now = new and service_rules.node_traits(new, self._builder, self._rules)
        backend = is_now.backend if is_now else None
        recovered = old is not None and new is not None and view.is_ready(new) and not view.is_ready(old)
        again = recovered and backend is not None and self._reconciler.left_out.retry(backend.instance_id)
        if was != is_now:
            self._debouncer.changed(DEBOUNCE_CHANGED if backend else DEBOUNCE_REMOVED)
        elif not again:
            return
        self._queue.add_after(NODES_CHANGED, self._debouncer.wait())

    def _endpoints_changed(self, key: str) -> None:
        service = self._services.get(key)
        if service is not None and self._builder.follows_endpoints(service):
            self._queue.add_after(key, _ENDPOINT_DELAY, Cause.DEPENDENCY)

    def handle(self, key: str) -> None:
        """Process one key of the queue. Raises CloudError or ApiError after reporting it in an event."""
        with self._metrics.timed(NAME):
            if key == RESYNC:
                self._resync()
            elif key == NODES_CHANGED:
                self._take_nodes()
            elif key == POLL:
                self._poll()
            elif key == CHECKPOINT:
                self._keep()
            elif (
                self._backends is not None and self._cache.loaded
            ):  # Otherwise the first resync enqueues every Service.
                self._sync(key, self._backends)

    def _concerns_us(self, service: Object) -> bool:
        wanted = service_rules.wants_load_balancer(service, self._rules, self._builder)
        return wanted or service_rules.has_finalizer(service)

    def _resync(self) -> None:
        first = self._preloaded or not self._cache.loaded
        try:
            if not self._preloaded:
                self._load()
            self._preloaded = False
        except CloudError as error:
            self._trouble = str(error)
            raise
        self._trouble = None
        self._reconciler.left_out.retry_all(but=self._not_ready())
        self._report_unclaimed()
        # A held load balancer may be gone by now: only a reconcile of its Service clears the held action.
        held = (action.target for action in self._safeguard.held() if action.target.startswith("service/"))
        for each in {*self._all_keys(), *(object_of(target).removeprefix("service/") for target in held)}:
            self._queue.add(each)
        self._poll_later()
        if self._options.resync > 0:
            self._queue.add_after(RESYNC, self._options.resync)
        if first:
            self._queue.add_after(RESYNC, _SECOND_RESYNC)
        self._keep_later()

    def _load(self) -> None:
        if self._backends is None:
            # Before anything else: reconciling a Service without nodes would remove all its members.
            self._backends = self._read_nodes()
        services = self._services.items()
        if not self._cache.loaded and self._checkpoint and self._trouble is None:
            self._checkpoint.restore()
        uids = {service["metadata"]["uid"]: key(service) for service in services}
        self._cache.load(uids, _named(services, self._builder))
        self._anchor.look(services)

    def _report_unclaimed(self) -> None:
        """Log each adoptable load balancer whose Service does not exist, once."""
        unclaimed = {lb.id: lb for lb in self._cache.unclaimed()} if self._options.without_class else {}
        for lb_id in unclaimed.keys() - self._unclaimed:
            for action in service_adoption.left_alone(unclaimed[lb_id], "service"):
                _log.warning("left alone load_balancer=%s why=%r", lb_id, action.reason)
        self._unclaimed = {*unclaimed}

    def _take_nodes(self) -> None:
        wait = self._debouncer.wait()
        if wait > 0:  # More nodes changed: batch them too.
            self._queue.add_after(NODES_CHANGED, wait)
            return
        self._debouncer.reset()
        backends = self._read_nodes()
        if not backends.nodes:
            self._safeguard.verify()  # A data loss in etcd must not remove every member.
        self._backends = backends
        keys = self._all_keys()
        self._node_sync.begin(each for each in keys if not self._queue.must_wait(each, Cause.DEPENDENCY))
        for each in keys:
            self._queue.add(each, Cause.DEPENDENCY)

    def _all_keys(self) -> list[str]:
        wanted = (key(service) for service in self._services.items() if self._concerns_us(service))
        return sorted({*wanted, *self._cache.keys()})

    def _poll(self) -> None:
        """Read all load balancers that the cloud is working on in one batch, so that no Service occupies a worker."""
        waiting = self._cache.unsettled()
        if not waiting:
            return
        self._cache.refresh((), waiting.keys())
        self._poll_later()

    def _poll_later(self) -> None:
        for each in self._cache.take_progressed():
            self._queue.add(each, Cause.OBJECT)
        waiting = self._cache.unsettled()
        if waiting:
            self._queue.add_after(POLL, self._polling.pause(waiting.keys()))

    def _keep_later(self) -> None:
        if self._checkpoint:
            self._queue.add_after(CHECKPOINT, _CHECKPOINT_PERIOD)

    def _keep(self) -> None:
        """Save the checkpoint if the controller is idle."""
        idle = not self._queue.depth() and not self._cache.unsettled()
        if self._checkpoint and not (idle and self._checkpoint.save()):
            self._keep_later()

    # ------------------------------------------------------------------------------------------------- one Service

    def _sync(self, key: str, backends: Backends) -> None:
        service = self._services.get(key)
        follows = service and self._builder.follows_endpoints(service)
        if service is not None and follows:
            slices = self._endpoints.get(key)
            backends = replace(backends, slices=self._gates.counted(service, slices) if self._gates else slices)
        try:
            self._reconciler.reconcile(key, service, backends)
        finally:
            # As upstream, a failed Service counts as done: its retry is not part of the round.
            if (seconds := self._node_sync.seen(key)) is not None:
                self._metrics.node_sync_seconds.observe(seconds)
            if self._gates is not None:
                self._gates.changed(key)
            self._poll_later()
            self._keep_later()

    def _wake_those_on(self, id: str, by: str) -> None:
        """Service `by` freed a part of a load balancer: enqueue those that may wait for its port or its deletion."""
        catalogue = self._builder.catalogue
        services = self._services.items()
        waiting = {key(service) for service in services if service_rules.reused_id(service, catalogue) == id}
        for each in (waiting | self._cache.keys_of(id)) - {by}:
            self._queue.add_after(each, SHORTEST_PAUSE, Cause.DEPENDENCY)

    def _count_not_served(self) -> int:
        services = self._services.items()
        return sum(service_rules.lacks_controller(service, self._rules, self._builder) for service in services)

    def _count_without_endpoints(self) -> int:
        slices, rules, builder = self._endpoints.get, self._rules, self._builder
        services = self._services.items()
        return sum(service_rules.lacks_endpoints(each, slices(key(each)), rules, builder) for each in services)

    def _not_ready(self) -> set[str]:
        """The machines whose nodes are not ready; `_node_changed` tells when they are."""
        nodes = (node for node in self._nodes.items() if not view.is_ready(node))
        found = (service_rules.node_traits(node, self._builder, self._rules).backend for node in nodes)
        return {backend.instance_id for backend in found if backend is not None}

    def _read_nodes(self) -> Backends:
        return service_rules.backends_of(self._nodes.items(), self._builder, self._rules)


# --------------------------------------------------------------------------------------------------------- helpers


def _named(services: Iterable[Object], builder: LoadBalancerBuilder) -> set[str]:
    """The load balancers that Services name in annotations."""
    found = (service_rules.reused_id(service, builder.catalogue) for service in services)
    return {named for named in found if named is not None}
