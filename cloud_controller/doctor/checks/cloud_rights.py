"""Whether the CCM's credentials have the rights in the cloud that its controllers need."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.cloud import AccessDenied, TellsRights
from cloud_controller.doctor.findings import Check, Finding, OutOfReach, Unreadable
from cloud_controller.doctor.seen import Seen


def _run(seen: Seen) -> Iterator[Finding]:
    try:
        seen.cloud()
    except Unreadable as error:
        if not isinstance(error.__cause__, AccessDenied):
            raise
    cloud, controllers = seen.opened_cloud(), seen.daemon().controllers
    try:
        if isinstance(cloud, TellsRights):
            lacking = seen.once("rights in the cloud", lambda: cloud.lacking_rights(controllers))
            if lacking:
                yield _finding(*lacking)
            return
        for controller in controllers:
            seen.plan(controller)
    except Unreadable as error:
        if not isinstance(error.__cause__, AccessDenied):
            raise
        yield _finding(str(error))
        return
    raise OutOfReach("every read is allowed, but this cloud does not tell which changes its credentials may make")


def _finding(*evidence: str) -> Finding:
    return Finding(
        what="the credentials lack rights that the CCM needs",
        evidence=evidence,
        remedy="give them the rights that are named; the cloud's page under docs/clouds has all that its controllers "
        "need",
    )


CHECK = Check(
    name="cloud-rights",
    holds="the credentials have every right in the cloud that the CCM's controllers need",
    why="a right that is missing fails when it is first needed, such as when the next Service wants a load balancer",
    lines=("11.1.2", "10.1.2"),
    page="runbooks/cloud-rights.md",
    run=_run,
    after=frozenset({"api-server", "cloud-config", "cloud-api"}),
)
