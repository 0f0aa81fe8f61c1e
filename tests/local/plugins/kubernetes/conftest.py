"""One API server for the tests of this folder, in namespaces of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.control_plane.control_plane import ControlPlane
from tests.control_planes import running_control_plane
from tests.local.plugins.kubernetes.cluster_with_cli import Cluster, cluster_with_cli


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
def cluster(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Cluster]:
    """A stack of the test's own, run by Pulumi's CLI."""
    with cluster_with_cli(control_plane, tmp_path) as cluster:
        yield cluster
