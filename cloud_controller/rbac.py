"""What the daemon may do in Kubernetes: exactly what its enabled controllers call, from one table.

The table is the only place that knows RBAC; the Pulumi program makes its roles from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloud_controller.controller_names import canonical

LEASE_NAMESPACE = "kube-system"
LEASE_NAME = "cloud-controller-manager"
"""The Lease by which one of several instances leads (upstream's name)."""
CHECKPOINT_NAME = "cloud-controller-checkpoint"
"""The ConfigMap, beside the Lease, in which the service controller keeps what it remembers of some clouds."""

_CORE = ""
_DISCOVERY = "discovery.k8s.io"
_STORAGE = "storage.k8s.io"
_FOLLOW = ("list", "watch")
"""What a cache needs; `get` is for those who ask again when another has written."""

# (API group, resource): verbs.
_Table = Mapping[tuple[str, str], tuple[str, ...]]

_SHARED: _Table = {
    (_CORE, "nodes"): _FOLLOW,
    (_CORE, "events"): ("create", "patch"),
}
_REVIEWS: _Table = {
    ("authentication.k8s.io", "tokenreviews"): ("create",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
}
_CONTROLLERS: Mapping[str, _Table] = {
    "node": {(_CORE, "nodes"): ("get", "patch"), (_CORE, "nodes/status"): ("patch",)},
    "node-lifecycle": {(_CORE, "nodes"): ("get", "patch", "delete")},
    "route": {(_CORE, "nodes"): ("get",), (_CORE, "nodes/status"): ("patch",)},
    "service": {
        (_CORE, "services"): ("get", *_FOLLOW, "patch"),
        (_CORE, "services/status"): ("patch",),
        # Whose pods are where, for members that follow them.
        (_DISCOVERY, "endpointslices"): _FOLLOW,
    },
    "volume": {
        (_CORE, "persistentvolumeclaims"): ("get", *_FOLLOW, "patch"),
        (_CORE, "persistentvolumeclaims/status"): ("patch",),
        (_CORE, "persistentvolumes"): ("get", *_FOLLOW, "create", "patch", "delete"),
        (_STORAGE, "storageclasses"): _FOLLOW,
        (_STORAGE, "volumeattachments"): (*_FOLLOW, "patch"),
        (_STORAGE, "volumeattachments/status"): ("patch",),
    },
}
_READINESS_GATES: _Table = {
    (_CORE, "pods"): _FOLLOW,
    (_CORE, "pods/status"): ("patch",),
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One RBAC rule; `resource_names` empty: any object."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it stands in a Role's `rules`."""
        rule = {"apiGroups": [*self.api_groups], "resources": [*self.resources], "verbs": [*self.verbs]}
        return rule | ({"resourceNames": [*self.resource_names]} if self.resource_names else {})


@dataclass(frozen=True, slots=True)
class Rules:
    """`cluster` for a ClusterRole, `namespaced` for a Role in LEASE_NAMESPACE."""

    cluster: tuple[PolicyRule, ...]
    namespaced: tuple[PolicyRule, ...]


def rules(
    controllers: Collection[str],
    *,
    protected: bool = False,
    keeps_checkpoint: bool = False,
    readiness_gates: bool = False,
    lease: str = LEASE_NAME,
) -> Rules:
    """The least rights with which a daemon runs these controllers (names or upstream's aliases).

    `protected`: it serves beyond loopback, and asks the API server who may read /metrics. `keeps_checkpoint`: as the
    cloud's descriptor has it. `readiness_gates`: the service controller serves those of pods. `lease`: the Lease by
    which it leads. Raises `InvalidConfiguration` for a name that is not a controller.
    """
    chosen = {canonical(controller) for controller in controllers}
    verbs: dict[tuple[str, str], set[str]] = {}
    more = (
        *((_REVIEWS,) if protected else ()),
        *((_READINESS_GATES,) if readiness_gates and "service" in chosen else ()),
    )
    for table in (_SHARED, *more, *(_CONTROLLERS[controller] for controller in sorted(chosen))):
        for resource, allowed in table.items():
            verbs.setdefault(resource, set()).update(allowed)
    cluster = (
        # The UID of this namespace is the cluster's identity.
        PolicyRule((_CORE,), ("namespaces",), ("get",), (LEASE_NAMESPACE,)),
        *(PolicyRule((group,), (resource,), _ordered(allowed)) for (group, resource), allowed in sorted(verbs.items())),
    )
    # RBAC can't restrict a create by name: the object's name is not part of the request's path.
    leases = ("coordination.k8s.io",), ("leases",)
    namespaced = [PolicyRule(*leases, ("create",)), PolicyRule(*leases, ("get", "update"), (lease,))]
    if "service" in chosen and keeps_checkpoint:
        maps = (_CORE,), ("configmaps",)
        namespaced += [PolicyRule(*maps, ("create",)), PolicyRule(*maps, ("get", "update"), (CHECKPOINT_NAME,))]
    return Rules(cluster, tuple(namespaced))


_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


def _ordered(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=_ORDER.index))
