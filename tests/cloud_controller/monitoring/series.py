"""The series that a daemon exports, and those of others that alerts read."""

from __future__ import annotations

from datetime import date

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from cloud_controller.controllers.queue import WorkQueue
from cloud_controller.metrics import Metrics
from cloud_controller.monitoring.alerts import Source

FOREIGN = {
    Source.PROMETHEUS: {"up"},
    Source.KUBE_CONTROLLER_MANAGER: {"node_collector_zone_health"},
    Source.KUBE_STATE_METRICS: {"kube_node_spec_taint"},
    Source.DOCTOR: {
        "cloud_controller_doctor_findings",
        "cloud_controller_doctor_last_run_timestamp_seconds",
        "cloud_controller_doctor_not_checked",
    },
}


def families(provider: str = "PROVIDER") -> dict[str, Metric]:
    """The metrics of a daemon that has every controller and leads, by name; without those of its process."""
    found = {_name(family): family for family in _everything(provider).registry.collect()}
    return {name: family for name, family in found.items() if not name.startswith("process_")}


def collector_labels() -> dict[str, tuple[str, ...]]:
    """The names of each metric's labels, by the metric's name."""
    metrics = _everything("PROVIDER")
    # A metric without samples does not show its labels; what a registry holds has no public name.
    collectors = {*metrics.registry._collector_to_names}
    wrappers = [each for each in collectors if isinstance(each, MetricWrapperBase)]
    found = {_name(family): each._labelnames for each in wrappers for family in each.describe()}
    queues = [family for each in collectors if not isinstance(each, MetricWrapperBase) for family in each.collect()]
    return found | {_name(family): tuple(family.samples[0].labels) for family in queues if family.samples}


def _everything(provider: str) -> Metrics:
    metrics = Metrics()
    metrics.cloud_calls(provider)
    metrics.will_read_machines()
    metrics.credential_expires(date(2027, 1, 31))
    metrics.watch_queue("node", WorkQueue())
    return metrics


def samples(provider: str) -> set[str]:
    """The names of all series that this daemon can export."""
    found = set()
    for name, family in families(provider).items():
        found |= {f"{name}_{part}" for part in ("bucket", "count", "sum")} if family.type == "histogram" else {name}
    return found


def _name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else str(family.name)
