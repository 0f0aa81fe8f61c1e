"""Rule `rbac-role-avoid-wildcards`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import EXEMPT, of, resource

RULE = "rbac-role-avoid-wildcards"
GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
NARROW = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}


def role(*rules: Any, name: str = "reader", kind: str = "ClusterRole", **more: Any) -> AnalyzedResource:
    metadata = {"name": name, "namespace": "kube-system"}
    return resource(f"{GROUP}:{kind}", {"metadata": metadata, "rules": [*rules], **more}, name)


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
@pytest.mark.parametrize(
    ("rule", "granted"),
    [
        ({**NARROW, "verbs": ["*"]}, "verbs *"),
        ({**NARROW, "resources": ["nodes", "*"]}, "resources *"),
        ({**NARROW, "resources": ["*/scale"]}, "resources */scale"),
        (
            {**NARROW, "resources": ["pods", "pods/*"]},
            "resources pods/* (which Kubernetes does not take for a wildcard)",
        ),
        ({**NARROW, "apiGroups": ["*"]}, "apiGroups *"),
        ({"nonResourceURLs": ["*"], "verbs": ["get"]}, "nonResourceURLs *"),
        ({"nonResourceURLs": ["/*"], "verbs": ["get"]}, "nonResourceURLs /*"),
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, "apiGroups *, resources *, verbs *"),
    ],
)
def test_a_wildcard_in_a_role_is_reported_with_its_rule(
    pack: PolicyHost, kind: str, rule: PropertyMap, granted: str
) -> None:
    [finding] = pack.analyze(role(NARROW, rule, kind=kind))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert finding.message == f"rules[1] grants {granted}"


def test_all_wildcards_of_a_role_are_reported_in_one_violation(pack: PolicyHost) -> None:
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


AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({}, "cluster-admin too, which grants everything"),
        ({"matchLabels": {}}, "cluster-admin too, which grants everything"),
        (
            {"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
            "cluster-admin too, which grants everything",
        ),
        (
            {"matchExpressions": [{"key": "kubernetes.io/bootstrapping", "operator": "Exists"}]},
            "cluster-admin too, which grants everything",
        ),
        (
            {"matchExpressions": [{"key": "example.com/off", "operator": "NotIn", "values": ["true"]}]},
            "cluster-admin too, which grants everything",
        ),
        (
            {"matchExpressions": [{"key": "example.com/off", "operator": "DoesNotExist"}]},
            "cluster-admin too, which grants everything",
        ),
        ({"matchLabels": {f"{AGGREGATE}admin": "true"}}, "system:aggregate-to-admin too, which changes roles"),
        (
            {"matchExpressions": [{"key": f"{AGGREGATE}edit", "operator": "In", "values": ["true"]}]},
            "system:aggregate-to-edit too, which reads every Secret",
        ),
    ],
)
def test_an_aggregated_role_that_takes_in_a_broad_role_of_kubernetes_own_is_reported(
    pack: PolicyHost, selector: PropertyMap, said: str
) -> None:
    ours = {"matchLabels": {"example.com/aggregate": "true"}}

    [finding] = pack.analyze(role(aggregationRule={"clusterRoleSelectors": [ours, selector]}))

    assert finding.message == f"aggregationRule.clusterRoleSelectors[1] selects {said}"


@pytest.mark.parametrize(
    "selectors",
    [
        [],
        [{"matchLabels": {"example.com/aggregate": "true"}}],
        [{"matchLabels": {f"{AGGREGATE}view": "true"}}],
        [{"matchExpressions": [{"key": "a"}]}],
        [{"matchExpressions": [{"key": "example.com/aggregate", "operator": "Exists"}]}],
        [
            {
                "matchExpressions": [
                    {"key": "kubernetes.io/bootstrapping", "operator": "NotIn", "values": ["rbac-defaults"]}
                ]
            }
        ],
    ],
)
def test_an_aggregated_role_of_own_roles_passes(pack: PolicyHost, selectors: list[PropertyMap]) -> None:
    assert pack.analyze(role(aggregationRule={"clusterRoleSelectors": selectors})) == []


@pytest.mark.parametrize(
    "unknown",
    [
        resource(f"{GROUP}:Role", {"rules": UNKNOWN}),
        role(UNKNOWN),
        role({**NARROW, "verbs": UNKNOWN}),
        role({**NARROW, "verbs": ["get", UNKNOWN]}),
        role(aggregationRule={"clusterRoleSelectors": [UNKNOWN]}),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
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


def test_a_wildcard_is_reported_beside_an_unknown_rule(pack: PolicyHost) -> None:
    assert sorted(of(pack.analyze(role(UNKNOWN, {**NARROW, "verbs": ["*"]})), RULE)) == ["advisory", "not-evaluated"]


def test_an_exempt_role_with_unknown_values_is_left_alone(pack: PolicyHost) -> None:
    assert pack.analyze(role(UNKNOWN, name=EXEMPT)) == []
