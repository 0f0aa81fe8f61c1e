"""[Networking]: the addresses that the Go controller gave the same servers (peer-recordings, nodes/addresses.json)."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from cloud_controller.cloud import NodeAddress
from cloud_controller.clouds.openstack.addresses import node_addresses
from cloud_controller.clouds.openstack.config import Networking


def address(ip: str, kind: str = "fixed") -> dict[str, Any]:
    """An address as Nova shows it."""
    return {"version": 6 if ":" in ip else 4, "addr": ip, "OS-EXT-IPS:type": kind}


TWO_NICS = {"addresses": {"nodes": [address("10.1.3.68")], "lbnet": [address("10.2.0.39")]}}
WITH_FIP = {"addresses": {"nodes": [address("10.1.4.53"), address("203.0.113.188", "floating")]}}
ONE_NIC = {"addresses": {"nodes": [address("10.1.0.231")]}}
LBNET = Networking(internal_networks=frozenset({"lbnet"}))
SPLIT = Networking(internal_networks=frozenset({"nodes"}), public_networks=frozenset({"lbnet"}))
NODES_FIRST = Networking(sort_order=(ip_network("10.1.0.0/16"),))


@pytest.mark.parametrize(
    ("server", "options", "expected"),
    [
        (TWO_NICS, Networking(), "InternalIP 10.2.0.39, InternalIP 10.1.3.68"),
        (WITH_FIP, Networking(), "InternalIP 10.1.4.53, ExternalIP 203.0.113.188"),
        (ONE_NIC, Networking(), "InternalIP 10.1.0.231"),
        (TWO_NICS, LBNET, "InternalIP 10.2.0.39"),
        (WITH_FIP, LBNET, "ExternalIP 203.0.113.188"),
        (ONE_NIC, LBNET, ""),
        (TWO_NICS, SPLIT, "InternalIP 10.1.3.68, ExternalIP 10.2.0.39"),
        (WITH_FIP, SPLIT, "InternalIP 10.1.4.53, ExternalIP 203.0.113.188"),
        (ONE_NIC, SPLIT, "InternalIP 10.1.0.231"),
        (TWO_NICS, NODES_FIRST, "InternalIP 10.1.3.68, InternalIP 10.2.0.39"),
    ],
)
def test_addresses_are_as_recorded(server: dict[str, Any], options: Networking, expected: str) -> None:
    assert ", ".join(f"{each.type} {each.address}" for each in node_addresses(server, options)) == expected


def test_an_address_that_is_public_too_is_not_internal() -> None:
    server = ONE_NIC | {"accessIPv4": "10.1.0.231"}

    assert node_addresses(server, Networking()) == (NodeAddress("ExternalIP", "10.1.0.231"),)
