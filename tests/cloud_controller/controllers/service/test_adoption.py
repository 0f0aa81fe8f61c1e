"""What the plan for a Service says of a load balancer that another controller made for it; no cloud is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.controllers.service.plan import plan_all, plan_service
from cloud_controller.controllers.service.rules import FINALIZER, Rules
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue, Mutability
from cloud_controller.load_balancers.model import (
    Adoptable,
    Built,
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import (
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteLoadBalancer,
    UpdateLoadBalancer,
)
from cloud_controller.plan import ActionKind
from tests.cloud_controller import load_balancing
from tests.cloud_controller.load_balancers.entries import entry

RULES = Rules("c-1", frozenset({"example.com/ours"}))
OWNER = Owner("c-1", "uid-web", "default", "web")
INGRESS = [{"ip": "192.0.2.1"}]
SCHEME = entry("scheme", mutability=Mutability.REPLACE)


class Builder:
    """A cloud where another controller names load balancers after UIDs."""

    catalogue = Catalogue("example", ("example.com/",), (SCHEME,))

    def claims(self, service: Object) -> bool:
        return "elsewhere" not in service["metadata"]["annotations"]

    def follows_endpoints(self, _: Object) -> bool:
        return False

    def drains(self, _: Object) -> bool:
        return True

    def pod_ranges(self, *_: object) -> None:
        return None

    def backend(self, _: Object) -> NodeBackend | None:
        return None

    def foreign_name(self, owner: Owner) -> str:
        return f"foreign-{owner.uid}"

    def members(self, *_: object) -> dict[tuple[str, int], tuple[Member, ...]]:
        return {}

    def build(self, service: Object, *_: object) -> Built:
        scheme = service["metadata"]["annotations"].get("example.com/scheme", "public")
        attributes = {"scheme": scheme, "timeout": 60}
        return Built(LoadBalancerModel(OWNER.load_balancer_name, attributes, tags=OWNER.tags))


def web(annotations: dict[str, str] | None = None, **more: Any) -> Object:
    made = load_balancing.service(annotations, **{"ports": [], "finalizers": (FINALIZER,), **more})
    made["status"] = {"loadBalancer": {"ingress": INGRESS}}
    return made


def foreign(uid: str = "uid-web", refusal: str | None = None, **attributes: Any) -> ObservedLoadBalancer:
    model = LoadBalancerModel(OWNER.load_balancer_name, {"scheme": "public", "timeout": 60, **attributes})
    ingress = (Ingress(ip="192.0.2.1"),)
    adoptable = Adoptable("the other controller", f"foreign-{uid}", "default/web", refusal)
    return ObservedLoadBalancer("lb-0", LoadBalancerState.READY, model, ingress, adoptable=adoptable)


def own() -> ObservedLoadBalancer:
    lb = foreign()
    model = replace(lb.model, tags=OWNER.tags)
    return replace(lb, id="lb-own", model=model, adoptable=None, created_at="later")


def operations(service: Object, *observed: ObservedLoadBalancer, rules: Rules = RULES) -> list[object]:
    found = plan_service(service, observed, Backends(), Builder(), None, rules)
    assert found.fault is None
    return [action.operation for action in found.plan.changes]


def test_it_becomes_the_services_and_nothing_else_is_made() -> None:
    assert operations(web(), foreign()) == [AdoptLoadBalancer("lb-0", OWNER.tags)]


def test_the_finalizer_comes_first() -> None:
    service = web()
    service["metadata"]["finalizers"] = []

    found = plan_service(service, [foreign()], Backends(), Builder(), None, RULES)

    assert [str(action) for action in found.plan] == [
        f"~  service/default/web: add finalizer {FINALIZER}",
        "~  service/default/web: adopt load balancer lb-0 of the other controller",
    ]


def test_what_differs_is_changed_in_place_afterwards() -> None:
    adopt, update = operations(web(), foreign(timeout=30))

    assert isinstance(adopt, AdoptLoadBalancer)
    assert isinstance(update, UpdateLoadBalancer)
    assert update.model.attributes["timeout"] == 60


def test_what_others_made_is_not_touched() -> None:
    assert [type(each) for each in operations(web(), foreign("uid-2"))] == [CreateLoadBalancer]


def test_one_whose_address_would_change_is_refused() -> None:
    found = plan_service(web({"example.com/scheme": "internal"}), [foreign()], Backends(), Builder(), None, RULES)

    assert found.plan.changes == ()
    assert "it cannot be adopted: its address would change (scheme: public -> internal)" in str(found.fault)


@pytest.mark.parametrize("service", [web(), web(deleted=True), web(type="ClusterIP")])
def test_one_that_the_cloud_refuses_keeps_the_service_as_it_is(service: Object) -> None:
    found = plan_service(service, [foreign(refusal="it is another cluster's")], Backends(), Builder(), None, RULES)

    assert found.plan.changes == ()
    assert "the other controller created it for this Service, but it cannot be adopted: it is another" in str(
        found.fault
    )


@pytest.mark.parametrize("service", [web(deleted=True), web(type="ClusterIP")])
def test_when_the_service_wants_none_it_is_adopted_and_deleted(service: Object) -> None:
    adopt, delete = operations(service, foreign())

    assert adopt == AdoptLoadBalancer("lb-0", OWNER.tags)
    assert delete == DeleteLoadBalancer("lb-0")


def test_beside_one_of_its_own_it_stays_until_the_service_goes() -> None:
    found = plan_service(web(), [own(), foreign()], Backends(), Builder(), None, RULES)
    (line,) = found.plan
    assert (line.kind, line.reason) == (
        ActionKind.IGNORE,
        "the Service already has its own load balancer; this one is deleted with the Service",
    )

    deleted = [each for each in operations(web(deleted=True), own(), foreign()) if isinstance(each, DeleteLoadBalancer)]
    assert {each.id for each in deleted} == {"lb-0", "lb-own"}


def test_what_is_left_of_one_is_deleted_when_the_service_has_its_own() -> None:
    left = replace(foreign(), state=LoadBalancerState.PARTIAL, model=LoadBalancerModel("lb-0"))

    assert operations(web(), own(), left) == [
        AdoptLoadBalancer("lb-0", OWNER.tags),
        DeleteLoadBalancer("lb-0", replaced=True),
    ]


@pytest.mark.parametrize(
    "service", [web({"elsewhere": ""}), web(loadBalancerClass="example.com/theirs"), web(loadBalancerClass="")]
)
def test_for_a_service_that_others_serve_it_serves_on(service: Object) -> None:
    assert operations(service, foreign()) == []


def test_beside_the_controller_that_made_it_it_is_never_touched() -> None:
    rules = replace(RULES, without_class=False)

    assert operations(web(deleted=True), foreign(), rules=rules) == []
    assert operations(web(), foreign(), rules=rules) == []
    assert list(plan_all([web()], [foreign()], [], {}, Builder(), None, rules, anchored=True)) == []


def test_the_plan_of_all_finds_it_by_its_name() -> None:
    line, *_ = plan_all([web()], [foreign()], [], {}, Builder(), None, RULES, anchored=True)

    assert line.operation == AdoptLoadBalancer("lb-0", OWNER.tags)


def test_one_whose_service_does_not_exist_is_reported_and_stays() -> None:
    (line,) = plan_all([], [foreign()], [], {}, Builder(), None, RULES, anchored=True)

    assert line.kind is ActionKind.IGNORE
    assert str(line) == (
        "   service/default/web: keep load balancer lb-0 of the other controller "
        "(no Service of this cluster has the UID in its name)"
    )


def test_one_of_another_cluster_is_not_even_reported() -> None:
    assert (
        list(plan_all([], [foreign(refusal="it is another cluster's")], [], {}, Builder(), None, RULES, anchored=True))
        == []
    )
