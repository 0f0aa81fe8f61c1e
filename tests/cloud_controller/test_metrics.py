"""What /metrics tells, under which names."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cloud_controller.cloud import NotFound, Throttled
from cloud_controller.controllers.queue import WorkQueue
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, Plan


def value(metrics: Metrics, sample: str, **labels: str) -> float | None:
    families = text_string_to_metric_families(metrics.render().decode())
    found = [s.value for f in families for s in f.samples if s.name == sample and s.labels == labels]
    return found[0] if found else None


def test_a_clouds_calls_are_timed_by_operation_under_the_clouds_name() -> None:
    metrics = Metrics()
    observe = metrics.cloud_calls("my-cloud")

    observe("GET machines", 0.2, None)
    observe("GET machines", 0.4, Throttled("slowly", 1))

    prefix = "cloudprovider_my_cloud_api_request"
    assert value(metrics, f"{prefix}_duration_seconds_count", request="GET machines") == 2
    assert value(metrics, f"{prefix}_duration_seconds_sum", request="GET machines") == pytest.approx(0.6)
    assert value(metrics, f"{prefix}_errors_total", request="GET machines") == 1


def test_not_found_does_not_count_as_a_cloud_api_error() -> None:
    metrics = Metrics()
    observe = metrics.cloud_calls("x")

    observe("GET machines/ID", 0.1, NotFound("gone"))

    assert value(metrics, "cloudprovider_x_api_request_errors_total", request="GET machines/ID") == 0


def test_queue_metrics_show_depth_retries_and_the_age_of_the_oldest_work() -> None:
    metrics, now = Metrics(), [100.0]
    queue: WorkQueue[str] = WorkQueue(clock=lambda: now[0])
    metrics.watch_queue("service", queue)
    for key in ("a", "b", "c"):
        queue.add(key)
    assert queue.get() == "a"
    now[0] += 7
    assert queue.get() == "b"
    queue.add_rate_limited("d")

    assert value(metrics, "workqueue_depth", name="service") == 1  # What comes back later does not wait yet.
    assert value(metrics, "workqueue_retries_total", name="service") == 1
    assert value(metrics, "workqueue_longest_running_processor_seconds", name="service") == 7

    queue.done("a")
    queue.done("b")
    assert value(metrics, "workqueue_longest_running_processor_seconds", name="service") == 0


def test_the_plan_size_metric_ignores_plans_without_changes() -> None:
    metrics = Metrics()
    ignored = Action(ActionKind.IGNORE, "route/x", "stays", reason="foreign")

    metrics.planned("route", Plan.of([ignored]))
    metrics.planned("route", Plan.of([ignored, Action(ActionKind.CREATE, "route/y", "write")]))

    assert value(metrics, "cloud_controller_plan_changes_count", controller="route") == 1
    assert value(metrics, "cloud_controller_plan_changes_sum", controller="route") == 1


def test_a_change_of_members_that_fails_is_timed_and_counted() -> None:
    metrics = Metrics()

    with pytest.raises(Throttled), metrics.host_update():
        raise Throttled("slowly", 1)

    assert value(metrics, "service_controller_nodesync_error_total") == 1
    assert value(metrics, "service_controller_update_loadbalancer_host_latency_seconds_count") == 1


def test_metrics_include_the_process_itself() -> None:
    assert value(Metrics(), "process_resident_memory_bytes")
