"""Rights that lead to more rights, or to credentials (after "RBAC good practices" of Kubernetes' documentation)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class _Power:
    groups: Collection[str]
    resources: Collection[str]
    verbs: Collection[str]
    enough_to: str
    unless_named: bool = False
    """With names of objects it is harmless enough."""


_CHANGE: Final = ("create", "update", "patch")
_POWERS: Final = (
    _Power([""], ["secrets"], ["get", "list", "watch"], "read every Secret", unless_named=True),
    _Power([""], ["serviceaccounts/token"], ["create"], "become any ServiceAccount", unless_named=True),
    _Power([_RBAC], ["roles", "clusterroles"], ["escalate"], "take any right"),
    _Power([_RBAC], ["roles", "clusterroles"], ["bind"], "take any role", unless_named=True),
    _Power([""], ["users", "groups", "serviceaccounts"], ["impersonate"], "act as others", unless_named=True),
    _Power([""], ["pods/exec", "pods/attach"], ["create", "get"], "run commands in other pods"),
    _Power([""], ["pods/ephemeralcontainers"], ["update", "patch"], "run commands in other pods"),
    _Power([""], ["nodes/proxy"], ["create", "get"], "run commands in every pod of a node"),
    _Power(
        ["certificates.k8s.io"],
        ["certificatesigningrequests/approval"],
        ["update", "patch"],
        "approve anyone's certificate",
    ),
    _Power(
        ["admissionregistration.k8s.io"],
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        _CHANGE,
        "see and change every object that is written",
    ),
)
_OF_CCMS: Final = (
    *_POWERS,
    _Power([""], ["pods", "replicationcontrollers"], _CHANGE, "run pods as any ServiceAccount"),
    _Power(
        ["apps", "batch"],
        ["daemonsets", "deployments", "replicasets", "statefulsets", "jobs", "cronjobs"],
        _CHANGE,
        "run pods as any ServiceAccount",
    ),
    _Power([_RBAC], ["roles", "clusterroles", "rolebindings", "clusterrolebindings"], _CHANGE, "change rights"),
)


def power(group: str, resource: str, verb: str, named: bool) -> str | None:
    """What such a right is enough to do; None: nothing of the kind. `named`: it is for certain objects only.

    Wildcards are enough for everything, and are not judged here.
    """
    return _of(_POWERS, group, resource, verb, named)


def power_of_ccm(group: str, resource: str, verb: str, named: bool) -> str | None:
    """As `power`, with what many programs rightly have, but no cloud controller manager."""
    return _of(_OF_CCMS, group, resource, verb, named)


def _of(powers: Collection[_Power], group: str, resource: str, verb: str, named: bool) -> str | None:
    for each in powers:
        if group in each.groups and resource in each.resources and verb in each.verbs:
            return None if named and each.unless_named else each.enough_to
    return None
