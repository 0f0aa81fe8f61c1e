"""All checks, each after those whose findings may explain its own."""

from __future__ import annotations

from typing import Final

from cloud_controller.doctor.checks import (
    api_server,
    cloud_api,
    expiry,
    kubernetes_flags,
    kubernetes_rights,
    leader,
    metrics,
    nodes,
    pods,
    serving,
    versions,
)
from cloud_controller.doctor.findings import Check

ALL: Final[tuple[Check, ...]] = (
    api_server.CHECK,
    cloud_api.CONFIG,
    cloud_api.CALLS,
    kubernetes_rights.CHECK,
    serving.HEALTH,
    pods.CHECK,
    leader.CHECK,
    serving.METRICS,
    kubernetes_flags.CHECK,
    nodes.INITIALISED,
    metrics.ERRORS,
    metrics.LATENCY,
    metrics.QUEUES,
    versions.CHECK,
    expiry.CHECK,
)
"""In the order of a report."""
