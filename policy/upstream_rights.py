"""What the controllers of upstream's framework (k8s.io/cloud-provider) call in Kubernetes.

Source, read on 2026-11-26: kubernetes/cloud-provider, controllers/node/node_controller.go at 2ddc635,
controllers/nodelifecycle/node_lifecycle_controller.go at 9cbe875, controllers/service/controller.go at 5bc7e64, and
their helpers. A vendor's own controllers may call more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from policy.rbac_rights import Right

CONTROLLERS: Final = ("node", "node-lifecycle", "service", "route")
"""By their names here (`cloud_controller.controller_names` has upstream's)."""

_Verbs = Mapping[str, tuple[str, ...]]
"""By resource."""

_OF_ALL: Final[_Verbs] = {"nodes": ("list", "watch"), "events": ("create", "patch")}
_OF: Final[Mapping[str, _Verbs]] = {
    # It initialises a node with an update, and refreshes labels and addresses with patches.
    "node": {"nodes": ("get", "update", "patch"), "nodes/status": ("patch",)},
    "node-lifecycle": {"nodes": ("get", "patch", "delete")},
    # The finalizer, too, is written by way of the status.
    "service": {"services": ("list", "watch"), "services/status": ("patch",)},
    "route": {"nodes/status": ("patch",)},
}


def rights(controllers: Collection[str], lease: str, lease_namespace: str) -> frozenset[Right]:
    """What these controllers need, and the election of a leader."""
    tables = [_OF_ALL, *(_OF[controller] for controller in controllers)]
    found = {Right("", resource, verb) for table in tables for resource, verbs in table.items() for verb in verbs}
    leases = ("coordination.k8s.io", "leases")
    found.add(Right(*leases, "create", lease_namespace))
    found.update(Right(*leases, verb, lease_namespace, lease) for verb in ("get", "update"))
    return frozenset(found)
