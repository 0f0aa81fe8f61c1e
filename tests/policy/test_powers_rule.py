"""Rule `rbac-role-avoid-powers`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import of, resource

RULE = "rbac-role-avoid-powers"
GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
NARROW = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}


def role(*rules: Any, name: str = "r", kind: str = "ClusterRole") -> AnalyzedResource:
    return resource(
        f"{GROUP}:{kind}", {"metadata": {"name": name, "namespace": "kube-system"}, "rules": [*rules]}, name
    )


def rule(group: str, resource: str, *verbs: str, **more: Any) -> PropertyMap:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs], **more}


@pytest.mark.parametrize("kind", ["ClusterRole", "Role", "ClusterRolePatch"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (rule("", "secrets", "get"), "get of secrets, enough to read every Secret"),
        (rule("", "secrets", "list"), "list of secrets, enough to read every Secret"),
        (rule("", "secrets", "watch"), "watch of secrets, enough to read every Secret"),
        (rule("", "secrets", "list", resourceNames=["", "a"]), "list of secrets, enough to read every Secret"),
        (
            rule("", "secrets", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
            "get, list, watch of secrets, enough to read every Secret",
        ),
        (
            rule("", "serviceaccounts/token", "create"),
            "create of serviceaccounts/token, enough to become any ServiceAccount",
        ),
        (rule(RBAC, "clusterroles", "escalate"), "escalate of clusterroles, enough to take any right"),
        (rule(RBAC, "roles", "bind"), "bind of roles, enough to take any role"),
        (rule("", "users", "impersonate"), "impersonate of users, enough to act as others"),
        (rule("", "groups", "impersonate"), "impersonate of groups, enough to act as others"),
        (rule("", "serviceaccounts", "impersonate"), "impersonate of serviceaccounts, enough to act as others"),
        (rule("", "pods/exec", "create"), "create of pods/exec, enough to run commands in other pods"),
        (rule("", "pods/attach", "get"), "get of pods/attach, enough to run commands in other pods"),
        (
            rule("", "pods/ephemeralcontainers", "patch"),
            "patch of pods/ephemeralcontainers, enough to run commands in other pods",
        ),
        (rule("", "nodes/proxy", "get"), "get of nodes/proxy, enough to run commands in every pod of a node"),
        (
            rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
            "update of certificatesigningrequests/approval, enough to approve anyone's certificate",
        ),
        (
            rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch"),
            "patch of mutatingwebhookconfigurations, enough to see and change every object that is written",
        ),
    ],
)
def test_a_right_that_leads_to_more_is_reported_with_what_it_is_enough_for(
    pack: PolicyHost, kind: str, wrong: PropertyMap, said: str
) -> None:
    [finding] = pack.analyze(role(NARROW, wrong, kind=kind))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "high")
    assert finding.message == f"rules[1] grants {said}"


def test_all_powers_of_a_rule_are_reported_by_resource(pack: PolicyHost) -> None:
    both = {"apiGroups": [""], "resources": ["secrets", "pods/exec"], "verbs": ["get", "list"]}

    [finding] = pack.analyze(role(both))

    assert finding.message == (
        "rules[0] grants get, list of secrets, enough to read every Secret and get of pods/exec, enough to run "
        "commands in other pods"
    )


@pytest.mark.parametrize(
    "fine",
    [
        rule("", "secrets", "get", resourceNames=["ours"]),
        rule("", "secrets", "create", "update"),
        rule("", "serviceaccounts/token", "create", resourceNames=["ours"]),
        rule(RBAC, "clusterroles", "bind", resourceNames=["ours"]),
        rule(RBAC, "clusterroles", "get", "list", "create"),
        rule("example.com", "secrets", "get"),
        rule("", "pods", "create"),
        rule("", "nodes", "get"),
    ],
)
def test_rights_to_named_objects_and_harmless_ones_pass(pack: PolicyHost, fine: PropertyMap) -> None:
    assert of(pack.analyze(role(fine)), RULE) == []


def test_escalate_is_a_power_even_for_a_named_role(pack: PolicyHost) -> None:
    assert of(pack.analyze(role(rule(RBAC, "clusterroles", "escalate", resourceNames=["x"]))), RULE) == ["advisory"]


def test_a_wildcard_is_another_rules_business(pack: PolicyHost) -> None:
    assert of(pack.analyze(role(rule("", "secrets", "*"))), RULE) == []


@pytest.mark.parametrize(
    "unknown",
    [
        UNKNOWN,
        {**NARROW, "verbs": ["list", UNKNOWN]},
        {**NARROW, "resources": UNKNOWN},
        {**NARROW, "apiGroups": [UNKNOWN]},
        rule("", "secrets", "get", resourceNames=UNKNOWN),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(pack: PolicyHost, unknown: Any) -> None:
    assert of(pack.analyze(role(unknown)), RULE) == ["not-evaluated"]


@pytest.mark.parametrize("field", ["apiGroups", "resources", "verbs"])
def test_a_power_counts_beside_an_unknown_group_resource_or_verb(pack: PolicyHost, field: str) -> None:
    whole = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    mixed = {**whole, field: [*whole[field], UNKNOWN]}

    assert of(pack.analyze(role(mixed)), RULE) == ["advisory"]
