"""Whether the CCM's pods say that they work, and serve their metrics."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.pod_http import Answer, ask, port, serving
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import key, name


def _health(seen: Seen) -> Iterator[Finding]:
    # Another CCM's /healthz covers its leader election; /readyz is not everywhere.
    path = "/readyz" if seen.ours() else "/healthz"
    for pod in serving(seen):
        answer = ask(seen, pod, path, verbose="")
        if answer.status == 200:
            continue
        failing = [line.removeprefix("[-]") for line in answer.text.splitlines() if line.startswith("[-]")]
        yield Finding(
            subject=f"pod/{key(pod)}",
            what=f"it says that it does not work: {', '.join(line.partition(' ')[0] for line in failing)}"
            if failing
            else f"its {path} does not answer"
            if answer.status == 0
            else f"its {path} answers with HTTP {answer.status}",
            evidence=tuple(failing) or (answer.text,),
            remedy="correct what the failing checks name (docs/daemon.md#http), or read its log: "
            f"kubectl logs -n {seen.target.namespace} {name(pod)}",
        )


def _metrics(seen: Seen) -> Iterator[Finding]:
    workload = seen.workload()
    if workload is not None and port(seen) == 0:
        yield Finding(
            subject=f"{workload['kind'].lower()}/{key(workload)}",
            what="an option keeps its pods from serving metrics",
            evidence=("--secure-port=0",),
            remedy="remove the option; its probes and metrics then have their usual port",
            severity=Severity.WARNING,
        )
        return
    for pod in serving(seen):
        answer = ask(seen, pod, "/metrics")
        # They are served to whoever has the right to read them, and the proxy asks as nobody.
        if answer.status in (200, 401, 403):
            continue
        yield Finding(
            subject=f"pod/{key(pod)}",
            what=_not_served(answer),
            evidence=(answer.text,),
            remedy="let the pod serve /metrics at --secure-port on its own address (--bind-address=$(POD_IP))",
            severity=Severity.WARNING,
        )


def _not_served(answer: Answer) -> str:
    return f"its /metrics answers with HTTP {answer.status}" if answer.status else "its /metrics does not answer"


HEALTH = Check(
    name="daemon-health",
    holds="every instance of the CCM says that it works",
    why="a CCM whose checks fail does not do, or will soon not do, what these checks are about",
    lines=("11.2.1", "11.4.1", "10.4"),
    page="runbooks/daemon-health.md",
    run=_health,
    after=frozenset({"api-server", "cloud-config", "cloud-api", "kubernetes-rights"}),
)
METRICS = Check(
    name="metrics",
    holds="every instance of the CCM serves its metrics",
    why="without metrics no alert fires and no dashboard shows what the CCM does",
    lines=("11.2.9", "11.4.1"),
    page="runbooks/metrics.md",
    run=_metrics,
    after=frozenset({"api-server", "ccm-pods", "daemon-health"}),
)
