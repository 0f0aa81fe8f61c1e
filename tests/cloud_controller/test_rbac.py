"""The daemon's rights are those of its controllers, and no more."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import NAMES
from cloud_controller.rbac import PolicyRule, rules


def verbs(*controllers: str) -> dict[str, set[str]]:
    return {rule.resources[0]: set(rule.verbs) for rule in rules(controllers).cluster}


def test_every_controller_may_watch_nodes_and_write_events_and_nothing_else() -> None:
    for name in NAMES:
        assert verbs(name)["nodes"] >= {"list", "watch"}
        assert verbs(name)["events"] == {"create", "patch"}


def test_the_service_controller_may_only_read_nodes() -> None:
    assert verbs("service")["nodes"] == {"list", "watch"}


@pytest.mark.parametrize("controllers", [["node"], ["route"], ["service"], ["node", "route", "service"]])
def test_only_the_node_lifecycle_controller_may_delete_nodes(controllers: list[str]) -> None:
    assert "delete" not in verbs(*controllers)["nodes"]
    assert "delete" in verbs(*controllers, "node-lifecycle")["nodes"]


def test_without_the_service_controller_no_rule_allows_services() -> None:
    assert "services" not in verbs("node", "node-lifecycle", "route")
    assert verbs("service")["services"] == {"get", "list", "watch", "patch"}


def test_the_route_controller_may_write_the_status_of_nodes_but_not_the_nodes() -> None:
    assert verbs("route") == {
        "namespaces": {"get"},
        "nodes": {"get", "list", "watch"},
        "nodes/status": {"patch"},
        "events": {"create", "patch"},
    }


def test_of_namespaces_only_the_one_that_identifies_the_cluster_may_be_read() -> None:
    assert PolicyRule(("",), ("namespaces",), ("get",), ("kube-system",)) in rules(["node"]).cluster
    assert sum("namespaces" in rule.resources for rule in rules(NAMES).cluster) == 1


def test_nothing_gives_access_to_secrets_or_to_everything() -> None:
    found = rules(NAMES)
    for rule in (*found.cluster, *found.namespaced):
        assert not {"secrets", "serviceaccounts", "*"} & {*rule.resources, *rule.verbs, *rule.api_groups}


def test_only_the_one_lease_may_be_read_and_written() -> None:
    assert rules(["node"]).namespaced == (
        PolicyRule(("coordination.k8s.io",), ("leases",), ("create",)),
        PolicyRule(("coordination.k8s.io",), ("leases",), ("get", "update"), ("cloud-controller-manager",)),
    )


def test_only_a_checkpoint_needs_rights_on_its_config_map() -> None:
    kept = rules(["service"], keeps_checkpoint=True).namespaced
    added = [each for each in kept if each not in rules(["service"]).namespaced]

    assert added == [
        PolicyRule(("",), ("configmaps",), ("create",)),
        PolicyRule(("",), ("configmaps",), ("get", "update"), ("cloud-controller-checkpoint",)),
    ]
    assert rules(["node"], keeps_checkpoint=True) == rules(["node"])


def test_only_a_daemon_that_serves_beyond_loopback_may_ask_who_may_read_its_metrics() -> None:
    added = {*rules(["node"], protected=True).cluster} - {*rules(["node"]).cluster}

    assert {(rule.resources, rule.verbs) for rule in added} == {
        (("tokenreviews",), ("create",)),
        (("subjectaccessreviews",), ("create",)),
    }


def test_upstreams_controller_names_give_the_same_rbac_rules() -> None:
    assert rules(["cloud-node-controller", "node-route-controller"]) == rules(["node", "route"])


def test_an_unknown_controller_is_refused_by_name() -> None:
    with pytest.raises(InvalidConfiguration, match="'nodes' is not a controller"):
        rules(["nodes"])


def test_a_rule_is_written_as_kubernetes_reads_it() -> None:
    assert rules(["node"]).namespaced[1].to_json() == {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "update"],
        "resourceNames": ["cloud-controller-manager"],
    }


def test_pods_may_be_watched_and_their_status_written_only_where_readiness_gates_are_on() -> None:
    found = {rule.resources[0]: rule.verbs for rule in rules(["service"], readiness_gates=True).cluster}

    assert found["pods"] == ("list", "watch")
    assert found["pods/status"] == ("patch",)
    assert "pods" not in verbs("service")
    assert rules(["node"], readiness_gates=True) == rules(["node"])
