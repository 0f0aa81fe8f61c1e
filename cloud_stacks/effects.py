"""What a change of a resource does in the cloud. For load balancers of Services the catalogues know. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from cloud_controller import clouds
from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Catalogue, Mutability
from cloud_stacks.outcome import SECRET, UNKNOWN, Resource
from local.plugins import paths
from policy.objects import dig

Json = Any
SERVICE: Final = "kubernetes:core/v1:Service"
_HIDDEN: Final = {SECRET, UNKNOWN}


class Kind(StrEnum):
    """How much it matters."""

    ADDRESS = "address replaced"
    REFUSED = "refused"
    GONE = "address gone"
    NEW = "new address"
    UNJUDGED = "not judged"
    IGNORED = "ignored"
    IN_PLACE = "in place"


@dataclass(frozen=True, slots=True)
class Effect:
    """One consequence. `cause`: what changed, as text from the program; `text`: our words about it."""

    kind: Kind
    text: str
    cause: str = ""


def effects_of(resource: Resource, catalogue: Catalogue | None = None) -> list[Effect]:
    """The consequences for load balancers and addresses; for other resources, none that the operation does not say.

    `catalogue`: that of the load balancer, if it is known (`serving.catalogues`).
    """
    if resource.type != SERVICE:
        return []
    was, is_now = _is_balanced(resource.before), _is_balanced(resource.after)
    if None in (was, is_now) or not (was or is_now):
        return []
    if resource.op == "delete" and resource.retained:
        return [Effect(Kind.IN_PLACE, "it stays as it is, and no stack manages it any more")]
    if resource.op == "delete" or not is_now:
        return [Effect(Kind.GONE, "the load balancer and its address are deleted")]
    if resource.op == "create" or not was:
        return [*_refusals(resource, catalogue), Effect(Kind.NEW, "a load balancer with a new address")]
    if resource.op == "replace":
        replaced = Effect(Kind.ADDRESS, "the Service is made anew, with a new address", ", ".join(resource.reasons))
        return [*_refusals(resource, catalogue), replaced]
    if resource.op != "update":
        return []
    return _of_update(resource, catalogue)


def _of_update(resource: Resource, catalogue: Catalogue | None) -> list[Effect]:
    """What happens to the load balancer."""
    if catalogue is None:
        return [_unjudged(resource)] if _annotations(resource.before) or _annotations(resource.after) else []
    others = [each.catalogue for each in clouds.descriptors() if each.name != catalogue.cloud]
    before, after = _annotations(resource.before), _annotations(resource.after)
    load_balancer_class = dig(resource.after, "spec", "loadBalancerClass")
    found = _refusals(resource, catalogue)
    costly = {entry.name for entry, _, _ in catalogue.readdressing(before, after, load_balancer_class)}
    for name in sorted({*before, *after}):
        if before.get(name) == after.get(name) and not _differs(resource, name):
            continue
        if (entry := catalogue.entry(name)) is None:
            if known := [other.cloud for other in others if other.entry(name) is not None]:
                found.append(Effect(Kind.IGNORED, f"only {' and '.join(known)} has it", name))
        elif catalogue.readdresses(entry) and _HIDDEN & {before.get(name), after.get(name)}:
            hidden = "another address may replace the old one: the value is not shown here"
            found.append(Effect(Kind.ADDRESS, hidden, name))
        elif entry.name in costly and entry.mutability is Mutability.REPLACE:
            found.append(Effect(Kind.ADDRESS, "a new load balancer replaces the old one", name))
        elif entry.name in costly:
            found.append(Effect(Kind.ADDRESS, "clients may reach it only at other addresses then", name))
        elif entry.ignored:
            found.append(Effect(Kind.IGNORED, entry.ignored, name))
        elif entry.mutability is Mutability.CREATE_ONLY:
            found.append(Effect(Kind.IGNORED, "only load balancers created later get the new value", name))
        else:
            found.append(Effect(Kind.IN_PLACE, f"changes {entry.applies_to}", name))
    return found or [Effect(Kind.IN_PLACE, "the load balancer and its address stay")]


def _differs(resource: Resource, annotation: str) -> bool:
    """Whether the engine says so of an annotation, which a secret one does not show."""
    place = ("metadata", "annotations", annotation)
    return any(paths.holds(place, paths.named(path)) for path in resource.differing)


def _refusals(resource: Resource, catalogue: Catalogue | None) -> list[Effect]:
    if catalogue is None:
        return [_unjudged(resource)] if _annotations(resource.after) else []
    try:
        catalogue.parse({k: v for k, v in _annotations(resource.after).items() if v not in _HIDDEN})
    except InvalidConfiguration as error:
        return [Effect(Kind.REFUSED, "the controller will refuse the Service", str(error))]
    return []


def _unjudged(resource: Resource) -> Effect:
    of_class = dig(resource.after, "spec", "loadBalancerClass")
    which = f"class {of_class}" if of_class else "no class"
    return Effect(Kind.UNJUDGED, f"it is not certain which cloud serves it, or no controller here does ({which})")


def _is_balanced(inputs: Mapping[str, Json]) -> bool | None:
    """Whether it is of type LoadBalancer; None: that is hidden."""
    kind = dig(inputs, "spec", "type")
    return None if _HIDDEN & {str(inputs.get("spec")), str(kind)} else bool(kind == "LoadBalancer")


def _annotations(inputs: Mapping[str, Json]) -> dict[str, str]:
    found = dig(inputs, "metadata", "annotations")
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
