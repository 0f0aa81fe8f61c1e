"""Which endpoints count as pods of a Service: each way in which an EndpointSlice can lie."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from cloud_controller.load_balancers.pods import PodNetwork, admitted

POD = {"kind": "Pod", "namespace": "shop", "name": "web-0"}
NETWORK = PodNetwork(
    cluster=("10.1.0.0/16",),
    of_nodes={"n1": ("10.1.1.0/24",), "n2": ("10.1.2.0/24",), "without-range": (), "liar": ("8.8.8.0/24",)},
    own={ip_address("10.0.0.1"): "n1"},
)


def endpoint(address: str = "10.1.1.7", *, node: str | None = "n1", pod: Any = POD) -> dict[str, Any]:
    found: dict[str, Any] = {"addresses": [address], "targetRef": pod}
    return found | ({"nodeName": node} if node else {})


def endpoint_slice(*endpoints: dict[str, Any]) -> dict[str, Any]:
    return {"addressType": "IPv4", "endpoints": [*endpoints]}


def test_a_pod_in_its_nodes_cidr_is_admitted() -> None:
    assert NETWORK.refusal(endpoint(), "shop", ()) is None


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (endpoint(pod=None), "its targetRef is not a Pod in namespace shop"),
        (endpoint(pod=POD | {"kind": "Node"}), "its targetRef is not a Pod in namespace shop"),
        (endpoint(pod=POD | {"namespace": "bank"}), "its targetRef is not a Pod in namespace shop"),
        (endpoint(node=None), "it has no nodeName"),
        (endpoint("10.0.0.1"), "it is an address of node n1"),
        (endpoint("10.1.2.7"), "it is outside pod CIDR 10.1.1.0/24 of node n1"),
        (endpoint("8.8.8.8"), "it is outside pod CIDR 10.1.1.0/24 of node n1"),
        (endpoint("8.8.8.8", node="liar"), "it is outside the pod CIDRs"),
        (endpoint("8.8.8.8", node="without-range"), "it is outside the pod CIDRs"),
        (endpoint("fd00::7"), "it is outside the pod CIDRs"),
    ],
)
def test_an_endpoint_that_is_not_a_pod_of_the_services_namespace_is_excluded(lie: dict[str, Any], why: str) -> None:
    assert NETWORK.refusal(lie, "shop", ()) == why


def test_without_node_cidrs_the_cluster_cidr_decides() -> None:
    assert NETWORK.refusal(endpoint("10.1.9.9", node="without-range"), "shop", ()) is None


def test_without_cluster_cidr_the_node_cidrs_decide() -> None:
    network = PodNetwork(of_nodes={"n1": ("10.1.1.0/24",)})

    assert network.refusal(endpoint(), "shop", ()) is None
    assert network.refusal(endpoint("10.1.2.7"), "shop", ()) == ("it is outside pod CIDR 10.1.1.0/24 of node n1")


def test_a_pod_in_the_clouds_network_is_admitted_unless_it_has_a_nodes_address() -> None:
    vpc = ("10.0.0.0/16",)

    assert NETWORK.refusal(endpoint("10.0.7.7"), "shop", vpc) is None
    assert NETWORK.refusal(endpoint("10.0.0.1"), "shop", vpc) == "it is an address of node n1"


def test_excluded_endpoints_are_listed_up_to_a_limit() -> None:
    lies = [endpoint(f"8.8.8.{number}") for number in range(1, 9)]
    before = endpoint_slice(endpoint(), *lies)

    (kept,), message = admitted([before], "shop", NETWORK, ())

    assert kept["endpoints"] == [endpoint()]
    assert message is not None
    assert "8.8.8.5" in message and "8.8.8.6" not in message and message.endswith("; and 3 more")


def test_slices_with_only_admitted_endpoints_are_unchanged() -> None:
    before = endpoint_slice(endpoint())

    (kept,), message = admitted([before], "shop", NETWORK, ())

    assert kept is before
    assert message is None
