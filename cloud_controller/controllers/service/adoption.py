"""Adopts load balancers that another controller of the cloud created. Pure.

A cluster that switches controllers keeps its load balancers and their addresses: each gets its owner's tags, and other
differences are changed in place afterwards. A load balancer that cannot be adopted is an error of its Service, so that
no Service silently gets a second load balancer or loses its finalizer while the first one exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.diff import forced_differences
from cloud_controller.load_balancers.model import (
    LoadBalancerBuilder,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import AdoptLoadBalancer
from cloud_controller.plan import Action, ActionKind, FieldChange


@dataclass(frozen=True, slots=True)
class Adoption:
    """The adopting actions, and all load balancers of the Service as they are afterwards."""

    actions: tuple[Action, ...]
    observed: tuple[ObservedLoadBalancer, ...]


def adopt(
    desired: LoadBalancerModel | None,
    observed: Sequence[ObservedLoadBalancer],
    owner: Owner,
    builder: LoadBalancerBuilder,
    catalogue: Catalogue,
    *,
    target: str,
    tags: Mapping[str, str],
) -> Adoption:
    """Adopt what other controllers created for the owner. `desired` is None if everything is to be deleted.

    A Service that already has its own load balancer keeps it and its address; the other one stays until the Service is
    deleted. Raises InvalidConfiguration if a load balancer cannot be adopted.
    """
    serves = any(owner.owns(lb.model.tags) and lb.state is LoadBalancerState.READY for lb in observed)
    actions: list[Action] = []
    present: list[ObservedLoadBalancer] = []
    for lb in observed:
        if lb.adoptable is None:
            present.append(lb)
            continue
        if lb.adoptable.name != builder.foreign_name(owner):
            continue
        if desired is not None and serves and lb.state is not LoadBalancerState.PARTIAL:
            reason = "the Service already has its own load balancer; this one is deleted with the Service"
            actions.append(Action(ActionKind.IGNORE, target, f"keep {_named(lb)}", reason=reason))
            continue
        _require_adoptable(lb, desired, catalogue)
        operation = AdoptLoadBalancer(lb.id, tags)
        changes = (FieldChange("owner", lb.adoptable.maker, "this Service"),)
        summary = f"adopt {_named(lb)}"
        actions.append(Action(ActionKind.UPDATE, target, summary, changes, operation=operation))
        present.append(apply_operation(lb, operation))
    return Adoption(tuple(actions), tuple(present))


def left_alone(lb: ObservedLoadBalancer, target: str) -> Iterator[Action]:
    """The ignored action for an adoptable load balancer whose Service does not exist in this cluster."""
    if lb.adoptable is not None and lb.adoptable.refusal is None:
        reason = "no Service of this cluster has the UID in its name"
        yield Action(ActionKind.IGNORE, target, f"keep {_named(lb)}", reason=reason)


def _named(lb: ObservedLoadBalancer) -> str:
    maker = lb.adoptable.maker if lb.adoptable else ""
    left = "the remains of " if lb.state is LoadBalancerState.PARTIAL else ""
    return f"{left}load balancer {lb.id} of {maker}"


def _require_adoptable(lb: ObservedLoadBalancer, desired: LoadBalancerModel | None, catalogue: Catalogue) -> None:
    if lb.adoptable is None:
        return
    where = f"load balancer {lb.id}"
    made = f"{lb.adoptable.maker} created it for this Service"
    if lb.adoptable.refusal is not None:
        raise InvalidConfiguration(where, f"{made}, but it cannot be adopted: {lb.adoptable.refusal}")
    if desired is None or lb.state is LoadBalancerState.PARTIAL:
        return
    forced = forced_differences(desired, lb, catalogue)
    if forced:
        changes = ", ".join(str(each.as_field_change()) for each in forced)
        why = f"{made}, but it cannot be adopted: its address would change ({changes})"
        raise InvalidConfiguration(where, why, "a Service that matches it; or delete the load balancer")
