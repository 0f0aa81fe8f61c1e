"""Rule: kube-controller-manager leaves the cloud to the cloud controller manager."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from cloud_controller.clouds.common.versions import minor
from policy.infrastructure import VERSION, cluster_version, require_own_control_plane
from policy.kubernetes_flags import CLUSTER, CONTROLLER_MANAGER, UNKNOWN_TEXTS, Flags, Found, flags_of
from policy.rules import HIGH, MANDATORY, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_SHORT: Final = frozenset({"cloud-node-lifecycle", "route", "service"})
_LONG: Final = frozenset({"cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"})
_OTHERS: Final = frozenset(
    {
        "cloud-node",
        "cloud-node-controller",
        "cloud-route",
        "cloud-service",
        "route-controller",
        "service-controller",
    }
)
"""Names that cloud controller managers have, or people guess; kube-controller-manager refuses them."""
_FIRST_LONG, _FIRST_WITHOUT = 28, 37
"""Kubernetes' minor versions. Sources: kubernetes#115813; kube-controller-manager of 1.36.1 and of 1.37.2, run."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Configurations of kube-controller-manager that run cloud controllers, or that it refuses."""
    require_own_control_plane(stack)
    for subject, found in flags_of(stack):
        yield subject, partial(_provider, subject, found)
        yield subject, partial(_controllers, stack, found)


def _provider(subject: Subject, found: Found) -> str | None:
    flags = found()
    if not _is_configured(flags):
        return None
    if not flags.has(CONTROLLER_MANAGER, "cloud-provider"):
        # What a patch leaves out may be set elsewhere.
        if subject.is_patch:
            return None
        return f"{flags.where}: kube-controller-manager lacks --cloud-provider=external"
    if flags.value(CONTROLLER_MANAGER, "cloud-provider") in ("external", None):
        return None
    return f"{flags.where}: --cloud-provider of kube-controller-manager must be external; others are refused since 1.31"


def _controllers(stack: Stack, found: Found) -> str | None:
    flags = found()
    names = [each.strip() for each in (flags.value(CONTROLLER_MANAGER, "controllers") or "").split(",")]
    if on := sorted({*names} & (_SHORT | _LONG)):
        return f"{flags.where}: --controllers of kube-controller-manager turns on {', '.join(on)}, which the CCM runs"
    off = {each.removeprefix("-") for each in names if each.startswith("-")}
    if wrong := sorted(off & _OTHERS):
        return f"{flags.where}: kube-controller-manager knows no controller {', '.join(wrong)}, and refuses to start"
    if not off & (_SHORT | _LONG):
        return None
    version = minor(cluster_version(stack) or "")
    if version is not None and version >= _FIRST_WITHOUT:
        return (
            f"{flags.where}: kube-controller-manager has no cloud controllers since 1.{_FIRST_WITHOUT} and refuses "
            f"--controllers with {', '.join(sorted(off & (_SHORT | _LONG)))}: remove them"
        )
    if version is not None and version < _FIRST_LONG and off & _LONG:
        return (
            f"{flags.where}: kube-controller-manager before 1.{_FIRST_LONG} knows no controller "
            f"{', '.join(sorted(off & _LONG))}: use {', '.join(f'-{name}' for name in sorted(_SHORT))}"
        )
    return None


def _is_configured(flags: Flags) -> bool:
    """Whether the flags are all that kube-controller-manager gets; a mere mention is no configuration."""
    if CLUSTER in flags.headings:
        return True
    return any(component == CONTROLLER_MANAGER for component, _ in flags.values) or (
        flags.where.startswith("container ") and CONTROLLER_MANAGER in flags.headings
    )


CONTROLLER_MANAGER_LEAVES_CLOUD = StackRule(
    "controller-manager-leave-cloud-to-ccm",
    problems,
    why=(
        "kube-controller-manager runs with --cloud-provider=external, so that it runs no cloud controllers beside the "
        "CCM's. With a name in --controllers that its version does not know, or with another cloud provider, it does "
        "not start at all."
    ),
    level=MANDATORY,
    settings=VERSION,
    title="kube-controller-manager leaves the cloud to the CCM",
    severity=HIGH,
    lines=["11.1.9"],
    sections="8.3",
    judges=(
        "kubeadm's `ClusterConfiguration` and the flags of kube-controller-manager, in user data, ConfigMaps, Secrets "
        "and workloads: `--cloud-provider` is `external`, and `--controllers` names no cloud controller. With "
        "`external`, no cloud controller runs in any version; turning them off as well is allowed where their names "
        "exist: `cloud-node-lifecycle`, `route`, `service` up to 1.36, `cloud-node-lifecycle-controller`, "
        "`node-route-controller`, `service-lb-controller` from 1.28 to 1.36. Since 1.37 kube-controller-manager "
        "refuses all of them. The rule skips a stack whose control plane a cloud runs."
    ),
    unseen=(
        "A configuration that a machine downloads or that its image holds, a `--config` file of "
        "kube-controller-manager, and a value that depends on a variable set elsewhere." + UNKNOWN_TEXTS
    ),
    tags=["control-plane"],
    remedy=(
        "Set --cloud-provider=external on kube-controller-manager (controllerManager.extraArgs of kubeadm's "
        "ClusterConfiguration), and remove cloud controllers from --controllers."
    ),
    url="https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/",
)
