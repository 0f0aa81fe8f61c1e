"""What the daemon counts, for /metrics: passes, actions, queues and leadership, each by controller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_NODE_DELAY = tuple(4.0**k for k in range(6))


class Metrics:
    """One registry of the process; made once and handed to every controller."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "cloud_controller_reconcile_seconds",
            "How long one observe-plan-apply pass took (service: one Service).",
            ["controller"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.reconcile_errors = Counter(
            "cloud_controller_reconcile_errors",
            "Passes that failed, by the error's type.",
            ["controller", "error"],
            registry=self.registry,
        )
        self.actions = Counter(
            "cloud_controller_actions",
            "Actions of plans that were carried out, by kind; result is done or failed.",
            ["controller", "kind", "result"],
            registry=self.registry,
        )
        self.ignored = Gauge(
            "cloud_controller_ignored_differences",
            "Differences that the last plan left alone, for example foreign routes.",
            ["controller"],
            registry=self.registry,
        )
        self.queue_depth = Gauge(
            "cloud_controller_queue_depth", "Keys that wait for work.", ["controller"], registry=self.registry
        )
        self.leader = Gauge(
            "cloud_controller_leader", "1 while this process holds the lease, else 0.", registry=self.registry
        )
        # Upstream's names, so that dashboards made for it go on working.
        self.taint_removal_delay = Histogram(
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "Seconds from a node's creation to the removal of its uninitialized taint.",
            buckets=_NODE_DELAY,
            registry=self.registry,
        )

    @contextmanager
    def timed(self, controller: str) -> Iterator[None]:
        """Time one pass; an exception is counted by its type and goes on."""
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            self.reconcile_errors.labels(controller, type(error).__name__).inc()
            raise
        finally:
            self.reconcile_seconds.labels(controller).observe(time.monotonic() - started)

    def render(self) -> bytes:
        """The text that /metrics answers."""
        return generate_latest(self.registry)
