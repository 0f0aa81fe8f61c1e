"""Rule: the cloud controller manager has no capabilities of the machine's kernel."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.objects import dig, items
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.security_contexts import Context, of_contexts
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, LOOK_ALIKES

_ALLOWED = "NET_BIND_SERVICE"
"""Pod Security's level "restricted" allows it, too: to listen on a port below 1024."""


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers of a CCM's pods that are privileged, keep capabilities or add some."""
    yield from of_contexts(subject, _problem)


def _problem(context: Context, is_patch: bool) -> str | None:
    return first_known((partial(_privileged, context), partial(_added, context), partial(_kept, context, is_patch)))


def _privileged(context: Context) -> str | None:
    return "is privileged; remove privileged: true" if context("privileged") else None


def _added(context: Context) -> str | None:
    more = [str(name) for name in items(dig(context("capabilities"), "add")) if name != _ALLOWED]
    return f"adds the capabilities {', '.join(more)}; allowed: {_ALLOWED}" if more else None


def _kept(context: Context, is_patch: bool) -> str | None:
    dropped = dig(context("capabilities"), "drop")
    if "ALL" in [*items(dropped)] or (is_patch and dropped is None):
        return None
    return "keeps capabilities; set capabilities: {drop: [ALL]}"


CCM_DROPS_CAPABILITIES = ResourceRule(
    "ccm-workload-drop-capabilities",
    problems,
    why=(
        "A cloud controller manager needs no capabilities of the kernel: it calls two APIs. Those that a container "
        "keeps by default, such as raw sockets and writing any file, help only whoever breaks into it."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="The CCM drops all capabilities",
    severity=MEDIUM,
    lines=["11.3.9"],
    sections="8.1",
    judges=(
        "Every container of the CCM's pods, including init containers, drops `ALL` capabilities, adds none but "
        f"`{_ALLOWED}`, and is not privileged, which includes them all. A patch passes unless it drops fewer or adds "
        "some."
    ),
    tags=["security"],
    remedy=(
        f"Set securityContext.capabilities: {{drop: [ALL]}} in each container; add {_ALLOWED} for a port below 1024. "
        "If the vendor documents another capability, exempt the workload and say so."
    ),
    url="https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted",
)
