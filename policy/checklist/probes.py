"""Rule: probes tell the kubelet whether the cloud controller manager works."""

from __future__ import annotations

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

from policy.objects import ccm_schema, dig, items
from policy.unknowns import Problem, problem_if
from policy.workloads import Container, ccm_name, check_workload, containers, flag

_HANDLERS = ("httpGet", "grpc", "tcpSocket", "exec")
_SECURE_PORT = "10258"
"""The CCM's default `--secure-port`, which serves health and metrics by TLS alone."""


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a CCM without a liveness or readiness probe, or with one that speaks plain HTTP to its TLS port."""
    check_workload(args, report, _problems(args))


def _problems(args: ResourceValidationArgs) -> Iterator[Problem]:
    for container in containers(args.props):
        is_ccm = partial(ccm_name, container, args.get_config())
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


CCM_HAS_PROBES = ResourceValidationPolicy(
    name="ccm-workload-set-probes",
    description=(
        "Give a cloud controller manager a liveness and a readiness probe. Without a liveness probe, a manager that "
        "hangs is never restarted; without a readiness probe, an update can delete the last one that works."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=ccm_schema(),
    display_name="CCM has probes",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="8.1, 11.4",
        specification="Probes of the CCM",
    ),
    tags=["availability"],
    remediation_steps=(
        f"Add livenessProbe (httpGet /healthz) and readinessProbe (/readyz, or /healthz) with port {_SECURE_PORT} and "
        "scheme HTTPS."
    ),
    url="https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/",
)
