"""The error for a busy port names the holder."""

from __future__ import annotations

import os
import socket
from ipaddress import IPv4Address, IPv4Network

import pytest

from local.ports import PortBusyError, require_free, unused_address

ADDRESS = "127.1.200.1"


def test_a_free_port_is_accepted() -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        port = server.getsockname()[1]

    require_free(ADDRESS, port, "etcd")


def test_a_busy_port_names_its_holder() -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(
            PortBusyError, match=rf"etcd cannot listen on {ADDRESS}:{port}: the port is in use by pid {os.getpid()} \("
        ):
            require_free(ADDRESS, port, "etcd")


def test_the_same_port_of_another_loopback_address_does_not_matter() -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        require_free("127.1.200.2", server.getsockname()[1], "etcd")


def test_an_unused_address_is_in_no_sites_block() -> None:
    address = unused_address([2379, 6443])

    assert IPv4Address(address) in IPv4Network("10.0.0.0/12")
    assert IPv4Address(address) not in IPv4Network("10.0.0.0/16")
