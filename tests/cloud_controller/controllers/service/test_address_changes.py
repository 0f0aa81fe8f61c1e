"""Which changes of a Service move its address, and what their acknowledgement covers: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.address_changes import ANNOTATION, AddressChange, AddressChanges, leaving
from cloud_controller.controllers.service.plan import owner_of, plan_all, plan_service
from cloud_controller.controllers.service.rules import FINALIZER, Rules
from cloud_controller.controllers.service.status import SetCondition, SetIngress
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import (
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
)
from cloud_controller.load_balancers.sharing import LEFT_TAG
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange
from tests.cloud_controller.clouds.mycloud.services import BUILDER, named, web
from tests.cloud_controller.load_balancing import port

RULES = Rules("c-1", address_changes=AddressChanges.ACKNOWLEDGE)
SCHEME = CATALOGUE.by_argument["scheme"].name
MOVING = replace(
    CATALOGUE,
    entries=tuple(replace(each, moves=("zones",)) if each.name == SCHEME else each for each in CATALOGUE),
)


def existing(service: Object, id: str = "lb-1", **more: Any) -> ObservedLoadBalancer:
    """The load balancer that the Service has, as it asks for it."""
    model = BUILDER.build(service, Backends(), Fact()).model
    tagged = replace(model, tags={**model.tags, **owner_of(service, "c-1").tags})
    return ObservedLoadBalancer(id, LoadBalancerState.READY, tagged, (Ingress(ip="192.0.2.1"),), **more)


def owned_parts(model: LoadBalancerModel, tags: dict[str, str]) -> LoadBalancerModel:
    """The same, with the parts of this owner."""
    listeners = tuple(replace(each, tags=tags) for each in model.listeners)
    return replace(model, listeners=listeners, pools=tuple(replace(each, tags=tags) for each in model.pools))


def seen(annotations: dict[str, str], **spec: Any) -> Object:
    return web(annotations, finalizers=(FINALIZER,), **spec)


def planned(service: Object, *present: ObservedLoadBalancer) -> list[Action]:
    return [*plan_service(service, present, Backends(), BUILDER, Fact(), RULES).plan]


def test_a_held_change_names_both_values_and_its_annotation() -> None:
    (held,) = [each for each in planned(seen(named(scheme="internal")), existing(web())) if each.held]

    assert held.kind is ActionKind.REPLACE and held.attention is Attention.ADDRESS_CHANGE_HELD
    assert held.changes == (FieldChange("scheme", "internet-facing", "internal"),)
    assert held.acknowledgement == f'{ANNOTATION}: "{held.held}"'
    assert Action.from_json(held.to_json()) == held


@pytest.mark.parametrize("preserve", ["true", "false"])
def test_a_service_given_to_another_controller_keeps_its_load_balancer_until_that_is_acknowledged(
    preserve: str,
) -> None:
    service, present = seen(named(preserve_on_delete=preserve)), existing(web())
    rules = replace(RULES, without_class=False)

    held = plan_service(service, [present], Backends(), BUILDER, Fact(), rules).plan

    [change] = held.held
    assert not [each for each in held.changes if each.operation and not isinstance(each.operation, SetCondition)]
    service["metadata"]["annotations"][ANNOTATION] = str(change.held)
    released = plan_service(service, [present], Backends(), BUILDER, Fact(), rules).plan
    assert released.changes and not released.held


def test_a_load_balancer_without_an_address_may_be_replaced() -> None:
    begun = replace(existing(web()), state=LoadBalancerState.PENDING, ingress=())

    assert not [each for each in planned(seen(named(scheme="internal")), begun) if each.held]


def test_a_load_balancer_that_is_gone_is_made_again_without_an_acknowledgement() -> None:
    assert [each.kind for each in planned(seen(named(scheme="internal")))] == [ActionKind.CREATE]


def test_a_change_of_type_is_no_change_of_address() -> None:
    service = {**seen({}), "spec": {"type": "ClusterIP", "ports": []}}

    assert [each.kind for each in planned(service, existing(web()))] == [ActionKind.DELETE]


def test_the_way_back_to_a_load_balancer_that_was_left_to_others_is_held() -> None:
    whole = existing(web())
    others, own = owner_of(web(name="other"), "c-1").tags, owner_of(web(), "c-1").tags
    tags = {**whole.model.tags, LEFT_TAG: "true"}
    theirs = owned_parts(existing(web(None, port(9090))).model, others)
    left = replace(whole, model=replace(theirs, tags=tags))
    used = replace(whole, id="lb-2", model=owned_parts(replace(whole.model, tags=others), own))
    service = {**seen({}), "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}]}}}

    actions = planned(service, left, replace(used, ingress=(Ingress(ip="192.0.2.2"),)))

    (held,) = [each for each in actions if each.held]
    assert held.changes == (FieldChange("id", "lb-2", "lb-1"),)
    assert not [each for each in actions if isinstance(each.operation, SetIngress)]


def test_a_load_balancer_that_has_failed_keeps_the_addresses_that_clients_use() -> None:
    service, catalogue = seen({}), MOVING
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    failed = replace(existing(web()), state=LoadBalancerState.FAILED)
    failed = replace(failed, model=replace(failed.model, attributes={**failed.model.attributes, "zones": ("a", "b")}))
    built = BUILDER.build(web(), Backends(), Fact())
    built = replace(built, model=replace(built.model, attributes={**built.model.attributes, "zones": ("b",)}))

    change = leaving(service, built, [failed], failed, owner_of(service, "c-1"), catalogue, serves=False)

    assert change is not None and change.fields == (FieldChange("zones", ("a", "b"), ("b",)),)


values = st.one_of(st.none(), st.text(max_size=3), st.tuples(st.text(max_size=3)))
fields = st.dictionaries(st.sampled_from(["scheme", "subnets", "id"]), values, min_size=1)
changes = st.tuples(st.sampled_from(["lb-1", "lb-2"]), fields)


@given(changes, changes)
def test_two_changes_have_one_digest_only_if_load_balancer_fields_and_new_values_are_the_same(
    one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]
) -> None:
    def digest(id: str, after: dict[str, Any]) -> str:
        lb = ObservedLoadBalancer(id, LoadBalancerState.READY, LoadBalancerModel("edge"))
        return AddressChange(lb, tuple(FieldChange(each, "old", after[each]) for each in after), "why").digest

    assert (digest(*one) == digest(*other)) == (one == other)


@pytest.mark.parametrize(
    ("spec", "address", "found"),
    [
        ({"loadBalancerClass": "example.com/nobodys"}, [], True),
        ({"loadBalancerClass": "example.com/theirs"}, [{"ip": "192.0.2.7"}], False),
        ({"loadBalancerClass": "example.com/ours"}, [], False),
        ({}, [], False),
    ],
)
def test_a_class_that_nobody_serves_is_a_finding_of_every_plan(
    spec: dict[str, Any], address: list[dict[str, str]], found: bool
) -> None:
    service = web(**spec)
    service["status"] = {"loadBalancer": {"ingress": address}}
    rules = replace(RULES, classes=frozenset({"example.com/ours"}))

    plan = plan_all([service], [], [], {}, BUILDER, Fact(), rules, anchored=True)

    assert [each.target for each in plan if each.attention is Attention.NOT_SERVED] == ["service/default/web"] * found
