"""What the last event of a reconcile says about what was done."""

from __future__ import annotations

from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.controllers.service.summary import Summary
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import (
    HealthCheck,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Pool,
)
from cloud_controller.load_balancers.operations import Operation
from cloud_controller.plan import Action, ActionKind, FieldChange

NO_ANNOTATIONS = Catalogue("example", ("example.com/",), ())


def model(ports: dict[int, int], *members: str, **attributes: str) -> LoadBalancerModel:
    """Listeners on these ports with these idle timeouts, and pools with these members."""
    return LoadBalancerModel(
        "edge",
        attributes,
        tuple(Listener("TCP", port, f"tcp-{port}", {"idle": idle}) for port, idle in ports.items()),
        tuple(
            Pool(f"tcp-{port}", HealthCheck("TCP"), tuple(Member(each, port, each) for each in members))
            for port in ports
        ),
    )


def told(before: LoadBalancerModel, after: LoadBalancerModel) -> str:
    """What is said once the change has been carried out."""
    lb, summary = ObservedLoadBalancer("lb-1", LoadBalancerState.READY, before), Summary()
    for action in diff(after, [lb], NO_ANNOTATIONS, target="service/default/web", client_token="token"):
        summary.add(action, lb)
        assert isinstance(action.operation, Operation)
        lb = apply_operation(lb, action.operation)
    return str(summary)


def test_each_listener_that_came_changed_or_went_is_named() -> None:
    said = told(model({80: 60, 81: 60, 82: 60}, "a"), model({80: 30, 82: 60, 443: 60}, "a"))

    assert said == "listener 80/TCP changed (idle: 60 -> 30); listener 443/TCP added; listener 81/TCP removed"


def test_members_are_counted_once_where_every_port_has_the_same() -> None:
    three, five = ("a", "b", "c"), ("b", "c", "d", "e", "f")

    assert told(model({80: 60, 81: 60}, *three), model({80: 60, 81: 60}, *five)) == "members 3 -> 5"


def test_replaced_members_are_counted_though_there_are_as_many() -> None:
    assert told(model({80: 60}, "a", "b"), model({80: 60}, "a", "c")) == "members 2 -> 2 (1 replaced)"


def test_changed_attributes_are_named_with_both_values() -> None:
    assert told(model({80: 60}, size="small"), model({80: 60}, size="large")) == "size: small -> large"


def test_a_changed_address_is_named_with_both() -> None:
    summary, change = Summary(), FieldChange("status.loadBalancer.ingress", "192.0.2.1", "192.0.2.2")
    operation = SetIngress("default", "web", "uid-web", ({"ip": "192.0.2.2"},))

    summary.add(Action(ActionKind.UPDATE, "service/default/web", "set status", (change,), operation=operation), None)

    assert str(summary) == "address changed 192.0.2.1 -> 192.0.2.2"
