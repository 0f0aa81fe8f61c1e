"""Rule: kube-apiserver gets no flag of cloud providers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from cloud_controller.clouds.common.versions import minor
from policy.infrastructure import VERSION, cluster_version, require_own_control_plane
from policy.kubernetes_flags import API_SERVER, UNKNOWN_TEXTS, Found, flags_of
from policy.rules import HIGH, MANDATORY, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_FLAGS: Final = ("cloud-provider", "cloud-config")
_REFUSED_SINCE: Final = 33
"""Kubernetes' minor version. Source: kubernetes#130162; kube-apiserver of 1.36.1 and of 1.37.2, run."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """API servers that are given `--cloud-provider` or `--cloud-config`."""
    require_own_control_plane(stack)
    for subject, found in flags_of(stack):
        yield subject, partial(_problem, stack, found)


def _problem(stack: Stack, found: Found) -> str | None:
    flags = found()
    given = [f"--{name}" for name in _FLAGS if flags.has(API_SERVER, name)]
    if not given:
        return None
    version = minor(cluster_version(stack) or "")
    if version is not None and version < _REFUSED_SINCE:
        return None
    return f"{flags.where}: kube-apiserver refuses {' and '.join(given)} since 1.{_REFUSED_SINCE}: remove it"


API_SERVER_WITHOUT_CLOUD = StackRule(
    "api-server-avoid-cloud-provider",
    problems,
    why=(
        "kube-apiserver has known no cloud providers since 1.33: with --cloud-provider, even external, it does not "
        "start."
    ),
    level=MANDATORY,
    settings=VERSION,
    title="kube-apiserver has no cloud provider",
    severity=HIGH,
    lines=["11.1.9"],
    sections="8.3",
    judges=(
        "The flags of kube-apiserver in user data, ConfigMaps, Secrets and workloads have neither `--cloud-provider` "
        "nor `--cloud-config`, unless the cluster's version is known and before 1.33. The rule skips a stack whose "
        "control plane a cloud runs."
    ),
    unseen="A configuration that a machine downloads or that its image holds." + UNKNOWN_TEXTS,
    tags=["control-plane"],
    remedy="Remove cloud-provider and cloud-config from apiServer.extraArgs; before 1.33 external is the default.",
    url="https://github.com/kubernetes/kubernetes/pull/130162",
)
