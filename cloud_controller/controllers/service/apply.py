"""Carries out one operation of a Service plan, in the cloud or in Kubernetes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import assert_never, get_args

from cloud_controller import apply
from cloud_controller.cloud import Cloud, Conflict, InvalidConfiguration, Postponed
from cloud_controller.controllers.service.checkpoint import forget
from cloud_controller.controllers.service.plan import AddFinalizer, RemoveFinalizer, SetIngress
from cloud_controller.kube import SERVICES, KubeApi, Object, PatchType
from cloud_controller.load_balancers.model import ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    LoadBalancers,
    Operation,
    PutListener,
    Remembering,
    RemoveMembers,
    carry_out,
)

KubeOperation = AddFinalizer | RemoveFinalizer | SetIngress


def load_balancers_of(cloud: Cloud) -> LoadBalancers:
    """The cloud's load balancers. Raises InvalidConfiguration if it has none."""
    if cloud.load_balancers is None:
        why = f"cloud {cloud.provider_name} does not support load balancers"
        raise InvalidConfiguration("controllers", why, "every controller but service")
    return cloud.load_balancers


@apply.performs_in_order(*get_args(KubeOperation), *get_args(Operation))
def perform(operation: KubeOperation | Operation, run: apply.Run) -> None:
    """Perform one operation of a plan for all Services (`cloud-controller apply`)."""
    if isinstance(operation, KubeOperation):
        change_service(run.kube, operation)
    else:
        load_balancers = load_balancers_of(run.cloud)
        if isinstance(load_balancers, Remembering):
            forget(run.kube)
        change_load_balancer(load_balancers, operation)


def change_service(kube: KubeApi, operation: KubeOperation) -> Object:
    """Change the Service itself and return its new state. Idempotent.

    Raises `ApiError`: NotFoundError if the Service is gone, which ends its plan. Its load balancers are orphans then.
    """
    namespace, name = operation.namespace, operation.name
    # The UID makes the API server reject the patch if another Service now has the name.
    metadata: dict[str, object] = {"uid": operation.uid}
    patch: dict[str, object]
    match operation:
        # A strategic merge keeps the finalizers of other controllers.
        case AddFinalizer(finalizer=finalizer):
            patch = {"metadata": {**metadata, "finalizers": [finalizer]}}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.STRATEGIC)
        case RemoveFinalizer(finalizer=finalizer):
            patch = {"metadata": {**metadata, "$deleteFromPrimitiveList/finalizers": [finalizer]}}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.STRATEGIC)
        case SetIngress(ingress=ingress):
            status = {"loadBalancer": {"ingress": [*ingress]} if ingress else None}
            patch = {"metadata": metadata, "status": status}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.MERGE, subresource="status")
        case _:
            assert_never(operation)


class HandingOver(Postponed):
    """Old members must keep serving until a new one is healthy."""


def change_load_balancer(
    load_balancers: LoadBalancers, operation: Operation, *, handing_over: bool = False
) -> ObservedLoadBalancer | None:
    """Change the cloud and return a new load balancer, if one was created. Idempotent.

    `handing_over`: a hand-over of this Service's members is already in progress. Raises CloudError, and HandingOver if
    old members must serve longer.
    """
    if isinstance(operation, CreateLoadBalancer):
        return _create(load_balancers, operation)
    if isinstance(operation, RemoveMembers) and (operation.hand_over or handing_over):
        _require_successor(load_balancers, operation)
    if isinstance(operation, PutListener) and operation.instead_of:
        _require_healthy(load_balancers, operation, operation.instead_of)
    return carry_out(load_balancers, operation)


def _create(load_balancers: LoadBalancers, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
    """Create it, even if an earlier load balancer (preserved, or being deleted) still occupies the client token."""
    try:
        made = load_balancers.create(operation)
    except Conflict:
        digest = hashlib.sha256(repr(operation.model).encode()).hexdigest()[:16]
        made = load_balancers.create(replace(operation, client_token=f"{operation.client_token}-{digest}"))
    wanted = Owner.of_tags(operation.model.tags)
    if made.owner != wanted:
        made = load_balancers.create(replace(operation, client_token=f"{operation.client_token}-after-{made.id}"))
    if made.owner != wanted:
        raise Conflict(f"creating a load balancer returned {made.id}, which does not have the requested tags")
    return made


def _require_successor(load_balancers: LoadBalancers, operation: RemoveMembers) -> None:
    health = load_balancers.health(operation.id)
    healthy = {key for key, good in health.items() if good}
    serving = any((operation.pool, *member.key) in healthy for member in operation.members)
    if serving and not any((operation.pool, *member.key) in healthy for member in operation.successors):
        raise HandingOver(f"no new member of pool {operation.pool} of {operation.id} is healthy yet")


def _require_healthy(load_balancers: LoadBalancers, operation: PutListener, before: str) -> None:
    """Raise HandingOver until the new pool of a taken-over listener is healthy, provided that the old pool is."""
    healthy = {pool for (pool, _, _), good in load_balancers.health(operation.id).items() if good}
    if before in healthy and operation.listener.pool not in healthy:
        why = f"no member of pool {operation.listener.pool} of {operation.id} is healthy yet"
        raise HandingOver(f"{why}; listener {operation.listener} keeps pool {before}")
