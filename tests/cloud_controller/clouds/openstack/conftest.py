"""The real services, once a test run, and a project of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.openstack.peer import Peer, shared
from local.openstack.project import Project
from local.openstack.proxy import Proxy
from tests.cloud_controller.clouds.openstack.site import Site


@pytest.fixture(scope="session")
def openstack_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """The services: the workers of a run share them."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if base.name.startswith("popen-") else base
    with shared(run / "openstack") as peer:
        yield peer


@pytest.fixture
def openstack(openstack_peer: Peer) -> Iterator[Site]:
    """A fresh project, reached through a proxy of its own."""
    with Proxy(openstack_peer.ports).serving() as proxy:
        yield Site(openstack_peer, proxy, Project(openstack_peer))
