"""Whether load balancers have the members that they should have, with pods behind them."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers.service.endpoints import by_service
from cloud_controller.controllers.service.rules import EXCLUDE_LABEL, is_excluded, ready_nodes
from cloud_controller.doctor.checks.causes import CCM_DOWN, NONE
from cloud_controller.doctor.checks.load_balancers import subject, would
from cloud_controller.doctor.checks.nodes import age
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import ENDPOINT_SLICES, Object, key, name
from cloud_controller.load_balancers.operations import AddMembers, RemoveMembers
from cloud_controller.plan import Attention, object_of
from cloud_controller.planning import Found


def _run(seen: Seen) -> Iterator[Finding]:
    found = seen.plan("service")
    if found is None:
        return
    slices = by_service(seen.list(ENDPOINT_SLICES))
    excluded = {name(node) for node in seen.nodes() if is_excluded(node)}
    for service in seen.services():
        if subject(service) in found.wanted and age(seen, service) >= seen.grace:
            ready = ready_nodes(slices.get(key(service), ()))
            yield from _of_service(service, found, ready, excluded)


def _of_service(service: Object, found: Found, ready: list[str | None], excluded: set[str]) -> Iterator[Finding]:
    mine = [action for action in found.plan if object_of(action.target) == subject(service)]
    stale = [action for action in mine if action.pending and isinstance(action.operation, AddMembers | RemoveMembers)]
    empty = next((a for a in mine if a.attention in (Attention.NO_BACKENDS, Attention.EXCLUDED)), None)
    keeps = empty is not None and empty.attention is Attention.EXCLUDED
    local = service["spec"].get("externalTrafficPolicy") == "Local"
    left_out = f"excluded by the label {EXCLUDE_LABEL}: {', '.join(sorted(excluded))}"
    if not ready:
        yield Finding(
            subject=subject(service),
            what="nothing ready is behind it",
            evidence=("its EndpointSlices have no ready endpoint",),
            remedy="see why its pods are not ready; without pods, compare its selector with their labels",
            follows_from=NONE,
        )
    elif empty is not None or (local and excluded >= {*ready}):
        yield Finding(
            subject=subject(service),
            what="only nodes that a label excludes serve it"
            if keeps
            else "its load balancer has nothing to send traffic to",
            evidence=(
                *((empty.reason or "",) if empty else ("its pods run only on nodes that load balancers leave out",)),
                *((left_out,) if excluded else ()),
            ),
            remedy=f"let a node serve it: remove the label {EXCLUDE_LABEL}, or add nodes that the Service may use",
            follows_from=NONE if excluded else None,
        )
    elif stale:
        yield Finding(
            subject=subject(service),
            what="the members of its load balancer are not the nodes or pods that they should be",
            evidence=tuple(map(would, stale)),
            remedy="a running CCM corrects them, within the hour where the cloud's lists do not show them, except what "
            "the cloud refuses: event MembersLeftOut names that and why; other events and the log say what else keeps "
            "it from that",
        )


CHECK = Check(
    name="backends",
    holds="load balancers have the members that they should have, with ready pods behind them",
    why="traffic goes to members that are gone, or to fewer than there are",
    lines=("10.1.7",),
    page="runbooks/backends.md",
    run=_run,
    after=CCM_DOWN | {"quotas", "nodes-initialised", "provider-ids", "node-machines", "load-balancers"},
)
