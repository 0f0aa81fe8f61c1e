"""Whether the API server answers and is ready: without it, no other check of the cluster can be done."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen, Unreadable, without_etcd
from cloud_controller.kube import ApiError, UnauthorizedError


def _run(seen: Seen) -> Iterator[Finding]:
    try:
        failing = seen.failing()
    except Unreadable as error:
        yield Finding(what="the API server does not answer", evidence=(str(error),), remedy=_remedy(error.__cause__))
        return
    if failing is None:
        raise Unreadable("it answers, but does not let this kubeconfig read its /readyz")
    if failing:
        yield Finding(
            what="the API server answers, but is not ready",
            evidence=tuple(failing),
            # Without etcd, nothing else can be read. Otherwise nothing may have broken yet.
            severity=Severity.CRITICAL if without_etcd(failing) else Severity.WARNING,
            remedy="repair what its /readyz names (etcd: its process, disk and majority), or read the API server's log",
        )


def _remedy(error: BaseException | None) -> str:
    if isinstance(error, UnauthorizedError):
        return "get a new token or certificate for this kubeconfig: the API server does not accept the one in it"
    if isinstance(error, ApiError) and error.status:
        return "look at the API server's log: it answers, but with an error"
    return "check the server's address in the kubeconfig, the network in between and the API server's process"


CHECK = Check(
    name="api-server",
    holds="the API server answers, and is ready",
    why="the CCM reads and writes everything through it; without it, no node joins and no Service changes",
    lines=("10.4",),
    page="runbooks/api-server.md",
    run=_run,
)
