"""Plans for Services that use a load balancer by its id: coming, going, moving, and what happens to the old one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.binding import UNBOUND
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.clouds.mycloud.build import MyCloudBuilder
from cloud_controller.controllers.service.plan import (
    RemoveFinalizer,
    owner_of,
    plan_all,
    plan_orphans,
    plan_service,
)
from cloud_controller.controllers.service.rules import FINALIZER, Rules
from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.kube import Object
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import (
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    DeleteLoadBalancer,
    Operation,
    PutListener,
    PutPool,
)
from cloud_controller.load_balancers.sharing import LEFT_TAG, SHARED_WITH_TAG
from cloud_controller.plan import ActionKind, Plan
from tests.cloud_controller import load_balancing

RULES = Rules("c-1")
NODES = Backends((NodeBackend("n1", "i-1", "10.0.0.1"),))
SHARED = "lb-00000000000a"
OTHER = "lb-00000000000b"
OWN = "lb-00000000000c"
BUILDER = MyCloudBuilder("c-1", "internet-facing")


def web(name: str = "web", *numbers: int, created: str = "1", deleted: bool = False, **settings: Any) -> Object:
    ports = [load_balancing.port(number) for number in numbers]
    annotations = CATALOGUE.annotations(settings)
    made = load_balancing.service(annotations, *ports, name=name, finalizers=(FINALIZER,), deleted=deleted)
    made["metadata"]["creationTimestamp"] = created
    return made


def nobodys(id: str = SHARED) -> ObservedLoadBalancer:
    address = f"192.0.2.{int(id[-1], 16)}"
    model = LoadBalancerModel("made by hand", tags={SHARED_WITH_TAG: "c-1/default"})
    return ObservedLoadBalancer(id, LoadBalancerState.READY, model, (Ingress(ip=address),))


def own(service: Object) -> ObservedLoadBalancer:
    plain = {**service, "metadata": {**service["metadata"], "annotations": {}}}
    return replace(nobodys(OWN), model=BUILDER.build(plain, NODES, Fact()).model)


def planned(service: Object, *observed: ObservedLoadBalancer) -> Plan:
    found = plan_service(service, observed, NODES, BUILDER, Fact(), RULES)
    assert found.fault is None
    return found.plan


def settled(service: Object, *observed: ObservedLoadBalancer) -> dict[str, ObservedLoadBalancer]:
    """What is there when the plans have been carried out, one after the other."""
    present = {lb.id: lb for lb in observed}
    for _ in range(4):
        for operation in (action.operation for action in planned(service, *present.values()).changes):
            if isinstance(operation, DeleteLoadBalancer):
                del present[operation.id]
            elif isinstance(operation, Operation):
                assert not isinstance(operation, CreateLoadBalancer)
                present[operation.id] = apply_operation(present[operation.id], operation)
            elif isinstance(operation, SetIngress):
                service["status"] = {"loadBalancer": {"ingress": [*operation.ingress]}}
        present = {each.id: replace(each, settled=True) for each in present.values()}
    assert not planned(service, *present.values()).changes
    return present


def ports(lb: ObservedLoadBalancer) -> list[int]:
    return [listener.port for listener in lb.model.listeners]


def test_the_address_is_told_when_the_ports_are_open() -> None:
    service = web(id=SHARED)
    assert SetIngress not in {type(action.operation) for action in planned(service, nobodys()).changes}

    settled(service, nobodys())

    assert service["status"]["loadBalancer"]["ingress"] == [{"ip": "192.0.2.10"}]


def test_a_service_that_gets_an_id_leaves_its_own_load_balancer_last() -> None:
    service = web(id=SHARED)
    before = planned(service, own(service), nobodys())
    assert not any(isinstance(action.operation, DeleteLoadBalancer) for action in before.changes)

    present = settled(service, own(service), nobodys())

    assert (set(present), ports(present[SHARED])) == ({SHARED}, [80])


def test_the_plan_says_that_the_address_changes() -> None:
    service = web(id=SHARED)
    here = settled(web(id=SHARED), nobodys())[SHARED]

    plan = planned(service, own(service), here)

    (deletion,) = (action for action in plan if action.kind is ActionKind.DELETE)
    assert deletion.reason == f"the Service now uses {SHARED}; the address changes"


@pytest.mark.parametrize(
    ("service", "observed"),
    [
        (web(id=SHARED), [own(web()), nobodys()]),
        (web(id=OTHER), [settled(web(id=SHARED), nobodys())[SHARED], nobodys(OTHER)]),
        (web(), [settled(web(id=SHARED), nobodys())[SHARED]]),
    ],
    ids=["own to shared", "shared to other", "shared to own"],
)
def test_it_says_so_before_anything_has_happened(service: Object, observed: list[ObservedLoadBalancer]) -> None:
    plan = planned(service, *observed)

    (created,) = (a for a in plan if a.kind is ActionKind.CREATE and not isinstance(a.operation, PutPool))
    assert created.reason == f"replaces {observed[0].id}; the address changes"


def test_a_service_whose_id_changes_takes_its_parts_along() -> None:
    before = settled(web(id=SHARED), nobodys())[SHARED]

    present = settled(web(id=OTHER), before, nobodys(OTHER))

    assert (ports(present[SHARED]), ports(present[OTHER])) == ([], [80])
    assert present[SHARED].model.pools == ()


def test_a_service_that_loses_its_id_has_its_parts_removed_once_its_own_serves() -> None:
    before = settled(web(id=SHARED), nobodys())[SHARED]
    service = web()
    assert [type(action.operation) for action in planned(service, before).changes] == [CreateLoadBalancer]

    present = settled(service, before, own(service))

    assert (ports(present[SHARED]), ports(present[OWN])) == ([], [80])


@pytest.mark.parametrize(("slices", "taken"), [((), False), (({"addressType": "IPv4", "endpoints": []},), True)])
def test_what_serves_already_is_taken_over_only_once_the_services_pods_are_known(
    slices: tuple[Object, ...], taken: bool
) -> None:
    pods = {
        "addressType": "IPv4",
        "ports": [{"port": 8080}],
        "endpoints": [{"addresses": ["10.9.0.1"], "nodeName": "n1"}],
    }
    heir = web("heir", backend_type="pod-ip", id=SHARED, force_override_listeners=True)
    heir["spec"]["selector"] = {"app": "web"}
    left = BUILDER.build(web("testator", backend_type="pod-ip"), replace(NODES, slices=(pods,)), Fact()).model
    serving = replace(nobodys(), model=replace(nobodys().model, listeners=left.listeners, pools=left.pools))

    found = plan_service(heir, [serving], replace(NODES, slices=slices), BUILDER, Fact(), RULES)

    assert any(isinstance(action.operation, PutListener) for action in found.plan.changes) == taken


def test_a_deleted_service_leaves_the_load_balancer_as_it_found_it() -> None:
    before = settled(web(id=SHARED), nobodys())[SHARED]
    service = web(id=SHARED, deleted=True)
    present = before
    for action in planned(service, before).changes:
        assert isinstance(action.operation, Operation)
        present = apply_operation(present, action.operation)

    assert present.model == nobodys().model
    assert [type(action.operation) for action in planned(service, present).changes] == [RemoveFinalizer]


def test_of_two_that_want_one_port_the_older_has_it_and_the_other_is_told() -> None:
    services = [web("young", 80, 81, created="2", id=SHARED), web("old", 80, created="1", id=SHARED)]

    plan = plan_all(services, [nobodys()], [], {}, BUILDER, Fact(), RULES, anchored=True)

    made = {action.target for action in plan if action.kind is ActionKind.CREATE}
    assert {target.split("/")[2] for target in made} == {"old"}
    (refused,) = (action for action in plan if action.kind is ActionKind.IGNORE)
    assert refused.target == "service/default/young"
    assert "spec.ports[0].port: TCP 80" in str(refused) and "Service default/old of cluster c-1" in str(refused)


def test_a_service_that_lost_a_port_to_another_keeps_what_it_has_following_the_nodes() -> None:
    service = web("web", 80, 81, id=SHARED)
    lb = settled(web("web", 80, id=SHARED), nobodys())[SHARED]
    rival = settled_for("rival", 81, lb)

    moved = Backends((NodeBackend("n2", "i-2", "10.0.0.2"),))
    found = plan_service(service, [rival], moved, BUILDER, Fact(), RULES)

    assert found.fault is not None
    assert {action.target for action in found.plan.changes} == {"service/default/web/pool/tcp-80-uid-web/members"}


def settled_for(name: str, port: int, lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    return settled(web(name, port, id=SHARED), lb)[SHARED]


def test_the_removal_of_parts_of_a_service_that_vanished_is_held_and_those_of_others_stay() -> None:
    lb = settled_for("dns", 53, settled_for("gone", 80, nobodys()))

    plan = plan_all([web("dns", 53, id=SHARED)], [lb], [], {}, BUILDER, Fact(), RULES, anchored=True)

    removed = [action for action in plan if action.kind is ActionKind.DELETE]
    assert {action.target.split("/")[2] for action in removed} == {"gone"}
    assert {action.reason for action in removed} == {
        "its Service no longer exists, and no deletion was seen that takes it along"
    }
    assert len({action.held for action in removed}) == 1
    assert not any(action.kind is ActionKind.DELETE for action in plan.changes)


def test_parts_of_other_clusters_are_nobodys_business_here() -> None:
    lb = settled_for("web", 80, nobodys())
    theirs = Owner("c-2", "uid-x", "default", "web").tags
    foreign = replace(
        lb,
        model=replace(
            lb.model,
            listeners=tuple(replace(each, tags=theirs) for each in lb.model.listeners),
            pools=tuple(replace(each, tags=theirs) for each in lb.model.pools),
        ),
    )

    assert len(plan_all([], [foreign], [], {}, BUILDER, Fact(), RULES, anchored=True)) == 0


# ----------------------------------------------------------------------------- on the load balancer of another Service


def owned_and_shared() -> ObservedLoadBalancer:
    """That of Service web, with port 81 of Service guest on it."""
    return settled(web("guest", 81, id=OWN), own(web()))[OWN]


def deleted(service: Object, lb: ObservedLoadBalancer) -> ObservedLoadBalancer | None:
    """What is left when the deleted Service has lost its finalizer."""
    present: dict[str, ObservedLoadBalancer] = {lb.id: lb}
    for _ in range(4):
        for operation in (action.operation for action in planned(service, *present.values()).changes):
            if isinstance(operation, RemoveFinalizer):
                return present.get(lb.id)
            assert isinstance(operation, Operation) and not isinstance(operation, CreateLoadBalancer)
            if isinstance(operation, DeleteLoadBalancer):
                del present[operation.id]
            else:
                present[operation.id] = apply_operation(present[operation.id], operation)
    raise AssertionError("its finalizer stays")


def test_a_second_service_of_the_namespace_uses_the_first_ones_load_balancer() -> None:
    guest = web("guest", 81, id=OWN)

    present = settled(guest, own(web()))

    assert ports(present[OWN]) == [80, 81]
    assert guest["status"]["loadBalancer"]["ingress"] == [{"ip": "192.0.2.12"}]


def test_the_owner_leaves_the_parts_of_others_alone() -> None:
    lb = owned_and_shared()

    assert not [a for a in planned(web(), lb).changes if not isinstance(a.operation, SetIngress)]
    assert ports(settled(web("web", 8080), lb)[OWN]) == [81, 8080]


def test_neither_gets_a_port_that_the_other_has() -> None:
    lb = owned_and_shared()

    for service, holder in ((web("web", 80, 81), "guest"), (web("guest", 80, 81, id=OWN), "web")):
        fault = plan_service(service, [lb], NODES, BUILDER, Fact(), RULES).fault
        assert f"is in use by Service default/{holder} of cluster c-1" in str(fault)


def test_an_owner_that_is_deleted_leaves_it_to_those_who_use_it_and_goes() -> None:
    left = deleted(web(deleted=True), owned_and_shared())

    assert left is not None
    assert (ports(left), LEFT_TAG in left.model.tags) == ([81], True)
    assert not planned(web("guest", 81, id=OWN), left).counts.get(ActionKind.DELETE)


def test_nothing_is_left_where_owner_and_user_were_both_deleted() -> None:
    lb = owned_and_shared()

    for owner in 2 * (owner_of(web(), "c-1"), owner_of(web("guest"), "c-1")):
        for action in plan_orphans([lb], owner, CATALOGUE, UNBOUND, deleted=True).changes:
            assert isinstance(action.operation, Operation)
            lb = apply_operation(lb, action.operation)

    assert lb.state is LoadBalancerState.DELETING


def test_what_owner_and_user_have_is_held_where_neither_deletion_was_seen() -> None:
    plan = plan_all([], [owned_and_shared()], [], {}, BUILDER, Fact(), RULES, anchored=True)

    assert not plan.changes
    assert {action.target.split("/")[2] for action in plan.held} == {"web", "guest"}


def test_an_owner_that_is_gone_without_its_finalizer_leaves_it_to_those_who_use_it() -> None:
    lb = owned_and_shared()

    plan = plan_all([web("guest", 81, id=OWN)], [lb], [], {}, BUILDER, Fact(), RULES, anchored=True)

    assert not [action for action in plan.changes if isinstance(action.operation, DeleteLoadBalancer)]


def test_an_owner_that_gets_a_new_one_leaves_the_old_one_to_those_who_use_it() -> None:
    service = web(scheme="internal")
    new = replace(nobodys(OTHER), model=BUILDER.build(service, NODES, Fact()).model)

    present = settled(service, owned_and_shared(), new)

    assert (ports(present[OTHER]), ports(present[OWN])) == ([80], [81])
    ends = [type(a.operation) for a in planned(web(scheme="internal"), owned_and_shared(), new).changes]
    assert ends[0] is SetIngress, "clients learn of the new address before the old listener goes"


def test_an_owner_that_comes_back_takes_back_what_it_had_left() -> None:
    left = deleted(web(deleted=True), owned_and_shared())
    assert left is not None

    back = settled(web(), left)[OWN]

    assert (sorted(ports(back)), LEFT_TAG in back.model.tags) == ([80, 81], False)


def test_what_a_guest_preserved_keeps_the_load_balancer() -> None:
    guest = web("guest", 81, id=OWN, preserve_on_delete=True, deleted=True)
    lb = deleted(guest, owned_and_shared())
    assert lb is not None

    left = deleted(web(deleted=True), lb)

    assert left is not None
    assert ports(left) == [81]


def test_members_of_a_service_with_a_fault_follow_the_nodes_in_its_own_parts_alone() -> None:
    lb = owned_and_shared()
    moved = Backends((NodeBackend("n2", "i-2", "10.0.0.2"),))

    found = plan_service(web("web", 80, 81), [lb], moved, BUILDER, Fact(), RULES)

    assert found.fault is not None
    assert {action.target for action in found.plan.changes} == {"service/default/web/pool/tcp-80/members"}


@given(st.permutations(["web", "guest", "other"]), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_whoever_goes_first_the_others_keep_their_ports_and_nothing_is_left(order: list[str], steps: list[int]) -> None:
    ports_of = {"web": 80, "guest": 81, "other": 82}
    lb = settled(web("other", 82, id=OWN), owned_and_shared())[OWN]
    for name, broken_off_after in zip(order, steps, strict=True):
        service = web(name, ports_of.pop(name), deleted=True, **({} if name == "web" else {"id": OWN}))
        for operation in [action.operation for action in planned(service, lb).changes][:broken_off_after]:
            if isinstance(operation, Operation) and not isinstance(operation, DeleteLoadBalancer | CreateLoadBalancer):
                lb = apply_operation(lb, operation)
        left = deleted(service, lb)
        if left is None:
            assert not ports_of
            return
        lb = left
        assert set(ports(lb)) == set(ports_of.values())

    assert [type(a.operation) for a in plan_all([], [lb], [], {}, BUILDER, Fact(), RULES, anchored=True).changes] == [
        DeleteLoadBalancer
    ]
