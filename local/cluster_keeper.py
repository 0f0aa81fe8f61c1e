"""Keeps the cluster of a site running: its control plane, and a process for each machine that the cloud says runs.

It is stateless: each pass compares the cloud with the processes. What ended by itself is started again.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from typing import Any

from local.addresses import AddressBlock
from local.control_plane.binaries import Binaries, ensure
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.errors import BuildError, SiteError
from local.ports import PortBusyError
from local.processes import ProcessError
from local.site_processes import SiteProcesses
from local.state_folder import StateFolder

TICK_SECONDS = 0.5
GRACE_SECONDS = 10.0

log = logging.getLogger(__name__)

_FAILURES = (BuildError, ControlPlaneError, PortBusyError, ProcessError, SiteError)


Machines = Mapping[str, Mapping[str, Any]]
"""What boots each machine (`machine.json`), by its id."""


def control_plane_of(
    folder: StateFolder, block: AddressBlock, cluster_id: str, binaries: Binaries | None = None
) -> ControlPlane:
    """The control plane of the site's cluster; without binaries enough for everything except a start."""
    ranges = block.network(0)
    return ControlPlane(
        folder.cluster(cluster_id),
        binaries or Binaries({}),
        block.control_plane_address(0),
        ranges.pods,
        ranges.services,
        cluster_id,
    )


class Keeper:
    """`start` and `stop` are called once."""

    def __init__(
        self,
        folder: StateFolder,
        block: AddressBlock,
        cluster_id: str,
        wanted: Callable[[], Machines],
        environment: Mapping[str, str],
        *,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        """`wanted`: the machines that the cloud says run, asked at each pass; may raise SiteError."""
        self._folder = folder
        self._block = block
        self._cluster_id = cluster_id
        self._wanted = wanted
        self._tick_seconds = tick_seconds
        self._processes = SiteProcesses(folder, environment)
        self._binaries: Binaries | None = None
        self._is_ready = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Start working, in a thread of its own."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs; False is a defect."""
        return self._thread.is_alive()

    @property
    def is_ready(self) -> bool:
        """Whether the last pass found everything running."""
        return self._is_ready

    def stop(self) -> None:
        """Start nothing more; what runs continues to."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._is_ready = self._pass()
            except _FAILURES as error:
                self._is_ready = False
                log.warning("%s; retrying", error)
            self._stopping.wait(self._tick_seconds)

    def _pass(self) -> bool:
        """Start and end what differs; whether nothing did."""
        self._processes.require_folder()
        control_plane = control_plane_of(self._folder, self._block, self._cluster_id, self._binaries)
        if not control_plane.is_running():
            if self._binaries is None:
                self._binaries = ensure(lambda line: print(line, flush=True))
            control_plane = control_plane_of(self._folder, self._block, self._cluster_id, self._binaries)
            control_plane.start()
            control_plane.wait_ready()
            return False
        wanted = self._wanted()
        folders = self._folder.machine("x").parent
        there = {each.name for each in folders.iterdir()} if folders.is_dir() else set()
        for gone in sorted(there - wanted.keys()):
            self._processes.halt_machine(gone, GRACE_SECONDS)
            shutil.rmtree(self._folder.machine(gone), ignore_errors=True)
        missing = [machine for name, machine in wanted.items() if not self._processes.is_running(name)]
        for machine in missing:
            self._processes.boot_machine(machine, control_plane)
        return not missing
