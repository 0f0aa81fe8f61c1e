"""A real control plane for tests, at addresses that no site uses (127.1.x to 127.15.x)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.control_plane.binaries import ensure
from local.control_plane.components import ALL_PORTS
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address


@contextmanager
def running_control_plane(directory: Path) -> Iterator[ControlPlane]:
    """One that is ready; it is stopped at the end, whatever happens."""
    binaries = ensure(lambda line: print(line, file=sys.stderr))
    control_plane = ControlPlane(directory, binaries, unused_address(ALL_PORTS), "10.1.0.0/16", "10.2.0.0/24", "test")
    try:
        control_plane.start()
        control_plane.wait_ready()
        yield control_plane
    finally:
        control_plane.stop()
