"""What a stack as a whole says of its cluster: who runs the control plane, its version, its machines and quotas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from policy import clouds
from policy.clouds.interface import PolicyCloud
from policy.data import load
from policy.kubernetes_flags import Found, flags_of
from policy.objects import dig
from policy.rules import Stack, setting
from policy.subjects import Subject
from policy.unknowns import first_known

VERSION = {
    "kubernetesVersion": setting(
        "string",
        "The cluster's Kubernetes version; by default that of the stack's managed cluster or kubeadm configuration.",
        "",
    ),
}
"""The setting of a rule that depends on the cluster's version."""

_CLOUDS = clouds.descriptors()


def control_planes(stack: Stack) -> Iterator[tuple[PolicyCloud, Subject]]:
    """The stack's control planes that a cloud runs."""
    for cloud in _CLOUDS:
        for subject in stack.of(*cloud.infrastructure.control_planes):
            yield cloud, subject


def require_own_control_plane(stack: Stack) -> None:
    """End the rule where a cloud runs the control plane, and so chooses its flags and ranges."""
    for cloud, subject in control_planes(stack):
        stack.not_applicable(f"{cloud.name} runs the control plane ({subject.name}) and sets what this rule judges")


def cluster_version(stack: Stack) -> str | None:
    """The version, such as `1.36` or `1.34.1-aliyun.1`; None if nothing says it. Raises UnknownValueError."""
    if given := stack.config.get("kubernetesVersion"):
        return str(given)
    for cloud, subject in control_planes(stack):
        key = cloud.infrastructure.control_planes[subject.kind]
        if key and (found := dig(subject.props, key)):
            return str(found)
    return first_known(partial(_version_in, found) for _, found in flags_of(stack))


def require_version(stack: Stack) -> str:
    """As `cluster_version`; ends the rule where nothing says it."""
    found = cluster_version(stack)
    if not found:
        stack.not_applicable(
            "unknown Kubernetes version: no managed cluster or kubeadm configuration of the stack names it, and "
            "kubernetesVersion is not set"
        )
    return str(found)


def clouds_of_machines(stack: Stack) -> list[PolicyCloud]:
    """The clouds on which the stack makes machines."""
    return [cloud for cloud in _CLOUDS if stack.of(*cloud.infrastructure.machines)]


def most_machines(stack: Stack, cloud: PolicyCloud) -> int:
    """How many machines there can be on the cloud, with every pool at its largest. Raises UnknownValueError."""
    kinds = cloud.infrastructure.machines
    return sum(_number(subject, kinds[subject.kind]) for subject in stack.of(*kinds))


def route_quota(cloud: PolicyCloud) -> int | None:
    """How many routes a table of the cloud takes unless the account has more; None if that is not known."""
    row = load("limits")["route_quota"].get(cloud.name)
    return int(row["default"]) if row else None


def _number(subject: Subject, places: tuple[tuple[str, ...], ...]) -> int:
    return max((int(dig(subject.props, *path) or 0) for path in places), default=1)


def _version_in(found: Found) -> str | None:
    flags = found()
    version = flags.anywhere("kubernetesVersion") or ""
    image = re.search(r"\bkube-(?:apiserver|controller-manager):v?(1\.\d+\.\d+)", flags.text)
    said = re.fullmatch(r"(?:stable-|v)?(1\.\d+(?:\.\d+.*)?)", version)
    return said[1] if said else image[1] if image else None
