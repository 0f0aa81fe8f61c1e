"""What changes mean: load balancers and addresses, rights, what costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud_stacks import costs, rights
from cloud_stacks.comparison import report
from cloud_stacks.costs import Cost
from cloud_stacks.effects import Kind, effects_of
from cloud_stacks.outcome import Finding, Outcome, Problem, Resource
from cloud_stacks.rights import Grant

URN = "urn:pulumi:dev::shop::"
DLB = "service.beta.kubernetes.io/dlb-"
AWS = "service.beta.kubernetes.io/aws-load-balancer-"


def changed(kind: str, before: Any, after: Any, op: str = "update", name: str = "x") -> Resource:
    return Resource(op, f"{URN}{kind}::{name}", before, after)


def service(load_balancer_class: str | None = None, **annotations: str) -> dict[str, Any]:
    spec = {"type": "LoadBalancer"} | ({"loadBalancerClass": load_balancer_class} if load_balancer_class else {})
    return {"metadata": {"annotations": annotations}, "spec": spec}


def kinds(before: Any, after: Any, op: str = "update", cloud: str = "mycloud") -> list[tuple[Kind, str]]:
    found = effects_of(changed("kubernetes:core/v1:Service", before, after, op), cloud)
    return [(effect.kind, effect.cause) for effect in found]


def test_an_annotation_does_what_the_catalogue_says() -> None:
    scheme, timeout = f"{DLB}scheme", f"{DLB}listener-idle-timeout"

    assert kinds(service(), service(**{scheme: "internal", timeout: "30"})) == [
        (Kind.IN_PLACE, timeout),
        (Kind.ADDRESS, scheme),
    ]


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


def test_a_class_of_nobody_here_is_not_judged_by_annotations() -> None:
    before, after = service("example.com/x"), service("example.com/x", **{f"{DLB}scheme": "internal"})

    assert kinds(before, after) == [(Kind.IN_PLACE, "")]


def test_rights_of_a_role_are_compared_by_verb_and_resource() -> None:
    def role(verbs: list[str]) -> dict[str, Any]:
        return {"metadata": {"name": "ccm"}, "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}]}

    kind = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"

    gained, lost = rights.changes([changed(kind, role(["get", "patch"]), role(["get", "delete"]))])

    assert gained == [Grant("ClusterRole ccm", "nodes", ("delete",))]
    assert lost == [Grant("ClusterRole ccm", "nodes", ("patch",))]
    wide, none = rights.changes([changed(kind, role(["get", "patch"]), role(["*"]))])
    assert wide == [Grant("ClusterRole ccm", "nodes", ("*",))] and none == []


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


def test_a_policy_that_is_not_known_before_the_update_is_named() -> None:
    gained, _ = rights.changes([changed("aws:iam/policy:Policy", {}, {"policy": "[unknown]"}, "create")])

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


def test_a_stack_that_neither_commit_can_plan_is_not_reported_as_unchanged() -> None:
    broken = Outcome("dev", (), (), (Problem("error", "broken"), Problem("warning", "old")))

    found = report(broken, broken)

    assert found.problems == (Problem("error", "broken"),) and found.failed and not found.is_quiet
