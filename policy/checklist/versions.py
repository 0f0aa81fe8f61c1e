"""Rules: the version of a vendor's cloud controller manager matches the cluster's Kubernetes, and is known to.

The clouds' matrices decide (`PolicyCloud.ccm`). Unknown versions are a rule of their own, whose level can differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.clouds.common.versions import Verdict
from policy.infrastructure import VERSION, require_version
from policy.objects import dig
from policy.rules import ADVISORY, LOW, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.vendors import vendor
from policy.workloads import WORKLOADS, Container, containers


def problems(stack: Stack, kind: str) -> Iterator[tuple[Subject, Problem]]:
    """Workloads of vendors' controllers for which the matrix's verdict is of this kind."""
    kubernetes = require_version(stack)
    for workload in stack.of(*WORKLOADS):
        for container in containers(workload):
            yield workload, partial(_problem, container, kubernetes, kind)


def _problem(container: Container, kubernetes: str, kind: str) -> str | None:
    found = vendor(container)
    if found is None:
        return None
    verdict = found.matrix.judge(found.tag, kubernetes) if found.tag else _untold(container)
    return verdict.why if verdict.kind == kind else None


def _untold(container: Container) -> Verdict:
    what = f"the image of container {dig(container(), 'name')} has no tag"
    return Verdict(
        "unknown", f"{what}, so its version cannot be told: add one, also before a digest (IMAGE:v1.36.1@sha256:…)"
    )


CCM_FITS_KUBERNETES = StackRule(
    "ccm-workload-fit-kubernetes",
    partial(problems, kind="wrong"),
    why=(
        "A vendor's cloud controller manager supports certain minor versions of Kubernetes. With another one it is "
        "untested, and may use an API that the cluster no longer has."
    ),
    level=ADVISORY,
    settings=VERSION,
    title="The CCM fits the cluster's version",
    severity=MEDIUM,
    lines=["11.1.5"],
    sections="4.1, 5.1, 6.1, 7.1, 12.1",
    judges=(
        "A vendor's own controller goes with the cluster's version of Kubernetes, by the vendor's matrix. The registry "
        "does not matter, so mirrors are recognised; an image that is only called `cloud-controller-manager` belongs "
        "to the cloud that `--cloud-provider` names. The cluster's version comes from the stack's managed cluster, "
        "from a kubeadm configuration, or from the setting `kubernetesVersion`; the rule skips a stack that has none. "
        "The matrices are `versions.py` of each cloud in `cloud_controller/clouds/`, which the program reads too, and "
        "of `policy/clouds/others/`."
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
    settings=VERSION,
    title="The CCM's version is in the matrix",
    severity=LOW,
    lines=["11.1.5"],
    sections="4.1, 5.1, 6.1, 7.1, 12.1",
    judges=(
        "The matrix has a row for both versions, and the image a tag that says which one it is. A version without a "
        "row, or an image by its digest alone, is unknown, which is reported; the message names the newest row. If "
        "your other rules are mandatory, set this rule's level separately."
    ),
    tags=["versions"],
    remedy=(
        "Read the vendor's release notes; then add the row with its date and source to the matrix, or use versions "
        "that it has."
    ),
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)
