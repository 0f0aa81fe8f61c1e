"""The addresses of a server, besides those that the Go controller gave (`tests/compatibility`)."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from cloud_controller.cloud import NodeAddress
from cloud_controller.clouds.openstack.addresses import node_addresses
from cloud_controller.clouds.openstack.config import Networking


def address(ip: str) -> dict[str, Any]:
    """A fixed address as Nova shows it."""
    return {"version": 4, "addr": ip, "OS-EXT-IPS:type": "fixed"}


def test_addresses_are_in_the_order_of_the_cloud_config() -> None:
    server = {"addresses": {"nodes": [address("10.1.3.68")], "lbnet": [address("10.2.0.39")]}}

    def found(*first: str) -> list[str]:
        return [each.address for each in node_addresses(server, Networking(sort_order=tuple(map(ip_network, first))))]

    assert (found(), found("10.1.0.0/16")) == (["10.2.0.39", "10.1.3.68"], ["10.1.3.68", "10.2.0.39"])


def test_an_address_that_is_public_too_is_not_internal() -> None:
    server = {"addresses": {"nodes": [address("10.1.0.231")]}, "accessIPv4": "10.1.0.231"}

    assert node_addresses(server, Networking()) == (NodeAddress("ExternalIP", "10.1.0.231"),)
