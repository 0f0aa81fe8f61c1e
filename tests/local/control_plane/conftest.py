"""Control planes for these tests: each with addresses that no site uses (127.1.x to 127.15.x)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.control_plane.binaries import Binaries, ensure
from local.control_plane.components import ALL_PORTS
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address
from tests.control_planes import running_control_plane

MakeControlPlane = Callable[[Path], ControlPlane]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    return ensure(lambda line: print(line, file=sys.stderr))


@pytest.fixture
def make_control_plane(binaries: Binaries) -> Iterator[MakeControlPlane]:
    """Makes control planes that do not run yet, and stops each after the test."""
    made: list[ControlPlane] = []

    def make(directory: Path) -> ControlPlane:
        made.append(ControlPlane(directory, binaries, unused_address(ALL_PORTS), "10.1.0.0/16", "10.2.0.0/24", "test"))
        return made[-1]

    yield make
    for control_plane in made:
        control_plane.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that is ready, for tests that leave it so."""
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as control_plane:
        yield control_plane
