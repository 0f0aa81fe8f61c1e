"""A load balancer that several Services share: whose parts are touched, and who may have which port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.binding import Binding
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import (
    PRESERVED_TAG,
    Built,
    HealthCheck,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
    Required,
    Reuse,
)
from cloud_controller.load_balancers.operations import (
    DeleteListener,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
)
from cloud_controller.load_balancers.parts import diff_parts, has_parts, leave, release
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.load_balancers.taken_over import TAKEN_FROM_TAG
from cloud_controller.plan import Plan
from tests.cloud_controller.load_balancers.entries import entry

TARGET = "service/default/web"
WEB = Owner("c-1", "uid-web", "default", "web")
DNS = Owner("c-1", "uid-dns", "default", "dns")
ELSEWHERE = Owner("c-2", "uid-x", "shop", "front")
CHECK = HealthCheck("TCP")
OLD, NEW = Member("10.0.0.1", 30080, "i-1"), Member("10.0.0.2", 31080, "i-2")


CATALOGUE = Catalogue("example", ("example.com/",), (entry("id"), entry("force_override_listeners")))


def part(
    number: int, owner: Owner | None, *members: Member, name: str | None = None, protocol: str = "TCP"
) -> tuple[Listener, Pool]:
    tags = owner.tags if owner else {}
    pool = name or f"{protocol.lower()}-{number}-{owner.uid if owner else 'nobody'}"
    return Listener(protocol, number, pool, tags=tags), Pool(pool, CHECK, members, tags=tags)


def shared(*parts: tuple[Listener, Pool], **more: Any) -> ObservedLoadBalancer:
    model = LoadBalancerModel(
        "theirs", {"scheme": "internal"}, tuple(each for each, _ in parts), tuple(each for _, each in parts)
    )
    state, network = more.pop("state", LoadBalancerState.READY), more.pop("network", "net-1")
    return ObservedLoadBalancer("lb-1", state, replace(model, **more), network=network)


def wanted(owner: Owner, *numbers: int, members: Sequence[Member] = (OLD,)) -> Built:
    parts = [part(number, owner, *members) for number in numbers]
    model = LoadBalancerModel(
        owner.load_balancer_name, {}, tuple(each for each, _ in parts), tuple(each for _, each in parts), owner.tags
    )
    return Built(model, reuse=Reuse("lb-1"))


def planned(built: Built, lb: ObservedLoadBalancer | None, owner: Owner = WEB, *, force: bool = False) -> Plan:
    return diff_parts(built, Reuse("lb-1", force, "net-1"), lb, owner, CATALOGUE, target=TARGET, sharing=Sharing.ANY)


def operations(plan: Plan) -> list[Any]:
    return [action.operation for action in plan.changes]


def carried_out(plan: Plan, lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    for operation in operations(plan):
        lb = apply_operation(lb, operation)
    return lb


# ------------------------------------------------------------------------------------------------------- whose it is


def test_on_an_empty_one_a_service_gets_its_parts_and_nothing_of_the_whole_changes() -> None:
    listener, pool = part(80, WEB, OLD)

    assert operations(planned(wanted(WEB, 80), shared())) == [
        PutPool("lb-1", pool, new=True),
        PutListener("lb-1", listener),
    ]


def test_a_service_in_order_needs_nothing_whatever_else_is_there() -> None:
    lb = shared(part(80, WEB, OLD), part(53, DNS), part(443, None), part(22, ELSEWHERE))

    assert len(planned(wanted(WEB, 80), lb)) == 0


def test_a_port_that_goes_is_removed_and_those_of_others_stay() -> None:
    lb = shared(part(80, WEB, OLD), part(443, WEB, OLD), part(53, DNS), part(22, None))

    assert operations(planned(wanted(WEB, 80), lb)) == [
        DeleteListener("lb-1", "TCP", 443),
        DeletePool("lb-1", "tcp-443-uid-web"),
    ]


def test_tcp_and_udp_of_one_port_may_belong_to_two_services() -> None:
    lb = shared(part(53, DNS, protocol="UDP"))

    assert len(operations(planned(wanted(WEB, 53), lb))) == 2


@pytest.mark.parametrize("holder", [DNS, ELSEWHERE])
@pytest.mark.parametrize("force", [False, True])
def test_a_port_that_another_service_has_is_refused_naming_the_holder(holder: Owner, force: bool) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        planned(wanted(WEB, 22, 80), shared(part(80, holder)), force=force)

    assert refused.value.field == "spec.ports[1].port"
    assert f"TCP 80 of load balancer lb-1 is in use by {holder}" in str(refused.value)


@pytest.mark.parametrize(
    ("lb", "why"),
    [
        (None, "load balancer lb-1 does not exist"),
        (shared(tags=WEB.tags), "load balancer lb-1 belongs to this Service itself"),
        (
            shared(network="net-2"),
            r"load balancer lb-1 is in network net-2, which has no nodes of this cluster \(.* in network net-1",
        ),
        (shared(state=LoadBalancerState.DELETING), "load balancer lb-1 is being deleted"),
    ],
)
def test_what_may_not_be_shared_is_refused_at_the_annotation(lb: ObservedLoadBalancer | None, why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"annotation example.com/id: {why}"):
        planned(wanted(WEB, 80), lb)


def test_one_that_is_not_as_a_setting_requires_is_refused_at_that_setting() -> None:
    def required(scheme: str) -> Plan:
        reuse = Reuse("lb-1", required=(Required("annotation example.com/scheme", "scheme", scheme),))
        return diff_parts(wanted(WEB, 80), reuse, shared(), WEB, CATALOGUE, target=TARGET, sharing=Sharing.ANY)

    assert operations(required("internal"))
    with pytest.raises(
        InvalidConfiguration, match=r"annotation example.com/scheme: scheme of load balancer lb-1 is internal, and only"
    ):
        required("public")


def test_one_that_is_still_being_created_is_waited_for() -> None:
    (action,) = planned(wanted(WEB, 80), shared(state=LoadBalancerState.PENDING))

    assert action.reason == "it is still being created"


# ------------------------------------------------------------------------------------------------------- taking over


def test_a_listener_that_nobody_owns_is_refused_without_force() -> None:
    with pytest.raises(InvalidConfiguration, match=r'example.com/force_override_listeners: "true"'):
        planned(wanted(WEB, 80), shared(part(80, None)))


def test_with_force_a_listener_is_taken_over_by_a_pool_of_the_services_own() -> None:
    lb = shared(part(80, None, OLD, name="by-hand"))

    plan = planned(wanted(WEB, 80, members=[NEW]), lb, force=True)

    assert [type(operation) for operation in operations(plan)] == [PutPool, PutListener]
    assert operations(plan)[1].instead_of == "by-hand", "which serves until a new member is healthy"
    taken = carried_out(plan, lb)
    assert taken.model.pools[0] == lb.model.pools[0]
    assert len(planned(wanted(WEB, 80, members=[NEW]), taken, force=True)) == 0
    assert len(planned(wanted(WEB, 80, members=[NEW]), taken)) == 0, "it is its own now"


def test_a_pool_that_other_listeners_use_too_stays_and_the_listener_gets_one_of_its_own() -> None:
    (first, pool), (second, _) = part(80, None, OLD, name="both"), part(81, None, name="both")
    lb = shared((first, pool))
    lb = replace(lb, model=replace(lb.model, listeners=(first, second)))

    taken = carried_out(planned(wanted(WEB, 80), lb, force=True), lb)

    assert {str(each): each.pool for each in taken.model.listeners} == {"80/TCP": "tcp-80-uid-web", "81/TCP": "both"}
    assert {each.name: WEB.owns(each.tags) for each in taken.model.pools} == {"both": False, "tcp-80-uid-web": True}


def by_hand() -> ObservedLoadBalancer:
    """With a listener of somebody's, in a state of its own."""
    listener, pool = part(80, None, OLD, name="by-hand")
    listener = replace(listener, attributes={"max_qps": 7, "timeout": None}, tags={"team": "edge"})
    return shared((listener, pool), part(22, ELSEWHERE))


def taking_80(owner: Owner = WEB) -> Built:
    built = wanted(owner, 80, members=[NEW])
    (listener,) = built.model.listeners
    listener = replace(listener, attributes={"max_qps": None, "timeout": 60})
    return Binding("uid-of-the-cluster").tagged(replace(built, model=replace(built.model, listeners=(listener,))))


@given(st.integers(0, 3), st.integers(0, 3))
def test_what_was_taken_over_is_given_back_as_it_was_wherever_either_broke_off(taking: int, leaving: int) -> None:
    before = lb = by_hand()
    for operation in operations(planned(taking_80(), lb, force=True))[:taking]:
        lb = apply_operation(lb, operation)

    for steps in (leaving, None):
        for operation in operations(leave(lb, WEB, CATALOGUE, target=TARGET, why="it is gone"))[:steps]:
            lb = apply_operation(lb, operation)

    assert lb.model == before.model


@given(st.integers(0, 3))
def test_a_taking_over_broken_off_anywhere_is_finished_by_the_next_plan(done: int) -> None:
    lb = by_hand()
    for operation in operations(planned(taking_80(), lb, force=True))[:done]:
        lb = apply_operation(lb, operation)

    lb = carried_out(planned(taking_80(), lb, force=True), lb)

    taken = next(each for each in lb.model.listeners if each.port == 80)
    assert (taken.pool, taken.attributes["timeout"], taken.tags["team"]) == ("tcp-80-uid-web", 60, "edge")
    assert len(planned(taking_80(), lb)) == 0


def made_anew(lb: ObservedLoadBalancer, operation: Operation, *, dies: bool) -> ObservedLoadBalancer:
    """The operation in a cloud that deletes a listener to change it; the process may die after the deletion."""
    if isinstance(operation, PutListener):
        lb = apply_operation(lb, DeleteListener("lb-1", *operation.listener.key))
    return lb if dies else apply_operation(lb, operation)


def dying(plan: Plan, lb: ObservedLoadBalancer, done: int) -> ObservedLoadBalancer:
    for number, operation in enumerate(operations(plan)[: done + 1]):
        lb = made_anew(lb, operation, dies=number == done)
    return lb


@given(st.integers(0, 3), st.integers(0, 5))
def test_a_listener_is_given_back_even_if_it_was_gone_when_the_process_died(taking: int, leaving: int) -> None:
    before = lb = by_hand()
    lb = dying(planned(taking_80(), lb, force=True), lb, taking)
    lb = dying(planned(taking_80(), lb, force=True), lb, 99)
    assert {each.port: WEB.owns(each.tags) for each in lb.model.listeners} == {80: True, 22: False}
    assert not planned(taking_80(), lb).changes

    for steps in (leaving, 99, 99):
        lb = dying(leave(lb, WEB, CATALOGUE, target=TARGET, why="it is gone"), lb, steps)

    assert {each.port: each for each in lb.model.listeners} == {each.port: each for each in before.model.listeners}
    assert lb.model.pools == before.model.pools


def redirecting() -> Built:
    """As `taking_80`, but the listener redirects to one on port 443, so that it has no pool."""
    built = wanted(WEB, 443, members=[NEW])
    redirect = Listener("TCP", 80, "", tags=WEB.tags)
    return replace(built, model=replace(built.model, listeners=(*built.model.listeners, redirect)))


@pytest.mark.parametrize("died", [True, False])
def test_a_pool_forgets_what_a_listener_without_a_pool_was_once_that_is_given_back(died: bool) -> None:
    taken = carried_out(planned(redirecting(), by_hand(), force=True), by_hand())
    if died:
        taken = apply_operation(taken, DeleteListener("lb-1", "TCP", 80))

    left = carried_out(planned(wanted(WEB, 443, members=[NEW]), taken), taken)

    kept = {each.port: each for each in left.model.listeners}
    assert kept[80] == next(each for each in by_hand().model.listeners if each.port == 80)
    assert [each.tags for each in left.model.pools if WEB.owns(each.tags)] == [WEB.tags]
    gone = apply_operation(left, DeleteListener("lb-1", "TCP", 80))
    assert not planned(wanted(WEB, 443, members=[NEW]), gone).changes, "its user deleted it"


def test_what_is_preserved_has_no_record_of_what_it_was() -> None:
    taken = carried_out(planned(taking_80(), by_hand(), force=True), by_hand())

    freed = carried_out(release(taken, WEB, target=TARGET), taken)

    assert not [key for tags in freed.model.part_tags for key in tags if key.startswith(TAKEN_FROM_TAG)]


def test_a_port_that_the_service_gives_up_goes_back_too() -> None:
    taken = carried_out(planned(taking_80(), by_hand(), force=True), by_hand())

    left = carried_out(planned(wanted(WEB), taken, force=True), taken)

    assert left.model == by_hand().model


def test_a_listener_whose_old_pool_was_deleted_meanwhile_is_deleted() -> None:
    taken = carried_out(planned(taking_80(), by_hand(), force=True), by_hand())
    taken = apply_operation(taken, DeletePool("lb-1", "by-hand"))

    plan = leave(taken, WEB, CATALOGUE, target=TARGET, why="it is gone")

    assert operations(plan) == [DeleteListener("lb-1", "TCP", 80), DeletePool("lb-1", "tcp-80-uid-web")]
    assert plan.actions[0].reason == "it cannot be given back: its previous pool by-hand no longer exists"


@pytest.mark.parametrize("text", ["", "[]", "null", '{"pool": 1}', "x" * 4000])
def test_a_listener_whose_record_was_changed_by_hand_is_deleted(text: str) -> None:
    taken = carried_out(planned(taking_80(), by_hand(), force=True), by_hand())
    listeners = tuple(
        replace(each, tags={**each.tags, TAKEN_FROM_TAG: text}) if each.port == 80 else each
        for each in taken.model.listeners
    )
    taken = replace(taken, model=replace(taken.model, listeners=listeners))

    left = carried_out(leave(taken, WEB, CATALOGUE, target=TARGET, why="it is gone"), taken)

    assert [each.port for each in left.model.listeners] == [22]


# ------------------------------------------------------------------------------------------------ leaving, preserving


def test_a_service_that_leaves_takes_its_parts_along_and_no_others() -> None:
    lb = shared(part(80, WEB, OLD), part(53, DNS), part(443, None))
    assert has_parts(lb, WEB)

    left = carried_out(leave(lb, WEB, CATALOGUE, target=TARGET, why="it is gone"), lb)

    assert [each.port for each in left.model.listeners] == [53, 443]
    assert not has_parts(left, WEB)


def test_a_pool_with_our_mark_that_anothers_listener_uses_is_given_free_instead_of_deleted() -> None:
    listener, pool = part(80, None, OLD, name="by-hand")
    half_taken = shared((listener, replace(pool, tags=WEB.tags)))

    plan = leave(half_taken, WEB, CATALOGUE, target=TARGET, why="it is gone")

    assert [type(operation) for operation in operations(plan)] == [PutPool]
    assert not has_parts(carried_out(plan, half_taken), WEB)


def test_what_is_preserved_stays_without_an_owner_and_says_whose_it_was() -> None:
    lb = shared(part(80, WEB, OLD), part(53, DNS))

    freed = carried_out(release(lb, WEB, target=TARGET), lb)

    assert [each.port for each in freed.model.listeners] == [80, 53]
    assert freed.model.listeners[0].tags == freed.model.pools[0].tags == {PRESERVED_TAG: "c-1/default/web"}
    assert freed.model.pools[0].members == (OLD,)
    assert freed.owners == (DNS,)


# --------------------------------------------------------------------------------------------------------- property


@st.composite
def anybodys(draw: st.DrawFn) -> ObservedLoadBalancer:
    owners = st.sampled_from([WEB, DNS, ELSEWHERE, None])
    numbers = draw(st.lists(st.integers(1, 6), unique=True))
    return shared(*(part(number, draw(owners), OLD) for number in numbers))


@given(anybodys(), st.lists(st.integers(1, 6), unique=True), st.booleans())
def test_nothing_of_anybody_else_is_ever_touched(lb: ObservedLoadBalancer, numbers: list[int], force: bool) -> None:
    built = wanted(WEB, *numbers)
    parts: list[Listener | Pool] = [*lb.model.listeners, *lb.model.pools]
    others = [each for each in parts if Owner.of_tags(each.tags) not in (WEB, None)]
    try:
        plan = planned(built, lb, force=force)
    except InvalidConfiguration:
        held = {each.port for each in lb.model.listeners if not WEB.owns(each.tags)}
        assert held & set(numbers), "only a port that somebody has is refused"
        return

    done = carried_out(plan, lb)

    assert all(each in (*done.model.listeners, *done.model.pools) for each in others)
    assert {each.port for each in done.model.listeners if WEB.owns(each.tags)} == set(numbers)
    assert (done.model.name, done.model.attributes, done.model.tags) == ("theirs", {"scheme": "internal"}, {})
    assert len(planned(built, done, force=force)) == 0
