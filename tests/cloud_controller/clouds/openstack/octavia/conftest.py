"""The account of the load balancers' tests."""

from __future__ import annotations

import pytest

from local.openstack.peer import Peer
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount, public_network
from tests.cloud_controller.clouds.openstack.site import Site


@pytest.fixture(scope="session")
def openstack_public(openstack_peer: Peer) -> str:
    """The external network of all projects: each address is one project's. The ranges are large enough for a run."""
    return public_network(openstack_peer, gold="198.18.0.0/16", silver="198.19.0.0/16")


@pytest.fixture
def account(openstack: Site, openstack_public: str) -> OctaviaAccount:
    """A fresh project with its networks."""
    return OctaviaAccount(openstack, openstack_public)
