"""The service controller's rules, from objects to plans, without any cluster or cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.cloud import AccessDenied, InvalidConfiguration
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service.controller import ServiceObservation, ServiceOptions
from cloud_controller.controllers.service.plan import AddFinalizer, RemoveFinalizer, plan_service
from cloud_controller.controllers.service.rules import (
    EXCLUDE_LABEL,
    FINALIZER,
    FINALIZER_BESIDE_ANOTHER,
    Rules,
    backends_of,
    wants_load_balancer,
)
from cloud_controller.controllers.service.status import SetIngress
from cloud_controller.kube import Object
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import (
    PRESERVED_TAG,
    SERVICE_TAG,
    Built,
    HealthCheck,
    Ignored,
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
    DeleteLoadBalancer,
    RemoveMembers,
    UpdateLoadBalancer,
)
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from cloud_controller.plan import ActionKind, Attention, Plan
from tests.cloud_controller import load_balancing
from tests.cloud_controller.load_balancers.entries import entry

RULES = Rules("c-1", frozenset({"example.com/ours"}))
INGRESS = [{"ip": "192.0.2.1"}]


class Builder:
    """A cloud whose load balancers send to every node by its name."""

    catalogue = Catalogue("example", ("example.com/",), ())

    def claims(self, service: Object) -> bool:
        return "elsewhere" not in (service["metadata"].get("annotations") or {})

    def foreign_name(self, _: Owner) -> None:
        return None

    def follows_endpoints(self, service: Object) -> bool:
        return bool(service["spec"].get("externalTrafficPolicy") == "Local")

    def drains(self, _: Object) -> bool:
        return True

    def pod_ranges(self, *_: object) -> tuple[str, ...] | None:
        return None

    def backend(self, node: Object) -> NodeBackend:
        name = node["metadata"]["name"]
        return NodeBackend(name, f"i-{name}", name)

    def members(self, _: Object, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
        return {("TCP", 80): backends.by_node_port(30080)}

    def build(self, service: Object, backends: Backends, _: None) -> Built:
        if "bad" in (service["metadata"].get("annotations") or {}):
            raise InvalidConfiguration("annotation bad", "'x' is not a valid value", "y")
        if "denied" in (service["metadata"].get("annotations") or {}):
            raise AccessDenied("DescribeSubnets: no right")
        owner = owner_of(service)
        pools = (Pool("tcp-80", HealthCheck("TCP"), backends.by_node_port(30080)),)
        ignored = (Ignored("spec.loadBalancerIP", "192.0.2.9", "the cloud chooses"),)
        asked = "loadBalancerIP" in service["spec"]
        return Built(
            LoadBalancerModel(
                owner.load_balancer_name, listeners=(Listener("TCP", 80, "tcp-80"),), pools=pools, tags=owner.tags
            ),
            ignored if asked else (),
        )


class PreservingBuilder(Builder):
    """The same, where load balancers can be preserved."""

    catalogue = Catalogue(
        "example", ("example.com/",), (entry("preserve_on_delete", name="example.com/preserve", type=bool),)
    )


def owner_of(service: Object) -> Owner:
    metadata = service["metadata"]
    return Owner("c-1", metadata["uid"], metadata["namespace"], metadata["name"])


def web(*, ingress: list[dict[str, str]] | None = None, **more: Any) -> Object:
    """A Service without ports that the controller has seen."""
    made = load_balancing.service(**{"ports": [], "finalizers": (FINALIZER,), **more})
    made["status"] = {"loadBalancer": {"ingress": ingress} if ingress else {}}
    return made


def node(name: str = "n1", *, labels: dict[str, str] | None = None, ready: str = "True", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def existing(
    service: Object, id: str = "lb-1", state: LoadBalancerState = LoadBalancerState.READY
) -> ObservedLoadBalancer:
    model = Builder().build(service, backends(node()), None).model
    return ObservedLoadBalancer(id, state, model, (Ingress(ip="192.0.2.1"),))


def backends(*nodes: Object) -> Backends:
    return backends_of(nodes, Builder(), RULES)


def planned(service: Object, *observed: ObservedLoadBalancer, nodes: Sequence[Object] = (node(),)) -> Plan:
    return plan_service(service, observed, backends(*nodes), Builder(), None, RULES).plan


def operations(plan: Plan) -> list[type]:
    return [type(action.operation) for action in plan.changes]


def all_planned(services: Sequence[Object], observed: Sequence[ObservedLoadBalancer] = ()) -> Plan:
    observation = ServiceObservation(services, [node()], observed, Builder(), None, "c-1", RULES.classes)
    return service.plan(observation, ServiceOptions())


# ------------------------------------------------------------------------------------------------------ what is ours


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"type": "ClusterIP"}, False),
        ({"loadBalancerClass": "example.com/ours"}, True),
        ({"loadBalancerClass": "example.com/other"}, False),
        ({"deleted": True}, False),
        ({"annotations": {"elsewhere": "true"}}, False),
    ],
)
def test_a_load_balancer_is_wanted_by_type_and_class(changes: dict[str, Any], wanted: bool) -> None:
    assert wants_load_balancer(web(**changes), RULES, Builder()) is wanted


ONLY_CLASSES = Rules("c-1", frozenset({"example.com/ours"}), without_class=False)
"""Where another controller takes Services without a class, as on EKS."""


@pytest.mark.parametrize(("changes", "wanted"), [({}, False), ({"loadBalancerClass": "example.com/ours"}, True)])
def test_services_without_a_class_may_be_left_to_another_controller(changes: dict[str, Any], wanted: bool) -> None:
    assert wants_load_balancer(web(**changes), ONLY_CLASSES, Builder()) is wanted


@pytest.mark.parametrize(
    ("changes", "done"),
    [
        ({}, []),
        ({"deleted": True}, []),
        ({"deleted": True, "loadBalancerClass": "example.com/other"}, [RemoveFinalizer]),
    ],
)
def test_the_finalizer_of_a_service_that_is_left_to_another_is_its_own(changes: dict[str, Any], done: Any) -> None:
    left = web(**changes)

    found = plan_service(left, [], Backends(), Builder(), None, ONLY_CLASSES)

    assert operations(found.plan) == done


def test_beside_another_controller_services_have_a_finalizer_that_it_does_not_take_off() -> None:
    made = web(finalizers=(), loadBalancerClass="example.com/ours")
    deleted = web(finalizers=(FINALIZER_BESIDE_ANOTHER,), loadBalancerClass="example.com/ours", deleted=True)

    add, _ = plan_service(made, [], backends(node()), Builder(), None, ONLY_CLASSES).plan
    [waits] = plan_service(deleted, [existing(deleted)], Backends(), Builder(), None, ONLY_CLASSES).plan
    [remove] = plan_service(deleted, [], Backends(), Builder(), None, ONLY_CLASSES).plan

    assert isinstance(add.operation, AddFinalizer) and isinstance(remove.operation, RemoveFinalizer)
    assert add.operation.finalizer == remove.operation.finalizer == FINALIZER_BESIDE_ANOTHER != FINALIZER
    assert isinstance(waits.operation, DeleteLoadBalancer)


def test_a_service_that_had_upstreams_finalizer_before_gets_the_other_one_too() -> None:
    had = web(finalizers=(FINALIZER,), loadBalancerClass="example.com/ours")

    add, *_ = plan_service(had, [existing(had)], backends(node()), Builder(), None, ONLY_CLASSES).plan

    assert isinstance(add.operation, AddFinalizer)
    assert add.operation.finalizer == FINALIZER_BESIDE_ANOTHER


def test_our_finalizer_holds_no_service_that_became_another_controllers() -> None:
    without_class = web(finalizers=(FINALIZER, FINALIZER_BESIDE_ANOTHER), deleted=True)

    [remove] = plan_service(without_class, [], Backends(), Builder(), None, ONLY_CLASSES).plan

    assert isinstance(remove.operation, RemoveFinalizer)
    assert remove.operation.finalizer == FINALIZER_BESIDE_ANOTHER


def test_a_new_service_gets_its_finalizer_before_its_load_balancer() -> None:
    assert operations(planned(web(finalizers=()))) == [AddFinalizer, CreateLoadBalancer]


def test_a_service_in_order_needs_nothing() -> None:
    service = web(ingress=INGRESS)

    assert len(planned(service, existing(service))) == 0


def test_the_status_is_set_once_the_load_balancer_is_ready() -> None:
    service = web()

    assert operations(planned(service, existing(service, state=LoadBalancerState.PENDING))) == []
    (action,) = planned(service, existing(service))
    assert isinstance(action.operation, SetIngress)
    assert [str(change) for change in action.changes] == ["status.loadBalancer.ingress: (none) -> 192.0.2.1"]


@pytest.mark.parametrize("state", [LoadBalancerState.PENDING, LoadBalancerState.READY])
def test_a_service_waits_for_a_load_balancer_that_has_no_address_yet(state: LoadBalancerState) -> None:
    service = web(ingress=INGRESS)
    found = plan_service(
        service, [replace(existing(service, state=state), ingress=())], backends(node()), Builder(), None, RULES
    )

    assert found.waits
    assert operations(found.plan) == [], "it keeps the status that it has"


def test_a_status_that_the_api_server_has_completed_is_not_written_again() -> None:
    service = web(ingress=[{"ip": "192.0.2.1", "ipMode": "VIP"}])

    assert len(planned(service, existing(service))) == 0


def test_a_deleted_service_keeps_its_finalizer_while_anything_of_it_is_left() -> None:
    service = web(deleted=True, ingress=INGRESS)

    assert operations(planned(service, existing(service))) == [DeleteLoadBalancer]
    assert operations(planned(service, existing(service, state=LoadBalancerState.DELETING))) == []
    assert operations(planned(service)) == [RemoveFinalizer]


def test_a_type_changed_away_also_clears_the_status() -> None:
    service = web(type="ClusterIP", ingress=INGRESS)

    assert operations(planned(service, existing(service))) == [DeleteLoadBalancer]
    assert operations(planned(service)) == [SetIngress, RemoveFinalizer]


@pytest.mark.parametrize(
    "left", [{"loadBalancerClass": "example.com/other"}, {"annotations": {"elsewhere": "true"}}], ids=str
)
def test_of_a_service_that_another_controller_serves_only_what_is_ours_is_removed(left: dict[str, Any]) -> None:
    service = web(**left, ingress=INGRESS)

    assert operations(planned(service, existing(service))) == [DeleteLoadBalancer]
    assert operations(planned(service)) == []


def test_a_deleted_service_of_another_class_is_not_held_by_our_finalizer() -> None:
    assert operations(planned(web(loadBalancerClass="example.com/other", deleted=True))) == [RemoveFinalizer]


def test_a_service_that_never_had_a_load_balancer_is_none_of_ours() -> None:
    assert operations(planned(web(type="ClusterIP", finalizers=()))) == []


def test_what_the_cloud_does_not_offer_is_in_the_plan_with_the_reason() -> None:
    service = web(loadBalancerIP="192.0.2.9", ingress=INGRESS)

    (action,) = planned(service, existing(service))

    assert (action.kind, action.reason) == (ActionKind.IGNORE, "the cloud chooses")


def test_no_node_at_all_still_makes_the_load_balancer_and_warns() -> None:
    found = plan_service(web(), (), Backends(), Builder(), None, RULES)

    assert operations(found.plan) == [CreateLoadBalancer]
    assert [reason for reason, _ in found.warnings] == ["UnAvailableLoadBalancer"]


def test_both_addresses_of_a_dual_stack_load_balancer_are_in_the_status() -> None:
    service = web()
    lb = replace(existing(service), ingress=(Ingress(ip="192.0.2.1"), Ingress(ip="2001:db8::1")))

    (action,) = planned(service, lb)

    assert action.operation == SetIngress("default", "web", "uid-web", ({"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}))
    written = web(ingress=[{"ip": "192.0.2.1", "ipMode": "VIP"}, {"ip": "2001:db8::1", "ipMode": "VIP"}])
    assert len(planned(written, lb)) == 0
    assert len(planned(web(ingress=[*reversed(written["status"]["loadBalancer"]["ingress"])]), lb)) == 1, "in order"


# ------------------------------------------------------------------------------------------------- faults, preserving


def test_a_service_with_a_fault_keeps_its_listeners_and_they_follow_the_nodes() -> None:
    service = web(annotations={"bad": "x"}, ingress=INGRESS)
    lb = existing(web(ingress=INGRESS))

    found = plan_service(service, [lb], backends(node("n2")), Builder(), None, RULES)

    assert operations(found.plan) == [AddMembers, RemoveMembers]
    assert found.fault is not None and found.fault.field == "annotation bad"
    assert plan_service(service, [lb], backends(node()), Builder(), None, RULES).plan == Plan()


def test_a_service_with_a_fault_can_be_deleted() -> None:
    service = web(annotations={"bad": "x"}, deleted=True)

    assert operations(planned(service, existing(web()))) == [DeleteLoadBalancer]
    assert operations(planned(service)) == [RemoveFinalizer]


def test_without_a_right_to_read_what_it_depends_on_a_service_still_follows_the_nodes() -> None:
    service = web(annotations={"denied": ""}, ingress=INGRESS)

    found = plan_service(service, [existing(web())], backends(node("n1"), node("n2")), Builder(), None, RULES)

    assert operations(found.plan) == [AddMembers]
    assert str(found.denied) == "DescribeSubnets: no right"
    assert found.attention is Attention.FAILED


def test_the_plan_of_all_says_at_once_that_a_right_is_missing() -> None:
    with pytest.raises(AccessDenied, match="DescribeSubnets: no right"):
        all_planned([web(annotations={"denied": ""})])


def test_an_invalid_annotation_of_readiness_gates_is_a_fault_whether_gates_are_served_or_not() -> None:
    service = web(annotations={"cloud-controller/readiness-gate": "on"}, ingress=INGRESS)

    for rules in (RULES, replace(RULES, gates=ReadinessGates())):
        found = plan_service(service, [], backends(node()), Builder(), None, rules)
        assert "annotation cloud-controller/readiness-gate: 'on' is not a valid value" in str(found.fault)


def test_a_service_that_asks_for_readiness_gates_which_are_not_served_is_told_so() -> None:
    service = web(annotations={"cloud-controller/readiness-gate": "true"}, ingress=INGRESS)

    def warnings(rules: Rules) -> list[str]:
        return [reason for reason, _ in plan_service(service, [], backends(node()), Builder(), None, rules).warnings]

    assert warnings(RULES) == ["NotOffered"]
    assert warnings(replace(RULES, gates=ReadinessGates())) == []


def test_the_plan_of_all_says_of_such_a_service_that_nothing_else_is_changed() -> None:
    lb = existing(web())
    moved = replace(lb, model=replace(lb.model, pools=(replace(lb.model.pools[0], members=()),)))

    plan = all_planned([web(annotations={"bad": "x"})], [moved])

    assert [(action.kind, action.summary) for action in plan] == [
        (ActionKind.UPDATE, "add i-n1 (n1:30080)"),
        (ActionKind.IGNORE, "nothing else is changed"),
    ]


def test_a_preserved_load_balancer_loses_its_owner_and_then_the_service_its_finalizer() -> None:
    service = web(deleted=True, annotations={"example.com/preserve": "true"})
    lb = existing(service)

    found = plan_service(service, [lb], backends(node()), PreservingBuilder(), None, RULES)

    (action,) = found.plan
    assert isinstance(action.operation, UpdateLoadBalancer)
    assert action.operation.model == replace(lb.model, tags={PRESERVED_TAG: "c-1/default/web"})
    assert found.preserves == "lb-1"
    after_it = plan_service(service, [], backends(node()), PreservingBuilder(), None, RULES)
    assert operations(after_it.plan) == [RemoveFinalizer]


def test_one_that_was_to_take_the_place_of_the_preserved_is_deleted_first() -> None:
    service = web(deleted=True, annotations={"example.com/preserve": "true"}, ingress=INGRESS)
    new = replace(existing(service, "lb-2", LoadBalancerState.PENDING), ingress=(Ingress(ip="192.0.2.2"),))

    found = plan_service(service, [existing(service), new], backends(node()), PreservingBuilder(), None, RULES)

    assert operations(found.plan) == [DeleteLoadBalancer, UpdateLoadBalancer]
    assert found.plan.changes[0].operation == DeleteLoadBalancer("lb-2")
    assert found.preserves == "lb-1"


def test_mere_parts_are_not_preserved() -> None:
    service = web(deleted=True, annotations={"example.com/preserve": "true"}, ingress=INGRESS)
    left = existing(service, "lb-2", LoadBalancerState.PARTIAL)

    found = plan_service(service, [left], backends(node()), PreservingBuilder(), None, RULES)

    assert [action.operation for action in found.plan.changes] == [DeleteLoadBalancer("lb-2")]


def test_while_it_is_not_clear_whether_to_preserve_nothing_is_deleted() -> None:
    service = web(deleted=True, annotations={"example.com/preserve": "yes"})

    found = plan_service(service, [existing(service)], backends(node()), PreservingBuilder(), None, RULES)

    assert (found.plan, found.fault is not None) == (Plan(), True)


# ------------------------------------------------------------------------------------------------------------- nodes


@pytest.mark.parametrize(
    ("label", "eligible"),
    [(None, True), ("false", True), ("0", True), ("F", True), ("true", False), ("", False), ("foo", False)],
)
def test_the_exclude_label_is_read_as_upstream_reads_it(label: str | None, eligible: bool) -> None:
    labels = {} if label is None else {EXCLUDE_LABEL: label}

    assert bool(backends(node(labels=labels)).nodes) is eligible


def test_a_node_that_is_being_deleted_is_no_member() -> None:
    deleted = node()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert backends(deleted).nodes == ()


@pytest.mark.parametrize(("drains", "stays"), [(True, False), (False, True)])
def test_the_autoscalers_taint_takes_a_member_out_only_where_its_connections_outlive_that(
    drains: bool, stays: bool
) -> None:
    class Cloud(Builder):
        def drains(self, _: Object) -> bool:
            return drains

    tainted = node("n1", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}])
    service = web()

    found = plan_service(service, [existing(service)], backends(tainted, node("n2")), Cloud(), None, RULES)

    removed = [action.operation for action in found.plan.changes if isinstance(action.operation, RemoveMembers)]
    assert (not removed) is stays


def test_of_two_nodes_that_claim_a_machine_the_older_is_the_member() -> None:
    class Cloud(Builder):
        def backend(self, node: Object) -> NodeBackend:
            return NodeBackend(node["metadata"]["name"], node["spec"]["providerID"], "10.0.0.1")

    young, old = node("a", providerID="i-1"), node("b", providerID="i-1")
    young["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"

    assert [each.node for each in backends_of([young, old], Cloud(), RULES).nodes] == ["b"]


def test_an_excluded_node_keeps_its_machine_from_a_younger_one_that_claims_it() -> None:
    class Cloud(Builder):
        def backend(self, node: Object) -> NodeBackend:
            return NodeBackend(node["metadata"]["name"], "i-1", "10.0.0.1")

    old, young = node("a", labels={EXCLUDE_LABEL: "true"}), node("b")

    assert backends_of([young, old], Cloud(), RULES).nodes == ()


EXCLUDED = {EXCLUDE_LABEL: "true"}


@pytest.mark.parametrize(
    ("nodes", "removed"),
    [
        ([node("n1", labels=EXCLUDED), node("n2", labels=EXCLUDED)], []),
        ([node("n1", labels=EXCLUDED), node("n2")], ["n1"]),
        ([node("n1", labels=EXCLUDED)], ["n2"]),
        ([node("n1", labels=EXCLUDED), node("n2", labels=EXCLUDED), node("n3")], ["n1", "n2"]),
        ([], ["n1", "n2"]),
    ],
)
@pytest.mark.parametrize("annotations", [{}, {"bad": "x"}])
def test_a_label_alone_does_not_take_the_last_members_out(
    nodes: list[Object], removed: list[str], annotations: dict[str, str]
) -> None:
    """On a load balancer whose members are n1 and n2, whether or not its Service has a fault."""
    both = Builder().build(web(), backends(node("n1"), node("n2")), None).model

    plan = planned(web(annotations=annotations), replace(existing(web()), model=both), nodes=nodes)

    operations = [action.operation for action in plan.changes]
    left = [each.address for gone in operations if isinstance(gone, RemoveMembers) for each in gone.members]
    assert left == removed


def test_that_a_label_leaves_only_what_serves_already_is_said_and_needs_attention() -> None:
    service = web(ingress=INGRESS)

    found = plan_service(service, [existing(service)], backends(node("n1", labels=EXCLUDED)), Builder(), None, RULES)

    assert found.attention is Attention.EXCLUDED
    assert found.keeps is not None and found.keeps.startswith("without n1, excluded by label")


def test_a_new_load_balancer_gets_no_excluded_nodes() -> None:
    (created,) = [
        action.operation
        for action in planned(web(), nodes=[node("n1", labels=EXCLUDED)]).changes
        if isinstance(action.operation, CreateLoadBalancer)
    ]

    assert created.model.pools[0].members == ()


UNREADY = node("unready", ready="Unknown")
CORDONED = node("cordoned", unschedulable=True)
CONTROL_PLANE = node("control-plane", labels={"node-role.kubernetes.io/control-plane": ""})
WORKER = node("worker")


def test_neither_readiness_nor_cordon_nor_role_matter_as_upstream() -> None:
    names = [each.node for each in backends(WORKER, UNREADY, CORDONED, CONTROL_PLANE).nodes]

    assert names == ["control-plane", "cordoned", "unready", "worker"]


def test_an_option_brings_the_older_rule_back() -> None:
    rules = Rules("c-1", backend_nodes="ready-workers")

    found = backends_of([UNREADY, CORDONED, CONTROL_PLANE, WORKER], Builder(), rules)

    assert [each.node for each in found.nodes] == ["worker"]


# ------------------------------------------------------------------------------------------------------ all together


def test_the_plan_of_all_services_is_in_order_and_one_with_a_fault_does_not_stop_the_others() -> None:
    services = [web(name="c", uid="3"), web(name="b", uid="2", annotations={"bad": "x"}), web(name="a", uid="1")]

    plan = all_planned(services)

    assert [(action.kind, action.target) for action in plan] == [
        (ActionKind.CREATE, "service/default/a"),
        (ActionKind.IGNORE, "service/default/b"),
        (ActionKind.CREATE, "service/default/c"),
    ]
    assert "annotation bad: 'x' is not a valid value (allowed: y)" in str(plan)


def test_a_load_balancer_whose_service_is_gone_is_deleted() -> None:
    gone = web(name="gone", uid="uid-9")

    (action,) = all_planned([], [existing(gone)])

    assert (action.kind, action.target) == (ActionKind.DELETE, "service/default/gone")
    assert action.operation == DeleteLoadBalancer("lb-1")


def test_two_services_whose_load_balancers_have_one_name_keep_each_their_own() -> None:
    first, second = web(name="c", uid="1", ingress=INGRESS), web(name="b-c", uid="2", ingress=INGRESS)
    first["metadata"]["namespace"], second["metadata"]["namespace"] = "a-b", "a"
    assert owner_of(first).load_balancer_name == owner_of(second).load_balancer_name

    assert len(all_planned([first, second], [existing(first, "lb-1"), existing(second, "lb-2")])) == 0


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"kubernetes.io/cluster": "c-1"},
        {"kubernetes.io/cluster": "c-2", "kubernetes.io/service-uid": "u", "kubernetes.io/service": "default/web"},
    ],
)
def test_load_balancers_without_this_clusters_tags_are_never_in_a_plan(tags: dict[str, str]) -> None:
    foreign = ObservedLoadBalancer("lb-9", LoadBalancerState.READY, LoadBalancerModel("web", tags=tags))

    assert len(all_planned([], [foreign])) == 0


def test_a_load_balancer_that_names_no_service_is_its_uids_and_stays_where_nobody_has_that_uid() -> None:
    lb = existing(web(ingress=INGRESS))
    nameless = replace(lb, model=replace(lb.model, tags={k: v for k, v in lb.model.tags.items() if k != SERVICE_TAG}))

    (named_again,) = all_planned([web(ingress=INGRESS)], [nameless])
    assert (named_again.kind, named_again.target) == (ActionKind.UPDATE, "service/default/web")
    assert [change.field for change in named_again.changes] == [f"tags.{SERVICE_TAG}"]

    (left,) = all_planned([], [nameless])
    assert (left.kind, left.summary) == (ActionKind.IGNORE, "keep load balancer lb-1")
