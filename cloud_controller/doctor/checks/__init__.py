"""All checks, each after those whose findings may explain its own."""

from __future__ import annotations

from typing import Final

from cloud_controller.doctor.checks import api_server, cloud_api, leader, nodes, pods
from cloud_controller.doctor.findings import Check

ALL: Final[tuple[Check, ...]] = (
    api_server.CHECK,
    cloud_api.CONFIG,
    cloud_api.CALLS,
    pods.CHECK,
    leader.CHECK,
    nodes.INITIALISED,
)
"""In the order of a report."""
