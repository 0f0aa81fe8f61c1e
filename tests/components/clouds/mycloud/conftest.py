"""mycloud's API with a service controller that serves a Service of a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloud_controller.controllers.service.controller import ServiceOptions
from components.cluster_plan import World
from tests.cloud_controller.clouds.conftest import MyCloudSite, _server, site
from tests.cloud_controller.clouds.mycloud.services import put_node, web
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, served

__all__ = ["Serve", "_server", "cluster", "running", "serve", "site", "world"]

Serve = Callable[..., Running]


def world(running: Running) -> World:
    """The cluster and its cloud, as an update sees them."""
    return World(running.kube, running.cloud)


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """An ingress node, and no Service."""
    cluster = Cluster()
    put_node(cluster, site.machine("worker-0"), ingress=True)
    return cluster


@pytest.fixture
def serve(site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Start a daemon, which serves `default/web`; it acts only while an update waits."""

    def serve(**options: Any) -> Running:
        daemon = served(site, cluster, web(), options=ServiceOptions(**options))
        monkeypatch.setattr(World, "open", lambda *_: world(daemon))
        monkeypatch.setattr("components.service_plan.sleep", lambda _: daemon.settle(rounds=1))
        return daemon

    return serve


@pytest.fixture
def running(serve: Serve) -> Running:
    """A daemon with the default options."""
    return serve()
