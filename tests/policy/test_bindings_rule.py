"""Rule `rbac-binding-avoid-broad-roles`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, Finding, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import of, resource

RULE = "rbac-binding-avoid-broad-roles"
GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
PROGRAM = {"kind": "ServiceAccount", "name": "ccm", "namespace": "kube-system"}
PERSON = {"kind": "User", "name": "alice"}
TEAM = {"kind": "Group", "name": "platform"}


def binding(
    role: Any,
    *subjects: Any,
    kind: str = "ClusterRoleBinding",
    of_kind: str = "ClusterRole",
    name: str = "b",
) -> AnalyzedResource:
    props = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": of_kind, "name": role},
        "subjects": [*subjects] or [PROGRAM],
    }
    return resource(f"{GROUP}:{kind}", props, name)


def found(pack: PolicyHost, *resources: AnalyzedResource) -> list[Finding]:
    return [finding for finding in pack.analyze_stack([*resources]) if finding.policy == RULE]


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "RoleBinding", "RoleBindingPatch"])
@pytest.mark.parametrize("subject", [PROGRAM, PERSON, TEAM])
def test_a_binding_to_cluster_admin_is_reported(pack: PolicyHost, kind: str, subject: PropertyMap) -> None:
    [finding] = found(pack, binding("cluster-admin", subject, kind=kind))

    assert (finding.level, finding.severity) == ("advisory", "high")
    assert finding.message == "binds cluster-admin, which grants everything"


@pytest.mark.parametrize("role", ["admin", "edit"])
@pytest.mark.parametrize("subject", [PROGRAM, PERSON, TEAM])
def test_a_role_that_reads_every_secret_is_reported_in_the_whole_cluster(
    pack: PolicyHost, role: str, subject: PropertyMap
) -> None:
    [finding] = found(pack, binding(role, subject))

    assert finding.message == f"binds {role}, which reads every Secret of the cluster"


@pytest.mark.parametrize(
    "subject",
    [
        PROGRAM,
        {"kind": "User", "name": "system:serviceaccount:a:b"},
        {"kind": "Group", "name": "system:serviceaccounts:a"},
    ],
)
def test_a_role_that_reads_every_secret_of_a_namespace_is_reported_for_programs(
    pack: PolicyHost, subject: PropertyMap
) -> None:
    [finding] = found(pack, binding("admin", PERSON, subject, kind="RoleBinding"))

    assert finding.message == "binds admin, which reads every Secret of its namespace"


@pytest.mark.parametrize(
    "role", ["system:kube-controller-manager", "system:controller:clusterrole-aggregation-controller", "system:node"]
)
def test_a_role_of_kubernetes_own_components_is_reported(pack: PolicyHost, role: str) -> None:
    [finding] = found(pack, binding(role))

    assert finding.message == f"binds {role}, which is for Kubernetes' own components"


@pytest.mark.parametrize(
    "name", ["system:anonymous", "system:unauthenticated", "system:authenticated", "system:serviceaccounts"]
)
def test_a_binding_for_everyone_is_reported(pack: PolicyHost, name: str) -> None:
    [finding] = found(pack, binding("reader", PROGRAM, {"kind": "Group", "name": name}))

    assert finding.message == f"binds reader to {name}"


@pytest.mark.parametrize(
    "fine",
    [
        binding("view"),
        binding("view", TEAM),
        binding("edit", TEAM, PERSON, kind="RoleBinding"),
        binding("system:auth-delegator"),
        binding("system:discovery", {"kind": "Group", "name": "system:authenticated"}),
        binding("extension-apiserver-authentication-reader", kind="RoleBinding", of_kind="Role"),
        binding("cluster-admin", kind="RoleBinding", of_kind="Role"),
    ],
)
def test_roles_that_are_made_to_be_bound_pass(pack: PolicyHost, fine: AnalyzedResource) -> None:
    assert found(pack, fine) == []


def test_a_role_that_the_stack_makes_is_judged_by_what_it_grants(pack: PolicyHost) -> None:
    role = resource(f"{GROUP}:ClusterRole", {"metadata": {"name": "system:cloud-controller-manager"}, "rules": []})

    assert found(pack, role, binding("system:cloud-controller-manager")) == []
    assert found(pack, binding("system:cloud-controller-manager")) != []


@pytest.mark.parametrize("kind", ["Role", "ClusterRolePatch"])
def test_neither_a_namespaces_role_nor_a_patch_makes_the_role_of_this_name(pack: PolicyHost, kind: str) -> None:
    other = resource(f"{GROUP}:{kind}", {"metadata": {"name": "edit", "namespace": "shop"}, "rules": []})

    assert found(pack, other, binding("edit")) != []


@pytest.mark.parametrize(
    "unknown",
    [
        binding(UNKNOWN),
        binding("reader", UNKNOWN),
        binding("reader", {"kind": "Group", "name": UNKNOWN}),
        binding("edit", {"kind": UNKNOWN, "name": "x"}, kind="RoleBinding"),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([unknown]), RULE) == ["not-evaluated"]


def test_a_broad_role_is_reported_beside_an_unknown_subject(pack: PolicyHost) -> None:
    findings = of(pack.analyze_stack([binding("cluster-admin", UNKNOWN)]), RULE)

    assert sorted(findings) == ["advisory", "not-evaluated"]
