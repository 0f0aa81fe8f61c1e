"""Which changes need a new load balancer in Octavia, and what plans say of them; nothing here needs its services."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.clouds.openstack.octavia.build import OctaviaBuilder
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from cloud_controller.clouds.openstack.octavia.topology import Subnet, Topology
from cloud_controller.controllers.service.plan import plan_service
from cloud_controller.controllers.service.rules import FINALIZER, Rules
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Ingress, LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer
from cloud_controller.load_balancers.operations import CreateLoadBalancer, DeleteLoadBalancer, PutListener
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from cloud_controller.plan import ActionKind, FieldChange, Plan
from tests.cloud_controller.clouds.openstack.octavia.services import named
from tests.cloud_controller.load_balancing import service

ONE, TWO, THREE, NET = (f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 5))
ADDRESS = "10.1.0.50"
BUILDER = OctaviaBuilder("c-1", LoadBalancerOptions(classes={"dmz": Networks(subnet_id=TWO)}))
FACTS = Fact(Topology((Subnet(ONE, "nodes", NET, "10.1.0.0/16"),), {"public": "public"}))
NODES = Backends((NodeBackend("node1", "node1", "10.1.0.1"),))
CHOSEN = {"vip_port": "port", "vip_subnet": ONE, "vip_network": NET, "vip_address": ADDRESS}
"""What Octavia chooses unless the Service does."""


def web(annotations: dict[str, str], address: str = "") -> Object:
    spec: dict[str, Any] = {"loadBalancerIP": address} if address else {}
    found = service(annotations, finalizers=(FINALIZER,), **spec)
    return found | {"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}}


def serving(
    wanted: Object, id: str = "old", state: LoadBalancerState = LoadBalancerState.READY
) -> ObservedLoadBalancer:
    """The load balancer that this Service has."""
    model = BUILDER.build(wanted, NODES, FACTS).model
    model = replace(model, attributes={**CHOSEN, **model.attributes})
    return ObservedLoadBalancer(id, state, model, (Ingress(ip=ADDRESS),))


def planned(wanted: Object, *present: ObservedLoadBalancer) -> Plan:
    found = plan_service(wanted, present, NODES, BUILDER, FACTS, Rules("c-1"))
    assert found.fault is None
    return found.plan


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, named(availability_zone="az-2"), FieldChange("availability_zone", "", "az-2")),
        (named(availability_zone="az-2"), {}, FieldChange("availability_zone", "az-2", "")),
        ({}, named(flavor_id=ONE), FieldChange("flavor", "", ONE)),
        ({}, named(network_id=TWO), FieldChange("vip_network", NET, TWO)),
        ({}, named(subnet_id=TWO), FieldChange("vip_subnet", ONE, TWO)),
        ({}, named(port_id=TWO), FieldChange("vip_port", "port", TWO)),
        (named(port_id=TWO), named(port_id=THREE), FieldChange("vip_port", TWO, THREE)),
        ({}, named(lb_class="dmz"), FieldChange("vip_subnet", ONE, TWO)),
    ],
)
def test_what_octavia_cannot_change_is_told_as_a_replacement(
    before: dict[str, str], after: dict[str, str], said: FieldChange
) -> None:
    (action,) = planned(web(after), serving(web(before))).changes

    assert action.kind is ActionKind.REPLACE
    assert isinstance(action.operation, CreateLoadBalancer)
    assert action.changes == (said,)
    assert "the address changes" in action.summary


@pytest.mark.parametrize("kept", [named(network_id=NET), named(subnet_id=ONE), named(port_id=TWO)])
def test_a_place_that_nobody_asks_for_any_more_stays(kept: dict[str, str]) -> None:
    assert not planned(web({}), serving(web(kept))).changes


def test_a_service_that_names_a_load_balancer_keeps_its_own_until_that_serves() -> None:
    shared = ObservedLoadBalancer(
        TWO, LoadBalancerState.READY, LoadBalancerModel("shared", tags={SHARED_WITH_TAG: "c-1/default"})
    )

    changes = planned(web(named(id=TWO)), serving(web({})), shared).changes

    assert any(isinstance(action.operation, PutListener) for action in changes)
    assert not any(isinstance(action.operation, DeleteLoadBalancer) for action in changes)
    assert {action.reason for action in changes} == {"replaces old; the address changes"}


@pytest.mark.parametrize(
    ("annotations", "address", "taken"),
    [(named(port_id=TWO), "", TWO), (named(internal=True), ADDRESS, ADDRESS)],
    ids=["port", "address"],
)
def test_what_only_one_load_balancer_can_have_is_freed_before_the_next_is_made(
    annotations: dict[str, str], address: str, taken: str
) -> None:
    before, after = web(annotations, address), web(annotations | named(flavor_id=ONE), address)

    (first,) = planned(after, serving(before)).changes
    meanwhile = planned(after, serving(before, state=LoadBalancerState.DELETING)).changes
    (then,) = planned(after).changes

    assert isinstance(first.operation, DeleteLoadBalancer)
    assert f"only when {taken} is free; until it serves, clients cannot connect" in (first.reason or "")
    assert not meanwhile
    assert isinstance(then.operation, CreateLoadBalancer)


def test_the_old_one_serves_until_the_new_one_has_its_floating_ip() -> None:
    after = web(named(flavor_id=ONE))
    without = replace(serving(after, "new"), ingress=())

    assert not planned(after, serving(web({})), without).changes
