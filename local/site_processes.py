"""The processes that a site's API starts and stops, each recorded and logged under a key in the site's folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from local import processes
from local.control_plane.control_plane import ControlPlane
from local.machine.processes import kill_leftovers
from local.processes import Process, ProcessError
from local.state_folder import StateFolder, write_private

CREDENTIALS_TTL = timedelta(days=365)


class SiteProcesses:
    """Detached processes that run modules of this project. Every failure is a ProcessError."""

    def __init__(self, folder: StateFolder, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._site = folder.fingerprint()
        self._environment = dict(environment)

    def require_folder(self) -> None:
        """Without this site's folder a missing record means nothing, and no process may be started."""
        if not self._folder.still_holds(self._site):
            raise ProcessError(f"{self._folder.root} is gone")

    def start(self, key: str, name: str, module: str, argument: Path, cwd: Path) -> None:
        """Start a module as a detached process, recorded and logged under `key`."""
        self.require_folder()
        processes.start(
            name,
            # -P: nothing in the working directory is ever imported.
            [sys.executable, "-P", "-m", module, str(argument)],
            record=self._folder.process_record(key),
            log=self._folder.log(key),
            env=self._environment,
            cwd=cwd,
        )

    def find(self, key: str) -> Process | None:
        """The process started under `key` and not stopped since; it may have ended by itself."""
        self.require_folder()
        return processes.load(self._folder.process_record(key))

    def is_running(self, key: str) -> bool:
        """Whether the process started under `key` runs."""
        process = self.find(key)
        return process is not None and process.is_running()

    def halt_machine(self, id: str, grace_seconds: float) -> None:
        """Stop a machine's process if it runs, and what it left behind of its pods."""
        process = processes.load(self._folder.process_record(id))
        if process is not None:
            process.stop(grace_seconds)
        # A killed machine did not stop the pods' processes outside its session.
        kill_leftovers(self._folder.machine(id))

    def boot_machine(self, machine: Mapping[str, Any], control_plane: ControlPlane) -> None:
        """Start a machine unless it runs; `machine` is the content of its `machine.json`."""
        if self.is_running(machine["id"]):
            return
        directory = self._folder.machine(machine["id"])
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        write_private(directory / "machine.json", json.dumps(machine, indent=2) + "\n")
        control_plane.write_kubelet_credentials(directory, machine["node_name"], machine["address"], CREDENTIALS_TTL)
        name = f"machine {machine['node_name']} ({machine['id']})"
        self.start(machine["id"], name, "local.machine", directory, directory)
