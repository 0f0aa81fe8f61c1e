"""Which changes of a Service move its address, and what their acknowledgement covers: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.address_changes import ANNOTATION, AddressChange, AddressChanges
from cloud_controller.controllers.service.plan import owner_of, plan_all, plan_service
from cloud_controller.controllers.service.rules import FINALIZER, Rules
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import (
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
)
from cloud_controller.plan import Action, ActionKind, Attention, FieldChange
from tests.cloud_controller.clouds.mycloud.services import BUILDER, named, web

RULES = Rules("c-1", address_changes=AddressChanges.ACKNOWLEDGE)
SCHEME = CATALOGUE.by_argument["scheme"].name


def existing(service: Object, id: str = "lb-1", **more: Any) -> ObservedLoadBalancer:
    """The load balancer that the Service has, as it asks for it."""
    model = BUILDER.build(service, Backends(), Fact()).model
    tagged = replace(model, tags={**model.tags, **owner_of(service, "c-1").tags})
    return ObservedLoadBalancer(id, LoadBalancerState.READY, tagged, (Ingress(ip="192.0.2.1"),), **more)


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


def test_a_load_balancer_without_an_address_may_be_replaced() -> None:
    begun = replace(existing(web()), state=LoadBalancerState.PENDING, ingress=())

    assert not [each for each in planned(seen(named(scheme="internal")), begun) if each.held]


def test_a_load_balancer_that_is_gone_is_made_again_without_an_acknowledgement() -> None:
    assert [each.kind for each in planned(seen(named(scheme="internal")))] == [ActionKind.CREATE]


def test_a_change_of_type_is_no_change_of_address() -> None:
    service = {**seen({}), "spec": {"type": "ClusterIP", "ports": []}}

    assert [each.kind for each in planned(service, existing(web()))] == [ActionKind.DELETE]


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

    plan = plan_all([service], [], [], {}, BUILDER, Fact(), rules)

    assert [each.target for each in plan if each.attention is Attention.NOT_SERVED] == ["service/default/web"] * found
