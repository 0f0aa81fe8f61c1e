"""Defects of clouds: each changes a cloud that `Harness.new_cloud` has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from types import SimpleNamespace
from typing import Any
from uuid import uuid4
from zlib import crc32

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, NotFound, Throttled
from cloud_controller.fence import unfenced
from cloud_controller.load_balancers.model import CLUSTER_TAG, LoadBalancerState, Owner
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
        client = _client(cloud)
        name = "call" if hasattr(client, "call") else "_call"
        real = getattr(client, name)

        def altered(*given: Any, **more: Any) -> Any:
            where = [*takewhile(lambda each: isinstance(each, str), given)]
            if not " ".join(where).startswith(beginning):
                return real(*given, **more)
            return alter(lambda content: real(*where, *content[:-1], **content[-1]), [*given[len(where) :], more])

        setattr(client, name, altered)

    return plant


def _client(cloud: Any) -> Any:
    return next(found for name in ("client", "_api", "_client") if (found := getattr(cloud, name, None)))


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


def takes(error: type[CloudError], other: Callable[[str], CloudError], operation: str = "") -> Plant:
    """An error of this request is taken for another one."""

    def alter(send: Send, content: Any) -> Any:
        try:
            return send(content)
        except error as found:
            raise other(str(found)) from found

    return requests(operation, alter)


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

    def read(text: str) -> str:
        return text.removesuffix("0") if text.endswith(other) else text

    requests("", lambda send, content: _with_texts(send(content), read))(cloud)


def reads_as(operation: str, text: str, other: str) -> Plant:
    """A text of the answer is taken for another one."""
    taken = {text: other}
    return requests(operation, lambda send, content: _with_texts(send(content), lambda each: taken.get(each, each)))


def _with_texts(value: Any, alter: Callable[[str], str]) -> Any:
    """The value with its texts altered, wherever they are in it."""
    if isinstance(value, dict):
        return {key: _with_texts(each, alter) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_texts(each, alter) for each in value]
    return alter(value) if isinstance(value, str) else value


def _without(value: Any, *keys: str) -> Any:
    """The value without these keys, wherever they are in it, and without tags of these names."""
    if isinstance(value, dict):
        return {key: _without(each, *keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list):
        tags = [each.get("Key") if isinstance(each, dict) else str(each).partition("=")[0] for each in value]
        return [_without(each, *keys) for each, tag in zip(value, tags, strict=True) if tag not in keys]
    return value


# ------------------------------------------------------------------------------------------- any cloud: what it offers


def methods(path: str, alter: Callable[..., Any]) -> Plant:
    """`alter(method, *arguments)` stands in for the cloud's method at this path."""

    def plant(cloud: Any) -> None:
        *where, name = path.split(".")
        of = reduce(getattr, where, cloud)
        method = getattr(of, name)
        assert callable(method)
        setattr(of, name, lambda *given, **more: alter(method, *given, **more))

    return plant


def answers(path: str, answer: Any) -> Plant:
    """The method always returns this."""
    return methods(path, lambda *_: answer)


def passes_on(path: str, position: int = 0) -> Plant:
    """The method returns what it is given."""
    return methods(path, lambda _method, *given, **_: given[position])


def guesses(path: str, error: type[CloudError], answer: Any) -> Plant:
    """The method returns this instead of raising the error."""

    def alter(method: Callable[..., Any], *given: Any) -> Any:
        try:
            return method(*given)
        except error:
            return answer

    return methods(path, alter)


def untypes(path: str, error: type[CloudError]) -> Plant:
    """The method raises the error as one without a type."""

    def alter(method: Callable[..., Any], *given: Any, **more: Any) -> Any:
        try:
            return method(*given, **more)
        except error as found:
            raise CloudError(str(found)) from found

    return methods(path, alter)


# ------------------------------------------------------------------------------------------------ any cloud: the fence


def unfenced_request(operation: str) -> Plant:
    """The fence is not asked before this request."""

    def plant(cloud: Any) -> None:
        client = _client(cloud)

        def alter(send: Send, content: Any) -> Any:
            fence, client.fence = client.fence, unfenced
            try:
                return send(content)
            finally:
                client.fence = fence

        requests(operation, alter)(cloud)

    return plant


def fenced_request(operation: str) -> Plant:
    """The fence is asked before this request, whatever it is."""

    def plant(cloud: Any) -> None:
        client = _client(cloud)
        requests(operation, lambda send, content: (client.fence(), send(content))[1])(cloud)

    return plant


def fence_asked_before_connecting(cloud: Any) -> None:
    def alter(send: Callable[..., Any], *given: Any, fence: Callable[[], None], **more: Any) -> Any:
        fence()
        return send(*given, fence=unfenced, **more)

    methods("_client._http.send", alter)(cloud)


def fence_asked_once_a_change(cloud: Any) -> None:
    asked = [unfenced]
    cloud.fence_writes = asked.append
    performs(lambda perform, lb, operations: (asked[-1](), perform(lb, operations))[1])(cloud)


def fence_not_passed_on(cloud: Any) -> None:
    cloud.fence_writes = lambda _: None


def failed_attempts_unobserved(cloud: Any) -> None:
    observe = cloud.observe_calls
    cloud.observe_calls = lambda observer: observe(
        lambda operation, seconds, error: observer(operation, seconds, error) if error is None else None
    )


# --------------------------------------------------------------------------------------- any cloud: its load balancers


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


def members_changed_while_throttled(perform: Any, lb: Any, operations: Any) -> Any:
    results = perform(lb, operations)
    members = [each for each in operations if isinstance(each, AddMembers)]
    if members and any(isinstance(each.error, Throttled) for each in results):
        perform(lb, members)
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


one_call_for_each_machine = methods(
    "instances.describe", lambda describe, refs: {ref: describe([ref])[ref] for ref in refs}
)
machines_without_zone = methods(
    "instances.describe",
    lambda describe, refs: {ref: each and replace(each, zone="") for ref, each in describe(refs).items()},
)


def machines_listed_before_they_are_described(cloud: Any) -> None:
    methods("instances.describe", lambda describe, refs: (cloud.instances.list(), describe(refs))[1])(cloud)


def failures(alter: Callable[[Any], Any]) -> Plant:
    """`alter(failures)` stands in for those of routes that are created or deleted."""

    def plant(cloud: Any) -> None:
        for name in ("create", "delete"):
            methods(f"routes.{name}", lambda change, routes: alter([*change(routes)]))(cloud)

    return plant


def _raise_first(found: Any) -> Any:
    for each in found:
        raise each.error
    return found


route_failures_dropped = failures(lambda _: [])
route_failures_untyped = failures(lambda found: [replace(each, error=CloudError(str(each.error))) for each in found])
route_failures_raised = failures(_raise_first)
refused_routes_dropped = failures(lambda found: [each for each in found if not isinstance(each.error, AccessDenied)])


def one_refused_route_refuses_all(cloud: Any) -> None:
    def all_or_nothing(create: Any, routes: Any) -> Any:
        failures = create(routes)
        return [replace(failures[0], route=route) for route in routes] if failures else []

    methods("routes.create", all_or_nothing)(cloud)


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


def routes_read(**fields: Any) -> Plant:
    """Every route is read with these fields."""
    return methods("routes.list", lambda listed: [replace(route, **fields) for route in listed()])


machines_of_routes_gone = routes_read(target_instance="", blackhole=True)
all_routes_owned = routes_read(owned=True)
provider_ids_of_others_accepted = methods(
    "volumes.attach", lambda attach, of, machine: attach(of, f"mycloud://local/zone/{machine.rpartition('/')[2]}")
)


def volumes_not_resized_again(cloud: Any) -> None:
    def resize(real: Any, id: str, size_gib: int) -> Any:
        if cloud.volumes.list([id])[0].size_gib == size_gib:
            raise InvalidConfiguration("size", "the volume has it")
        return real(id, size_gib)

    methods("volumes.resize", resize)(cloud)


# --------------------------------------------------------------------------------------------- tables of error codes


def code_missing(table: Any) -> None:
    del table.kinds[next(iter(table.kinds))]


def code_of_nothing(table: Any) -> None:
    table.kinds["NoAPIHasThisCode"] = CloudError


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
