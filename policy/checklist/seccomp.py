"""Rule: the cloud controller manager's system calls are filtered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.security_contexts import Context, of_contexts
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, LOOK_ALIKES

_PROFILES = ("RuntimeDefault", "Localhost")


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers of a CCM's pods without a seccomp profile."""
    yield from of_contexts(subject, _problem)


def _problem(context: Context, is_patch: bool) -> str | None:
    return first_known((partial(_privileged, context), partial(_profile, context, is_patch)))


def _privileged(context: Context) -> str | None:
    # The runtime drops the filter.
    return "is privileged, so that its seccomp profile has no effect" if context("privileged") else None


def _profile(context: Context, is_patch: bool) -> str | None:
    profile = context("seccompProfile")
    if dig(profile, "type") in _PROFILES or (is_patch and profile is None):
        return None
    return f"has no seccomp profile; set seccompProfile: {{type: {_PROFILES[0]}}}"


CCM_SETS_SECCOMP = ResourceRule(
    "ccm-workload-set-seccomp",
    problems,
    why=(
        "Filter a cloud controller manager's system calls with the runtime's profile. Without a profile, a container "
        "may make every system call, unless its kubelet sets a default: vulnerabilities in rarely used calls are then "
        "within reach."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="The CCM has a seccomp profile",
    severity=MEDIUM,
    lines=["11.3.9"],
    sections="8.1",
    judges=(
        "Every container of the CCM's pods, including init containers, has a seccomp profile of type `RuntimeDefault` "
        "or `Localhost`, its own or its pod's (its own wins), and is not privileged. A patch passes unless it sets "
        "another one. The annotations that did this before Kubernetes 1.27 have no effect and do not count."
    ),
    unseen=(
        "Kubelets with `--seccomp-default`, which filter containers without a profile: the rule reports such "
        "containers all the same."
    ),
    tags=["security"],
    remedy="Set securityContext.seccompProfile: {type: RuntimeDefault} in the pod template.",
    url="https://kubernetes.io/docs/tutorials/security/seccomp/",
)
