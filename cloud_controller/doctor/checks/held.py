"""Whether changes wait for somebody: an administrator's confirmation, or an author's acknowledgement."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.doctor.checks.causes import NONE
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.plan import Action, Plan, object_of

_OTHERWISE = {
    # A new Service has another UID, and so gets another load balancer.
    "service": "check first that cloud config and kubeconfig are of one cluster; if they are and the Service is gone,"
    " create the Service again, move its clients to the new address, and confirm then",
    # A new claim has another UID, and so gets another volume.
    "volume": "leave it held: nothing deletes the volume meanwhile",
    "route": "correct the cloud config, if it names another cluster's machines, or let the Node with this pod CIDR"
    " register again",
    "node-lifecycle": "correct the cloud config, if it names another cluster's machines",
}
"""What to do about a controller's held action if it is not meant."""


def plans(seen: Seen) -> Iterator[tuple[str, Plan]]:
    """What each controller of the CCM would do now. Raises Unreadable at the end if one of them cannot be read."""
    hidden = None
    for controller in seen.daemon().controllers:
        try:
            found = seen.plan(controller)
        except Unreadable as error:
            hidden = hidden or error
            continue
        yield controller, found.plan if found else Plan()
    if hidden is not None:
        raise hidden


def _run(seen: Seen) -> Iterator[Finding]:
    for controller, plan in plans(seen):
        # Actions that are held together have one digest.
        held: dict[str, list[Action]] = {}
        for action in plan.held:
            held.setdefault(str(action.held), []).append(action)
        yield from (_finding(controller, digest, actions) for digest, actions in held.items())


def _finding(controller: str, digest: str, actions: list[Action]) -> Finding:
    first = actions[0]
    asked = first.acknowledgement
    return Finding(
        subject=object_of(first.target),
        what=f"a change waits for {'an acknowledgement' if asked else 'a confirmation'}: {first.summary}",
        evidence=(
            first.reason or "",
            *(str(change) for change in first.changes),
            *(f"with it: {action.target}: {action.summary}" for action in actions[1:]),
        ),
        remedy=f"if it is meant, set annotation {asked} on the Service; otherwise undo what asks for it"
        if asked
        else f"if it is meant: cloud-controller confirm {digest}; otherwise {_OTHERWISE[controller]}",
        severity=Severity.WARNING,
        follows_from=NONE,
    )


CHECK = Check(
    name="held-actions",
    holds="no change waits for a confirmation or an acknowledgement",
    why="the CCM does nothing about these objects until somebody decides",
    lines=("10.4",),
    page="runbooks/held-actions.md",
    run=_run,
    after=frozenset({"api-server", "cloud-config", "cloud-api"}),
)
