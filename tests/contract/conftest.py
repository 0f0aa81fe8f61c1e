"""The fixture `harness`: each cloud in turn. `PART` of a test module is the part of the interface that it is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud_controller.clouds.alicloud.conftest import _alicloud_server as _alicloud_server
from tests.cloud_controller.clouds.alicloud.conftest import alicloud as alicloud
from tests.cloud_controller.clouds.alicloud.conftest import alicloud_url as alicloud_url
from tests.cloud_controller.clouds.aws.conftest import _account as _account
from tests.cloud_controller.clouds.aws.conftest import _credentials as _credentials
from tests.cloud_controller.clouds.aws.conftest import _moto as _moto
from tests.cloud_controller.clouds.aws.conftest import _network as _network
from tests.cloud_controller.clouds.aws.conftest import account as account
from tests.cloud_controller.clouds.conftest import _server as _server
from tests.cloud_controller.clouds.conftest import site as site
from tests.cloud_controller.clouds.openstack.conftest import openstack as openstack
from tests.cloud_controller.clouds.openstack.conftest import openstack_peer as openstack_peer
from tests.cloud_controller.clouds.openstack.octavia.conftest import openstack_networks as openstack_networks
from tests.contract.clouds import NAMES, of
from tests.contract.harness import Harness


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every cloud that offers what it is about."""
    if "harness" in metafunc.fixturenames:
        part = metafunc.module.PART
        clouds = [pytest.param(name, marks=of(name).MARKS) for name in NAMES if part in of(name).OFFERS]
        metafunc.parametrize("harness", clouds, indirect=True)


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """A fresh account of this cloud."""
    yield from of(request.param).running(request)
