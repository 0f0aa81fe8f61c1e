"""Rule `rbac-role-avoid-wildcards`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller import rbac
from cloud_controller.controller_names import NAMES
from local.engine.policies.host import AnalyzedResource, PolicyHost
from local.engine.values import UNKNOWN, PropertyMap
from tests.policy_objects import EXEMPT, of, resource

RULE = "rbac-role-avoid-wildcards"
GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
NARROW = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}


def role(*rules: Any, name: str = "reader", kind: str = "ClusterRole", **more: Any) -> AnalyzedResource:
    metadata = {"name": name, "namespace": "kube-system"}
    return resource(f"{GROUP}:{kind}", {"metadata": metadata, "rules": [*rules], **more}, name)


def binding(role_name: Any, kind: str = "ClusterRole", of_kind: str = "ClusterRoleBinding") -> AnalyzedResource:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name}
    return resource(f"{GROUP}:{of_kind}", {"metadata": {"name": "b"}, "roleRef": reference}, "b")


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
@pytest.mark.parametrize(
    ("rule", "granted"),
    [
        ({**NARROW, "verbs": ["*"]}, "verbs *"),
        ({**NARROW, "resources": ["nodes", "*"]}, "resources *"),
        ({**NARROW, "resources": ["*/scale"]}, "resources */scale"),
        ({**NARROW, "apiGroups": ["*"]}, "apiGroups *"),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, "nonResourceURLs *"),
        ({"nonResourceURLs": ["/*"], "verbs": ["get"]}, "nonResourceURLs /*"),
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, "apiGroups *, resources *, verbs *"),
    ],
)
def test_a_wildcard_is_reported_with_its_place(pack: PolicyHost, kind: str, rule: PropertyMap, granted: str) -> None:
    [finding] = pack.analyze(role(NARROW, rule, kind=kind))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert finding.message == f"rules[1] grants {granted}"


def test_each_rule_with_a_wildcard_is_told_in_one_finding(pack: PolicyHost) -> None:
    wild = {**NARROW, "verbs": ["*"]}

    [finding] = pack.analyze(role(wild, NARROW, wild))

    assert finding.message == "rules[0] grants verbs *; rules[2] grants verbs *"


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [NARROW],
        [{}],
        [{"nonResourceURLs": ["/healthz/*", "/metrics"], "verbs": ["get"]}],
        [{**NARROW, "resourceNames": ["*"]}],
    ],
)
def test_roles_that_name_what_they_grant_pass(pack: PolicyHost, rules: list[PropertyMap]) -> None:
    assert pack.analyze(role(*rules)) == []


def test_the_rights_of_this_projects_own_ccm_pass_with_all_of_its_controllers(pack: PolicyHost) -> None:
    rules = rbac.rules(NAMES, protected=True)
    as_inputs = [
        {"apiGroups": [*rule.api_groups], "resources": [*rule.resources], "verbs": [*rule.verbs]}
        for rule in (*rules.cluster, *rules.namespaced)
    ]

    assert as_inputs
    assert pack.analyze(role(*as_inputs)) == []


@pytest.mark.parametrize(
    "selector", [{}, {"matchLabels": {}}, {"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]
)
def test_an_aggregated_role_that_takes_in_cluster_admin_is_reported(pack: PolicyHost, selector: PropertyMap) -> None:
    ours = {"matchLabels": {"example.com/aggregate": "true"}}

    [finding] = pack.analyze(role(aggregationRule={"clusterRoleSelectors": [ours, selector]}))

    assert finding.message == (
        "aggregationRule.clusterRoleSelectors[1] selects cluster-admin too, which grants everything"
    )


@pytest.mark.parametrize(
    "selectors", [[], [{"matchLabels": {"example.com/aggregate": "true"}}], [{"matchExpressions": [{"key": "a"}]}]]
)
def test_an_aggregated_role_of_roles_of_ones_own_passes(pack: PolicyHost, selectors: list[PropertyMap]) -> None:
    assert pack.analyze(role(aggregationRule={"clusterRoleSelectors": selectors})) == []


@pytest.mark.parametrize("of_kind", ["ClusterRoleBinding", "RoleBinding"])
def test_a_binding_to_cluster_admin_is_reported(pack: PolicyHost, of_kind: str) -> None:
    [finding] = pack.analyze(binding("cluster-admin", of_kind=of_kind))

    assert finding.message == "binds cluster-admin, which grants everything"


def test_bindings_to_other_roles_pass(pack: PolicyHost) -> None:
    assert pack.analyze(binding("view")) == []
    assert pack.analyze(binding("cluster-admin", kind="Role", of_kind="RoleBinding")) == []


def test_an_exempt_role_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(role({**NARROW, "verbs": ["*"]}, name=EXEMPT)) == []


@pytest.mark.parametrize(
    "unknown",
    [
        resource(f"{GROUP}:Role", {"rules": UNKNOWN}),
        role(UNKNOWN),
        role({**NARROW, "verbs": UNKNOWN}),
        role({**NARROW, "verbs": ["get", UNKNOWN]}),
        role(aggregationRule={"clusterRoleSelectors": [UNKNOWN]}),
        binding(UNKNOWN),
    ],
)
def test_what_hangs_on_an_unknown_value_is_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


@pytest.mark.parametrize(
    "known",
    [
        role({**NARROW, "verbs": [UNKNOWN, "*"]}),
        role({"apiGroups": UNKNOWN, "resources": ["*"], "verbs": ["get"]}),
    ],
)
def test_a_wildcard_counts_beside_an_unknown_value(pack: PolicyHost, known: AnalyzedResource) -> None:
    assert of(pack.analyze(known), RULE) == ["advisory"]


def test_a_role_is_judged_whatever_another_rule_of_it_hides(pack: PolicyHost) -> None:
    assert sorted(of(pack.analyze(role(UNKNOWN, {**NARROW, "verbs": ["*"]})), RULE)) == ["advisory", "not-evaluated"]


def test_an_exempt_role_is_left_alone_whatever_is_unknown(pack: PolicyHost) -> None:
    assert pack.analyze(role(UNKNOWN, name=EXEMPT)) == []
