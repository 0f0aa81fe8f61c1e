"""`perform` reports each operation, raises nothing, may be repeated, and stops where the rule of `Failures` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloud_controller.cloud import AccessDenied, CloudError, Postponed, Throttled, Unavailable
from cloud_controller.kube import Object
from cloud_controller.load_balancers.failures import Failures
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    AddMembers,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    OperationResult,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from tests.contract.harness import Harness, differences, web
from tests.contract.process import ROUNDS, Process

PART = "load_balancers"

MOST_ATTEMPTS = 20
"""At a request that the cloud keeps throttling: retries are not multiplied by further ones above them."""


def a_change(harness: Harness, one: Object | None = None) -> tuple[ObservedLoadBalancer, list[Operation]]:
    """A load balancer with two ports, and operations that give it a third port and other members, and close a port."""
    two = harness.node("two")
    process = Process(harness)
    lb = process.served(web(harness, 8080, 8443), [one or harness.node("one")])
    wanted = process.desired(web(harness, 8080, 9443, annotations=harness.changed_annotations), [two])
    pools, listeners = {each.name: each for each in wanted.pools}, {each.port: each for each in wanted.listeners}
    kept, new = pools[listeners[8080].pool], pools[listeners[9443].pool]
    before = next(pool for pool in lb.model.pools if pool.name == kept.name)
    closed = next(listener for listener in lb.model.listeners if listener.port == 8443)
    # A cloud may have one pool for all ports.
    made = [] if new is kept else [PutPool(lb.id, new, new=True)]
    left = [] if closed.pool in pools else [DeletePool(lb.id, closed.pool)]
    return lb, [
        UpdateLoadBalancer(lb.id, replace(wanted, tags={**lb.model.tags, **wanted.tags})),
        PutPool(lb.id, replace(kept, members=before.members), new=False),
        AddMembers(lb.id, kept.name, kept.members),
        *made,
        PutListener(lb.id, listeners[9443]),
        RemoveMembers(lb.id, kept.name, before.members, kept.members),
        DeleteListener(lb.id, closed.protocol, closed.port),
        *left,
    ]


def perform(harness: Harness, lb: ObservedLoadBalancer, operations: Sequence[Operation]) -> Sequence[OperationResult]:
    """Perform it as a process does that has read the load balancer."""
    process = Process(harness)
    process.load_balancers.read()
    return process.change(lb, *operations)


def finish(harness: Harness, lb: ObservedLoadBalancer, operations: Sequence[Operation]) -> None:
    """Perform it, and what waits for the cloud again, as a controller does."""
    for _ in range(ROUNDS):
        results = perform(harness, lb, operations)
        harness.settle()
        done = [each.operation for each in results if each.error is None]
        operations = [each for each in operations if each not in done]
        assert all(isinstance(each.error, Postponed) for each in results if each.error is not None), results
        if not operations:
            return
    raise AssertionError(f"still waiting for {operations}")


def test_a_change_has_one_result_for_each_operation_in_their_order(harness: Harness) -> None:
    lb, operations = a_change(harness)

    results = perform(harness, lb, operations)

    # An API that takes one change after the other lets the rest wait.
    assert all(result.error is None or isinstance(result.error, Postponed) for result in results)
    waits = any(result.error is not None for result in results)
    reported = [result.operation for result in results]
    assert reported == [each for each in operations if each in reported or not waits]


def test_after_a_change_the_load_balancer_is_as_the_operations_say(harness: Harness) -> None:
    lb, operations = a_change(harness)

    finish(harness, lb, operations)

    changed = Process(harness).only()
    assert changed.id == lb.id
    assert {each.port for each in changed.model.listeners} == {8080, 9443}
    pools = {each.name: each for each in changed.model.pools}
    assert {each.pool for each in changed.model.listeners} == pools.keys()
    for operation in operations:
        if isinstance(operation, AddMembers):
            assert {each.key for each in pools[operation.pool].members} == {each.key for each in operation.members}


def test_a_repeated_change_succeeds_and_changes_nothing(harness: Harness) -> None:
    lb, operations = a_change(harness)
    for operation in operations:
        finish(harness, lb, [operation])
        once = harness.snapshot()

        (result,) = perform(harness, lb, [operation])
        harness.settle()

        assert result.error is None, f"{type(operation).__name__} repeated"
        assert not differences(harness.snapshot(), once), f"{type(operation).__name__} repeated"


def test_what_is_called_settled_is_complete_before_any_time_passes(harness: Harness) -> None:
    lb, operations = a_change(harness)
    process = Process(harness)
    process.load_balancers.read()

    if all(result.settled for result in process.change(lb, *operations)):
        (found,) = Process(harness).load_balancers.read((), {lb.id})
        assert found.settled
        assert {each.port for each in found.model.listeners} == {8080, 9443}
    (deletion,) = process.change(lb, DeleteLoadBalancer(lb.id))
    if deletion.settled:
        assert [each.id for each in Process(harness).load_balancers.read()] == []
        assert [each.id for each in Process(harness).load_balancers.read((), {lb.id})] == []


def test_what_failed_or_waits_is_not_called_settled(harness: Harness) -> None:
    lb, operations = a_change(harness)
    harness.wire.refuse(harness.denied, writes_only=True)

    results = perform(harness, lb, operations)

    assert not any(result.settled for result in results if result.error is not None)


def test_a_repeated_deletion_succeeds(harness: Harness) -> None:
    lb, _ = a_change(harness)

    first, second = (perform(harness, lb, [DeleteLoadBalancer(lb.id)]) for _ in range(2))

    assert [result.error for result in (*first, *second)] == [None, None]


def test_a_member_whose_machine_is_gone_is_left_out_and_all_others_are_in(harness: Harness) -> None:
    one, gone, two = map(harness.node, ("one", "gone", "two"))
    process = Process(harness)
    first = process.desired(web(harness, 8080), [gone, one])
    second = process.desired(web(harness, 8080, 8443), [gone, one, two])
    harness.terminate(gone)

    created, changed = map(process.brought, (first, second))

    for (lb, left), nodes in ((created, [one]), (changed, [one, two])):
        fit = process.desired(web(harness, 8080, 8443), nodes).pools
        wanted = {pool.name: {each.key for each in pool.members} for pool in fit}
        for pool in lb.model.pools:
            found, told = {each.key for each in pool.members}, left.get(pool.name, set())
            assert wanted[pool.name] <= found
            assert not wanted[pool.name] & told
            assert len(found | told) == len(nodes) + 1, "what is not in is told"
    assert {each.port for each in changed[0].model.listeners} == {8080, 8443}


def assert_consistent(
    operations: Sequence[Operation], results: Sequence[OperationResult], error: type[CloudError]
) -> None:
    """What is reported is in order and typed, and nothing was done that must not follow a failure."""
    reported = [result.operation for result in results]
    assert reported == [each for each in operations if each in reported], "in the order of the operations"
    failed = [result for result in results if result.error is not None]
    assert failed, "the refusal is reported"
    failures = Failures()
    for operation in operations:
        permitted = failures.permit(operation)
        result = next((each for each in results if each.operation is operation), None)
        if not permitted:
            assert result is None or result.error is not None, f"{operation} must not follow a failure"
        elif isinstance(operation, AddMembers | RemoveMembers):
            assert result is not None, f"{operation} must be attempted"
        if result is not None:
            failures.record(operation, result.error)
    assert all(isinstance(result.error, error) for result in failed), failed


def test_whichever_write_is_refused_only_changes_of_members_follow(harness: Harness) -> None:
    one = harness.node("one")
    lb, operations = a_change(harness, one)
    before = Process(harness).desired(web(harness, 8080, 8443), [one])
    writes = 0
    while True:
        process = Process(harness)
        process.load_balancers.read()
        harness.wire.refuse(harness.denied, write=writes + 1)
        results = process.change(lb, *operations)
        if not harness.wire.happened:
            break
        writes += 1
        harness.wire.peace()
        assert_consistent(operations, results, AccessDenied)
        harness.settle()
        Process(harness).bring(before)
    assert writes >= 1, "a change takes writes"


def test_while_the_cloud_throttles_a_change_reports_it_and_attempts_nothing_more(harness: Harness) -> None:
    lb, operations = a_change(harness)
    attempts = []

    for asked in (operations[:1], operations):
        process = Process(harness)
        process.load_balancers.read()
        harness.wire.writes.clear()
        harness.wire.refuse(harness.throttled, retry_after=90, writes_only=True)
        results = process.change(lb, *asked)
        assert [result.operation for result in results] == asked[: len(results) or 1]
        assert all(isinstance(each.error, Throttled) and each.error.retry_after > 0 for each in results)
        attempts.append([*harness.wire.writes])
        harness.wire.peace()

    of_first, of_all = attempts
    assert len({*of_first}) == 1
    assert len(of_first) <= MOST_ATTEMPTS
    assert of_all == of_first, "what follows is not attempted, by no second call either"


def test_a_change_without_an_answer_is_reported_as_unavailable(harness: Harness) -> None:
    lb, operations = a_change(harness)
    process = Process(harness)
    process.load_balancers.read()
    harness.wire.break_off()

    results = process.change(lb, *operations)

    assert [result.operation for result in results] == operations[: len(results) or 1]
    assert all(isinstance(each.error, Unavailable) for each in results)
