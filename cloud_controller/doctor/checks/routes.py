"""Whether every node's pods have their route, and nothing else is routed in the pods' ranges."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.route_plan import CONDITION, QuotaUse, Unreachable
from cloud_controller.doctor.checks.causes import CCM_DOWN, NONE
from cloud_controller.doctor.checks.nodes import age, ours
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object, name
from cloud_controller.plan import Action, ActionKind
from cloud_controller.planning import Found


def _run(seen: Seen) -> Iterator[Finding]:
    found = seen.plan("route")
    if found is None:
        yield from _nobodys(seen)
        return
    new = {f"route/{cidr}" for node in seen.nodes() if age(seen, node) < seen.grace for cidr in view.pod_cidrs(node)}
    for action in found.plan:
        if action.target in new:
            continue
        # Quotas and held actions have checks of their own.
        if action.target.startswith("route/") and not action.held and not isinstance(action.operation, QuotaUse):
            yield _of_route(action)
    yield from _unavailable(seen, found)


def _of_route(action: Action) -> Finding:
    change = "; ".join(str(change) for change in action.changes)
    evidence = tuple(each for each in (change, action.reason) if each)
    match action.kind:
        case ActionKind.IGNORE if isinstance(action.operation, Unreachable):
            full = "quota" in (action.reason or "")
            return Finding(
                subject=action.target,
                what=action.summary,
                evidence=evidence,
                remedy="request a higher quota, or delete routes" if full else "correct what the reason names",
                follows_from=frozenset({"quotas"}) if full else NONE,
            )
        case ActionKind.IGNORE:
            return Finding(
                subject=action.target,
                what="a route in the pods' range is not the cluster's",
                evidence=evidence,
                remedy="find out who made it; --delete-foreign-routes lets the CCM delete such routes",
                severity=Severity.WARNING,
                follows_from=NONE,
            )
        case ActionKind.CREATE:
            what, remedy = "it is missing", "a running CCM creates it; its events and log say what keeps it from that"
        case ActionKind.REPLACE:
            what, remedy = "it leads to the wrong machine", "a running CCM replaces it; find out who changed it"
        case _:
            return Finding(
                subject=action.target,
                what="no node has this pod range",
                evidence=evidence,
                remedy="a running CCM deletes it",
                severity=Severity.WARNING,
            )
    return Finding(subject=action.target, what=f"{what}: {action.summary}", evidence=evidence, remedy=remedy)


def _unavailable(seen: Seen, found: Found) -> Iterator[Finding]:
    """Nodes that are marked as unavailable although their routes are right."""
    wrong = {action.target.removeprefix("route/") for action in found.plan if action.target.startswith("route/")}
    for node in _marked(seen):
        if not wrong & {*view.pod_cidrs(node)}:
            yield _marking(node, "a running CCM removes the mark; without a machine, a node gets no route", None)


def _nobodys(seen: Seen) -> Iterator[Finding]:
    """Nodes that wait for a route that no controller will create."""
    for node in _marked(seen):
        remedy = (
            "let the CCM write routes (--configure-cloud-routes, --cluster-cidr), or install a network plugin that "
            "makes its own and removes this mark"
        )
        yield _marking(node, remedy, NONE)


def _marked(seen: Seen) -> list[Object]:
    found = []
    for node in ours(seen):
        state = view.condition(node, CONDITION)
        waits = state is not None and state["status"] == "True" and view.pod_cidrs(node)
        if waits and age(seen, node) >= seen.grace:
            found.append(node)
    return found


def _marking(node: Object, remedy: str, follows_from: frozenset[str] | None) -> Finding:
    state = view.condition(node, CONDITION) or {}
    return Finding(
        subject=f"node/{name(node)}",
        what="its network is marked as unavailable, and pods do not get there",
        evidence=(f"condition {CONDITION}: {state.get('reason')}: {state.get('message')}",),
        remedy=remedy,
        follows_from=follows_from,
    )


CHECK = Check(
    name="routes",
    holds="every node's pods have their route, and nothing else is routed in the pods' ranges",
    why="without its route, a node's pods reach no other node's",
    lines=("11.2.8", "10.1.5"),
    page="runbooks/routes.md",
    run=_run,
    after=CCM_DOWN | {"quotas", "nodes-initialised", "provider-ids", "node-machines"},
)
