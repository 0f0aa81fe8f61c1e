"""After a failed operation, members still change, and nothing else that depends on it."""

from __future__ import annotations

from typing import get_args

import pytest

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    LeftOut,
    Postponed,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.kube import ApiError
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.failures import Failures, one_by_one
from cloud_controller.load_balancers.model import HealthCheck, Listener, LoadBalancerModel, ObservedLoadBalancer, Pool
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
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

LB = "lb-1"
MEMBERS = (Member("10.0.0.1", 30080, "i-1"),)
UPDATE = UpdateLoadBalancer(LB, LoadBalancerModel("web"))
NEW_POOL = PutPool(LB, Pool("new", HealthCheck("TCP")), new=True)
ADD, REMOVE = AddMembers(LB, "http", MEMBERS), RemoveMembers(LB, "http", MEMBERS)
OTHERS: tuple[Operation, ...] = (
    UPDATE,
    NEW_POOL,
    PutListener(LB, Listener("TCP", 80, "new")),
    DeleteListener(LB, "TCP", 80),
    DeletePool(LB, "http"),
    DeleteLoadBalancer(LB),
    CreateLoadBalancer(LoadBalancerModel("web"), "token"),
)


def after(operation: object, error: Exception) -> Failures:
    failures = Failures()
    failures.record(operation, error)
    return failures


@pytest.mark.parametrize(
    "error", [Conflict("taken"), AccessDenied("no"), QuotaExceeded("full"), InvalidConfiguration("field", "bad")]
)
def test_after_a_rejected_setting_members_are_still_added_and_removed(error: CloudError) -> None:
    failures = after(UPDATE, error)

    assert failures.permit(ADD)
    assert failures.permit(REMOVE)


@pytest.mark.parametrize("operation", OTHERS, ids=lambda each: type(each).__name__)
def test_after_a_failure_nothing_but_members_changes(operation: Operation) -> None:
    assert not after(NEW_POOL, Conflict("taken")).permit(operation)


def test_members_stay_until_their_successors_could_be_added() -> None:
    failures = after(ADD, QuotaExceeded("full"))

    assert not failures.permit(REMOVE)
    assert failures.permit(RemoveMembers(LB, "https", MEMBERS))


@pytest.mark.parametrize("operation", [*OTHERS, REMOVE], ids=lambda each: type(each).__name__)
def test_nothing_waits_for_members_that_were_left_out(operation: Operation) -> None:
    assert after(ADD, LeftOut("subnet", "no subnet has the address")).permit(operation)


def test_members_stay_if_every_successor_was_left_out_and_all_else_goes_on() -> None:
    failures = after(ADD, LeftOut("members", "gone", members={MEMBERS[0].key: "gone"}))

    assert not failures.permit(REMOVE)
    assert failures.permit(RemoveMembers(LB, "https", MEMBERS))
    assert all(failures.permit(each) for each in OTHERS)


@pytest.mark.parametrize("error", [Throttled("slow down", 3.0), Unavailable("503"), ApiError(500, "x", "y")])
def test_while_the_cloud_or_kubernetes_does_not_answer_nothing_more_is_attempted(error: Exception) -> None:
    assert not after(UPDATE, error).permit(ADD)


@pytest.mark.parametrize("operation", [*OTHERS, ADD, REMOVE], ids=lambda each: type(each).__name__)
def test_an_operation_that_only_has_to_wait_holds_up_no_other(operation: Operation) -> None:
    assert after(UPDATE, Postponed("zones are changing")).permit(operation)


@pytest.mark.parametrize("operation", [NEW_POOL, DeletePool(LB, "http")], ids=lambda each: type(each).__name__)
def test_pools_wait_with_a_listener_because_they_may_keep_what_it_was(operation: Operation) -> None:
    failures = after(PutListener(LB, Listener("TCP", 80, "new")), Postponed("it is being configured"))

    assert not failures.permit(operation)
    assert failures.permit(REMOVE)


def test_a_change_made_singly_reports_every_operation_that_was_attempted() -> None:
    conflict = Conflict("taken")

    def perform(operation: Operation) -> ObservedLoadBalancer | None:
        if operation is NEW_POOL:
            raise conflict
        return None

    results = one_by_one(
        [UPDATE, NEW_POOL, ADD, DeletePool(LB, "old"), REMOVE], dict.fromkeys(get_args(Operation), perform)
    )

    assert results == [
        OperationResult(UPDATE),
        OperationResult(NEW_POOL, conflict),
        OperationResult(ADD),
        OperationResult(REMOVE),
    ]
