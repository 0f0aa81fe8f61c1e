"""From the load balancers that are to the one that should be: which actions, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Catalogue, Mutability
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import (
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.plan import ActionKind, Plan
from tests.cloud_controller.load_balancers.entries import entry

ADDRESS = (Ingress(ip="192.0.2.1"),)
TARGET = "service/default/web"


CATALOGUE = Catalogue(
    "example",
    ("example.com/",),
    (
        entry("scheme", mutability=Mutability.REPLACE),
        entry("subnet", mutability=Mutability.CREATE_ONLY),
        entry("addresses", mutability=Mutability.REPLACE, exclusive=("addresses", "eip")),
    ),
)


def pool(number: int, members: Sequence[str] = ("10.0.0.1",), **attributes: Any) -> Pool:
    check = HealthCheck(attributes.pop("check", "TCP"))
    found = tuple(Member(address, 30000 + number, f"i-{address}") for address in members)
    return Pool(f"tcp-{number}", check, found, {"scheduler": "round_robin", **attributes})


def listener(number: int, **attributes: Any) -> Listener:
    return Listener("TCP", number, f"tcp-{number}", {"max_qps": None, **attributes})


def model(*numbers: int, **attributes: Any) -> LoadBalancerModel:
    return LoadBalancerModel(
        name="web",
        attributes={"scheme": "internal", **attributes},
        listeners=tuple(listener(number) for number in numbers),
        pools=tuple(pool(number) for number in numbers),
        tags={"owner": "web"},
    )


def observed(
    model: LoadBalancerModel,
    id: str = "lb-1",
    state: LoadBalancerState = LoadBalancerState.READY,
    created_at: str = "1",
) -> ObservedLoadBalancer:
    return ObservedLoadBalancer(id, state, model, ADDRESS, created_at=created_at, state_reason="no luck")


def changed(desired: LoadBalancerModel | None, *present: ObservedLoadBalancer) -> Plan:
    return diff(desired, present, CATALOGUE, target=TARGET, client_token="c-uid")


def operations(plan: Plan) -> list[Any]:
    return [action.operation for action in plan.changes]


# -------------------------------------------------------------------------------------------------- the whole of it


def test_a_missing_load_balancer_is_created_in_one_operation() -> None:
    plan = changed(model(80, 443))

    assert operations(plan) == [CreateLoadBalancer(model(80, 443), "c-uid")]
    assert str(plan) == "+  service/default/web: create load balancer web: 80/TCP, 443/TCP; 1 backend"


def test_settings_shared_by_all_parts_of_a_new_load_balancer_are_listed_once() -> None:
    desired = replace(model(80, 443), listeners=(listener(80, max_qps=5), listener(443)))

    (action,) = changed(desired)

    assert [str(change) for change in action.changes] == [
        "scheme: (none) -> internal",
        "listener/80/TCP.max_qps: (none) -> 5",
        "every pool.health_check: (none) -> TCP",
        "every pool.scheduler: (none) -> round_robin",
    ]


def test_a_load_balancer_that_is_up_to_date_needs_no_action() -> None:
    assert len(changed(model(80), observed(model(80)))) == 0


def test_attributes_that_others_added_to_a_load_balancer_are_kept() -> None:
    theirs = replace(model(80), tags={"owner": "web", "team": "edge"}, attributes={"scheme": "internal", "logs": "on"})

    assert len(changed(model(80), observed(theirs))) == 0


def test_name_and_tags_are_changed_together_and_tags_of_others_kept() -> None:
    theirs = replace(model(80), name="renamed", tags={"team": "edge"})

    (update,) = operations(changed(model(80), observed(theirs)))

    assert (update.model.name, update.model.tags) == ("web", {"team": "edge", "owner": "web"})


def test_an_attribute_that_cannot_be_changed_in_place_replaces_the_load_balancer_and_its_address() -> None:
    plan = changed(model(80), observed(model(80, scheme="internet-facing")))

    assert operations(plan) == [CreateLoadBalancer(model(80), "c-uid-after-lb-1")]
    (action,) = plan
    assert action.kind is ActionKind.REPLACE
    assert "address changes" in action.summary
    assert [str(change) for change in action.changes] == ["scheme: internet-facing -> internal"]


def test_an_empty_attribute_that_another_kind_lacks_is_not_a_difference() -> None:
    old = observed(model(80, scheme="internet-facing"))

    (action,) = changed(model(80, addresses=()), old)

    assert [str(change) for change in action.changes] == ["scheme: internet-facing -> internal"]


def test_a_replaced_load_balancer_serves_until_the_new_one_is_ready() -> None:
    old = observed(model(80, scheme="internet-facing"), "lb-1")
    new = observed(model(80), "lb-2", LoadBalancerState.PENDING, created_at="2")

    waiting = changed(model(80), old, new)
    addressless = changed(model(80), old, replace(new, state=LoadBalancerState.READY, ingress=()))
    done = changed(model(80), old, replace(new, state=LoadBalancerState.READY))

    assert operations(waiting) == operations(addressless) == []
    assert operations(done) == [DeleteLoadBalancer("lb-1", replaced=True)]


def test_a_load_balancer_is_deleted_first_if_the_new_one_needs_its_addresses() -> None:
    old = observed(model(80, addresses=("a-1", "a-2")))
    desired = model(80, addresses=("a-2", "a-3"))

    (action,) = changed(desired, old)

    assert action.operation == DeleteLoadBalancer("lb-1", replaced=True)
    assert action.reason == (
        "the address changes: the new load balancer can be created only when a-2 is free; until it serves, clients"
        " cannot connect"
    )
    gone = observed(old.model, state=LoadBalancerState.DELETING)
    assert operations(changed(desired, gone)) == [], "its addresses are not free yet"


def test_addresses_that_the_model_has_zone_by_zone_are_as_exclusive() -> None:
    old = observed(model(80, scheme="internet-facing", **{"eip.a": "eip-1", "eip.b": "eip-2"}))

    (deletion,) = changed(model(80, **{"eip.a": "eip-2"}), old)
    (creation,) = changed(model(80, **{"eip.a": "eip-3", "eip.b": "eip-4"}), old)

    assert deletion.operation == DeleteLoadBalancer("lb-1", replaced=True)
    assert "eip-2 is free" in str(deletion.reason)
    assert creation.kind is ActionKind.REPLACE


def test_addresses_of_a_load_balancer_that_other_services_use_are_refused_for_a_new_one() -> None:
    whole = replace(model(80, addresses=("a-1", "a-2")), tags=Owner("c", "web", "default", "web").tags)
    guest = replace(listener(443), tags=Owner("c", "dns", "default", "dns").tags)
    old = observed(replace(whole, listeners=(*whole.listeners, guest)))

    with pytest.raises(InvalidConfiguration) as refused:
        changed(replace(whole, attributes={"scheme": "internal", "addresses": ("a-2",)}), old)

    assert refused.value.field == "annotation example.com/addresses"
    assert "a-2 cannot be moved to a new load balancer: lb-1 has it, and other Services use lb-1" in str(refused.value)


def test_a_load_balancer_with_other_addresses_serves_until_the_new_one_is_ready() -> None:
    old = observed(model(80, addresses=("a-1",)))

    (action,) = changed(model(80, addresses=("a-2",)), old)

    assert action.kind is ActionKind.REPLACE


def test_a_create_only_attribute_is_ignored_with_the_reason() -> None:
    plan = changed(model(80, subnet="b"), observed(model(80, subnet="a")))

    assert not plan.changes
    assert [(action.kind, action.reason) for action in plan] == [
        (ActionKind.IGNORE, "it applies only when a load balancer is created")
    ]


def test_one_that_is_still_being_created_is_waited_for() -> None:
    plan = changed(model(80, 443), observed(model(80), state=LoadBalancerState.PENDING))

    assert [action.kind for action in plan] == [ActionKind.IGNORE]


def test_a_load_balancer_being_deleted_is_replaced_with_another_token() -> None:
    plan = changed(model(80), observed(model(80), state=LoadBalancerState.DELETING))

    assert operations(plan) == [CreateLoadBalancer(model(80), "c-uid-after-lb-1")]


def test_a_failed_load_balancer_is_updated_not_replaced() -> None:
    plan = changed(model(80, 443), observed(model(80), state=LoadBalancerState.FAILED))

    assert [type(operation) for operation in operations(plan)] == [PutPool, PutListener]
    assert "no luck" in str(plan)


def test_a_failed_load_balancer_does_not_replace_others() -> None:
    serving = observed(model(80, scheme="internet-facing"), "lb-1")

    plan = changed(model(80), serving, observed(model(80), "lb-2", LoadBalancerState.FAILED))

    assert operations(plan) == []


def test_of_two_ready_load_balancers_the_older_one_is_kept() -> None:
    plan = changed(model(80), observed(model(80), "lb-2", created_at="2"), observed(model(80), "lb-1", created_at="1"))

    assert operations(plan) == [DeleteLoadBalancer("lb-2", replaced=True)]


def test_all_load_balancers_are_deleted_if_none_is_wanted() -> None:
    plan = changed(None, observed(model(80)), observed(model(80), "lb-2", LoadBalancerState.DELETING))

    assert operations(plan) == [DeleteLoadBalancer("lb-1")]
    assert [action.kind for action in plan] == [ActionKind.DELETE, ActionKind.IGNORE]


def test_the_remains_of_an_interrupted_creation_are_reused_by_the_same_token() -> None:
    plan = changed(model(80), observed(model(), state=LoadBalancerState.PARTIAL))

    assert operations(plan) == [CreateLoadBalancer(model(80), "c-uid")]
    assert [action.kind for action in plan] == [ActionKind.CREATE]


def test_the_remains_of_an_interrupted_replacement_are_reused_by_the_successors_token() -> None:
    old = observed(model(80, scheme="internet-facing"), "lb-1")
    left = observed(model(), "lb-2", LoadBalancerState.PARTIAL, created_at="2")

    assert operations(changed(model(80), old, left)) == [CreateLoadBalancer(model(80), "c-uid-after-lb-1")]


def test_the_remains_of_another_load_balancer_are_deleted_once_one_is_ready() -> None:
    left = observed(model(), "lb-0", LoadBalancerState.PARTIAL)
    wanted = observed(model(80), "lb-1", LoadBalancerState.PENDING)

    assert operations(changed(model(80), left, wanted)) == []
    assert operations(changed(model(80), left, replace(wanted, state=LoadBalancerState.READY))) == [
        DeleteLoadBalancer("lb-0", replaced=True)
    ]


def test_the_remains_of_a_deletion_are_deleted_by_every_plan() -> None:
    plan = changed(None, observed(model(), state=LoadBalancerState.PARTIAL))

    assert operations(plan) == [DeleteLoadBalancer("lb-1")]
    assert "the remains of" in str(plan)


# ------------------------------------------------------------------------------------------------------------ parts


def test_a_pool_is_made_before_its_listener_and_deleted_after_it() -> None:
    plan = changed(model(80, 443), observed(model(80, 22)))

    assert operations(plan) == [
        PutPool("lb-1", pool(443), new=True),
        PutListener("lb-1", listener(443)),
        DeleteListener("lb-1", "TCP", 22),
        DeletePool("lb-1", "tcp-22"),
    ]
    assert [action.target for action in plan] == [
        f"{TARGET}/pool/tcp-443",
        f"{TARGET}/listener/443/TCP",
        f"{TARGET}/listener/22/TCP",
        f"{TARGET}/pool/tcp-22",
    ]


def test_members_are_added_before_others_are_removed() -> None:
    desired = replace(model(80), pools=(pool(80, ["10.0.0.2", "10.0.0.3"]),))

    plan = changed(desired, observed(replace(model(80), pools=(pool(80, ["10.0.0.1", "10.0.0.2"]),))))

    assert operations(plan) == [
        AddMembers("lb-1", "tcp-80", (Member("10.0.0.3", 30080, "i-10.0.0.3"),)),
        RemoveMembers("lb-1", "tcp-80", (Member("10.0.0.1", 30080, "i-10.0.0.1"),), desired.pools[0].members),
    ]
    assert {action.target for action in plan} == {f"{TARGET}/pool/tcp-80/members"}


def test_a_member_whose_machine_was_replaced_under_the_same_address_is_registered_anew_and_not_removed() -> None:
    moved = replace(pool(80), members=(Member("10.0.0.1", 30080, "i-new"),))

    plan = changed(replace(model(80), pools=(moved,)), observed(model(80)))

    assert operations(plan) == [AddMembers("lb-1", "tcp-80", moved.members)]


def test_the_settings_of_a_pool_change_without_its_members() -> None:
    desired = replace(model(80), pools=(pool(80, check="HTTP", scheduler="least_connections"),))

    (action,) = changed(desired, observed(model(80)))

    assert action.operation == PutPool("lb-1", desired.pools[0], new=False)
    assert [str(change) for change in action.changes] == [
        "scheduler: round_robin -> least_connections",
        "health_check.protocol: TCP -> HTTP",
    ]


def test_a_setting_of_one_listener_changes_that_listener_only() -> None:
    desired = replace(model(80, 443), listeners=(listener(80, max_qps=5), listener(443)))

    (action,) = changed(desired, observed(model(80, 443)))

    assert action.operation == PutListener("lb-1", listener(80, max_qps=5))
    assert str(action) == f"~  {TARGET}/listener/80/TCP: change listener"
    assert [str(change) for change in action.changes] == ["max_qps: (none) -> 5"]


def test_removing_all_members_at_once_hands_over_to_their_successors() -> None:
    (old,), new = model(80).pools, (Member("10.0.0.1", 31080, "i-10.0.0.1"),)

    plan = changed(replace(model(80), pools=(replace(old, members=new),)), observed(model(80)))

    assert operations(plan) == [
        AddMembers("lb-1", "tcp-80", new),
        RemoveMembers("lb-1", "tcp-80", old.members, new, hand_over=True),
    ]


def test_a_hand_over_is_detected_even_if_the_successors_are_already_added() -> None:
    old, new = (pool(80).members[0]._replace(port=number) for number in (30080, 31080))
    wanted = replace(model(80), pools=(replace(pool(80), members=(new,)),))

    plan = changed(wanted, observed(replace(model(80), pools=(replace(pool(80), members=(old, new)),))))

    assert operations(plan) == [RemoveMembers("lb-1", "tcp-80", (old,), (new,), hand_over=True)]


def test_removing_some_members_needs_no_hand_over() -> None:
    desired = replace(model(80), pools=(pool(80, ["10.0.0.1"]),))

    plan = changed(desired, observed(replace(model(80), pools=(pool(80, ["10.0.0.1", "10.0.0.2"]),))))

    (removal,) = operations(plan)
    assert not removal.hand_over


def test_the_tags_of_parts_are_set_in_place_and_those_of_others_kept() -> None:
    ours = replace(model(80), listeners=(replace(listener(80), tags={"owner": "web"}),))
    theirs = replace(model(80), listeners=(replace(listener(80), tags={"team": "edge"}),))

    (action,) = changed(ours, observed(theirs))

    assert action.operation == PutListener("lb-1", replace(listener(80), tags={"team": "edge", "owner": "web"}))


def test_tcp_and_udp_of_one_port_are_two_listeners() -> None:
    udp = Listener("UDP", 80, "udp-80", {})
    both = replace(model(80), listeners=(listener(80), udp), pools=(pool(80), replace(pool(80), name="udp-80")))

    plan = changed(model(80), observed(both))

    assert operations(plan) == [DeleteListener("lb-1", "UDP", 80), DeletePool("lb-1", "udp-80")]


def test_a_plan_line_lists_at_most_twenty_members_or_listeners() -> None:
    many = replace(model(80), pools=(pool(80, [f"10.0.1.{number}" for number in range(25)]),))

    plan = changed(many, observed(replace(model(80), pools=(pool(80, []),))))

    assert str(plan).endswith("and 5 more")
    assert "99/TCP and 230 more; 1 backend" in str(changed(model(*range(80, 330))))


# ------------------------------------------------------------------------------------------------------- properties

ADDRESSES = st.lists(st.sampled_from([f"10.0.0.{number}" for number in range(4)]), unique=True, max_size=4)


@st.composite
def models(draw: st.DrawFn) -> LoadBalancerModel:
    """Any: ports may change protocol, node ports and pools, and pools may be swapped or shared."""
    numbers = draw(st.lists(st.sampled_from([22, 80, 443]), unique=True))
    pools = []
    for number in numbers:
        made = pool(
            number, draw(ADDRESSES), check=draw(st.sampled_from(["TCP", "HTTP"])), scheduler=draw(st.sampled_from("ab"))
        )
        node_port = draw(st.sampled_from([30000, 31000]))
        members = tuple(each._replace(port=node_port, weight=draw(st.integers(1, 2))) for each in made.members)
        pools.append(replace(made, members=members, tags=draw(st.sampled_from([{}, {"owner": "web"}]))))
    listeners = []
    for number in numbers:
        for protocol in draw(st.sampled_from([("TCP",), ("UDP",), ("TCP", "UDP"), ()])):
            its_pool = draw(st.sampled_from(numbers))
            settings = {"max_qps": draw(st.sampled_from([None, 5]))}
            listeners.append(Listener(protocol, number, f"tcp-{its_pool}", settings))
    name = draw(st.sampled_from(["web", "other"]))
    return replace(model(), name=name, listeners=tuple(listeners), pools=tuple(pools))


def members_behind(model: LoadBalancerModel, listener: Listener) -> dict[tuple[str, int], Member]:
    """What the listener of this key sends to in the model, by address and port."""
    (current,) = (each for each in model.listeners if each.key == listener.key)
    (its_pool,) = (each for each in model.pools if each.name == current.pool)
    return {member.key: member for member in its_pool.members}


def apply_to(model: LoadBalancerModel, operation: Operation) -> LoadBalancerModel:
    """What a strict cloud makes of one operation: it refuses what is not possible at that moment."""
    pools = {pool.name: pool for pool in model.pools}
    listeners = {listener.key: listener for listener in model.listeners}
    match operation:
        case UpdateLoadBalancer(model=new):
            return replace(model, name=new.name, tags=new.tags)
        case PutPool(pool=put, new=new):
            assert new is (put.name not in pools)
            pools[put.name] = put if new else replace(put, members=pools[put.name].members)
        case AddMembers(pool=name, members=members):
            kept = [m for m in pools[name].members if m.key not in {each.key for each in members}]
            pools[name] = replace(pools[name], members=(*kept, *members))
        case RemoveMembers(pool=name, members=members):
            assert set(members) <= set(pools[name].members)
            kept = [member for member in pools[name].members if member not in members]
            pools[name] = replace(pools[name], members=tuple(kept))
        case PutListener(listener=put_):
            assert put_.pool in pools
            listeners[put_.key] = put_
        case DeleteListener(protocol=protocol, port=port):
            del listeners[(protocol, port)]
        case DeletePool(name=name):
            assert all(listener.pool != name for listener in listeners.values())
            del pools[name]
        case _:
            pytest.fail(f"{operation} on a load balancer that stays")
    return replace(model, pools=tuple(pools.values()), listeners=tuple(listeners.values()))


@given(models(), models())
def test_applying_the_diff_reaches_the_desired_state_from_any_state(
    desired: LoadBalancerModel, actual: LoadBalancerModel
) -> None:
    model = actual
    for operation in operations(changed(desired, observed(actual))):
        model = apply_to(model, operation)

    assert len(changed(desired, observed(model))) == 0
    assert {each.name: set(each.members) for each in model.pools} == {
        each.name: set(each.members) for each in desired.pools
    }


@given(models(), models())
def test_at_every_step_a_port_that_stays_has_the_members_that_stay(
    desired: LoadBalancerModel, actual: LoadBalancerModel
) -> None:
    stay = {each.key for each in desired.listeners} & {each.key for each in actual.listeners}
    staying = [each for each in desired.listeners if each.key in stay]
    model = actual
    for operation in operations(changed(desired, observed(actual))):
        model = apply_to(model, operation)
        for each in staying:
            before, then, now = (members_behind(m, each) for m in (actual, desired, model))
            assert before.keys() & then.keys() <= now.keys()
            assert now or not before or not then, "it is never without any member"


@given(models(), models())
def test_apply_operation_predicts_the_clouds_state(desired: LoadBalancerModel, actual: LoadBalancerModel) -> None:
    model = actual
    for operation in operations(changed(desired, observed(actual))):
        told = apply_operation(observed(model), operation)
        model = apply_to(model, operation)
        assert told.model.name == model.name
        assert {each.key: each for each in told.model.listeners} == {each.key: each for each in model.listeners}
        assert {each.name: set(each.members) for each in told.model.pools} == {
            each.name: set(each.members) for each in model.pools
        }
        assert told.settled is not isinstance(operation, PutListener | DeleteListener)


@given(models(), models(), st.integers(0, 20))
def test_an_interrupted_plan_is_completed_by_the_next_one(
    desired: LoadBalancerModel, actual: LoadBalancerModel, done: int
) -> None:
    model = actual
    for operation in operations(changed(desired, observed(actual)))[:done]:
        model = apply_to(model, operation)
    for operation in operations(changed(desired, observed(model))):
        model = apply_to(model, operation)

    assert len(changed(desired, observed(model))) == 0
