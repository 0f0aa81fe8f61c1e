"""Whether the CCM's credentials have the rights in the cloud that its controllers need."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.cloud import AccessDenied, CcmPods, DryRun, DryRuns, TellsRights
from cloud_controller.doctor.findings import Check, Finding, OutOfReach
from cloud_controller.doctor.seen import Seen, Unreadable


def _run(seen: Seen) -> Iterator[Finding]:
    try:
        seen.cloud()
    except Unreadable as error:
        if not isinstance(error.__cause__, AccessDenied):
            raise
    cloud, controllers = seen.opened_cloud(), seen.daemon().controllers
    tried = DryRun(unknown=["this cloud does not tell which changes its credentials may make"])
    try:
        if isinstance(cloud, TellsRights):
            lacking = seen.once("rights in the cloud", lambda: cloud.lacking_rights(controllers))
            if lacking:
                yield _finding(*lacking)
            return
        for controller in controllers:
            seen.plan(controller)
        if isinstance(cloud, DryRuns):
            tried = seen.once("dry runs", lambda: cloud.dry_run(controllers, _pods(seen)))
    except Unreadable as error:
        if not isinstance(error.__cause__, AccessDenied):
            raise
        yield _finding(str(error))
        return
    if tried.lacking:
        yield _finding(*tried.lacking)
    if tried.unknown:
        changes = f", and by dry runs {', '.join(tried.allowed)}" if tried.allowed else ""
        raise OutOfReach(f"every read is allowed{changes}, but {'; '.join(tried.unknown)}")


def _pods(seen: Seen) -> CcmPods | None:
    template = seen.container()
    if template is None:
        return None
    pods = seen.running_pods()
    # Webhooks give pods variables that their template does not have.
    made = [each for pod in pods for each in pod["spec"]["containers"] if each["name"] == template["name"]]
    containers = [template, *made]
    if any(each.get("envFrom") for each in containers):
        return None
    where = {pod["spec"].get("nodeName") for pod in pods}
    return CcmPods(
        {each["name"]: each.get("value") for container in containers for each in container.get("env") or ()},
        {node["spec"].get("providerID", "") for node in seen.nodes() if node["metadata"]["name"] in where},
    )


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
