"""Single components of a control plane, for tests that pause or kill them."""

from __future__ import annotations

import signal
from pathlib import Path

from local import processes
from local.control_plane.components import API_SERVER
from local.processes import Process
from tests.crash.daemon import until


def component(directory: Path, name: str) -> Process:
    """A process of the control plane in this folder."""
    process = processes.find(directory / "processes" / f"{name}.json")
    assert process is not None, f"{name} does not run"
    return process


def kill_api_server(directory: Path) -> None:
    """SIGKILL; returns once it has ended."""
    killed = component(directory, API_SERVER)
    killed.signal(signal.SIGKILL)
    until(lambda: not killed.is_running(), "the API server is dead")
