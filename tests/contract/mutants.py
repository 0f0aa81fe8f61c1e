"""Defects planted in clouds, and for each the test of the suite that must fail because of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cloud_controller.cloud import CloudError, InvalidConfiguration, NotFound, QuotaExceeded, Throttled, Unavailable
from cloud_controller.load_balancers.model import CLUSTER_TAG
from cloud_controller.load_balancers.operations import AddMembers, CreateLoadBalancer, DeletePool, OperationResult
from tests.contract import (
    test_answers,
    test_changes,
    test_creation,
    test_fencing,
    test_interruptions,
    test_machines,
    test_ownership,
    test_routes,
    test_volumes,
)
from tests.contract.harness import Harness


@dataclass(frozen=True)
class Mutant:
    """A defect of a cloud. `plant` changes what `Harness.new_cloud` has returned."""

    of: str
    defect: str
    plant: Callable[[Any], None]
    found_by: Callable[[Harness], None]

    def __str__(self) -> str:
        return f"{self.of}: {self.defect}"


class Planted:
    """A harness of a cloud that has the defect."""

    def __init__(self, harness: Harness, plant: Callable[[Any], None]) -> None:
        self._harness = harness
        self._plant = plant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def new_cloud(self) -> Any:
        """The cloud with its defect."""
        cloud = self._harness.new_cloud()
        self._plant(cloud)
        return cloud


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


TINY, MYCLOUD, AWS = "tinycloud", "mycloud", "aws"

MUTANTS = tuple(
    Mutant(*each)
    for each in (
        (TINY, "the client token is ignored", calls(token_ignored),
         test_creation.test_the_same_token_never_makes_a_second_load_balancer),
        (TINY, "the cluster's mark is not written", calls(mark_not_written),
         test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark),
        (TINY, "a deletion goes by the name", calls(deletion_by_name),
         test_ownership.test_foreign_resources_are_the_same_after_a_load_balancers_whole_life),
        (TINY, "only the first page is read", calls(one_page_only),
         test_answers.test_all_load_balancers_are_read_over_all_pages),
        (TINY, "a list without an answer is empty", calls(silence_is_an_empty_list),
         test_answers.test_a_read_without_an_answer_raises_and_makes_nothing_look_gone),
        (TINY, "throttling is taken for gone", calls(throttled_is_gone),
         test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
        (TINY, "ids that a list lacks are not read", calls(ids_not_read),
         test_answers.test_a_load_balancer_that_lists_do_not_show_yet_is_read_by_its_id),
        (TINY, "the quota's error has no type", calls(untyped_quota),
         test_answers.test_a_creation_beyond_the_quota_is_reported_as_such_and_leaves_nothing_behind),
        (TINY, "the time to wait is dropped", calls(no_time_to_wait),
         test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
        (TINY, "what is gone cannot be deleted", missing_is_an_error_for_deletions,
         test_changes.test_a_repeated_deletion_succeeds),
        (TINY, "the fence is not asked", fence_not_passed_on,
         test_fencing.test_no_creation_reaches_the_cloud_when_the_fence_refuses_it),
        (TINY, "the fence is asked once an operation", fence_asked_at_the_first_attempt_only,
         test_fencing.test_each_attempt_at_a_write_asks_the_fence_again),
        (TINY, "the observer does not see failures", failed_attempts_unobserved,
         test_answers.test_the_observer_gets_every_attempt_with_its_operation_and_error),
        (TINY, "errors are swallowed", performs(errors_swallowed),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "errors are raised", performs(errors_raised),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "results are out of order", performs(results_reversed),
         test_changes.test_a_change_has_one_result_for_each_operation_in_their_order),
        (TINY, "what depends on a failure is done", performs(continues_after_a_failure),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "members do not change after a failure", performs(stops_at_the_first_failure),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (MYCLOUD, "what was not attempted is reported as done", performs(reports_what_it_did_not_attempt),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "members are not added", performs(members_added_once_only),
         test_changes.test_after_a_change_the_load_balancer_is_as_the_operations_say),
        (TINY, "a pool stays", performs(a_part_stays),
         test_interruptions.test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes),
        (MYCLOUD, "a list proves a machine gone", a_list_is_proof,
         test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
        (MYCLOUD, "a list proves a volume gone", a_list_is_proof,
         test_volumes.test_a_volume_that_lists_do_not_show_yet_is_not_gone),
        (MYCLOUD, "silence proves a machine gone", silence_proves_a_machine_gone,
         test_machines.test_no_machine_is_gone_while_the_cloud_throttles),
        (MYCLOUD, "another cloud's machine is gone", another_clouds_machine_is_gone,
         test_machines.test_the_provider_id_of_another_cloud_is_an_error_that_names_the_node),
        (MYCLOUD, "machines of others are listed", foreign_machines_listed,
         test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
        (MYCLOUD, "machines are described one by one", one_call_for_each_machine,
         test_machines.test_many_machines_cost_few_calls),
        (MYCLOUD, "failures of routes are dropped", route_failures_dropped,
         test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
        (MYCLOUD, "one refused route refuses all", one_refused_route_refuses_all,
         test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
        (MYCLOUD, "unowned routes are deleted", unowned_routes_deleted,
         test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
        (MYCLOUD, "every route is owned", all_routes_owned,
         test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
        (MYCLOUD, "a volume's token is ignored", volume_token_ignored,
         test_volumes.test_a_volume_is_created_once_a_token),
        (AWS, "target groups stay", aws_calls(target_groups_stay),
         test_ownership.test_the_load_balancer_of_another_service_stays_when_one_is_deleted),
        (AWS, "parts without their load balancer are not looked for", parts_not_looked_for,
         test_creation.test_a_partial_creation_that_nobody_wants_any_more_leaves_nothing),
        (AWS, "security groups have no tags", aws_calls(groups_without_tags),
         test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark),
    )
)  # fmt: skip
