"""What a cloud left out is sent again only when that may help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.cloud_errors import Conflict, LeftOut, Postponed
from cloud_controller.controllers.service.left_out import LeftOutParts
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    HealthCheck,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    Operation,
    OperationResult,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import Action, ActionKind, Plan

DEAD, FINE = Member("10.0.0.1", 30080, "i-1"), Member("10.0.0.2", 30080, "i-2")
WEB = "default/web"


def plan(*operations: Operation) -> Plan:
    return Plan.of(Action(ActionKind.UPDATE, "service/default/web", "change", operation=each) for each in operations)


def add(*members: Member) -> AddMembers:
    return AddMembers("lb-1", "tcp-80", members)


def refused(operation: Operation | None = None) -> LeftOutParts:
    """After a change without the dead member."""
    parts = LeftOutParts()
    parts.note(
        WEB, OperationResult(operation or add(DEAD, FINE), LeftOut("members", "gone", members={DEAD.key: "gone"}))
    )
    return parts


def due(parts: LeftOutParts, operation: Operation) -> list[object]:
    return [action.operation for action in parts.without(WEB, plan(operation), ())]


@pytest.mark.parametrize(
    "operation", [add(DEAD, FINE), PutPool("lb-1", Pool("tcp-80", HealthCheck("TCP"), (DEAD, FINE)), new=True)]
)
def test_a_member_that_was_left_out_is_not_sent_again(operation: Operation) -> None:
    parts = refused(operation)

    assert due(parts, add(DEAD._replace(weight=2))) == []
    assert due(parts, add(DEAD, FINE)) == [add(FINE)]
    assert parts.repeats(WEB, plan(add(DEAD)))
    assert not parts.repeats(WEB, plan(add(DEAD, FINE)))


def test_nor_is_a_change_of_settings_until_it_is_another_one() -> None:
    first, other = (UpdateLoadBalancer("lb-1", LoadBalancerModel(name)) for name in ("web", "other"))
    parts = LeftOutParts()
    parts.note(WEB, OperationResult(first, LeftOut("nodes", "no port")))

    assert due(parts, first) == []
    assert due(parts, other) == [other]
    assert parts.told(WEB, {}, ()) == "nodes: no port"


def test_it_is_sent_again_once_for_each_reason_to_try() -> None:
    parts = refused()
    assert not parts.retry("i-2")
    assert parts.retry("i-1")

    assert due(parts, add(DEAD)) == [add(DEAD)]
    parts.note(WEB, OperationResult(add(DEAD), LeftOut("members", "gone", members={DEAD.key: "gone"})))
    assert due(parts, add(DEAD)) == []


def test_another_machine_at_its_address_is_sent() -> None:
    assert due(refused(), add(DEAD._replace(instance_id="i-3"))) == [add(DEAD._replace(instance_id="i-3"))]


def test_what_is_in_or_no_longer_wanted_is_not_told_any_more() -> None:
    accepted, unwanted = refused(), refused()
    accepted.note(WEB, OperationResult(add(DEAD)))
    unwanted.forget_unwanted(WEB, plan())

    assert refused().told(WEB, {"i-1": "node-1"}, ()) == "node node-1 (i-1): gone"
    assert accepted.told(WEB, {}, ()) is None
    assert unwanted.told(WEB, {}, ()) is None


def test_a_failure_says_nothing_of_single_members() -> None:
    parts = LeftOutParts()
    parts.note(WEB, OperationResult(add(DEAD), Conflict("busy")))

    assert due(parts, add(DEAD)) == [add(DEAD)]


def observed(*members: Member) -> ObservedLoadBalancer:
    pool = Pool("tcp-80", HealthCheck("TCP"), members)
    return ObservedLoadBalancer("lb-1", LoadBalancerState.READY, LoadBalancerModel("web", pools=(pool,)))


def test_the_last_members_stay_where_every_successor_is_refused() -> None:
    old = Member("10.0.0.3", 30080, "i-3")
    remove = RemoveMembers("lb-1", "tcp-80", (old,), (DEAD,), hand_over=True)

    rest = refused(add(DEAD)).without(WEB, plan(add(DEAD), remove), [observed(old)])

    assert not rest.changes
    assert [action.reason for action in rest] == ["the cloud refuses all that would replace them: gone"]


def test_a_removal_waits_for_no_refused_successor() -> None:
    remove = RemoveMembers("lb-1", "tcp-80", (Member("10.0.0.3", 30080, "i-3"),), (DEAD, FINE))

    assert due(refused(), remove) == [replace(remove, successors=(FINE,))]


def test_a_member_whose_new_weight_is_refused_is_in_and_a_successor() -> None:
    remove = RemoveMembers("lb-1", "tcp-80", (FINE,), (DEAD,))
    parts = refused(add(DEAD))

    (rest,) = parts.without(WEB, plan(remove), [observed(DEAD, FINE)])

    assert rest.operation == remove
    assert parts.told(WEB, {}, [observed(DEAD)]) == "a new weight of 10.0.0.1, which keeps its weight: gone"


def test_at_a_full_read_members_of_nodes_that_are_not_ready_are_not_sent() -> None:
    parts = refused()
    parts.retry_all(but={"i-1"})
    assert due(parts, add(DEAD)) == []

    parts.retry_all(but={"i-2"})

    assert due(parts, add(DEAD)) == [add(DEAD)]


def test_what_is_refused_before_the_rest_has_to_wait_is_not_forgotten() -> None:
    parts = LeftOutParts()
    parts.note(WEB, OperationResult(add(DEAD, FINE), Postponed("busy", {DEAD.key: "gone"})))

    assert due(parts, add(DEAD, FINE)) == [add(FINE)]
