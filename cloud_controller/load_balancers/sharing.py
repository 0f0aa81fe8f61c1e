"""Sharing of load balancers: which Services may use one, and who owns each part. Pure.

On a load balancer of another owner, a Service's parts carry the Service's tags. Parts without tags belong to the owner
of the load balancer.
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
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import given, say, text

SHARED_WITH_TAG = "cloud-controller/shared-with"
"""On a load balancer: the other namespaces whose Services may use it, as space-separated CLUSTER/NAMESPACE, or `any`.
"""

LEFT_TAG = "cloud-controller/goes-with-its-last-service"
"""On a load balancer whose owner has left it to other Services: it is deleted with the last of them."""

ANYBODY = "any"


class Sharing(StrEnum):
    """Which load balancers an annotation may name."""

    OFF = "off"
    """None."""
    TAGGED = "tagged"
    """Those of Services in the same namespace, and those with the tag for this namespace."""
    ANY = "any"
    """Every one."""


OPTION = "--shared-load-balancers"
SHARE_OPTION = "--shared-listeners-per-namespace"
SHARE = 10
"""How many listeners each namespace may have on a load balancer that is shared with everybody. Of the 50 that several
clouds allow by default, five namespaces get the same number, whoever comes first."""
_NOT_SHARED = f"load balancer {{}} cannot be shared: the controller runs with {OPTION}={Sharing.OFF}"
_NO_ANNOTATION = "no annotation"
NOT_SHARED = Refusal("id", given("id"), say(_NOT_SHARED, text("id")), _NO_ANNOTATION)
"""With `off`, on clouds with an annotation for sharing."""

# ------------------------------------------------------------------------------------------------------- permission


def require_permission(lb: ObservedLoadBalancer, owner: Owner, sharing: Sharing, field: str) -> None:
    """Raise InvalidConfiguration for this field unless the Service may have parts on the load balancer."""
    if sharing is Sharing.ANY:
        return
    if sharing is Sharing.OFF:
        raise InvalidConfiguration(field, _NOT_SHARED.format(lb.id), _NO_ANNOTATION)
    if _is_for(owner, lb) or ANYBODY in _shared_with(lb):
        return
    here, of_whole = _namespace(owner), lb.owner
    whose = f"belongs to {of_whole}" if of_whole else "belongs to no Service"
    allowed = f"a load balancer of this namespace, or one with the tag {SHARED_WITH_TAG}={here}"
    raise InvalidConfiguration(field, f"load balancer {lb.id} {whose} and is not shared with {here}", allowed)


def require_share(desired: LoadBalancerModel, lb: ObservedLoadBalancer, owner: Owner, share: int) -> None:
    """Raise InvalidConfiguration if new listeners of `desired` would give the Service's namespace more than its share.

    Counts only where the namespace may use the load balancer because everybody may. Listeners that are there stay, also
    more of them than the share. `share` 0: no limit.
    """
    if share == 0 or _is_for(owner, lb):
        return
    here = _namespace(owner)
    owners = {each.key: owner_of_part(each.tags, lb) for each in lb.model.listeners}
    own = {key for key, each in owners.items() if each is not None and each.uid == owner.uid}
    siblings = {key for key, each in owners.items() if each is not None and _namespace(each) == here} - own
    wanted = {each.key for each in desired.listeners}
    total = len(siblings | wanted)
    if total > max(share, len(siblings | own)):
        why = f"namespace {here} would have {total} listeners on load balancer {lb.id}, which is shared with everybody"
        allowed = (
            f"at most {share} for each namespace ({SHARE_OPTION}); or a load balancer of this namespace, or one with"
            f" the tag {SHARED_WITH_TAG}={here}"
        )
        raise InvalidConfiguration("spec.ports", why, allowed)


def require_free_ports(
    desired: LoadBalancerModel, lb: ObservedLoadBalancer, owner: Owner, *, force: bool, force_by: str | None = None
) -> None:
    """Raise InvalidConfiguration if a listener of another owner has a port of `desired`.

    `force`: allow ports of listeners without an owner. `force_by`: the annotation that sets it.
    """
    present = {listener.key: listener for listener in lb.model.listeners}
    for index, wanted in enumerate(desired.listeners):
        holder = present.get(wanted.key)
        if holder is None or is_of(owner, holder.tags, lb):
            continue
        field, where = f"spec.ports[{index}].port", f"{wanted.protocol} {wanted.port} of load balancer {lb.id}"
        other = owner_of_part(holder.tags, lb)
        if other is not None:
            raise InvalidConfiguration(field, f"{where} is in use by {other}", "a free port")
        if not force:
            why = f"{where} is in use by a listener without an owner"
            or_force = f', or annotation {force_by}: "true"' if force_by else ""
            raise InvalidConfiguration(field, why, f"a free port{or_force}")
        if not holder.pool:
            why = f"the listener that has {where} forwards to no pool, so that it could not be given back"
            raise InvalidConfiguration(field, why, "a free port; or delete that listener")


def _is_for(owner: Owner, lb: ObservedLoadBalancer) -> bool:
    """Whether the load balancer is the namespace's, was the Service's, or is shared with the namespace by name."""
    here = _namespace(owner)
    if lb.owner is not None and _namespace(lb.owner) == here:
        return True
    was_its = lb.owner is None and lb.model.tags.get(PRESERVED_TAG) == f"{here}/{owner.name}"
    return was_its or here in _shared_with(lb)


def _namespace(owner: Owner) -> str:
    return f"{owner.cluster_id}/{owner.namespace}"


def _shared_with(lb: ObservedLoadBalancer) -> list[str]:
    return lb.model.tags.get(SHARED_WITH_TAG, "").split()


# -------------------------------------------------------------------------------------------------- owners of parts


def is_of(owner: Owner, part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> bool:
    """Whether the part with these tags belongs to this Service."""
    return owner.owns(_owner_tags(part_tags, lb))


def owner_of_part(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> Owner | None:
    """The Service that owns the part with these tags; None if it was created by hand or preserved."""
    return Owner.of_tags(_owner_tags(part_tags, lb))


def serves_others(lb: ObservedLoadBalancer) -> bool:
    """Whether it has parts of others, or preserved parts, so that it must not be deleted."""
    return any(_is_of_another(tags, lb) for tags in lb.model.part_tags)


def may_serve_others(lb: ObservedLoadBalancer) -> bool:
    """Whether others have parts on it, or may add some at any time."""
    return SHARED_WITH_TAG in lb.model.tags or serves_others(lb)


def is_left(lb: ObservedLoadBalancer) -> bool:
    """Whether its owner has left it and others still use it."""
    tags = lb.model.part_tags
    return LEFT_TAG in lb.model.tags and bool(tags) and all(_is_of_another(each, lb) for each in tags)


def without_others(lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    """The load balancer with only its owner's parts."""
    if not serves_others(lb):
        return lb
    listeners = tuple(each for each in lb.model.listeners if not _is_of_another(each.tags, lb))
    pools = tuple(each for each in lb.model.pools if not _is_of_another(each.tags, lb))
    return replace(lb, model=replace(lb.model, listeners=listeners, pools=pools))


def _is_of_another(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> bool:
    return _identity(_owner_tags(part_tags, lb)) != _identity(lb.model.tags)


def _owner_tags(part_tags: Mapping[str, str], lb: ObservedLoadBalancer) -> Mapping[str, str]:
    """The tags that identify the part's owner: its own, else those of the load balancer."""
    return part_tags if SERVICE_UID_TAG in part_tags or PRESERVED_TAG in part_tags else lb.model.tags


def _identity(tags: Mapping[str, str]) -> tuple[str | None, str | None]:
    return tags.get(CLUSTER_TAG), tags.get(SERVICE_UID_TAG)
