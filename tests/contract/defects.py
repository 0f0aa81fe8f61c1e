"""Defects of clouds: each changes a cloud that `Harness.new_cloud` has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from cloud_controller.cloud import CloudError, NotFound
from cloud_controller.load_balancers.model import CLUSTER_TAG, LoadBalancerState
from cloud_controller.load_balancers.operations import AddMembers, CreateLoadBalancer, DeletePool, OperationResult

Plant = Callable[[Any], None]
Send = Callable[[Any], Any]

# --------------------------------------------------------------------------------- any cloud: requests of its client

_FURTHER_PAGES = ("NextMarker", "NextToken", "TotalCount", "next_cursor", "servers_links", "loadbalancers_links")


def requests(beginning: str, alter: Callable[[Send, Any], Any]) -> Plant:
    """`alter(send, content)` stands in for each request whose operation begins so; `send(content)` makes it.

    Operations are `ec2 CreateRoute`, `POST network floatingips`, `POST load_balancers`, each as its client calls it.
    """

    def plant(cloud: Any) -> None:
        client = next(found for name in ("client", "_api", "_client") if (found := getattr(cloud, name, None)))
        name = "call" if hasattr(client, "call") else "_call"
        real = getattr(client, name)

        def altered(*given: Any, **more: Any) -> Any:
            where = [*takewhile(lambda each: isinstance(each, str), given)]
            if not " ".join(where).startswith(beginning):
                return real(*given, **more)
            return alter(lambda content: real(*where, *content[:-1], **content[-1]), [*given[len(where) :], more])

        setattr(client, name, altered)

    return plant


def leaves_out(operation: str, *keys: str) -> Plant:
    """The request is sent without these keys."""
    return requests(operation, lambda send, content: send(_without(content, *keys)))


def never_sends(operation: str) -> Plant:
    """The request is taken for done, but not sent."""
    return requests(operation, lambda _send, _content: {})


def overlooks(operation: str, *keys: str) -> Plant:
    """These keys of the answer are not looked at."""
    return requests(operation, lambda send, content: _without(send(content), *keys))


def reads_one_page(operation: str) -> Plant:
    """The answer seems to be the last page."""
    return overlooks(operation, *_FURTHER_PAGES)


def finds_none(operation: str) -> Plant:
    """What is asked for seems not to exist."""

    def alter(_send: Send, _content: Any) -> Any:
        raise NotFound(operation)

    return requests(operation, alter)


def takes(error: type[CloudError], other: Callable[[str], CloudError]) -> Plant:
    """An error is taken for another one."""

    def alter(send: Send, content: Any) -> Any:
        try:
            return send(content)
        except error as found:
            raise other(str(found)) from found

    return requests("", alter)


def swallows(error: type[CloudError], operation: str, answer: Any) -> Plant:
    """A request with this error seems to have had this answer."""

    def alter(send: Send, content: Any) -> Any:
        try:
            return send(content)
        except error:
            return answer

    return requests(operation, alter)


def compares_beginnings(cloud: Any) -> None:
    """The ID of another cluster, which begins with this one's, is taken for it."""
    other = f"{cloud.cluster_id}0"

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: read(each) for key, each in value.items()}
        if isinstance(value, list):
            return [*map(read, value)]
        return value.removesuffix("0") if isinstance(value, str) and value.endswith(other) else value

    requests("", lambda send, content: read(send(content)))(cloud)


def _without(value: Any, *keys: str) -> Any:
    """The value without these keys, wherever they are in it, and without tags of these names."""
    if isinstance(value, dict):
        return {key: _without(each, *keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list):
        tags = [each.get("Key") if isinstance(each, dict) else str(each).partition("=")[0] for each in value]
        return [_without(each, *keys) for each, tag in zip(value, tags, strict=True) if tag not in keys]
    return value


# ------------------------------------------------------------------------------------------- any cloud: what it offers


def answers(path: str, answer: Any) -> Plant:
    """The cloud's method at this path always returns this."""

    def plant(cloud: Any) -> None:
        *where, name = path.split(".")
        of = reduce(getattr, where, cloud)
        assert callable(getattr(of, name))
        setattr(of, name, lambda *_: answer)

    return plant


def fence_not_passed_on(cloud: Any) -> None:
    cloud.fence_writes = lambda _: None


def failed_attempts_unobserved(cloud: Any) -> None:
    observe = cloud.observe_calls
    cloud.observe_calls = lambda observer: observe(
        lambda operation, seconds, error: observer(operation, seconds, error) if error is None else None
    )


def takes_whole_for_remains(cloud: Any) -> None:
    read = cloud.load_balancers.read
    cloud.load_balancers.read = lambda *asked: [replace(lb, state=LoadBalancerState.PARTIAL) for lb in read(*asked)]


def performs(alter: Callable[..., Any]) -> Plant:
    """`alter(perform, load_balancer, operations)` stands in for the load balancers' `perform`."""

    def plant(cloud: Any) -> None:
        load_balancers = cloud.load_balancers
        perform = load_balancers.perform
        load_balancers.perform = lambda lb, operations: alter(perform, lb, operations)

    return plant


def tokens_ignored(perform: Any, lb: Any, operations: Any) -> Any:
    *most, last = operations
    return perform(lb, [*most, replace(last, client_token=uuid4().hex) if lb is None else last])


def errors_swallowed(perform: Any, lb: Any, operations: Any) -> Any:
    return [replace(result, error=None) for result in perform(lb, operations)]


def errors_raised(perform: Any, lb: Any, operations: Any) -> Any:
    results = perform(lb, operations)
    for result in results:
        if result.error is not None and not isinstance(result.operation, CreateLoadBalancer):
            raise result.error
    return results


def settled_too_early(perform: Any, lb: Any, operations: Any) -> Any:
    return [replace(result, settled=True) for result in perform(lb, operations)]


def results_reversed(perform: Any, lb: Any, operations: Any) -> Any:
    return [*reversed(perform(lb, operations))]


def continues_after_a_failure(perform: Any, lb: Any, operations: Any) -> Any:
    return [result for operation in operations for result in perform(lb, [operation])]


def stops_at_the_first_failure(perform: Any, lb: Any, operations: Any) -> Any:
    results: list[OperationResult] = []
    for operation in operations:
        results += perform(lb, [operation])
        if results[-1].error is not None:
            break
    return results


def reports_what_it_did_not_attempt(perform: Any, lb: Any, operations: Any) -> Any:
    done = {id(result.operation): result for result in perform(lb, operations)}
    return [done.get(id(operation), OperationResult(operation)) for operation in operations]


def members_added_once_only(perform: Any, lb: Any, operations: Any) -> Any:
    return perform(lb, [each for each in operations if not isinstance(each, AddMembers)])


def a_part_stays(perform: Any, lb: Any, operations: Any) -> Any:
    kept = [each for each in operations if isinstance(each, DeletePool)]
    done = perform(lb, [each for each in operations if each not in kept])
    return [*done, *(OperationResult(each) for each in kept)]


# ------------------------------------------------------------------------------------- machines, routes and volumes


def machines_gone_after(*errors: type[CloudError]) -> Plant:
    """A machine that cannot be described is taken for gone."""

    def plant(cloud: Any) -> None:
        describe = cloud.instances.describe

        def guessing(refs: Any) -> Any:
            try:
                return describe(refs)
            except errors:
                return dict.fromkeys(refs)

        cloud.instances.describe = guessing

    return plant


def foreign_machines_listed(cloud: Any) -> None:
    listed = cloud._client.list

    def untagged(collection: str, **more: Any) -> Any:
        return listed(collection, **{**more, "tags": {}} if collection == "machines" else more)

    cloud._client.list = untagged


def one_call_for_each_machine(cloud: Any) -> None:
    describe = cloud.instances.describe
    cloud.instances.describe = lambda refs: {ref: describe([ref])[ref] for ref in refs}


def route_failures_dropped(cloud: Any) -> None:
    create = cloud.routes.create
    cloud.routes.create = lambda routes: [*create(routes)][:0]


def route_failures_untyped(cloud: Any) -> None:
    create = cloud.routes.create
    cloud.routes.create = lambda routes: [replace(each, error=CloudError(str(each.error))) for each in create(routes)]


def one_refused_route_refuses_all(cloud: Any) -> None:
    create = cloud.routes.create

    def all_or_nothing(routes: Any) -> Any:
        failures = create(routes)
        return [replace(failures[0], route=route) for route in routes] if failures else []

    cloud.routes.create = all_or_nothing


def machines_opened_after_their_routes(cloud: Any) -> None:
    check, create = cloud.routes._check, cloud.routes.create
    turn_off = check.turn_off

    def routes_first(routes: Any) -> Any:
        check.turn_off = lambda _: {}
        failures = create(routes)
        turn_off({route.target_instance for route in routes})
        return failures

    cloud.routes.create = routes_first


def machines_not_closed(cloud: Any) -> None:
    pair = cloud.routes._pair
    cloud.routes._pair = lambda wanted, add: pair(wanted, add=True) if add else {}


def unowned_routes_deleted(cloud: Any) -> None:
    delete, listed = cloud.routes.delete, cloud.routes.list
    cloud.routes.delete = lambda routes: delete([*routes, *listed()])


def machines_of_routes_gone(cloud: Any) -> None:
    listed = cloud.routes.list
    cloud.routes.list = lambda: [replace(route, target_instance="", blackhole=True) for route in listed()]


def all_routes_owned(cloud: Any) -> None:
    listed = cloud.routes.list
    cloud.routes.list = lambda: [replace(route, owned=True) for route in listed()]


# ------------------------------------------------------------------------------------------------------ tinycloud alone


def mark_not_written(send: Send, content: Any) -> Any:
    model, *rest = content
    return send([replace(model, tags=_without(model.tags, CLUSTER_TAG)), *rest])


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
