"""NetworkPolicies that keep the CCM from what it needs are found, with what they keep it from."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller import pod_network
from cloud_controller.doctor.checks.egress import CHECK
from cloud_controller.kube import DEPLOYMENTS, ENDPOINT_SLICES, NETWORK_POLICIES, PODS
from tests.cloud_controller.doctor.looks import World

LABELS = {"k8s-app": "ccm"}
API = {"to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [{"port": 6443}]}
DNS = {"ports": [{"port": 53, "protocol": "UDP"}], "to": [{"podSelector": {}}]}
OUT = {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443}]}


@pytest.fixture
def world() -> World:
    """A CCM in the pod network, and an API server at 10.0.0.1:6443."""
    world = World()
    names = {"name": "cloud-controller-manager", "namespace": "kube-system"}
    world.api.put(DEPLOYMENTS, {"metadata": names, "spec": {"selector": {"matchLabels": LABELS}}})
    world.api.put(PODS, {"metadata": {"name": "ccm-1", "namespace": "kube-system", "labels": LABELS}, "spec": {}})
    world.api.put(
        ENDPOINT_SLICES,
        {
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "endpoints": [{"addresses": ["10.0.0.1"]}],
            "ports": [{"name": "https", "port": 6443}],
        },
    )
    return world


def limit(world: World, *rules: Any, namespace: str = "kube-system", name: str = "limit", **spec: Any) -> None:
    policy = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [*rules], **spec}
    world.api.put(NETWORK_POLICIES, {"metadata": {"name": name, "namespace": namespace}, "spec": policy})


def kept_from(world: World) -> str:
    """What the policies keep the only pod from."""
    return "; ".join(finding.what for finding in world.findings(CHECK))


def test_without_policies_everything_can_be_reached(world: World) -> None:
    assert kept_from(world) == ""


def test_the_policy_of_our_own_manifests_is_enough(world: World) -> None:
    limit(world, **pod_network.policy(LABELS, [10258], ()))

    assert kept_from(world) == ""


def test_policies_add_up(world: World) -> None:
    limit(world, API, name="one")
    limit(world, DNS, OUT, name="two")

    assert kept_from(world) == ""


def test_a_policy_without_rules_keeps_it_from_everything(world: World) -> None:
    limit(world)

    (finding,) = world.findings(CHECK)
    assert finding.subject == "pod/kube-system/ccm-1"
    assert "the API server at 10.0.0.1:6443" in finding.what
    assert "the cloud's API" in finding.what
    assert "port 53/UDP" in finding.what
    assert finding.evidence == ("limited by kube-system/limit",)


@pytest.mark.parametrize(
    ("rules", "lost"),
    [
        ((DNS, OUT), "the API server at 10.0.0.1:6443"),
        ((API, DNS), "the cloud's API: no rule lets it out of the cluster"),
        ((API, OUT), "the names of hosts (port 53/UDP)"),
    ],
    ids=["api server", "cloud", "names"],
)
def test_what_no_rule_is_for_is_named(world: World, rules: tuple[Any, ...], lost: str) -> None:
    limit(world, *rules)

    assert kept_from(world) == f"NetworkPolicies keep it from {lost}"


def test_of_several_api_servers_the_closed_ones_are_named(world: World) -> None:
    others = [{"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.3"]}]
    world.api.change(ENDPOINT_SLICES, "default/kubernetes", lambda each: each["endpoints"].extend(others))
    limit(world, API, DNS, OUT)

    assert kept_from(world) == "NetworkPolicies keep it from the API server at 10.0.0.2:6443, 10.0.0.3:6443"


def test_an_exception_of_a_range_closes_the_api_server(world: World) -> None:
    limit(world, DNS, {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]})

    assert "API server" in kept_from(world)


def test_a_rule_without_ports_and_ranges_opens_everything(world: World) -> None:
    limit(world, {})

    assert kept_from(world) == ""


def test_a_single_address_may_be_the_clouds(world: World) -> None:
    limit(world, API, DNS, {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"port": 443}]})

    assert kept_from(world) == ""


def test_a_range_of_ports_opens_those_in_it(world: World) -> None:
    limit(world, DNS, {"ports": [{"port": 1000, "endPort": 7000}]})

    assert kept_from(world) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {"matchLabels": {"app": "web"}}},
        {"podSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "NotIn", "values": ["ccm"]}]}},
        {"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        {"policyTypes": ["Ingress"]},
        {"policyTypes": None, "egress": None},
        {"namespace": "default"},
    ],
    ids=["other labels", "not in", "exists", "ingress", "no types and no rules", "another namespace"],
)
def test_a_policy_that_is_not_about_its_egress_keeps_it_from_nothing(world: World, spec: dict[str, Any]) -> None:
    limit(world, **spec)

    assert kept_from(world) == ""


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "k8s-app", "operator": "In", "values": ["ccm", "other"]},
        {"key": "k8s-app", "operator": "Exists"},
        {"key": "app", "operator": "DoesNotExist"},
    ],
    ids=lambda expression: expression["operator"],
)
def test_expressions_select_the_pods_too(world: World, expression: dict[str, Any]) -> None:
    limit(world, podSelector={"matchExpressions": [expression]})

    assert kept_from(world) != ""


def test_policies_do_not_concern_a_pod_in_its_nodes_network(world: World) -> None:
    world.api.change(PODS, "kube-system/ccm-1", lambda pod: pod["spec"].update(hostNetwork=True))
    limit(world)

    assert kept_from(world) == ""
