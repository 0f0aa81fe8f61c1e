"""Rule: probes tell the kubelet whether the cloud controller manager works."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.command_lines import flag
from policy.objects import dig, each, items
from policy.programs import always_succeeds
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known, problem_if
from policy.workloads import DAEMONS, IMAGES, LOOK_ALIKES, Container, containers, is_ccm, of_ccm

_HANDLERS = ("httpGet", "grpc", "tcpSocket", "exec")
_SECURE_PORT = "10258"
"""The CCM's default `--secure-port`, which serves health and metrics by TLS alone."""
_LONGEST = 600
"""Seconds. A probe that needs longer to fail is as good as none."""


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs without a liveness or readiness probe, or with one that cannot fail or cannot succeed."""
    yield from of_ccm(subject, _of_containers(subject), DAEMONS)


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject):
        for kind in ("liveness", "readiness"):
            yield partial(
                problem_if, [partial(is_ccm, subject, container)], partial(_problem, container, kind, subject.is_patch)
            )


def _problem(container: Container, kind: str, is_patch: bool) -> str | None:
    spec = container()
    probe = dig(spec, f"{kind}Probe")
    if probe is None and is_patch:
        return None
    handler = next((name for name in _HANDLERS if probe is not None and name in probe), None)
    if handler is None:
        return f"container {dig(spec, 'name')} has no {kind} probe"
    questions = (_slow, _unfailing, _liveness, _plain, *(() if is_patch else (_unserved,)))
    found = first_known(partial(question, spec, kind, probe, handler) for question in questions)
    return found and f"container {dig(spec, 'name')}: the {kind} probe {found}"


def _slow(_spec: Mapping[str, Any], _kind: str, probe: Mapping[str, Any], _handler: str) -> str | None:
    seconds = int(dig(probe, "failureThreshold") or 3) * int(dig(probe, "periodSeconds") or 10)
    if seconds <= _LONGEST:
        return None
    return (
        f"fails only after {seconds} s (failureThreshold times periodSeconds); "
        f"set them so that the product is at most {_LONGEST}"
    )


def _unfailing(_spec: Mapping[str, Any], _kind: str, probe: Mapping[str, Any], handler: str) -> str | None:
    words = [str(word) for word in items(dig(probe, "exec", "command"))] if handler == "exec" else []
    return "runs a command that cannot fail; ask the manager's /healthz" if always_succeeds(words) else None


def _liveness(_spec: Mapping[str, Any], kind: str, probe: Mapping[str, Any], handler: str) -> str | None:
    path = str(dig(probe, handler, "path") or "") if handler == "httpGet" and kind == "liveness" else ""
    if not path.startswith("/readyz"):
        return None
    return "asks /readyz, so that a manager that only waits is restarted; set path /healthz or /livez"


def _plain(spec: Mapping[str, Any], _kind: str, probe: Mapping[str, Any], handler: str) -> str | None:
    request = dig(probe, handler)
    if handler != "httpGet" or str(dig(request, "scheme") or "HTTP").upper() == "HTTPS":
        return None
    if _number(dig(request, "port"), spec) != (flag(spec, "--secure-port") or _SECURE_PORT):
        return None
    return "speaks HTTP to a TLS port; set scheme HTTPS"


def _unserved(spec: Mapping[str, Any], _kind: str, probe: Mapping[str, Any], handler: str) -> str | None:
    if handler == "exec":
        return None
    port = _number(dig(probe, handler, "port"), spec)
    # What the container declares is known where its arguments are not.
    if first_known(_serving(spec, port)):
        return None
    secure = flag(spec, "--secure-port") or _SECURE_PORT
    return f"asks a port that the manager does not serve: --secure-port is {secure}, and no flag or port names another"


def _serving(spec: Mapping[str, Any], port: str) -> Iterator[Any]:
    """Whether the container declares the port, or has it in a flag (`--metrics-bind-address=:8080`) or by default."""
    in_flag = re.compile(rf"(^|[=:\s]){re.escape(port)}(\s|$)")
    yield from (partial(_declares, declared, port) for declared in each(dig(spec, "ports")))
    for field in ("args", "command"):
        yield from (partial(lambda word: in_flag.search(str(word())), word) for word in each(dig(spec, field)))
    yield lambda: port == (flag(spec, "--secure-port") or _SECURE_PORT)


def _declares(declared: Any, port: str) -> bool:
    return _integer(dig(declared(), "containerPort")) == port


def _number(port: Any, container: Mapping[str, Any]) -> str:
    """A probe's port as text; a name is looked up among the container's ports."""
    if isinstance(port, str) and not port.isdigit():
        port = next((dig(p, "containerPort") for p in items(dig(container, "ports")) if dig(p, "name") == port), 0)
    return _integer(port)


def _integer(port: Any) -> str:
    """The analyzer hands numbers as floats."""
    return str(int(port or 0))


CCM_HAS_PROBES = ResourceRule(
    "ccm-workload-set-probes",
    problems,
    why=(
        "Give a cloud controller manager a liveness and a readiness probe. Without a liveness probe, a manager that "
        "hangs is never restarted; without a readiness probe, an update can delete the last one that works."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="CCM has probes",
    severity=MEDIUM,
    sections="8.1, 11.4",
    judges=(
        "The CCM's container has a liveness and a readiness probe of any kind. Each can succeed: an HTTP probe of the "
        "port that serves only TLS (10258, or the value of `--secure-port`; by number or name) has the scheme HTTPS, "
        "and the port is that one, a declared one, or one in a flag. Each can fail: its command is not `true`, "
        "`exit 0`, `CHECK || true` or the like, and `failureThreshold` times `periodSeconds` is at most "
        f"{_LONGEST} s. The liveness probe does not ask `/readyz`, which says whether others may rely on the CCM, not "
        "whether a restart would help. A patch passes unless it sets a probe that is wrong."
    ),
    unseen=(
        "Commands and scripts that always succeed in other ways (`ls /`), a startup probe that never ends, and paths "
        "that always answer with success."
    ),
    tags=["availability"],
    remedy=(
        f"Add livenessProbe (httpGet /healthz) and readinessProbe (/readyz, or /healthz) with port {_SECURE_PORT} and "
        "scheme HTTPS."
    ),
    url="https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/",
)
