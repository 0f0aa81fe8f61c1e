"""Single components of a control plane, for tests that pause or kill them past whoever looks after the whole of it."""

from __future__ import annotations

import fcntl
import os
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


def restart_api_server(directory: Path) -> None:
    """SIGKILL, and a new one in its stead, which is not ready yet.

    `ControlPlane.start` would end the other components too, and the new kube-controller-manager would not sleep. Who
    looks after the control plane waits for the lock, and finds all of it running.
    """
    with (directory / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        killed = component(directory, API_SERVER)
        killed.signal(signal.SIGKILL)
        until(lambda: not killed.is_running(), "the API server is dead")
        processes.start(
            API_SERVER,
            killed.argv,
            record=killed.record,
            log=killed.log,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory)},
            cwd=directory,
        )
