"""Plans the status of Services: the addresses of their load balancers, and conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.load_balancers.model import Object, ObservedLoadBalancer
from cloud_controller.plan import Action, ActionKind, FieldChange


@dataclass(frozen=True, slots=True)
class SetIngress:
    """Write `status.loadBalancer.ingress`."""

    namespace: str
    name: str
    uid: str
    ingress: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class SetCondition:
    """Write a condition of `status.conditions` that is true; without a message, remove it.

    `since`: its `lastTransitionTime`; None: now.
    """

    namespace: str
    name: str
    uid: str
    type: str
    reason: str = ""
    message: str | None = None
    since: str | None = None


def target_of(namespace: str, name: str) -> str:
    """A Service's target in plans."""
    return f"service/{namespace}/{name}"


def ingress_changes(service: Object, wanted: list[dict[str, str]]) -> list[Action]:
    """The change of the Service's addresses, if they differ."""
    present = _ingress(service)
    if [_with_defaults(entry) for entry in present] == [_with_defaults(entry) for entry in wanted]:
        return []
    namespace, name, uid = _identity(service)
    return [
        Action(
            ActionKind.UPDATE,
            target_of(namespace, name),
            "set status",
            (FieldChange("status.loadBalancer.ingress", _addresses(present), _addresses(wanted)),),
            operation=SetIngress(namespace, name, uid, tuple(wanted)),
        )
    ]


def condition_changes(service: Object, type: str, reason: str, message: str | None) -> Iterator[Action]:
    """The change of this condition, if it differs; `message` None: the Service should not have it."""
    conditions = (service.get("status") or {}).get("conditions") or []
    present = next((each for each in conditions if each["type"] == type), None)
    if (present and present.get("message")) == message:
        return
    namespace, name, uid = _identity(service)
    since = present.get("lastTransitionTime") if present else None
    summary = f"{'remove' if message is None else 'set'} condition {type}"
    operation = SetCondition(namespace, name, uid, type, reason, message, since)
    yield Action(ActionKind.UPDATE, target_of(namespace, name), summary, operation=operation)


def is_published(service: Object, lb: ObservedLoadBalancer) -> bool:
    """Whether the Service's status contains its address."""
    return any(entry.items() >= ingress.to_json().items() for ingress in lb.ingress for entry in _ingress(service))


def _ingress(service: Object) -> Sequence[dict[str, Any]]:
    return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _identity(service: Object) -> tuple[str, str, str]:
    metadata = service["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


def _with_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as the API server stores it: the default mode of an IP is VIP."""
    return {"ipMode": "VIP", **entry} if "ip" in entry else entry


def _addresses(ingress: Sequence[dict[str, Any]]) -> str | None:
    return ", ".join(str(entry.get("ip") or entry.get("hostname")) for entry in ingress) or None
