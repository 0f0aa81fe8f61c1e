"""One API server for the tests of this folder, in namespaces of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.control_plane.control_plane import ControlPlane
from tests.control_planes import running_control_plane


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running
