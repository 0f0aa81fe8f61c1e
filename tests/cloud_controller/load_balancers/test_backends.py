"""Who gets a Service's traffic: what nodes and EndpointSlices of either family come to."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend, node_ipv4

PORT = {"protocol": "TCP", "port": 80, "name": "web"}
NODES = (NodeBackend("n1", "i-1", "10.0.0.1"),)


def endpoint_slice(family: str, *addresses: str, node: str = "n1") -> dict[str, Any]:
    return {
        "addressType": family,
        "ports": [{"name": "web", "protocol": "TCP", "port": 8080}],
        "endpoints": [{"addresses": [address], "nodeName": node} for address in addresses],
    }


def test_pod_members_have_the_requested_address_family() -> None:
    backends = Backends(NODES, (endpoint_slice("IPv4", "10.1.0.7"), endpoint_slice("IPv6", "fd00::7")))

    assert backends.by_pod(PORT) == (Member("10.1.0.7", 8080, "i-1"),)
    assert backends.by_pod(PORT, "IPv6") == (Member("fd00::7", 8080, "i-1"),)


@pytest.mark.parametrize(
    ("addresses", "found"),
    [(["10.0.0.1"], "10.0.0.1"), (["fd00::1", "10.0.0.1"], "10.0.0.1"), (["evil", "10.0.0.1x"], None), ([], None)],
)
def test_a_node_is_reached_by_its_first_text_that_is_an_ipv4_address(addresses: list[str], found: str | None) -> None:
    listed = [{"type": "Hostname", "address": "10.0.0.9"}]
    listed += [{"type": "InternalIP", "address": each} for each in addresses]

    assert node_ipv4({"status": {"addresses": listed}}) == found
