"""The series that a daemon exports, and those of others that alerts read."""

from __future__ import annotations

from datetime import date

from prometheus_client.metrics_core import Metric

from cloud_controller.controllers.queue import WorkQueue
from cloud_controller.metrics import Metrics
from cloud_controller.monitoring.alerts import Source

FOREIGN = {
    Source.PROMETHEUS: {"up"},
    Source.KUBE_CONTROLLER_MANAGER: {"node_collector_zone_health"},
    Source.KUBE_STATE_METRICS: {"kube_node_spec_taint"},
    Source.DOCTOR: {"cloud_controller_doctor_findings", "cloud_controller_doctor_last_run_timestamp_seconds"},
}


def families(provider: str = "PROVIDER") -> dict[str, Metric]:
    """The metrics of a daemon that has every controller and leads, by name; without those of its process."""
    metrics = Metrics()
    metrics.cloud_calls(provider)
    metrics.will_read_machines()
    metrics.credential_expires(date(2027, 1, 31))
    metrics.watch_queue("node", WorkQueue())
    found = {_name(family): family for family in metrics.registry.collect()}
    return {name: family for name, family in found.items() if not name.startswith("process_")}


def samples(provider: str) -> set[str]:
    """The names of all series that this daemon can export."""
    found = set()
    for name, family in families(provider).items():
        found |= {f"{name}_{part}" for part in ("bucket", "count", "sum")} if family.type == "histogram" else {name}
    return found


def _name(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else str(family.name)
