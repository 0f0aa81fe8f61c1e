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

from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known
from policy.workloads import IMAGES, LOOK_ALIKES, Container, containers, of_ccm, pod

# A limit counts as a request: Kubernetes uses it for both.
_WANTED = (
    ("CPU request", (("requests", "cpu"), ("limits", "cpu"))),
    ("memory request", (("requests", "memory"), ("limits", "memory"))),
    ("memory limit", (("limits", "memory"),)),
)
# Zero in any notation: 0, 0m, 0.0Gi, 0e3.
_NOTHING = re.compile(r"[+-]?(0+\.?0*|\.0+)?([eE][+-]?\d+|[A-Za-z]*)")


def problems(subject: Subject) -> Iterator[Problem]:
    """Containers of a CCM's pods, including init containers, that lack something of `_WANTED`."""
    yield from of_ccm(subject, _of_containers(subject))


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject, init=True):
        yield partial(_problem, container, pod(subject), subject.is_patch)


def _problem(container: Container, pod: Mapping[str, Any], is_patch: bool) -> str | None:
    missing = every_known(partial(_missing, container, pod, is_patch, what, fields) for what, fields in _WANTED)
    return f"container {dig(container(), 'name')} has no {', no '.join(missing)}" if missing else None


def _missing(
    container: Container, pod: Mapping[str, Any], is_patch: bool, what: str, fields: tuple[tuple[str, str], ...]
) -> str:
    """`what` if neither the container nor its whole pod has it; empty if one has, or if a patch leaves it out."""
    given = False
    for source in (container(), pod):
        for field in fields:
            value = dig(source, "resources", *field)
            given |= value is not None
            if not _NOTHING.fullmatch(str(value or "")):
                return ""
    return "" if is_patch and not given else what


CCM_HAS_RESOURCES = ResourceRule(
    "ccm-workload-set-resources",
    problems,
    why=(
        "Give a cloud controller manager requests for CPU and memory and a memory limit. Without requests it starves "
        "on a full machine and is evicted first; without the limit, a memory leak takes down the control plane beside "
        "it."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="CCM has requests and limits",
    severity=MEDIUM,
    lines=["11.3.11"],
    sections="8.1",
    judges=(
        "Every container of the CCM's pods, including init containers, has requests for CPU and memory and a memory "
        "limit, its own or its pod's. A limit counts as a request, as in Kubernetes; zero does not count, in whatever "
        "notation (`0m`, `0e3`, `0.0Gi`). A patch passes unless it sets them to zero. The rule does not require a CPU "
        "limit, because a CPU limit throttles the CCM when there is most to do, until the leader misses the renewal of "
        "its lease. Memory cannot be throttled: without a limit, a leak takes down etcd or the API server beside it."
    ),
    tags=["availability"],
    remedy=(
        "Set resources.requests (cpu: 100m, memory: 128Mi) and resources.limits (memory: 512Mi), then adjust "
        "them to the usage in your cluster. It needs no CPU limit."
    ),
    url="https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/",
)
