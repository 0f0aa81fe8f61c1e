"""Rule: nodes run no newer Kubernetes than the control plane, and none that is too old for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from cloud_controller.clouds.common.versions import minor
from policy import clouds
from policy.infrastructure import VERSION, require_version
from policy.kubernetes_flags import UNKNOWN_TEXTS, Found, flags_of
from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_OLDEST: Final = 3
"""By how many minor versions a kubelet may be older than the API server, since 1.28 (version skew policy)."""
_PACKAGE: Final = re.compile(r"\bkubelet[-=]v?(1\.\d+)")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Pools and machines whose version does not go with the control plane's."""
    nodes = list(_nodes(stack))
    if not nodes:
        stack.not_applicable("no node pool or machine of the stack names its Kubernetes version")
    cluster = minor(require_version(stack))
    for subject, version in nodes:
        yield subject, partial(_problem, version, cluster)


def _nodes(stack: Stack) -> Iterator[tuple[Subject, Callable[[], str | None]]]:
    for cloud in clouds.descriptors():
        for subject in stack.of(*cloud.infrastructure.node_versions):
            yield subject, partial(dig, subject.props, cloud.infrastructure.node_versions[subject.kind])
    for subject, found in flags_of(stack):
        yield subject, partial(_in_text, found)


def _in_text(found: Found) -> str | None:
    package = _PACKAGE.search(found().text)
    return package[1] if package else None


def _problem(version: Callable[[], str | None], cluster: int | None) -> str | None:
    node = minor(str(version() or ""))
    if node is None or cluster is None:
        return None
    if node > cluster:
        return f"nodes of 1.{node} under a control plane of 1.{cluster}: upgrade the control plane first, then the CCM"
    if cluster - node > _OLDEST:
        return f"nodes of 1.{node} are too old for a control plane of 1.{cluster}: at most {_OLDEST} minor versions"
    return None


NODES_FOLLOW_CONTROL_PLANE = StackRule(
    "node-follow-control-plane-version",
    problems,
    why=(
        "An upgrade goes from the control plane to the CCM to the nodes. A kubelet that is newer than the API server "
        "is not supported, and neither is one that is more than three minor versions older."
    ),
    level=ADVISORY,
    settings=VERSION,
    title="Nodes follow the control plane's version",
    severity=MEDIUM,
    lines=["11.1.5"],
    sections="12.3",
    judges=(
        "The version of the cloud's node pools that have one of their own, and of the package `kubelet` that user data "
        "installs, is at most the control plane's and at most three minor versions older. "
        "`ccm-workload-fit-kubernetes` judges whether the CCM is newer than the control plane."
    ),
    unseen="Versions of machine images, and of packages that a script computes." + UNKNOWN_TEXTS,
    tags=["versions"],
    remedy="Upgrade in order: control plane, CCM, nodes; one minor version of the control plane at a time.",
    url="https://kubernetes.io/releases/version-skew-policy/",
)
