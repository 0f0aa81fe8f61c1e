"""The account of the load balancers' tests."""

from __future__ import annotations

import pytest

from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.site import Site


@pytest.fixture
def account(openstack: Site) -> OctaviaAccount:
    """A fresh project with its networks."""
    return OctaviaAccount(openstack)
