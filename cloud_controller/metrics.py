"""The daemon's Prometheus metrics, with upstream's names for the same things.

So dashboards and alerts for the upstream cloud controller manager keep working. `docs/monitoring.md` lists all series.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from importlib.metadata import version
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cloud_controller.cloud import CallObserver, CloudError, NotFound
from cloud_controller.plan import Plan
from cloud_controller.series import api_prefix

# A series more for each counter and histogram, which no rule here reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_NODE_DELAY = tuple(4.0**k for k in range(6))
_HOST_LATENCY = tuple(2.0**k for k in range(15))
_PLAN_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)


class Queue(Protocol):
    """A controller's queue, read at each scrape."""

    @property
    def retries(self) -> int:
        """The number of times that a key was retried after a failure."""
        ...

    def depth(self) -> int:
        """The number of waiting keys."""
        ...

    def longest_running(self) -> float:
        """Seconds since the oldest work in progress began; 0 if there is none."""
        ...


class Metrics:
    """The process's metrics registry, shared by all controllers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build = Gauge("cloud_controller_build_info", "1; the version is a label.", ["version"], registry=self.registry)
        build.labels(version("cloud-controller")).set(1)
        self._machines_read: Gauge | None = None
        self._queues = _Queues()
        self.registry.register(self._queues)
        self.reconcile_seconds = Histogram(
            "cloud_controller_reconcile_seconds",
            "Duration of one observe-plan-apply pass (service: of one Service).",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.reconcile_errors = Counter(
            "cloud_controller_reconcile_errors",
            "Failed passes by error type.",
            ["controller", "error"],
            registry=self.registry,
        )
        self.plan_changes = Histogram(
            "cloud_controller_plan_changes",
            "Number of changes per plan with changes.",
            ["controller"],
            buckets=_PLAN_SIZES,
            registry=self.registry,
        )
        self.actions = Counter(
            "cloud_controller_actions",
            "Plan actions by kind and result (done, failed or postponed).",
            ["controller", "kind", "result"],
            registry=self.registry,
        )
        self.drift_corrections = Counter(
            "cloud_controller_drift_corrections",
            "Changes that undo what somebody else has changed in the cloud, counted once, at the first attempt.",
            ["controller"],
            registry=self.registry,
        )
        self.ignored = Gauge(
            "cloud_controller_ignored_differences",
            "Differences that the last plan left alone, for example foreign routes.",
            ["controller"],
            registry=self.registry,
        )
        self.held = Gauge(
            "cloudcontroller_actions_held",
            "Actions that wait until an administrator confirms them: cloud-controller confirm DIGEST.",
            ["controller"],
            registry=self.registry,
        )
        self.attention = Gauge(
            "cloud_controller_services_needing_attention",
            "Services that need somebody's attention, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self.leader = Gauge(
            "leader_election_master_status",
            "1 while this process holds the lease, else 0.",
            ["name"],
            registry=self.registry,
        )
        self.taint_removal_delay = Histogram(
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "Seconds from a node's creation to the removal of its uninitialized taint.",
            buckets=_NODE_DELAY,
            registry=self.registry,
        )
        self.initial_node_sync_delay = Histogram(
            "node_controller_initial_node_sync_delay_seconds",
            "Seconds from a node's creation until it was fully initialised.",
            buckets=_NODE_DELAY,
            registry=self.registry,
        )
        self.route_syncs = Counter(
            "route_controller_route_sync", "Passes over the route table.", registry=self.registry
        )
        self.routes = Gauge("cloud_controller_routes", "Routes in the cluster's route table.", registry=self.registry)
        self.route_quota = Gauge(
            "cloud_controller_route_quota", "Routes that the table may hold; 0: unknown.", registry=self.registry
        )
        self.load_balancer_syncs = Counter(
            "service_controller_loadbalancer_sync",
            "Reconciles of a Service that had changes to apply.",
            registry=self.registry,
        )
        self.host_update_seconds = Histogram(
            "service_controller_update_loadbalancer_host_latency_seconds",
            "Duration of updates that changed only members of a load balancer.",
            buckets=_HOST_LATENCY,
            registry=self.registry,
        )
        self.node_sync_seconds = Histogram(
            "service_controller_nodesync_latency_seconds",
            "Time until every Service was reconciled after a change of nodes.",
            buckets=_HOST_LATENCY,
            registry=self.registry,
        )
        self.node_sync_errors = Counter(
            "service_controller_nodesync_error",
            "Failed updates that changed only members.",
            registry=self.registry,
        )

    def watch_queue(self, name: str, queue: Queue) -> None:
        """Include this queue in the metrics."""
        self._queues.by_name[name] = queue

    def planned(self, controller: str, plan: Plan) -> None:
        """Record a plan that is about to be applied."""
        if plan.changes:
            self.plan_changes.labels(controller).observe(len(plan.changes))

    def credential_expires(self, day: date) -> None:
        """Export when the cloud credential expires: at the end of its last day, in UTC."""
        gauge = Gauge(
            "cloud_controller_credential_expiry_timestamp_seconds",
            "When the cloud credential expires, in Unix seconds.",
            registry=self.registry,
        )
        gauge.set(datetime.combine(day + timedelta(days=1), time_of_day.min, UTC).timestamp())

    def will_read_machines(self) -> None:
        """Export from now on when the cloud's machines were read last; until the first read, the time of this call.

        Only a leader whose controllers read them regularly calls it, so that nothing waits for reads of a standby.
        """
        if self._machines_read is None:
            self._machines_read = Gauge(
                "cloud_controller_machines_read_timestamp_seconds",
                "When the cloud's machines were last read successfully, in Unix seconds.",
                registry=self.registry,
            )
            self.machines_read()

    def machines_read(self) -> None:
        """The cloud has just reported its machines."""
        if self._machines_read is not None:
            self._machines_read.set_to_current_time()

    def cloud_calls(self, provider: str) -> CallObserver:
        """Create the two series of this cloud's API; as upstream, their names contain the provider."""
        prefix = api_prefix(provider)
        seconds = Histogram(
            f"{prefix}_duration_seconds",
            "Duration of cloud API requests, per attempt.",
            ["request"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        errors = Counter(
            f"{prefix}_errors",
            'Failed cloud API requests; "not found" does not count as a failure.',
            ["request"],
            registry=self.registry,
        )

        def observe(operation: str, duration: float, error: CloudError | None) -> None:
            seconds.labels(operation).observe(duration)
            failed = errors.labels(operation)
            if error is not None and not isinstance(error, NotFound):
                failed.inc()

        return observe

    @contextmanager
    def timed(self, controller: str) -> Iterator[None]:
        """Time one pass; count and re-raise its exception."""
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            self.reconcile_errors.labels(controller, type(error).__name__).inc()
            raise
        finally:
            self.reconcile_seconds.labels(controller).observe(time.monotonic() - started)

    @contextmanager
    def host_update(self) -> Iterator[None]:
        """Time an update of only members; count and re-raise its exception."""
        started = time.monotonic()
        try:
            yield
        except Exception:
            self.node_sync_errors.inc()
            raise
        finally:
            self.host_update_seconds.observe(time.monotonic() - started)

    def render(self) -> bytes:
        """The body of /metrics."""
        return generate_latest(self.registry)


class _Queues(Collector):
    """client-go's `workqueue_*` series, read from the queues themselves."""

    def __init__(self) -> None:
        self.by_name: dict[str, Queue] = {}

    def collect(self) -> Iterable[Metric]:
        depth = GaugeMetricFamily("workqueue_depth", "Number of waiting keys.", labels=["name"])
        retries = CounterMetricFamily("workqueue_retries", "Retries of keys after failures.", labels=["name"])
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Age of the oldest work in progress.", labels=["name"]
        )
        for name, queue in sorted(self.by_name.items()):
            depth.add_metric([name], queue.depth())
            retries.add_metric([name], queue.retries)
            longest.add_metric([name], queue.longest_running())
        return depth, retries, longest
