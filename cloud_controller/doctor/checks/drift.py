"""Whether anything else differs from what the CCM makes: changed by hand, or left undone."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers.route_plan import SetNetworkAvailable
from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.doctor.checks.causes import CCM_DOWN
from cloud_controller.doctor.checks.held import plans
from cloud_controller.doctor.checks.load_balancers import ingress, subject, would
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.load_balancers.operations import AddMembers, RemoveMembers
from cloud_controller.plan import Action, ActionKind, object_of

_OTHERS = AddMembers | RemoveMembers | SetIngress
"""What other checks find about Services."""
_OF_NODES = ("spec.", "status.", "metadata.labels")
"""What other checks find about nodes."""


def _run(seen: Seen) -> Iterator[Finding]:
    for controller, plan in plans(seen):
        about: dict[str, list[Action]] = {}
        for action in plan.changes:
            if _is_drift(seen, controller, action):
                about.setdefault(object_of(action.target), []).append(action)
        for of, actions in about.items():
            # A used-up quota explains what is not made, not what was changed.
            makes = any(action.kind is ActionKind.CREATE for action in actions)
            yield Finding(
                subject=of,
                what="it differs from what the CCM makes of it",
                evidence=tuple(map(would, actions)),
                remedy="a Warning event of the object says why an attempt fails; without one, find out who changed it: "
                "a running CCM undoes it within minutes, or within the hour where the cloud's lists do not show it",
                severity=Severity.WARNING,
                follows_from=CCM_DOWN | {"quotas"} if makes else CCM_DOWN,
            )


def _is_drift(seen: Seen, controller: str, action: Action) -> bool:
    match controller:
        case "node":
            return not any(change.field.startswith(_OF_NODES) for change in action.changes)
        case "node-lifecycle":  # The taint of a machine that runs again.
            return action.kind is ActionKind.UPDATE and action.changes[0].after is None
        case "route":
            marked = isinstance(action.operation, SetNetworkAvailable) and action.operation.available
            return marked and action.changes[0].before != "True"
        case "service":
            served = {subject(service) for service in seen.services() if ingress(service)}
            return object_of(action.target) in served and not isinstance(action.operation, _OTHERS)
    return True


CHECK = Check(
    name="drift",
    holds="nothing differs for long from what the CCM makes",
    why="somebody, or another controller, changes what the CCM owns; or the CCM does not do its work",
    lines=("10.4",),
    page="runbooks/drift.md",
    run=_run,
    after=CCM_DOWN,
)
