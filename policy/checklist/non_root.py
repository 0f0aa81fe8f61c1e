"""Rule: the cloud controller manager does not run as root, and cannot become root."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.rules import ADVISORY, HIGH, ResourceRule
from policy.security_contexts import Context, of_contexts
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, LOOK_ALIKES


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers of a CCM's pods that run as root, may do so, or can become root."""
    yield from of_contexts(subject, _problem)


def _problem(context: Context, is_patch: bool) -> str | None:
    return first_known((partial(_user, context, is_patch), partial(_escalation, context, is_patch)))


def _user(context: Context, is_patch: bool) -> str | None:
    user = context("runAsUser")
    if user is not None:
        return None if int(user) else "runs as root (runAsUser 0); set another user"
    non_root = context("runAsNonRoot")
    if non_root or (is_patch and non_root is None):
        return None
    return "may run as root; set runAsNonRoot: true, or runAsUser to a number other than 0"


def _escalation(context: Context, is_patch: bool) -> str | None:
    allowed = context("allowPrivilegeEscalation")
    if allowed is False or (is_patch and allowed is None):
        return None
    return "can become root; set allowPrivilegeEscalation: false"


CCM_RUNS_AS_NON_ROOT = ResourceRule(
    "ccm-workload-run-as-non-root",
    problems,
    why=(
        "A cloud controller manager must not run as root. It holds credentials of the whole cloud account and often "
        "runs on the control plane's network; as root, whoever breaks into it has the machine, often the one that etcd "
        "runs on."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="The CCM does not run as root",
    severity=HIGH,
    lines=["11.3.9"],
    sections="8.1",
    judges=(
        "Every container of the CCM's pods, including init containers, has `runAsNonRoot: true` or a `runAsUser` other "
        "than 0, its own or its pod's (its own wins), and its own `allowPrivilegeEscalation: false`, whose default is "
        "true. A patch passes unless it sets root, or allows privilege escalation."
    ),
    unseen="A user other than root that has root's rights on files of the machine that are mounted (`hostPath`).",
    tags=["security"],
    remedy=(
        "Set runAsNonRoot: true and runAsUser: 65534 in the pod's securityContext, and allowPrivilegeEscalation: false "
        "in each container's. Files of the machine that only root may read, such as a kubeconfig, become a Secret or a "
        "ServiceAccount."
    ),
    url="https://kubernetes.io/docs/tasks/configure-pod-container/security-context/",
)
