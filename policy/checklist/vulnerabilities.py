"""Rule: neither the cluster's version nor the CCM's has a known vulnerability."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.known_versions import image_vulnerabilities, kubernetes_vulnerabilities
from policy.infrastructure import VERSION, cluster_version
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import WORKLOADS, Container, containers


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """Versions that an entry of the data names."""
    yield None, partial(_of_cluster, stack)
    for workload in stack.of(*WORKLOADS):
        for container in containers(workload):
            yield workload, partial(_of_image, container)


def _of_cluster(stack: Stack) -> str | None:
    return "; ".join(kubernetes_vulnerabilities(cluster_version(stack) or "")) or None


def _of_image(container: Container) -> str | None:
    return "; ".join(image_vulnerabilities(str(dig(container(), "image") or ""))) or None


NO_KNOWN_VULNERABILITIES = StackRule(
    "cluster-version-avoid-vulnerabilities",
    problems,
    why=(
        "Vulnerabilities of the control plane and of cloud controller managers are fixed in patch versions. A cluster "
        "on an older patch stays open to attacks that anybody can look up."
    ),
    level=ADVISORY,
    settings=VERSION,
    title="No version with a known vulnerability",
    severity=HIGH,
    lines=["11.4.8"],
    judges=(
        "The cluster's full version (`1.33.1`), and the tags of cloud controller managers' images, are not among those "
        "that `cloud_controller/known_versions/vulnerabilities.json` names. The file has its date, its sources and "
        "what was searched."
    ),
    unseen=(
        "A minor version alone (a managed cluster's `1.36`, kubeadm's `stable-1.36`) and a vendor's build "
        "(`1.34.1-VENDOR.1`), whose patches are the vendor's; vulnerabilities of libraries in an image, which image "
        "scanners find; whatever is newer than the file."
    ),
    tags=["versions", "supply-chain"],
    remedy="Upgrade to a fixed patch version, or move on to a newer minor version.",
    url="https://kubernetes.io/docs/reference/issues-security/official-cve-feed/",
)
