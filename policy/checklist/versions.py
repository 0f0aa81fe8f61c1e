"""Rules: the version of a vendor's cloud controller manager matches the cluster's Kubernetes, and is known to.

The clouds' matrices decide (`PolicyCloud.ccm`). Unknown versions are a rule of their own, whose level can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy import clouds
from policy.objects import dig
from policy.rules import ADVISORY, LOW, MEDIUM, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import WORKLOADS, Container, containers

_MATRICES = [cloud.ccm for cloud in clouds.descriptors() if cloud.ccm]


def problems(stack: Stack, kind: str) -> Iterator[tuple[Subject, Problem]]:
    """Workloads of vendors' controllers for which the matrix's verdict is of this kind."""
    kubernetes = stack.config.get("kubernetesVersion") or _version_of_cluster(stack)
    if not kubernetes:
        stack.not_applicable(
            "unknown Kubernetes version: the stack has no managed cluster and kubernetesVersion is not set"
        )
    for workload in stack.of(*WORKLOADS):
        for container in containers(workload):
            yield workload, partial(_problem, container, str(kubernetes), kind)


def _problem(container: Container, kubernetes: str, kind: str) -> str | None:
    name, _, tag = str(dig(container(), "image") or "").partition("@")[0].rpartition(":")
    verdicts = [matrix.judge(tag, kubernetes) for matrix in _MATRICES if tag and matrix.image.fullmatch(name)]
    return next((verdict.why for verdict in verdicts if verdict.kind == kind), None)


def _version_of_cluster(stack: Stack) -> str | None:
    for matrix in _MATRICES:
        for kind, key in matrix.clusters.items():
            for cluster in stack.of(kind):
                if found := dig(cluster.props, key):
                    return str(found)
    return None


_SETTINGS = {
    "kubernetesVersion": setting(
        "string", "The cluster's Kubernetes version; by default that of the stack's managed cluster.", ""
    ),
}


CCM_FITS_KUBERNETES = StackRule(
    "ccm-workload-fit-kubernetes",
    partial(problems, kind="wrong"),
    why=(
        "A vendor's cloud controller manager supports certain minor versions of Kubernetes. With another one it is "
        "untested, and may use an API that the cluster no longer has."
    ),
    level=ADVISORY,
    settings=_SETTINGS,
    title="The CCM fits the cluster's version",
    severity=MEDIUM,
    lines=["11.1.5"],
    sections="4.1, 5.1, 6.1, 7.1, 12.1",
    judges=(
        "A vendor's own controller goes with the cluster's version of Kubernetes: AWS's "
        "(`registry.k8s.io/provider-aws/cloud-controller-manager`) has its minor version, Alibaba's "
        "(`…/cloud-controller-manager-amd64`) a row that includes it. The cluster's version comes from the stack's "
        "EKS or ACK cluster, or from the setting `kubernetesVersion`; the rule skips a stack that has neither. The "
        "matrices are `versions.py` of each cloud in `cloud_controller/clouds/`, which the program reads too."
    ),
    tags=["versions"],
    remedy=(
        "Run the version that the matrix (`versions.py` of the cloud in cloud_controller/clouds) has for the cluster, "
        "and change it together with the cluster's version."
    ),
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)

CCM_VERSION_KNOWN = StackRule(
    "ccm-workload-use-known-version",
    partial(problems, kind="unknown"),
    why=(
        "The matrix has no row for the versions of cloud controller manager and cluster, so nobody has said that they "
        "work together: they do not pass rule ccm-workload-fit-kubernetes, they are only not known to be wrong."
    ),
    level=ADVISORY,
    settings=_SETTINGS,
    title="The CCM's version is in the matrix",
    severity=LOW,
    lines=["11.1.5"],
    sections="4.1, 5.1, 6.1, 7.1, 12.1",
    judges=(
        "The matrix has a row for both versions. A version without a row is unknown, which is reported; the "
        "message names the newest row. If your other rules are mandatory, set this rule's level separately."
    ),
    tags=["versions"],
    remedy=(
        "Read the vendor's release notes; then add the row with its date and source to the matrix, or use versions "
        "that it has."
    ),
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)
