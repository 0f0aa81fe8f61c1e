"""Single components of a control plane, for tests that pause or kill them."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from local import processes
from local.control_plane.components import API_SERVER, CONTROLLER_MANAGER, SCHEDULER
from local.control_plane.control_plane import ControlPlane
from local.processes import Process
from tests.control_planes import running_control_plane
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


@contextlib.contextmanager
def undisturbed_control_plane(directory: Path) -> Iterator[ControlPlane]:
    """One until the block ends, to whose cluster nobody but daemons and tests writes.

    kube-controller-manager and scheduler sleep, so that the order of calls is theirs alone.
    """
    with running_control_plane(directory) as control_plane:
        sleepers = [component(control_plane.directory, name) for name in (CONTROLLER_MANAGER, SCHEDULER)]
        for process in sleepers:
            process.signal(signal.SIGSTOP)
        try:
            yield control_plane
        finally:
            for process in sleepers:
                process.signal(signal.SIGCONT)
