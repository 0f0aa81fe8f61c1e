"""What /metrics tells, under which names."""

from __future__ import annotations

from datetime import UTC, date, datetime
from importlib.metadata import version

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


def test_the_version_is_a_label_of_the_build() -> None:
    assert value(Metrics(), "cloud_controller_build_info", version=version("cloud-controller")) == 1


def test_a_credential_expires_when_its_last_day_ends() -> None:
    metrics = Metrics()

    metrics.credential_expires(date(2026, 12, 31))

    of_2027 = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    assert value(metrics, "cloud_controller_credential_expiry_timestamp_seconds") == of_2027


def test_without_a_known_day_nothing_says_when_the_credential_expires() -> None:
    assert b"credential_expiry" not in Metrics().render()


def test_a_daemon_that_reads_no_machines_does_not_say_when_it_read_them() -> None:
    metrics = Metrics()

    metrics.machines_read()

    assert b"machines_read" not in metrics.render()


def test_the_time_of_the_last_read_of_machines_starts_with_the_controllers() -> None:
    metrics = Metrics()

    metrics.will_read_machines()
    started = value(metrics, "cloud_controller_machines_read_timestamp_seconds")
    metrics.will_read_machines()
    metrics.machines_read()

    read = value(metrics, "cloud_controller_machines_read_timestamp_seconds")
    assert started is not None and read is not None
    assert 0 < started < read


def test_no_series_says_when_another_was_created() -> None:
    metrics = Metrics()
    metrics.cloud_calls("x")("GET machines", 0.1, None)
    metrics.reconcile_errors.labels("node", "CloudError").inc()

    assert b"_created" not in metrics.render()
