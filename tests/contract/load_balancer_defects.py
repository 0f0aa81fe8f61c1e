"""Defects of a cloud's load balancers. What they share is in `defects`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4
from zlib import crc32

from cloud_controller.cloud import InvalidConfiguration, LeftOut, Throttled
from cloud_controller.fence import unfenced
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_TAG, LoadBalancerState, Owner
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    DeletePool,
    Operation,
    OperationResult,
)
from tests.contract.defects import Plant, Send, methods, requests, without


def fence_asked_once_a_change(cloud: Any) -> None:
    asked = [unfenced]
    cloud.fence_writes = asked.append
    performs(lambda perform, lb, operations: (asked[-1](), perform(lb, operations))[1])(cloud)


def observes(**fields: Any) -> Plant:
    """Every load balancer is read with these fields."""
    return methods("load_balancers.read", lambda read, *asked: [replace(lb, **fields) for lb in read(*asked)])


takes_whole_for_remains = observes(state=LoadBalancerState.PARTIAL)
remains_taken_for_whole = methods(
    "load_balancers.read",
    lambda read, *asked: [
        replace(lb, state=LoadBalancerState.READY) if lb.state is LoadBalancerState.PARTIAL else lb
        for lb in read(*asked)
    ],
)
service_tag_not_read = methods(
    "load_balancers.read",
    lambda read, *asked: [
        replace(lb, model=replace(lb.model, tags=without(lb.model.tags, SERVICE_TAG))) for lb in read(*asked)
    ],
)
all_services_read = methods("load_balancers.read", lambda read, _uids=None, ids=(): read(None, ids))


def what_services_had_remembered(cloud: Any) -> None:
    """Also when it is deleted."""
    known: dict[frozenset[str], Any] = {}

    def alter(read: Callable[..., Any], uids: Any = None, ids: Any = ()) -> Any:
        if uids is None or ids:
            return read(uids, ids)
        of_services = frozenset(uids)
        known[of_services] = known.get(of_services) or read(uids)
        return known[of_services]

    methods("load_balancers.read", alter)(cloud)


def performs(alter: Callable[..., Any]) -> Plant:
    """`alter(perform, load_balancer, operations)` stands in for the load balancers' `perform`."""
    return methods("load_balancers.perform", alter)


def tokens(make: Callable[[CreateLoadBalancer], str]) -> Plant:
    """Creations have these tokens instead of theirs."""

    def alter(perform: Any, lb: Any, operations: Any) -> Any:
        is_new = lb is None
        return perform(lb, [replace(each, client_token=make(each)) if is_new else each for each in operations])

    return performs(alter)


tokens_ignored = tokens(lambda _: uuid4().hex)
tokens_of_settings = tokens(lambda creation: f"{creation.client_token}-{crc32(repr(creation.model).encode())}")
one_token_for_all = tokens(lambda _: "token")


def creations_looked_for_in_a_list(cloud: Any) -> None:
    """Instead of by their tokens."""

    def alter(perform: Any, lb: Any, operations: Any) -> Any:
        owner = Owner.of_tags(operations[0].model.tags) if lb is None else None
        made = [each for each in cloud.load_balancers.read({owner.uid}) if each.owner == owner] if owner else []
        return [OperationResult(operations[0], created=made[0])] if made else perform(lb, operations)

    tokens_ignored(cloud)
    performs(alter)(cloud)


@performs
def errors_swallowed(perform: Any, lb: Any, operations: Any) -> Any:
    return [replace(result, error=None) for result in perform(lb, operations)]


@performs
def one_member_fails_all(perform: Any, lb: Any, operations: Any) -> Any:
    results = perform(lb, operations)
    whole = InvalidConfiguration("members", "one of them is refused")
    return [replace(each, error=whole) if isinstance(each.error, LeftOut) else each for each in results]


@performs
def errors_raised(perform: Any, lb: Any, operations: Any) -> Any:
    results = perform(lb, operations)
    for result in results:
        if result.error is not None and not isinstance(result.operation, CreateLoadBalancer):
            raise result.error
    return results


@performs
def settled_too_early(perform: Any, lb: Any, operations: Any) -> Any:
    return [replace(result, settled=True) for result in perform(lb, operations)]


@performs
def results_reversed(perform: Any, lb: Any, operations: Any) -> Any:
    return [*reversed(perform(lb, operations))]


@performs
def continues_after_a_failure(perform: Any, lb: Any, operations: Any) -> Any:
    return [result for operation in operations for result in perform(lb, [operation])]


@performs
def stops_at_the_first_failure(perform: Any, lb: Any, operations: Any) -> Any:
    results: list[OperationResult] = []
    for operation in operations:
        results += perform(lb, [operation])
        if results[-1].error is not None:
            break
    return results


@performs
def members_changed_while_throttled(perform: Any, lb: Any, operations: Any) -> Any:
    results = perform(lb, operations)
    members = [each for each in operations if isinstance(each, AddMembers)]
    if members and any(isinstance(each.error, Throttled) for each in results):
        perform(lb, members)
    return results


@performs
def reports_what_it_did_not_attempt(perform: Any, lb: Any, operations: Any) -> Any:
    done = {id(result.operation): result for result in perform(lb, operations)}
    return [done.get(id(operation), OperationResult(operation)) for operation in operations]


@performs
def members_added_once_only(perform: Any, lb: Any, operations: Any) -> Any:
    return perform(lb, [each for each in operations if not isinstance(each, AddMembers)])


def takes_for_done(kind: type[Operation]) -> Plant:
    """Operations of this kind are reported as done, but nothing is done."""

    def alter(perform: Any, lb: Any, operations: Any) -> Any:
        others = [each for each in operations if not isinstance(each, kind)]
        done = {id(result.operation): result for result in (perform(lb, others) if others else ())}
        done |= {id(each): OperationResult(each) for each in operations if isinstance(each, kind)}
        return [done[id(each)] for each in operations if id(each) in done]

    return performs(alter)


def never_settled(cloud: Any) -> None:
    observes(settled=False)(cloud)
    performs(lambda perform, *given: [replace(result, settled=False) for result in perform(*given)])(cloud)


@performs
def a_part_stays(perform: Any, lb: Any, operations: Any) -> Any:
    kept = [each for each in operations if isinstance(each, DeletePool)]
    done = perform(lb, [each for each in operations if each not in kept])
    return [*done, *(OperationResult(each) for each in kept)]


# ------------------------------------------------------------------------------------------------------ tinycloud alone


def mark_not_written(send: Send, content: Any) -> Any:
    model, *rest = content
    return send([replace(model, tags=without(model.tags, CLUSTER_TAG)), *rest])


def deletion_by_name(cloud: Any) -> None:
    call = cloud.client.call

    def delete(send: Send, content: Any) -> Any:
        send(content)
        for lb in call("list_load_balancers", (), "")[0]:
            if "default-web" in lb.model.name:
                call("delete_load_balancer", lb.id)

    requests("delete_load_balancer", delete)(cloud)


def building_asks(cloud: Any) -> None:
    made = type(cloud).builder.fget

    def builder(self: Any) -> Any:
        found = made(self)
        return SimpleNamespace(
            backend=found.backend,
            catalogue=found.catalogue,
            build=lambda *arguments: (self.client.call("list_load_balancers", (), ""), found.build(*arguments))[1],
        )

    cloud.__class__ = type("Asking", (type(cloud),), {"builder": property(builder)})


def missing_is_an_error_for_deletions(cloud: Any) -> None:
    one = cloud._one

    def perform(operation: Any) -> Any:
        if type(operation).__name__ == "DeleteLoadBalancer":
            return cloud.client.call("delete_load_balancer", operation.id)
        return one(operation)

    cloud._one = perform


def fence_asked_at_the_first_attempt_only(cloud: Any) -> None:
    attempt = cloud.client._attempt

    def unfenced_retry(number: int, *rest: Any) -> Any:
        fence = cloud.client.fence
        cloud.client.fence = fence if number == 0 else lambda: None
        try:
            return attempt(number, *rest)
        finally:
            cloud.client.fence = fence

    cloud.client._attempt = unfenced_retry
