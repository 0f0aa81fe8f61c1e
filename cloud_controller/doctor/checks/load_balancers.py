"""Whether every Service of type LoadBalancer has its load balancer's address, and every load balancer a Service."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers.service.plan import target_of
from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.doctor.checks.causes import CCM_DOWN, NONE
from cloud_controller.doctor.checks.nodes import age, since
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import SERVICES, Object, key, uid
from cloud_controller.plan import Action, ActionKind, Attention, object_of
from cloud_controller.planning import Found

_TEXTS = {
    Attention.REFUSED: (
        "the CCM refuses what it asks for",
        "correct the Service as the reason says; the CCM then goes on by itself",
    ),
    Attention.FAILED: (
        "its load balancer has failed",
        "look at the load balancer in the cloud: quota, subnets, addresses; the reason is the cloud's",
    ),
    Attention.NOT_SERVED: (
        "it has no address, and no controller serves it",
        "correct the Service's class, or install the controller that serves it",
    ),
}
"""What it means, and what to do."""


def _run(seen: Seen) -> Iterator[Finding]:
    try:
        found = seen.plan("service")
    except Unreadable:
        # What Kubernetes says of Services is worth knowing while the cloud says nothing.
        yield from (_without_plan(seen, service) for service in _lacking(seen))
        raise
    if found is None:
        yield from (_left_to_nobody(service) for service in _lacking(seen))
        return
    for service in seen.services():
        yield from _of_service(seen, service, found)
    yield from _without_service(seen, found)


def _lacking(seen: Seen) -> Iterator[Object]:
    """The Services that should have an address by now."""
    for service in seen.services():
        if not ingress(service) and not _is_deleted(service) and age(seen, service) >= seen.grace:
            yield service


def ingress(service: Object) -> list[Object]:
    """The addresses in the Service's status."""
    return list(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [])


def subject(service: Object) -> str:
    """The Service as it is named in plans and findings."""
    return target_of(service["metadata"]["namespace"], service["metadata"]["name"])


def would(action: Action) -> str:
    """What a plan's action says of the present."""
    changes = "; ".join(map(str, action.changes)) if action.kind is ActionKind.UPDATE else ""
    return f"the CCM would {action.summary}" + (f": {changes}" if changes else "")


def _of_service(seen: Seen, service: Object, found: Found) -> Iterator[Finding]:
    mine = [action for action in found.plan if object_of(action.target) == subject(service)]
    attention = {action.attention: action for action in mine if action.attention in _TEXTS}
    published = next((action for action in mine if isinstance(action.operation, SetIngress)), None)
    if _is_deleted(service):
        if since(seen, service["metadata"]["deletionTimestamp"]) >= seen.grace:
            yield _undeleted(seen, service, mine)
    elif attention and (age(seen, service) >= seen.grace or Attention.NOT_SERVED not in attention):
        yield _attended(service, next(iter(attention.values())))
    elif not ingress(service):
        if age(seen, service) >= seen.grace:
            yield _addressless(seen, service, found, mine)
    elif published is not None and published.pending:
        yield Finding(
            subject=subject(service),
            what="its status does not have the address of its load balancer",
            evidence=tuple(map(str, published.changes)),
            remedy="a running CCM corrects it; find out who else writes the Service's status",
        )


def _attended(service: Object, action: Action) -> Finding:
    assert action.attention is not None
    what, remedy = _TEXTS[action.attention]
    return Finding(
        subject=subject(service),
        what=what,
        evidence=(action.reason or "",),
        remedy=remedy,
        severity=Severity.WARNING if ingress(service) else Severity.CRITICAL,
        follows_from=frozenset({"quotas", "cloud-rights"}) if action.attention is Attention.FAILED else NONE,
    )


def _addressless(seen: Seen, service: Object, found: Found, mine: list[Action]) -> Finding:
    own = [lb for lb in found.load_balancers.values() if any(owner.uid == uid(service) for owner in lb.owners)]
    states = [f"load balancer {lb.id} is {lb.state.value}" for lb in own] or ["it has no load balancer"]
    plan = [would(action) for action in mine if action.pending][:1]
    return _without_address(service, *states, *plan, *_said(seen, service))


def _without_plan(seen: Seen, service: Object) -> Finding:
    return _without_address(service, *(_said(seen, service) or ("status.loadBalancer is empty",)))


def _without_address(service: Object, *evidence: str) -> Finding:
    return Finding(
        subject=subject(service),
        what="it has no address",
        evidence=evidence,
        remedy="correct what the event names: quota, rights, subnets, addresses; without an event, see the causes "
        "above and the CCM's log about this Service",
    )


def _left_to_nobody(service: Object) -> Finding:
    return Finding(
        subject=subject(service),
        what="it has no address, and this CCM does not serve Services",
        evidence=("its arguments leave out controller service",),
        remedy="run controller service, or the controller that is to serve it",
        follows_from=NONE,
    )


def _undeleted(seen: Seen, service: Object, mine: list[Action]) -> Finding:
    reasons = [f"{action.summary}: {action.reason}" if action.reason else action.summary for action in mine]
    return Finding(
        subject=subject(service),
        what="it is deleted, and waits until its load balancer is deleted",
        evidence=(*reasons[:1], *_said(seen, service)),
        remedy="correct what the event names; a running CCM removes the load balancer and then the finalizer",
        severity=Severity.WARNING,
    )


def _without_service(seen: Seen, found: Found) -> Iterator[Finding]:
    """Load balancers that no Service needs any more. Those whose deletion is held are another check's."""
    known = {f"service/{key(service)}" for service in seen.list(SERVICES)}
    for action in found.plan:
        if object_of(action.target) not in known and not action.held:
            yield Finding(
                subject=action.target,
                what=f"a load balancer has no Service: {action.summary}",
                evidence=(action.reason or "",),
                remedy="delete it in the cloud if nobody needs it"
                if not action.pending
                else "a running CCM deletes it",
                severity=Severity.WARNING,
                follows_from=None if action.pending else NONE,
            )


def _said(seen: Seen, service: Object) -> tuple[str, ...]:
    """The latest warning about the Service."""
    warnings = [event for event in seen.events(service) if event.get("type") == "Warning"]
    return tuple(f"event {event.get('reason')}: {event.get('message')}" for event in warnings[:1])


def _is_deleted(service: Object) -> bool:
    return bool(service["metadata"].get("deletionTimestamp"))


CHECK = Check(
    name="load-balancers",
    holds="every Service of type LoadBalancer has its load balancer's address, and no load balancer is left over",
    why="clients reach a Service by this address; a load balancer that is left over costs money",
    lines=("11.2.6", "10.1.2", "10.1.3"),
    page="runbooks/load-balancers.md",
    run=_run,
    after=CCM_DOWN | {"quotas"},
)
