"""Defects of clouds: each changes a cloud that `Harness.new_cloud` has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from cloud_controller.cloud import CloudError, InvalidConfiguration, NotFound, QuotaExceeded, Throttled, Unavailable
from cloud_controller.load_balancers.model import CLUSTER_TAG, SERVICE_UID_TAG
from cloud_controller.load_balancers.operations import AddMembers, CreateLoadBalancer, DeletePool, OperationResult

# --------------------------------------------------------------------------------------- tinycloud: calls of its client


def calls(alter: Callable[..., Any]) -> Callable[[Any], None]:
    """`alter(call, operation, *arguments)` stands in for the client's `call`."""

    def plant(cloud: Any) -> None:
        call = cloud.client.call
        cloud.client.call = lambda operation, *arguments: alter(call, operation, *arguments)

    return plant


def token_ignored(call: Any, operation: str, *arguments: Any) -> Any:
    if operation == "create_load_balancer":
        arguments = (arguments[0], object())
    return call(operation, *arguments)


def mark_not_written(call: Any, operation: str, *arguments: Any) -> Any:
    if operation == "create_load_balancer":
        tags = {key: value for key, value in arguments[0].tags.items() if key != CLUSTER_TAG}
        arguments = (replace(arguments[0], tags=tags), arguments[1])
    return call(operation, *arguments)


def deletion_by_name(call: Any, operation: str, *arguments: Any) -> Any:
    answer = call(operation, *arguments)
    if operation == "delete_load_balancer":
        found, _ = call("list_load_balancers", (), "")
        for lb in found:
            if "default-web" in lb.model.name:
                call("delete_load_balancer", lb.id)
    return answer


def one_page_only(call: Any, operation: str, *arguments: Any) -> Any:
    answer = call(operation, *arguments)
    return (answer[0], "") if operation == "list_load_balancers" else answer


def silence_is_an_empty_list(call: Any, operation: str, *arguments: Any) -> Any:
    try:
        return call(operation, *arguments)
    except Unavailable:
        if operation == "list_load_balancers":
            return [], ""
        raise


def throttled_is_gone(call: Any, operation: str, *arguments: Any) -> Any:
    try:
        return call(operation, *arguments)
    except Throttled as error:
        raise NotFound(str(error)) from error


def ids_not_read(call: Any, operation: str, *arguments: Any) -> Any:
    if operation == "get_load_balancer":
        raise NotFound("not in the list")
    return call(operation, *arguments)


def untyped_quota(call: Any, operation: str, *arguments: Any) -> Any:
    try:
        return call(operation, *arguments)
    except QuotaExceeded as error:
        raise CloudError(str(error)) from error


def no_time_to_wait(call: Any, operation: str, *arguments: Any) -> Any:
    try:
        return call(operation, *arguments)
    except Throttled as error:
        raise Throttled(str(error), 0.0) from error


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


def fence_not_passed_on(cloud: Any) -> None:
    cloud.fence_writes = lambda _: None


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


def failed_attempts_unobserved(cloud: Any) -> None:
    observe = cloud.observe_calls
    cloud.observe_calls = lambda observer: observe(
        lambda operation, seconds, error: observer(operation, seconds, error) if error is None else None
    )


# ------------------------------------------------------------------------------------------- any cloud: its `perform`


def performs(alter: Callable[..., Any]) -> Callable[[Any], None]:
    """`alter(perform, load_balancer, operations)` stands in for the load balancers' `perform`."""

    def plant(cloud: Any) -> None:
        load_balancers = cloud.load_balancers
        perform = load_balancers.perform
        load_balancers.perform = lambda lb, operations: alter(perform, lb, operations)

    return plant


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


# ---------------------------------------------------------------------------------- mycloud: machines, routes, volumes


def a_list_is_proof(cloud: Any) -> None:
    def get(collection: str, id: str) -> Any:
        if collection in ("machines", "volumes"):
            raise NotFound(f"{collection}/{id}")
        return real(collection, id)

    real, cloud._client.get = cloud._client.get, get


def silence_proves_a_machine_gone(cloud: Any) -> None:
    describe = cloud.instances.describe

    def guessing(refs: Any) -> Any:
        try:
            return describe(refs)
        except (Throttled, Unavailable):
            return dict.fromkeys(refs)

    cloud.instances.describe = guessing


def another_clouds_machine_is_gone(cloud: Any) -> None:
    describe = cloud.instances.describe

    def guessing(refs: Any) -> Any:
        try:
            return describe(refs)
        except InvalidConfiguration:
            return dict.fromkeys(refs)

    cloud.instances.describe = guessing


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


def unowned_routes_deleted(cloud: Any) -> None:
    delete, listed = cloud.routes.delete, cloud.routes.list
    cloud.routes.delete = lambda routes: delete([*routes, *listed()])


def all_routes_owned(cloud: Any) -> None:
    listed = cloud.routes.list
    cloud.routes.list = lambda: [replace(route, owned=True) for route in listed()]


def volume_token_ignored(cloud: Any) -> None:
    create = cloud.volumes.create
    cloud.volumes.create = lambda request: create(replace(request, client_token=f"{id(request)}-{cloud!r}-{id(cloud)}"))


# --------------------------------------------------------------------------------------------- AWS: calls in many steps


def aws_calls(alter: Callable[..., Any]) -> Callable[[Any], None]:
    """`alter(call, operation, parameters)` stands in for the client's `call`."""

    def plant(cloud: Any) -> None:
        call = cloud._api.call
        cloud._api.call = lambda service, operation, /, **more: alter(
            lambda params: call(service, operation, **params), operation, more
        )

    return plant


def target_groups_stay(call: Any, operation: str, params: dict[str, Any]) -> Any:
    return {} if operation == "DeleteTargetGroup" else call(params)


def parts_not_looked_for(cloud: Any) -> None:
    cloud.load_balancers._left_behind = lambda *_: []


def groups_without_tags(call: Any, operation: str, params: dict[str, Any]) -> Any:
    if operation == "CreateSecurityGroup":
        params.pop("TagSpecifications")
    return call(params)


def load_balancers_without_a_service(call: Any, operation: str, params: dict[str, Any]) -> Any:
    if operation == "CreateLoadBalancer":
        params["Tags"] = [tag for tag in params["Tags"] if tag["Key"] != SERVICE_UID_TAG]
    return call(params)


def first_page_only(call: Any, operation: str, params: dict[str, Any]) -> Any:
    answer = call(params)
    if operation == "DescribeLoadBalancers":
        answer.pop("NextMarker", None)
    return answer


def lists_believed(cloud: Any) -> None:
    cloud.load_balancers._unlisted = lambda _: []
