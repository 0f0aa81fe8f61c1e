"""Ends the processes of a running site whose state folder is deleted, and finally the API.

Without the folder's records those processes could not be found again. So the API keeps their pids and start times in
memory, which identify them reliably.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from local import processes
from local.control_plane.control_plane import STOP_ORDER
from local.processes import Process, ProcessError
from local.state_folder import StateFolder

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
GRACE_SECONDS = 5.0


def running(folder: StateFolder) -> list[Process]:
    """The processes named by the folder's records now, except this one; control planes in the order of their stop."""
    clusters = folder.cluster("x").parent
    directories = [folder.process_record("x").parent, *clusters.glob("*/processes")]
    found = [process for each in directories for process in processes.find_all(each)]
    return sorted((each for each in found if each.pid != os.getpid()), key=_stop_rank)


class FolderGuard:
    """Checks the folder regularly, in a thread of its own. `end_server` is called once, when all is stopped."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        look_seconds: float = LOOK_SECONDS,
        end_server: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
    ) -> None:
        self._folder = folder
        self._site = folder.fingerprint()
        self._look_seconds = look_seconds
        self._end_server = end_server
        self._known: list[Process] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folder guard", daemon=True)

    def start(self) -> None:
        """Start checking."""
        self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(self._look_seconds):
            if self._folder.still_holds(self._site):
                known = running(self._folder)
                if len(known) != len(self._known):
                    log.info("folder guard knows %d processes", len(known))
                self._known = known
            else:
                log.error("%s is gone: ending its processes", self._folder.root)
                self._end_all()
                self._end_server()
                return

    def _end_all(self) -> None:
        for rank in sorted({_stop_rank(process) for process in self._known}):
            together = [process for process in self._known if _stop_rank(process) == rank]
            with ThreadPoolExecutor(len(together)) as pool:
                for process, future in [(each, pool.submit(each.stop, GRACE_SECONDS)) for each in together]:
                    error = future.exception()
                    if isinstance(error, ProcessError):
                        log.error("%s", error)
                    elif error is not None:
                        log.error("%s could not be ended", process.name, exc_info=error)


def _stop_rank(process: Process) -> int:
    """Machines and load balancers first, then a control plane's components in their order."""
    return 1 + STOP_ORDER.index(process.name) if process.name in STOP_ORDER else 0
