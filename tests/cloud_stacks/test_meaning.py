"""What changes mean: load balancers and addresses, rights, what costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller import clouds
from cloud_stacks import costs, rights
from cloud_stacks.comparison import report
from cloud_stacks.costs import Cost
from cloud_stacks.effects import Kind, effects_of
from cloud_stacks.outcome import Finding, Outcome, Problem, Resource
from cloud_stacks.rights import Grant

URN = "urn:pulumi:dev::shop::"
DLB = "service.beta.kubernetes.io/dlb-"


def changed(kind: str, before: Any, after: Any, op: str = "update", name: str = "x") -> Resource:
    return Resource(op, f"{URN}{kind}::{name}", before, after)


def service(load_balancer_class: str | None = None, **annotations: str) -> dict[str, Any]:
    spec = {"type": "LoadBalancer"} | ({"loadBalancerClass": load_balancer_class} if load_balancer_class else {})
    return {"metadata": {"annotations": annotations}, "spec": spec}


def kinds(before: Any, after: Any, op: str = "update", cloud: str = "mycloud") -> list[tuple[Kind, str]]:
    resource = changed("kubernetes:core/v1:Service", before, after, op)
    found = effects_of(resource, clouds.descriptor(cloud).catalogue if cloud else None)
    return [(effect.kind, effect.cause) for effect in found]


def test_an_annotation_does_what_the_catalogue_says() -> None:
    scheme, timeout = f"{DLB}scheme", f"{DLB}listener-idle-timeout"

    assert kinds(service(), service(**{scheme: "internal", timeout: "30"})) == [
        (Kind.IN_PLACE, timeout),
        (Kind.ADDRESS, scheme),
    ]


def test_a_change_in_place_that_takes_an_address_away_counts_as_one_of_the_address() -> None:
    name = "service.beta.kubernetes.io/openstack-internal-load-balancer"
    resource = changed("kubernetes:core/v1:Service", service(), service(**{name: "true"}))

    [effect] = effects_of(resource, clouds.descriptor("openstack").catalogue)

    assert (effect.kind, effect.cause) == (Kind.ADDRESS, name)
    assert effect.text == "clients may reach it only at other addresses then"


def test_the_default_written_out_replaces_nothing() -> None:
    scheme = f"{DLB}scheme"

    assert kinds(service(), service(**{scheme: "internet-facing"})) == [(Kind.IN_PLACE, scheme)]


def test_another_clouds_annotation_is_ignored() -> None:
    assert kinds(service(), service(**{f"{DLB}scheme": "internal"}), cloud="aws") == [(Kind.IGNORED, f"{DLB}scheme")]


def test_an_annotation_that_the_controller_refuses_is_reported_in_its_words() -> None:
    [(kind, cause)] = kinds({}, service(**{f"{DLB}scheme": "public"}), "create")[:1]

    assert kind is Kind.REFUSED and "internet-facing, internal" in cause


@pytest.mark.parametrize(
    ("before", "after", "op", "kind"),
    [
        ({}, service(), "create", Kind.NEW),
        (service(), {}, "delete", Kind.GONE),
        (service(), {"spec": {"type": "ClusterIP"}}, "update", Kind.GONE),
        ({"spec": {"type": "ClusterIP"}}, service(), "update", Kind.NEW),
        (service(), service("mycloud.io/load-balancer"), "replace", Kind.ADDRESS),
        (service(), service(other="label"), "update", Kind.IN_PLACE),
    ],
)
def test_the_operation_says_what_becomes_of_the_address(before: Any, after: Any, op: str, kind: Kind) -> None:
    assert [found for found, _ in kinds(before, after, op)] == [kind]


@pytest.mark.parametrize("op", ["create", "update", "replace"])
def test_a_service_whose_cloud_nothing_shows_is_reported_as_not_judged(op: str) -> None:
    [found, *_] = kinds(service(), service(**{f"{DLB}scheme": "public"}), op, cloud="")

    assert found == (Kind.UNJUDGED, "")


def test_a_new_service_without_annotations_leaves_nothing_to_judge() -> None:
    assert kinds({}, service(), "create", cloud="") == [(Kind.NEW, "")]


@pytest.mark.parametrize("hidden", ["[unknown]", "[secret]"])
def test_an_annotation_that_nobody_sees_may_cost_the_address(hidden: str) -> None:
    name = f"{DLB}scheme"
    before = service(**{name: hidden if hidden == "[secret]" else "internal"})
    resource = Resource(
        "update", f"{URN}kubernetes:core/v1:Service::x", before, service(**{name: hidden}), (), (f'metadata["{name}"]',)
    )
    differing = replace(resource, differing=(f'metadata.annotations["{name}"]',))

    [effect] = effects_of(differing, clouds.descriptor("mycloud").catalogue)

    assert (effect.kind, effect.cause) == (Kind.ADDRESS, name)
    assert effect.text == "another address may replace the old one: the value is not shown here"


def test_only_values_that_nobody_sees_are_left_out_of_what_the_controller_refuses() -> None:
    [refused, _] = kinds({}, service(**{f"{DLB}scheme": "[internal]"}), "create")
    [new] = kinds({}, service(**{f"{DLB}scheme": "[unknown]"}), "create")

    assert (refused[0], new[0]) == (Kind.REFUSED, Kind.NEW)


def test_a_service_that_a_destroy_leaves_keeps_its_address() -> None:
    resource = Resource("delete", f"{URN}kubernetes:core/v1:Service::x", service(), {}, retained=True)

    [effect] = effects_of(resource)

    assert (effect.kind, effect.text) == (Kind.IN_PLACE, "it stays as it is, and no stack manages it any more")


@pytest.mark.parametrize("hidden", ["[unknown]", "[secret]"])
@pytest.mark.parametrize("key", ["metadata", "spec"])
def test_a_service_of_which_a_part_is_hidden_is_reported(hidden: str, key: str) -> None:
    seen = service()

    found = report(Outcome("dev", (changed("kubernetes:core/v1:Service", {**seen, key: hidden}, seen),), (), ()))

    assert found.counts == {"update": 1}


@pytest.mark.parametrize("spec", ["[secret]", {"type": "[unknown]"}])
def test_what_becomes_of_a_service_whose_type_is_hidden_is_not_said(spec: Any) -> None:
    assert kinds(service(), {**service(), "spec": spec}) == []
    assert kinds({**service(), "spec": spec}, service()) == []


def test_rights_of_a_role_are_compared_by_verb_and_resource() -> None:
    def role(verbs: list[str]) -> dict[str, Any]:
        return {"metadata": {"name": "ccm"}, "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}]}

    kind = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"

    gained, lost = rights.changes([changed(kind, role(["get", "patch"]), role(["get", "delete"]))])

    assert gained == [Grant("ClusterRole ccm", "nodes", ("delete",))]
    assert lost == [Grant("ClusterRole ccm", "nodes", ("patch",))]
    wide, none = rights.changes([changed(kind, role(["get", "patch"]), role(["*"]))])
    assert wide == [Grant("ClusterRole ccm", "nodes", ("*",))] and none == []


def test_roles_of_the_same_name_in_two_namespaces_are_two() -> None:
    def role(namespace: str, *verbs: str) -> dict[str, Any]:
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": [*verbs]}]
        return {"metadata": {"name": "reader", "namespace": namespace}, "rules": rules}

    kind = "kubernetes:rbac.authorization.k8s.io/v1:Role"

    gained, lost = rights.changes(
        [
            changed(kind, role("shop", "get"), role("shop"), name="a"),
            changed(kind, role("kube-system"), role("kube-system", "get"), name="b"),
        ]
    )

    assert gained == [Grant("Role kube-system/reader", "secrets", ("get",))]
    assert lost == [Grant("Role shop/reader", "secrets", ("get",))]


@pytest.mark.parametrize("hidden", ["[unknown]", "[secret]"])
def test_rights_that_are_hidden_are_named_as_such(hidden: str) -> None:
    rbac = "kubernetes:rbac.authorization.k8s.io/v1:"
    role = {"rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": hidden}]}
    binding = {"roleRef": {"kind": "ClusterRole", "name": "ccm"}, "subjects": hidden}

    gained, _ = rights.changes(
        [
            changed(f"{rbac}ClusterRole", {}, role, "create"),
            changed(f"{rbac}ClusterRoleBinding", {}, binding, "create"),
            changed(f"{rbac}ClusterRoleBinding", {}, {**binding, "subjects": [hidden], "metadata": hidden}, "create"),
            changed(f"{rbac}ClusterRoleBinding", {}, {**binding, "subjects": [None]}, "create"),
        ]
    )

    assert gained == [
        Grant("ClusterRole x", "nodes", (hidden,)),
        Grant("None", "the cluster", ("ClusterRole ccm",)),
        Grant(hidden, "the cluster", ("ClusterRole ccm",)),
    ]


def test_a_binding_gives_its_subjects_the_role() -> None:
    after = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "ccm"}],
    }

    gained, _ = rights.changes([changed("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", {}, after)])

    assert gained == [Grant("ServiceAccount kube-system/ccm", "the cluster", ("ClusterRole cluster-admin",))]


@pytest.mark.parametrize(
    ("kind", "key"), [("aws:iam/policy:Policy", "policy"), ("alicloud:ram/policy:Policy", "policyDocument")]
)
def test_rights_of_a_clouds_policy_are_compared_by_operation(kind: str, key: str) -> None:
    def policy(actions: list[str], resource: str = "*") -> dict[str, str]:
        statement = {"Effect": "Allow", "Action": actions, "Resource": resource}
        return {key: json.dumps({"Statement": statement})}

    gained, lost = rights.changes([changed(kind, policy(["a:Get", "a:Put"]), policy(["a:Get", "a:Delete"]))])

    assert gained == [Grant("Policy x", "*", ("a:Delete",))]
    assert lost == [Grant("Policy x", "*", ("a:Put",))]


def test_a_wildcard_of_a_clouds_policy_includes_the_operations_but_no_denial() -> None:
    def policy(*statements: tuple[str, str]) -> dict[str, str]:
        said = [{"Effect": effect, "Action": action, "Resource": "*"} for effect, action in statements]
        return {"policy": json.dumps({"Statement": said})}

    kind = "aws:iam/policy:Policy"
    one, all_of, denied = policy(("Allow", "a:Get")), policy(("Allow", "a:*")), ("Deny", "a:Put")

    assert rights.changes([changed(kind, one, all_of)]) == ([Grant("Policy x", "*", ("a:*",))], [])
    assert rights.changes([changed(kind, policy(("Allow", "*"), denied), policy(("Allow", "*")))]) == (
        [],
        [Grant("Policy x", "*", ("deny a:Put",))],
    )


def test_all_but_a_wildcard_includes_not_all_but_one_of_it() -> None:
    def policy(**said: str) -> dict[str, str]:
        return {"policy": json.dumps({"Statement": {"Effect": "Allow", "Resource": "*", **said}})}

    kind = "aws:iam/policy:Policy"

    gained, _ = rights.changes([changed(kind, policy(NotAction="a:Get*"), policy(NotAction="a:GetAll"))])

    assert gained == [Grant("Policy x", "*", ("everything but a:GetAll",))]


@pytest.mark.parametrize("document", ["[unknown]", '{"Statement": "[unknown]"}', '{"Statement": ["[unknown]"]}'])
def test_a_policy_that_is_not_known_before_the_update_is_named(document: str) -> None:
    gained, _ = rights.changes([changed("aws:iam/policy:Policy", {}, {"policy": document}, "create")])

    assert gained == [Grant("Policy x", "[unknown]", ("[unknown]",))]


def test_what_costs_is_counted_by_kind_and_size_over_the_whole_stack() -> None:
    pool = "aws:eks/nodeGroup:NodeGroup"
    three, five = ({"instanceTypes": ["m7g.large"], "scalingConfig": {"desiredSize": n}} for n in (3, 5))
    nat = "aws:ec2/natGateway:NatGateway"

    found = costs.changes(
        [
            changed(pool, three, three, "same", "a"),
            changed(pool, three, five, "update", "b"),
            changed(nat, {}, {}, "create"),
            changed("kubernetes:core/v1:Service", service(), {}, "delete"),
        ]
    )

    assert found == [
        Cost("NAT gateway", "", 0, 1),
        Cost("load balancer", "", 1, 0),
        Cost("node", "m7g.large", 6, 8),
    ]


def test_a_comparison_reports_only_what_the_change_brings_or_takes() -> None:
    old, kept, new = (Finding(name, "mandatory", "m", URN) for name in ("old", "kept", "new"))
    base = Outcome("dev", (), (old, kept), (Problem("error", "broken"),))

    found = report(Outcome("dev", (), (kept, new), ()), base)

    assert (found.findings, found.gone, found.kept, found.solved) == ((new,), (old,), 1, base.problems)
    assert found.failed
    assert not report(Outcome("dev", (), (kept,), ()), base).failed


def test_a_warning_is_left_out_only_where_an_effect_says_the_same() -> None:
    scheme, idle = f"{DLB}scheme", f"{DLB}listener-idle-timeout"
    resource = changed("kubernetes:core/v1:Service", service(), service(**{scheme: "internal", idle: "30"}))
    said = Problem("warning", f"a new load balancer replaces the old one: {scheme}: none -> 'internal'", resource.urn)
    other = Problem("warning", f"annotation {idle} will be removed", resource.urn)

    found = report(Outcome("dev", (resource,), (), (said, other)))

    assert found.problems == (other,)


def test_a_stack_that_neither_commit_can_plan_is_not_reported_as_unchanged() -> None:
    broken = Outcome("dev", (), (), (Problem("error", "broken"), Problem("warning", "old")))

    found = report(broken, broken)

    assert found.problems == (Problem("error", "broken"),) and found.failed and not found.is_quiet
