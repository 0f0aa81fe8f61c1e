"""Finds changes for which a Service would leave its load balancer, or be reached at other addresses. Pure.

With `--address-changes=acknowledge`, such a change is held: the Service keeps its load balancer, and everything else
about it goes on, until its annotation names the change's digest. The digest covers the load balancer, the fields and
their new values, so that an acknowledgement never covers another change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.controllers.service.status import is_published
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability
from cloud_controller.load_balancers.diff import forced_differences
from cloud_controller.load_balancers.differences import model_differences
from cloud_controller.load_balancers.model import Built, LoadBalancerState, Object, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.parts import has_parts
from cloud_controller.load_balancers.sharing import is_left
from cloud_controller.plan import DIGEST_LENGTH, Action, ActionKind, Attention, FieldChange

OPTION = "--address-changes"
ANNOTATION = "cloud-controller/acknowledge-address-change"
"""On a Service: the digest of a change of its address that may happen."""
CONDITION = "cloud-controller/AddressChangeHeld"
"""The type of the condition of a Service whose change is held."""
HELD = "AddressChangeHeld"
"""The reason of the event about a held change, and of the condition."""

_SERVED = (LoadBalancerState.READY, LoadBalancerState.FAILED)


class AddressChanges(StrEnum):
    """What to do with a change that would give a Service another address."""

    ALLOW = "allow"
    ACKNOWLEDGE = "acknowledge"


@dataclass(frozen=True, slots=True)
class AddressChange:
    """A change for which a Service would leave this load balancer, or move with it (`in_place`)."""

    load_balancer: ObservedLoadBalancer
    fields: tuple[FieldChange, ...]
    why: str
    in_place: bool = False

    @property
    def digest(self) -> str:
        """What the acknowledgement names: it differs for another load balancer, field or new value."""
        new = sorted([each.field, each.after] for each in self.fields)
        text = json.dumps([self.load_balancer.id, new])
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

    @property
    def acknowledgement(self) -> str:
        """The annotation that lets it happen, as a line of YAML."""
        return f'{ANNOTATION}: "{self.digest}"'

    @property
    def address(self) -> str:
        """What clients use now."""
        return ", ".join(str(each.ip or each.hostname) for each in self.load_balancer.ingress)

    @property
    def message(self) -> str:
        """For the author of the Service."""
        changes = "; ".join(map(str, self.fields))
        return (
            f"The Service keeps load balancer {self.load_balancer.id} and its address {self.address}, which would"
            f" change: {changes}. To let that happen once, set annotation {self.acknowledgement}. To keep the address,"
            " undo the change."
        )

    def is_acknowledged_by(self, service: Object) -> bool:
        """Whether the Service's annotation names this change."""
        return ((service["metadata"].get("annotations") or {}).get(ANNOTATION) or "").strip() == self.digest

    def held(self, target: str) -> Action:
        """The action that waits for the acknowledgement."""
        verb = "move" if self.in_place else "leave"
        return Action(
            ActionKind.UPDATE if self.in_place else ActionKind.REPLACE,
            target,
            f"{verb} load balancer {self.load_balancer.id} at {self.address}; the address changes",
            self.fields,
            reason=self.why,
            held=self.digest,
            acknowledgement=self.acknowledgement,
            attention=Attention.ADDRESS_CHANGE_HELD,
        )


def leaving(
    service: Object,
    built: Built,
    observed: Sequence[ObservedLoadBalancer],
    current: ObservedLoadBalancer | None,
    owner: Owner,
    catalogue: Catalogue,
    *,
    serves: bool,
) -> AddressChange | None:
    """The change for which the Service would leave its load balancer; None if it stays, or has already begun to leave.

    `current`: the load balancer that it should have, if that exists. `serves`: whether that serves the Service already.
    """
    if built.reuse is None and current is not None and not is_left(current):
        used = serves or is_published(service, current)
        return _moving(built, current, catalogue) if used else None
    if serves and built.reuse is not None:
        return None
    old = _serving(service, [lb for lb in observed if current is None or lb.id != current.id], owner)
    if old is None:
        return None
    if built.reuse is not None or not owner.owns(old.model.tags):
        after = built.reuse.id if built.reuse else current.id if current else None
        named = FieldChange("id", old.id, after)
        return AddressChange(old, (named,), "another load balancer is to serve it")
    forced = (each.as_field_change() for each in forced_differences(built.model, old, catalogue))
    fields = tuple(forced)
    return AddressChange(old, fields, f"{', '.join(each.field for each in fields)} cannot be changed in place")


def _moving(built: Built, current: ObservedLoadBalancer, catalogue: Catalogue) -> AddressChange | None:
    """The change in place that takes an address away; one that only adds addresses is none."""
    fields = tuple(
        each.as_field_change()
        for each in model_differences(built.model, current.model)
        if _family(each.field) in catalogue.moving
        and each.before
        and not catalogue.keeps_addresses(_family(each.field), each.after, each.before)
    )
    return AddressChange(current, fields, "clients reach it at other addresses then", in_place=True) if fields else None


def _family(field: str) -> str:
    return field.partition(".")[0]


def at_its_addresses(built: Built, lb: ObservedLoadBalancer, catalogue: Catalogue) -> Built:
    """The same, except that the load balancer keeps its addresses."""
    if built.reuse is not None:
        return built
    asked = {name: value for name, value in built.model.attributes.items() if _family(name) not in catalogue.moving}
    kept = {name: value for name, value in lb.model.attributes.items() if _family(name) in catalogue.moving}
    return replace(built, model=replace(built.model, attributes={**asked, **kept}))


def given_up(service: Object, observed: Sequence[ObservedLoadBalancer], owner: Owner) -> AddressChange | None:
    """The change for which a Service of type LoadBalancer would lose its load balancer to another controller."""
    if service["spec"].get("type") != "LoadBalancer" or service["metadata"].get("deletionTimestamp"):
        return None
    old = _serving(service, observed, owner)
    if old is None:
        return None
    fields = (FieldChange("served by this controller", True, False),)
    return AddressChange(old, fields, "its class or an annotation leaves the Service to another controller")


def as_served(
    service: Object, change: AddressChange, owner: Owner, catalogue: Catalogue, build: Callable[[Object], Built]
) -> Object | None:
    """The Service with annotations for which it keeps its load balancer; None if there are none.

    What the annotations were is not recorded anywhere. Those that require a replacement are derived from the load
    balancer instead, and every result is built and compared with it.
    """
    entries = [each for each in catalogue if each.mutability is Mutability.REPLACE and not each.ignored]
    changed = {each.field for each in change.fields}
    concerned = [each for each in entries if each.sets in changed] or entries
    start = _placed(_without(service, [] if change.in_place else concerned), change.load_balancer, catalogue)
    return _search(start, change.load_balancer, owner, entries, catalogue, build, frozenset())


def _serving(service: Object, observed: Sequence[ObservedLoadBalancer], owner: Owner) -> ObservedLoadBalancer | None:
    """The load balancer that clients of the Service use now."""
    own = [lb for lb in observed if (owner.owns(lb.model.tags) and not is_left(lb)) or has_parts(lb, owner)]
    used = [lb for lb in own if lb.state in _SERVED and lb.ingress and lb.adoptable is None]
    return max(used, key=lambda lb: (is_published(service, lb), lb.created_at, lb.id), default=None)


def _search(
    service: Object,
    old: ObservedLoadBalancer,
    owner: Owner,
    entries: Sequence[Annotation],
    catalogue: Catalogue,
    build: Callable[[Object], Built],
    fixed: frozenset[str],
) -> Object | None:
    try:
        wrong = _wrong(build(service), old, owner, catalogue)
    except InvalidConfiguration:
        return None
    if not wrong:
        return service
    field, before = next(iter(wrong.items()))
    if field in fixed:
        return None
    settings = [each for each in entries if each.sets == field]
    plain = _without(service, settings)
    for candidate in (plain, *(_with(plain, each, text) for each in settings for text in _texts(each, before))):
        found = _search(candidate, old, owner, entries, catalogue, build, fixed | {field})
        if found is not None:
            return found
    return None


def _placed(service: Object, old: ObservedLoadBalancer, catalogue: Catalogue) -> Object:
    """The Service with the places that the load balancer has: those of its successor may not fit the other settings."""
    for entry in (each for each in catalogue if each.moves and each.name in service["metadata"]["annotations"]):
        for text in _texts(entry, old.model.attributes.get(entry.sets)) if not entry.allowed else ():
            service = _with(service, entry, text)
    return service


def _wrong(built: Built, old: ObservedLoadBalancer, owner: Owner, catalogue: Catalogue) -> dict[str, object]:
    """The fields for which the Service would leave the load balancer, with the values that keep it."""
    named = None if owner.owns(old.model.tags) else old.id
    if (built.reuse.id if built.reuse else None) != named:
        return {"id": named}
    if named is not None:
        return {}
    return {each.sets: each.before for each in forced_differences(built.model, old, catalogue)}


def _texts(entry: Annotation, before: object) -> Iterator[str]:
    """The annotation's texts that may lead to this value; a field's words may differ from the annotation's."""
    if entry.type is bool:
        yield from ("true", "false")
    elif entry.allowed:
        yield from entry.allowed
    elif isinstance(before, str | int | tuple):
        try:
            yield entry.to_text(before)
        except InvalidConfiguration:
            return


def _without(service: Object, entries: Sequence[Annotation]) -> Object:
    names = {name for each in entries for name in (each.name, *each.aliases)}
    annotations = service["metadata"].get("annotations") or {}
    return _annotated(service, {name: text for name, text in annotations.items() if name not in names})


def _with(service: Object, entry: Annotation, text: str) -> Object:
    return _annotated(service, {**service["metadata"]["annotations"], entry.name: text})


def _annotated(service: Object, annotations: dict[str, str]) -> Object:
    return {**service, "metadata": {**service["metadata"], "annotations": annotations}}
