"""Rule: the cloud controller manager requests CPU and memory, and limits its memory.

The rule asks for no CPU limit: it would throttle the manager when there is most to do, until the leader misses the
renewal of its lease and another, equally throttled one takes over. Requests already share out CPU, but not memory:
with a limit a leak ends the manager, and not etcd or the API server beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from policy.objects import ccm_schema, dig
from policy.unknowns import Problem, every_known
from policy.workloads import Container, check_workload, containers

# A limit counts as a request: Kubernetes uses it for both.
_WANTED = (
    ("CPU request", (("requests", "cpu"), ("limits", "cpu"))),
    ("memory request", (("requests", "memory"), ("limits", "memory"))),
    ("memory limit", (("limits", "memory"),)),
)
_NOTHING = re.compile(r"[0.]*[A-Za-z]*")


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report containers of a CCM's pods, including init containers, that lack something of `_WANTED`."""
    check_workload(args, report, _problems(args))


def _problems(args: ResourceValidationArgs) -> Iterator[Problem]:
    pod = dig(args.props, "spec", "template", "spec")
    for container in containers(args.props, init=True):
        yield partial(_problem, container, pod)


def _problem(container: Container, pod: Mapping[str, Any]) -> str | None:
    missing = every_known(partial(_missing, container, pod, what, fields) for what, fields in _WANTED)
    return f"container {dig(container(), 'name')} has no {', no '.join(missing)}" if missing else None


def _missing(container: Container, pod: Mapping[str, Any], what: str, fields: tuple[tuple[str, str], ...]) -> str:
    """`what` if neither the container nor its whole pod has it; empty if one has."""
    for source in (container(), pod):
        for field in fields:
            if not _NOTHING.fullmatch(str(dig(source, "resources", *field) or "")):
                return ""
    return what


CCM_HAS_RESOURCES = ResourceValidationPolicy(
    name="ccm-workload-set-resources",
    description=(
        "Give a cloud controller manager requests for CPU and memory and a memory limit. Without requests it starves "
        "on a full machine and is evicted first; without the limit, a memory leak takes down the control plane beside "
        "it."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=ccm_schema(),
    display_name="CCM has requests and limits",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="8.1, 11.3",
        specification="Resource limits",
    ),
    tags=["availability"],
    remediation_steps=(
        "Set resources.requests (cpu: 100m, memory: 128Mi) and resources.limits (memory: 512Mi), by its "
        "use in a cluster of that size. It needs no CPU limit."
    ),
    url="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/",
)
