"""The daemon: waits for leadership, runs the controllers and their caches, and shuts down cleanly.

Exit code 0 after a requested stop; 1 if the lease is lost or a thread dies. A restart loses nothing: all state is in
the API server and in the cloud.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from cloud_controller.binding import Binding
from cloud_controller.cloud import Cloud, CloudError, ForeignCluster, InvalidConfiguration
from cloud_controller.controllers import Controller
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController, NodeLifecycleOptions
from cloud_controller.controllers.queue import WorkQueue
from cloud_controller.controllers.route import RouteController
from cloud_controller.controllers.service.checkpoint import checkpoint_of
from cloud_controller.controllers.service.controller import ServiceController
from cloud_controller.controllers.volume.controller import VolumeController, VolumeInformers
from cloud_controller.daemon.dry_run import DryRun
from cloud_controller.daemon.health import Check, HealthServer
from cloud_controller.daemon.leader import LeaderElector
from cloud_controller.daemon.options import ManagerOptions
from cloud_controller.daemon.reviews import Reviews
from cloud_controller.events import EventRecorder
from cloud_controller.fence import WriteRefused, read_only, unfenced
from cloud_controller.kube import ENDPOINT_SLICES, NODES, PODS, SERVICES, Informer, Kube
from cloud_controller.load_balancers.readiness_gates import is_held
from cloud_controller.metrics import Metrics
from cloud_controller.planning import PlanSettings, find
from cloud_controller.proof import prove, readable
from cloud_controller.safeguard import Safeguard, cluster_uid

_SERVICE_COMPONENT = "service-controller"
_STOP_TIMEOUT = 10.0
"""Seconds for all controllers together to finish the calls in progress. The lease is held until then."""
_LEASE_CHECK = 1.0
"""Seconds between checks for an overdue lease; much less than between its renew deadline and its expiry."""
_REVIEW_TIMEOUT = 5.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0

_log = logging.getLogger(__name__)


class Manager:
    """One run of the daemon."""

    def __init__(self, kube: Kube, cloud: Cloud, options: ManagerOptions) -> None:
        """Raises `InvalidConfiguration` if the cloud or the options lack what a controller needs, and `ApiError` if the
        cluster's identity cannot be read."""
        self._options = options
        self._elector = elector = self._candidate(kube)
        # The fence is closed until this process holds the lease, so a standby writes nothing either.
        fence = elector.fence if elector else read_only if options.dry_run else unfenced
        self._kube = kube.fenced(fence)
        self._cloud = cloud
        cloud.fence_writes(fence)
        self._metrics = Metrics()
        cloud.observe_calls(self._metrics.cloud_calls(cloud.provider_name))
        self._nodes = Informer(self._kube, NODES)
        if options.credential_expires is not None:
            self._metrics.credential_expires(options.credential_expires)
        self._machines = InstanceSnapshot(
            cloud.instances, options.node_monitor_period, read=self._metrics.machines_read
        )
        self._informers = [] if options.dry_run else [self._nodes]
        self._service_events = EventRecorder(self._kube, _SERVICE_COMPONENT)
        self.foreign: str | None = None
        """Why cloud config and Kubernetes cluster do not belong together, if that has stopped this run."""
        self._safeguard = Safeguard(
            self._kube,
            options.lease_namespace,
            options.lease_name,
            self._metrics,
            binding=Binding(cluster_uid(kube), options.moved_from_cluster),
            foreign=self._end_as_foreign,
        )
        make = self._make_dry if options.dry_run else self._make
        self._controllers = [make(name) for name in options.controllers]
        self._leading = False
        self._state: str | None = "starting"
        self.busy = False
        """Whether a controller was still working when `run` returned. THE PROCESS MUST EXIT: another may lead."""

    def run(self, stop: threading.Event) -> int:
        """Work until `stop` is set, and return the exit code. Sets `stop` itself when the daemon must end.

        Raises OSError if the HTTP server's address cannot be bound.
        """
        self._stop = stop
        elector = self._elector
        with _ended_by_dead_threads(stop) as died, self._health():
            if elector is None:
                self._work(stop)
                return self._code(died)
            self._lead(False)
            self._state = None  # A standby is ready.
            if not elector.acquire(stop):
                return int(died.is_set())
            lost, ended = threading.Event(), threading.Event()
            holder = threading.Thread(target=_hold, args=(elector, ended, stop, lost), name="lease", daemon=True)
            holder.start()
            self._lead(True)
            self._work(stop, abandon=lambda: lost.is_set() or elector.overdue())
            self._lead(False)
            ended.set()
            if lost.is_set() or elector.overdue():
                return 1
            holder.join()
            if self.busy:
                _log.warning("lease not released: a controller is still busy; the lease will expire")
            else:
                elector.release()
            return self._code(died)

    def _code(self, died: threading.Event) -> int:
        return int(died.is_set() or self.foreign is not None)

    def _end_as_foreign(self, why: str) -> None:
        _log.critical("stopping without any further write: %s", why)
        self.foreign = why
        self._stop.set()

    def _lead(self, leads: bool) -> None:
        self._leading = leads
        self._metrics.leader.labels(self._options.lease_name).set(int(leads))

    def _work(self, stop: threading.Event, abandon: Callable[[], bool] = lambda: False) -> None:
        """Run the controllers until `stop`, then wait for them, unless `abandon` says that another may lead already."""
        self._state = "caches are not synced"
        for informer in self._informers:
            informer.start()
        if self._wait_synced(stop) and self._prove(stop):
            if not self._options.dry_run:
                self._watch_confirmations(stop)
            for controller in self._controllers:
                _log.info("start controller=%s", controller.name)
                controller.start(stop)
            self._state = None
            while not stop.wait(_LEASE_CHECK):
                if abandon():
                    _log.error("lease may be lost: stopping all controllers immediately")
                    stop.set()
        if abandon():
            for informer in self._informers:
                informer.stop(wait=False)
            self.busy = True
            return
        self._state = "stopping"
        end = time.monotonic() + _STOP_TIMEOUT
        for controller in self._controllers:
            if not controller.join(max(0.0, end - time.monotonic())):
                _log.warning("controller did not stop in time controller=%s", controller.name)
                self.busy = True
        for informer in self._informers:
            # They only read, and an API server that does not answer would hold up the end for minutes.
            informer.stop(wait=False)
        self._service_events.close()

    def _wait_synced(self, stop: threading.Event) -> bool:
        for informer in self._informers:
            while not informer.wait_until(lambda informer=informer: informer.synced or stop.is_set(), 1.0):  # type: ignore[misc]
                if informer.error is not None:
                    self._state = f"caches are not synced: {informer.error}"
            if stop.is_set():
                return False
        return True

    def _prove(self, stop: threading.Event) -> bool:
        """Wait until the evidence shows that cloud config and cluster belong together; False if stopped before.

        A dry run writes nothing, so it needs no proof.
        """
        queue = WorkQueue[str](_FIRST_PAUSE, _LONGEST_PAUSE)
        while not stop.is_set():
            try:
                if not self._options.dry_run:
                    read = [readable(each.name, each.evidence) for each in self._controllers]
                    prove(
                        [evidence for evidence in read if evidence is not None],
                        self._nodes.items,
                        self._cloud,
                        self._machines,
                        self._options.service.pod_ranges,
                        self._safeguard.binding,
                    )
                return True
            except ForeignCluster as foreign:
                self._end_as_foreign(str(foreign))
            except CloudError as error:
                self._state = f"cannot verify that cloud config and cluster belong together: {error}"
                delay = queue.add_after_error("start", error)
                _log.warning("start delayed retry_in=%.1fs error=%r", delay, str(error))
                stop.wait(delay)
        return False

    def _watch_confirmations(self, stop: threading.Event) -> None:
        by_name = {controller.name: controller for controller in self._controllers}
        wake = lambda name, targets: by_name[name].confirmed(targets)  # noqa: E731
        args = (stop, tuple(by_name), wake)
        threading.Thread(target=self._safeguard.watch, args=args, name="confirmations", daemon=True).start()

    def _make_dry(self, name: str) -> Controller:
        options = self._options
        settings = PlanSettings(
            options.route,
            options.service,
            NodeLifecycleOptions(grace=options.node_deletion_grace_period),
            self._safeguard,
        )
        plan = lambda: find(name, self._kube, self._cloud, self._machines, settings).plan  # noqa: E731
        return DryRun(name, plan, self._metrics, options.route_reconciliation_period)

    def _make(self, name: str) -> Controller:
        options = self._options
        context = ControllerContext(
            self._kube,
            self._cloud,
            self._nodes,
            self._metrics,
            self._machines,
            self._safeguard,
            options.workers,
        )
        match name:
            case "node":
                return NodeController(context, options.node_status_update_frequency, options.status_workers)
            case "node-lifecycle":
                lifecycle = NodeLifecycleOptions(grace=options.node_deletion_grace_period)
                return NodeLifecycleController(context, options.node_monitor_period, lifecycle)
            case "route":
                if self._cloud.routes is None:
                    why = f"cloud {self._cloud.provider_name} does not support routes"
                    raise InvalidConfiguration("controllers", why, "every controller but route")
                if options.route is None:
                    raise InvalidConfiguration("cluster-cidr", "missing; controller route requires it")
                return RouteController(context, options.route, options.route_reconciliation_period)
            case "service":
                services, slices = Informer(self._kube, SERVICES), Informer(self._kube, ENDPOINT_SLICES)
                self._informers += [services, slices]
                pods: Informer | None = None
                if (gates := options.service.gates) is not None:
                    # Ended pods never become ready; the server leaves them out.
                    alive = "status.phase!=Succeeded,status.phase!=Failed"
                    pods = Informer(self._kube, PODS, field_selector=alive, keep=partial(is_held, gates=gates))
                    self._informers.append(pods)
                return ServiceController(
                    self._kube,
                    self._cloud,
                    services,
                    self._nodes,
                    slices,
                    self._service_events,
                    self._metrics,
                    options.service,
                    self._safeguard,
                    self._machines,
                    checkpoint_of(self._kube, self._cloud),
                    pods,
                )
            case "volume":
                if self._cloud.volumes is None:
                    why = f"cloud {self._cloud.provider_name} does not support volumes"
                    raise InvalidConfiguration("controllers", why, "every controller but volume")
                storage = VolumeInformers.of(self._kube)
                self._informers += storage
                return VolumeController(context, storage)
        raise ValueError(f"unknown controller {name!r}")

    def _candidate(self, kube: Kube) -> LeaderElector | None:
        options = self._options
        if not options.leader_elect or options.dry_run:
            return None
        # Its calls must time out early enough for the holder to stop before another process may lead.
        kube = kube.with_timeout(options.lease_times.retry_period)
        return LeaderElector(kube, options.lease_namespace, options.lease_name, times=options.lease_times)

    @contextmanager
    def _health(self) -> Iterator[None]:
        serving = self._options.serving
        if serving is None:
            yield
            return
        live: dict[str, Check] = {"ping": lambda: None, "leader-election": self._overdue}
        live |= {f"controller-{controller.name}": controller.ended for controller in self._controllers}
        ready: dict[str, Check] = {"state": lambda: self._state, "leader-election": self._unreached}
        ready |= {f"cache-{informer.resource.plural}": partial(_stale, informer) for informer in self._informers}
        ready |= {f"controller-{controller.name}": controller.trouble for controller in self._controllers}
        reviews = Reviews(
            (serving.authentication or self._kube).with_timeout(_REVIEW_TIMEOUT),
            (serving.authorization or self._kube).with_timeout(_REVIEW_TIMEOUT),
        )
        details = {"actions-held": self._safeguard.detail}
        server = HealthServer(serving, live, ready, self._metrics.render, reviews, details)
        server.start()
        _log.info("serving address=%s port=%d protected=%s", serving.address, server.port, serving.protected)
        try:
            yield
        finally:
            server.stop()

    def _overdue(self) -> str | None:
        leads = self._leading and self._elector is not None
        return "lease is overdue" if leads and self._elector and self._elector.overdue() else None

    def _unreached(self) -> str | None:
        """Why the lease is not accessible. A process that can never lead is no standby, so it is not ready."""
        why = self._elector and self._elector.trouble
        return f"lease is not accessible: {why}" if why else None


def _stale(informer: Informer) -> str | None:
    return None if informer.error is None else f"may be stale: {informer.error}"


def _hold(elector: LeaderElector, ended: threading.Event, stop: threading.Event, lost: threading.Event) -> None:
    if not elector.hold(ended):
        lost.set()
        stop.set()


@contextmanager
def _ended_by_dead_threads(stop: threading.Event) -> Iterator[threading.Event]:
    """Set `stop` on an unhandled exception in any thread: a bug, or a write that the fence refused.

    Otherwise the daemon would look healthy while a part of it no longer works. Workers of a queue survive a bug in the
    handling of one key (`queue.work`).
    """
    died = threading.Event()
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        thread = args.thread.name if args.thread else "?"
        if isinstance(args.exc_value, WriteRefused):
            _log.error("write refused thread=%s why=%r", thread, str(args.exc_value))
        elif args.exc_value is not None:
            _log.critical("thread died thread=%s", thread, exc_info=args.exc_value)
        died.set()
        stop.set()

    threading.excepthook = hook
    try:
        yield died
    finally:
        threading.excepthook = before
