"""Nodes as backends of load balancers of both kinds, and which of them a Service's annotations choose. Pure."""

from __future__ import annotations

from dataclasses import replace

from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.settings import Settings

UNSCHEDULABLE = "cloud-controller/unschedulable"
"""A label that a cordoned node has as a backend, not in the cluster: Services may leave such nodes out."""


def chosen(backends: Backends, settings: Settings) -> Backends:
    """The backends on nodes with the Service's `backend-label`, without cordoned ones if it says so."""
    wanted = dict(pair.split("=", 1) for pair in (settings.text("backend_label") or "").split(",") if pair)
    without_cordoned = (
        "remove_unscheduled_backend" in settings.by_argument and settings.text("remove_unscheduled_backend") == "on"
    )
    if not wanted and not without_cordoned:
        return backends
    nodes = (
        node
        for node in backends.nodes
        if wanted.items() <= node.labels.items() and not (without_cordoned and UNSCHEDULABLE in node.labels)
    )
    return replace(backends, nodes=tuple(nodes))
