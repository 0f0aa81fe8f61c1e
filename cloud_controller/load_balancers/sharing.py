"""Who may use which load balancer, and whose each part of a shared one is. Pure.

Each Service's parts of a load balancer that is not its own carry the Service's tags; parts without tags belong to the
owner of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    PRESERVED_TAG,
    SERVICE_UID_TAG,
    LoadBalancerModel,
    ObservedLoadBalancer,
    Owner,
)

SHARED_WITH_TAG = "cloud-controller/shared-with"
"""On a load balancer: the namespaces whose Services may use it besides its owner's, as CLUSTER/NAMESPACE with spaces
between them, or `any`."""

LEFT_TAG = "cloud-controller/goes-with-its-last-service"
"""On a load balancer whose owner has left it to the other Services on it: it is deleted once they have left too."""

ANYBODY = "any"


class Sharing(StrEnum):
    """Which load balancers an annotation may name."""

    OFF = "off"
    """None."""
    TAGGED = "tagged"
    """Those of Services of the same namespace, and those that carry the tag for it."""
    ANY = "any"
    """Every one."""


# ------------------------------------------------------------------------------------------------------- permission


def require_permission(lb: ObservedLoadBalancer, owner: Owner, sharing: Sharing, field: str) -> None:
    """Raise InvalidConfiguration, at this field, unless the Service may have parts on the load balancer."""
    if sharing is Sharing.ANY:
        return
    if sharing is Sharing.OFF:
        why = f"{lb.id}: the controller runs with --shared-load-balancers=off"
        raise InvalidConfiguration(field, why, "no such annotation")
    here = f"{owner.cluster_id}/{owner.namespace}"
    of_whole = lb.owner
    if of_whole is not None and f"{of_whole.cluster_id}/{of_whole.namespace}" == here:
        return
    if lb.model.tags.get(PRESERVED_TAG) == f"{here}/{owner.name}" and of_whole is None:
        return
    if not {here, ANYBODY}.isdisjoint(lb.model.tags.get(SHARED_WITH_TAG, "").split()):
        return
    whose = f"belongs to {of_whole}" if of_whole else "belongs to no Service"
    allowed = f"a load balancer of this namespace, or one with the tag {SHARED_WITH_TAG}={here}"
    raise InvalidConfiguration(field, f"{lb.id} {whose} and is not shared with namespace {here}", allowed)


def require_free_ports(
    desired: LoadBalancerModel, lb: ObservedLoadBalancer, owner: Owner, *, force: bool, force_by: str | None = None
) -> None:
    """Raise InvalidConfiguration where another has a port of `desired`, or nobody, unless by `force`.

    `force_by` names the annotation by which a Service says so.
    """
    present = {listener.key: listener for listener in lb.model.listeners}
    for index, wanted in enumerate(desired.listeners):
        holder = present.get(wanted.key)
        if holder is None or is_of(owner, holder.tags, lb):
            continue
        field, where = f"spec.ports[{index}].port", f"{wanted.protocol} {wanted.port} of load balancer {lb.id}"
        other = owner_of_part(holder.tags, lb)
        if other is not None:
            raise InvalidConfiguration(field, f"{where} is taken by {other}", "a port that is free there")
        if not force:
            why = f"{where} has a listener that no Service owns"
            or_force = f', or annotation {force_by}: "true"' if force_by else ""
            raise InvalidConfiguration(field, why, f"a port that is free there{or_force}")


# --------------------------------------------------------------------------------------------------- whose a part is


def is_of(owner: Owner, part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> bool:
    """Whether the part with these tags belongs to this Service."""
    return owner.owns(_owner_tags(part_tags, lb))


def owner_of_part(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> Owner | None:
    """The Service that the part with these tags belongs to; None for one that a person made, or that was preserved."""
    return Owner.of_tags(_owner_tags(part_tags, lb))


def serves_others(lb: ObservedLoadBalancer) -> bool:
    """Whether parts of it belong to others than its owner, or were preserved: it can't be deleted."""
    return any(_is_of_another(tags, lb) for tags in lb.model.part_tags)


def may_serve_others(lb: ObservedLoadBalancer) -> bool:
    """Whether others have parts on it, or may get some from another cluster at any time."""
    return SHARED_WITH_TAG in lb.model.tags or serves_others(lb)


def is_left(lb: ObservedLoadBalancer) -> bool:
    """Whether its owner has nothing on it any more, and others have."""
    tags = lb.model.part_tags
    return LEFT_TAG in lb.model.tags and bool(tags) and all(_is_of_another(each, lb) for each in tags)


def without_others(lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    """The load balancer as if its owner's parts alone were on it."""
    if not serves_others(lb):
        return lb
    listeners = tuple(each for each in lb.model.listeners if not _is_of_another(each.tags, lb))
    pools = tuple(each for each in lb.model.pools if not _is_of_another(each.tags, lb))
    return replace(lb, model=replace(lb.model, listeners=listeners, pools=pools))


def _is_of_another(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> bool:
    return _identity(_owner_tags(part_tags, lb)) != _identity(lb.model.tags)


def _owner_tags(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> Mapping[str, str]:
    """The tags that say whose a part is: its own, else those of the whole."""
    return part_tags if SERVICE_UID_TAG in part_tags or PRESERVED_TAG in part_tags else lb.model.tags


def _identity(tags: Mapping[str, str]) -> tuple[str | None, str | None]:
    return tags.get(CLUSTER_TAG), tags.get(SERVICE_UID_TAG)
