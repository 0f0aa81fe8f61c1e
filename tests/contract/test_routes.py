"""Routes are written and deleted in batches, with one failure for each route that the cloud refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    Cloud,
    Conflict,
    QuotaExceeded,
    Route,
    RouteFailure,
    Routes,
    Throttled,
)
from cloud_controller.controllers import route_plan
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.route import observe_nodes
from cloud_controller.controllers.route_plan import RouteOptions
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import Object
from tests.contract.harness import Harness, differences
from tests.contract.wire import Died

PART = "routes"


def table(cloud: Cloud) -> Routes:
    """The cloud's route table."""
    assert cloud.routes is not None
    return cloud.routes


def machine_of(harness: Harness, node: Object) -> str:
    """The id of the node's machine, as routes name it."""
    return next(
        each.id for each in harness.new_cloud().instances.list() if each.provider_id == node["spec"]["providerID"]
    )


def routes_to(machine: str, count: int = 2) -> list[Route]:
    """Routes of pod ranges to the machine."""
    return [Route(f"100.96.{number}.0/24", machine) for number in range(count)]


def present(harness: Harness) -> set[tuple[str, str]]:
    """The pod routes that a new process reads."""
    found = table(harness.new_cloud()).list()
    return {(each.destination_cidr, each.target_instance) for each in found if each.destination_cidr[:7] == "100.96."}


def keys(routes: list[Route]) -> set[tuple[str, str]]:
    """What `present` returns of these."""
    return {(each.destination_cidr, each.target_instance) for each in routes}


def test_created_routes_are_listed_and_deleted_ones_are_not(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")), 5)
    harness.small_pages()

    assert list(table(harness.new_cloud()).create(wanted)) == []
    assert present(harness) == keys(wanted)
    assert list(table(harness.new_cloud()).delete(wanted[:3])) == []
    assert present(harness) == keys(wanted[3:])


def test_a_route_that_exists_as_wanted_is_created_again_with_success(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")))
    table(harness.new_cloud()).create(wanted[:1])

    for _ in range(2):
        assert list(table(harness.new_cloud()).create(wanted)) == []

    assert present(harness) == keys(wanted)


def test_a_route_that_is_missing_is_deleted_with_success(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")))
    table(harness.new_cloud()).create(wanted[:1])

    for _ in range(2):
        assert list(table(harness.new_cloud()).delete(wanted)) == []

    assert present(harness) == set()


def test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays(harness: Harness) -> None:
    one, two = (machine_of(harness, harness.node(name)) for name in ("one", "two"))
    first, second = routes_to(one)
    table(harness.new_cloud()).create([first])

    (failure,) = table(harness.new_cloud()).create(
        [Route(first.destination_cidr, two), Route(second.destination_cidr, two)]
    )

    assert failure.route == Route(first.destination_cidr, two)
    assert isinstance(failure.error, Conflict)
    assert present(harness) == {(first.destination_cidr, one), (second.destination_cidr, two)}


def test_the_machine_of_a_created_route_passes_its_packets_on(harness: Harness) -> None:
    node = harness.node("one")
    wanted = routes_to(machine_of(harness, node))

    assert list(table(harness.new_cloud()).create(wanted)) == []

    assert all(harness.forwards(node, route.destination_cidr) for route in wanted)


def test_a_deleted_route_leaves_nothing_beside_one_that_stays(harness: Harness) -> None:
    stays, goes = routes_to(machine_of(harness, harness.node("one")))
    table(harness.new_cloud()).create([stays])
    before = harness.snapshot()

    table(harness.new_cloud()).create([goes])
    table(harness.new_cloud()).delete([goes])

    assert not differences(harness.snapshot(), before)


def test_foreign_routes_are_listed_and_stay_as_they_are(harness: Harness) -> None:
    foreign = harness.put_foreign_route()
    wanted = routes_to(machine_of(harness, harness.node("one")))
    before = harness.snapshot()

    routes = table(harness.new_cloud())
    found = {each.destination_cidr: each for each in routes.list()}
    routes.create(wanted)
    routes.delete(wanted)

    assert found[foreign].owned is not True
    changed = differences(harness.snapshot(), before)
    assert not [key for key in changed if "route" in key]


def test_the_route_of_a_machine_that_exists_is_held_while_its_node_is_missing(harness: Harness) -> None:
    missing, there = harness.node("one"), harness.node("two")
    held = Route("100.96.0.0/24", machine_of(harness, missing))
    kept = Route("100.96.1.0/24", machine_of(harness, there))
    table(harness.new_cloud()).create([held, kept])
    there["spec"]["podCIDR"] = kept.destination_cidr
    cloud = harness.new_cloud()
    harness.wire.writes.clear()

    observation = observe_nodes([there], cloud, InstanceSnapshot(cloud.instances))
    plan = route_plan.plan(observation, RouteOptions(("100.96.0.0/16",)))

    assert [action.target for action in plan.held] == [f"route/{held.destination_cidr}"]
    assert not [action for action in plan.changes if action.target.startswith("route/")]
    assert harness.wire.writes == []


def test_routes_beyond_the_quota_fail_one_by_one(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")))
    routes = table(harness.new_cloud())
    quota = routes.quota()
    assert quota is None or quota > 0
    harness.full()

    failures = routes.create(wanted)

    assert {failure.route for failure in failures} == {*wanted}
    assert all(isinstance(failure.error, QuotaExceeded) for failure in failures)
    assert present(harness) == set()


def test_whichever_answer_to_a_creation_is_lost_the_routes_are_there(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")))
    lost = 0
    while True:
        routes = table(harness.new_cloud())
        harness.wire.lose_answer(of_write=lost + 1)
        assert list(routes.create(wanted)) == []
        if not harness.wire.happened:
            break
        lost += 1
        harness.wire.peace()
        assert present(harness) == keys(wanted)
        table(harness.new_cloud()).delete(wanted)
    assert lost > 0


def test_whichever_answer_to_a_deletion_is_lost_the_routes_are_gone(harness: Harness) -> None:
    wanted = routes_to(machine_of(harness, harness.node("one")))
    lost = 0
    while True:
        table(harness.new_cloud()).create(wanted)
        routes = table(harness.new_cloud())
        harness.wire.lose_answer(of_write=lost + 1)
        assert list(routes.delete(wanted)) == []
        if not harness.wire.happened:
            break
        lost += 1
        harness.wire.peace()
        assert present(harness) == set()
    assert lost > 0


def ends_after(harness: Harness, write: int, work: Callable[[Routes], Sequence[RouteFailure]]) -> bool:
    """Let a process end when this write of its work has taken effect; whether the work has so many writes."""
    routes = table(harness.new_cloud())
    harness.wire.die(after_write=write)
    try:
        assert not work(routes)
    except Died:
        return True
    finally:
        harness.wire.peace()
    return False


def finish(harness: Harness, wanted: Sequence[Route]) -> None:
    """What the next process does: it writes only routes that are missing, and deletes those that nobody wants."""
    routes, found = table(harness.new_cloud()), present(harness)
    assert not routes.create([each for each in wanted if keys([each]) - found])
    assert not routes.delete([Route(*each) for each in found - keys([*wanted])])


def test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes(harness: Harness) -> None:
    for number in count(1):
        # New machines each time: writes to a machine are not undone with its route.
        hops = [machine_of(harness, harness.node(f"{name}-{number}")) for name in ("one", "two")]
        wanted = [Route(f"100.96.{index}.0/24", hop) for index, hop in enumerate(hops)]
        ended = ends_after(harness, number, lambda routes, wanted=wanted: routes.create(wanted))  # type: ignore[misc]
        finish(harness, wanted)
        interrupted = harness.snapshot()
        finish(harness, [])
        finish(harness, wanted)
        assert not differences(interrupted, harness.snapshot()), f"created, interrupted after write {number}"

        ended |= ends_after(harness, number, lambda routes, wanted=wanted: routes.delete(wanted))  # type: ignore[misc]
        finish(harness, [])
        assert present(harness) == set(), f"deleted, interrupted after write {number}"
        if not ended:
            break
    assert number > 1


def test_while_the_cloud_throttles_each_route_fails_and_none_is_raised(harness: Harness) -> None:
    *wanted, first, second = routes_to(machine_of(harness, harness.node("one")), 4)
    routes = table(harness.new_cloud())
    assert list(routes.create([first, second])) == []
    harness.wire.refuse(harness.throttled, retry_after=90, writes_only=True)

    for asked, failures in ((wanted, routes.create(wanted)), ([first, second], routes.delete([first, second]))):
        assert [failure.route for failure in failures] == asked
        assert all(isinstance(failure.error, Throttled) and failure.error.retry_after > 0 for failure in failures)


def test_routes_without_permission_fail_and_are_not_taken_for_written(harness: Harness) -> None:
    *wanted, first, second = routes_to(machine_of(harness, harness.node("one")), 4)
    routes = table(harness.new_cloud())
    assert list(routes.create([first, second])) == []
    harness.wire.refuse(harness.denied, writes_only=True)

    for asked, failures in ((wanted, routes.create(wanted)), ([first, second], routes.delete([first, second]))):
        assert {failure.route for failure in failures} == {*asked}
        assert all(isinstance(failure.error, AccessDenied) for failure in failures)


def test_a_throttled_table_is_not_read_as_empty(harness: Harness) -> None:
    routes = table(harness.new_cloud())
    harness.wire.refuse(harness.throttled, retry_after=90)

    with pytest.raises(Throttled):
        routes.list()


def test_no_route_reaches_the_cloud_when_the_fence_refuses_it(harness: Harness) -> None:
    def refuse() -> None:
        raise WriteRefused("not now")

    wanted = routes_to(machine_of(harness, harness.node("one")))
    table(harness.new_cloud()).create(wanted[:1])
    before = harness.snapshot()
    cloud = harness.new_cloud()
    cloud.fence_writes(refuse)

    with pytest.raises(WriteRefused):
        table(cloud).create(wanted)
    with pytest.raises(WriteRefused):
        table(cloud).delete(wanted)

    assert not differences(harness.snapshot(), before)
