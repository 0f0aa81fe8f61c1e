"""Rule: probes tell the kubelet whether the cloud controller manager works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig, items
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import IMAGES, Container, ccm_name, containers, flag, of_ccm

_HANDLERS = ("httpGet", "grpc", "tcpSocket", "exec")
_SECURE_PORT = "10258"
"""The CCM's default `--secure-port`, which serves health and metrics by TLS alone."""


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs without a liveness or readiness probe, or with one that speaks plain HTTP to their TLS port."""
    yield from of_ccm(subject, _of_containers(subject))


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject):
        is_ccm = partial(ccm_name, container, subject.config)
        for kind in ("liveness", "readiness"):
            yield partial(problem_if, [is_ccm], partial(_problem, container, kind))


def _problem(container: Container, kind: str) -> str | None:
    spec = container()
    probe = dig(spec, f"{kind}Probe")
    # Only HTTP probes can be wrong here; for the others it is enough that they exist.
    handler = next((name for name in _HANDLERS if probe is not None and name in probe), None)
    if handler is None:
        return f"container {dig(spec, 'name')} has no {kind} probe"
    request = dig(probe, handler)
    if handler != "httpGet" or str(dig(request, "scheme") or "HTTP").upper() == "HTTPS":
        return None
    if _number(dig(request, "port"), spec) == (flag(spec, "--secure-port") or _SECURE_PORT):
        return f"container {dig(spec, 'name')}: the {kind} probe speaks HTTP to a TLS port; set scheme HTTPS"
    return None


def _number(port: Any, container: Mapping[str, Any]) -> str:
    """A probe's port as text; a name is looked up among the container's ports."""
    if isinstance(port, str) and not port.isdigit():
        port = next((dig(p, "containerPort") for p in items(dig(container, "ports")) if dig(p, "name") == port), 0)
    return str(int(port or 0))


CCM_HAS_PROBES = ResourceRule(
    "ccm-workload-set-probes",
    problems,
    why=(
        "Give a cloud controller manager a liveness and a readiness probe. Without a liveness probe, a manager that "
        "hangs is never restarted; without a readiness probe, an update can delete the last one that works."
    ),
    level=ADVISORY,
    settings={"images": IMAGES},
    title="CCM has probes",
    severity=MEDIUM,
    sections="8.1, 11.4",
    judges=(
        "The CCM's container has a liveness and a readiness probe of any kind. An HTTP probe of the port that "
        "serves only TLS (10258, or the value of `--secure-port`; by number or name) has the scheme HTTPS: without "
        "it, it never succeeds."
    ),
    tags=["availability"],
    remedy=(
        f"Add livenessProbe (httpGet /healthz) and readinessProbe (/readyz, or /healthz) with port {_SECURE_PORT} and "
        "scheme HTTPS."
    ),
    url="https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/",
)
