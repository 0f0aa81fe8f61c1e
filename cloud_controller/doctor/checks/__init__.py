"""All checks, each after those whose findings may explain its own."""

from __future__ import annotations

from typing import Final

from cloud_controller.doctor.checks import (
    api_server,
    backend_health,
    backends,
    cloud_api,
    cloud_rights,
    drift,
    egress,
    expiry,
    held,
    kubernetes_flags,
    kubernetes_rights,
    leader,
    load_balancers,
    metrics,
    node_facts,
    node_machines,
    nodes,
    pods,
    quotas,
    routes,
    serving,
    versions,
)
from cloud_controller.doctor.findings import Check

ALL: Final[tuple[Check, ...]] = (
    api_server.CHECK,
    cloud_api.CONFIG,
    expiry.CHECK,
    cloud_api.CALLS,
    cloud_rights.CHECK,
    kubernetes_rights.CHECK,
    egress.CHECK,
    serving.HEALTH,
    pods.CHECK,
    leader.CHECK,
    serving.METRICS,
    metrics.ERRORS,
    metrics.LATENCY,
    metrics.QUEUES,
    versions.CHECK,
    kubernetes_flags.CHECK,
    quotas.CHECK,
    nodes.INITIALISED,
    node_facts.PROVIDER_IDS,
    node_facts.LABELS,
    node_facts.ADDRESSES,
    node_machines.CHECK,
    routes.CHECK,
    load_balancers.CHECK,
    backends.CHECK,
    backend_health.CHECK,
    held.CHECK,
    drift.CHECK,
)
"""In the order of a report."""
