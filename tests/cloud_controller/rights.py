"""Users of a real API server who have given rights and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Kube,
    Object,
    Resource,
    name,
)
from cloud_controller.rbac import LEASE_NAMESPACE, Rules
from local.control_plane.control_plane import ControlPlane


def roles(user: str, rules: Rules) -> Sequence[tuple[Resource, Object]]:
    """What gives the user these rights."""
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "name": user}
    space = {"name": user, "namespace": LEASE_NAMESPACE}
    return (
        (CLUSTER_ROLES, {"metadata": {"name": user}, "rules": [rule.to_json() for rule in rules.cluster]}),
        (
            CLUSTER_ROLE_BINDINGS,
            {"metadata": {"name": user}, "roleRef": role | {"kind": "ClusterRole"}, "subjects": subjects},
        ),
        (ROLES, {"metadata": space, "rules": [rule.to_json() for rule in rules.namespaced]}),
        (ROLE_BINDINGS, {"metadata": space, "roleRef": role | {"kind": "Role"}, "subjects": subjects}),
    )


@contextmanager
def user_with(control_plane: ControlPlane, kube: Kube, user: str, rules: Rules) -> Iterator[str]:
    """The kubeconfig of a user who has these rights meanwhile."""
    made = roles(user, rules)
    for resource, obj in made:
        kube.create(resource, obj)
    try:
        yield control_plane.kubeconfig(user, [], timedelta(hours=1))
    finally:
        for resource, obj in reversed(made):
            kube.delete(resource, name(obj), obj["metadata"].get("namespace"))
