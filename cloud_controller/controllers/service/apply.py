"""Performs the operations of a Service plan, in the cloud and in Kubernetes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import assert_never, cast, get_args

from cloud_controller import apply
from cloud_controller.cloud import Cloud, CloudError, Conflict, InvalidConfiguration, Postponed
from cloud_controller.controllers.service.plan import AddFinalizer, RemoveFinalizer
from cloud_controller.controllers.service.status import SetCondition, SetIngress
from cloud_controller.kube import SERVICES, ApiError, KubeApi, Object, PatchType
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.failures import Failures
from cloud_controller.load_balancers.model import ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    LoadBalancers,
    Operation,
    OperationResult,
    PutListener,
    RemoveMembers,
)

KubeOperation = AddFinalizer | RemoveFinalizer | SetIngress | SetCondition


def load_balancers_of(cloud: Cloud) -> LoadBalancers:
    """The cloud's load balancers. Raises InvalidConfiguration if it has none."""
    if cloud.load_balancers is None:
        why = f"cloud {cloud.provider_name} does not support load balancers"
        raise InvalidConfiguration("controllers", why, "every controller but service")
    return cloud.load_balancers


@apply.performs_in_order(*get_args(KubeOperation), *get_args(Operation))
def perform(operations: Sequence[KubeOperation | Operation], run: apply.Run) -> Iterator[apply.Outcome]:
    """Perform the operations of one Service. Consecutive ones on one load balancer are one change of the cloud."""
    failures = Failures()
    load_balancers = dict(run.load_balancers)
    for _, group in groupby(operations, _change_of):
        change = [operation for operation in group if failures.permit(operation)]
        if not change or run.stop.is_set():
            continue
        first = change[0]
        outcomes: Iterable[apply.Outcome]
        try:
            if isinstance(first, KubeOperation):
                outcomes = [apply.Outcome(first, answer=change_service(run.kube, first))]
            else:
                with run.changing():
                    results = _change(load_balancers_of(run.cloud), cast("Sequence[Operation]", change), load_balancers)
                outcomes = [apply.Outcome(each.operation, each.error, each) for each in results]
        except (CloudError, ApiError) as error:
            outcomes = [apply.Outcome(first, error)]
        for outcome in outcomes:
            failures.record(outcome.operation, outcome.error)
            yield outcome


def _change_of(operation: KubeOperation | Operation) -> object:
    if isinstance(operation, KubeOperation | CreateLoadBalancer) or _hands_over(operation):
        return id(operation)
    return operation.id


def _hands_over(operation: Operation) -> bool:
    return bool(
        (isinstance(operation, RemoveMembers) and operation.hand_over)
        or (isinstance(operation, PutListener) and operation.instead_of)
    )


def _change(
    cloud: LoadBalancers, operations: Sequence[Operation], load_balancers: dict[str, ObservedLoadBalancer]
) -> Sequence[OperationResult]:
    """Change one load balancer, whose state in `load_balancers` follows. Raises CloudError."""
    first = operations[0]
    if isinstance(first, CreateLoadBalancer):
        return [OperationResult(first, created=_create(cloud, first))]
    if _hands_over(first):
        _require_successor(cloud, first)
    results = cloud.perform(load_balancers.get(first.id), operations)
    for result in results:
        if first.id in load_balancers and result.done is not None:
            load_balancers[first.id] = apply_operation(load_balancers[first.id], result.done)
    return results


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
        case SetCondition():
            # A strategic merge keeps the conditions of others.
            patch = {"metadata": metadata, "status": {"conditions": [_condition(operation)]}}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.STRATEGIC, subresource="status")
        case _:
            assert_never(operation)


def _condition(wanted: SetCondition) -> dict[str, str]:
    if wanted.message is None:
        return {"type": wanted.type, "$patch": "delete"}
    since = wanted.since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": wanted.type,
        "status": "True",
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": since,
    }


class HandingOver(Postponed):
    """Old members must keep serving until a new one is healthy."""


def _create(cloud: LoadBalancers, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
    """Create it, even if an earlier load balancer (preserved, or being deleted) still occupies the client token."""
    token = operation.client_token

    def create(token: str) -> ObservedLoadBalancer:
        (result,) = cloud.perform(None, [replace(operation, client_token=token)])
        if result.created is None:
            raise result.error or CloudError("the cloud created a load balancer without returning it")
        return result.created

    try:
        made = create(token)
    except Conflict:
        digest = hashlib.sha256(repr(operation.model).encode()).hexdigest()[:16]
        made = create(f"{token}-{digest}")
    wanted = Owner.of_tags(operation.model.tags)
    if made.owner != wanted:
        made = create(f"{token}-after-{made.id}")
    if made.owner != wanted:
        raise Conflict(f"creating a load balancer returned {made.id}, which does not have the requested tags")
    return made


def _require_successor(cloud: LoadBalancers, operation: Operation) -> None:
    """Raise HandingOver while a member or pool that the operation removes is healthy and no successor is."""
    if isinstance(operation, RemoveMembers):
        healthy = {key for key, good in cloud.health(operation.id).items() if good}
        serving = any((operation.pool, *member.key) in healthy for member in operation.members)
        if serving and not any((operation.pool, *member.key) in healthy for member in operation.successors):
            raise HandingOver(f"no new member of pool {operation.pool} of {operation.id} is healthy yet")
    elif isinstance(operation, PutListener):
        pools = {pool for (pool, _, _), good in cloud.health(operation.id).items() if good}
        if operation.instead_of in pools and operation.listener.pool not in pools:
            why = f"no member of pool {operation.listener.pool} of {operation.id} is healthy yet"
            raise HandingOver(f"{why}; listener {operation.listener} keeps pool {operation.instead_of}")
