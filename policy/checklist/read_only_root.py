"""Rule: the cloud controller manager cannot write to its own image's files."""

from __future__ import annotations

from collections.abc import Iterator

from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.security_contexts import Context, of_contexts
from policy.subjects import Subject
from policy.unknowns import Problem
from policy.workloads import IMAGES, LOOK_ALIKES


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers of a CCM's pods whose root filesystem can be written."""
    yield from of_contexts(subject, _problem)


def _problem(context: Context, is_patch: bool) -> str | None:
    read_only = context("readOnlyRootFilesystem")
    if read_only or (is_patch and read_only is None):
        return None
    return "can write to its root filesystem; set readOnlyRootFilesystem: true"


CCM_HAS_READ_ONLY_ROOT = ResourceRule(
    "ccm-workload-read-only-root",
    problems,
    why=(
        "A cloud controller manager's root filesystem must be read-only. Otherwise whoever breaks into it can replace "
        "its program, and files that it writes there are lost with the container."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="The CCM's root filesystem is read-only",
    severity=MEDIUM,
    lines=["11.3.10"],
    judges=(
        "Every container of the CCM's pods, including init containers, has `readOnlyRootFilesystem: true`. A patch "
        "passes unless it sets false."
    ),
    tags=["security"],
    remedy=(
        "Set securityContext.readOnlyRootFilesystem: true in each container, and mount an emptyDir where it writes "
        "(a cache, generated certificates: --cert-dir)."
    ),
    url="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
)
