"""The account of the load balancers' tests."""

from __future__ import annotations

import pytest

from local.openstack.peer import Peer
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount, SharedNetworks
from tests.cloud_controller.clouds.openstack.site import Site


@pytest.fixture(scope="session")
def openstack_networks(openstack_peer: Peer) -> SharedNetworks:
    """The networks of all projects of load balancers, large enough for a run."""
    return SharedNetworks(openstack_peer, gold="198.18.0.0/16", silver="198.19.0.0/16")


@pytest.fixture
def account(openstack: Site, openstack_networks: SharedNetworks) -> OctaviaAccount:
    """A fresh project."""
    return OctaviaAccount(openstack, openstack_networks)
