"""A site of any cloud: a block of addresses and the process of the cloud's API, which starts everything else.

Everything runs detached. What a killed run leaves is found by its records: `up` completes it, `down` ends it. All of
a site lies under one state folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from time import strftime
from typing import Any, ClassVar

from local import processes
from local.addresses import AddressBlock
from local.api_process import API, STOP_GRACE_SECONDS, ApiProcess
from local.blocks import BlockRegistry, NoBlockError, default_registry
from local.control_plane.binaries import Binaries
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.errors import SiteError
from local.machine.processes import kill_leftovers
from local.ports import PortBusyError
from local.processes import ProcessError
from local.state_folder import StateFolder, endpoint
from local.waiting import Tell, to_nobody, wait_until

MACHINE_GRACE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """What a site adds to the config of its stacks: fields of objects, by the objects' keys, and secrets by key."""

    values: Mapping[str, Mapping[str, Any]]
    secrets: Mapping[str, str] = field(repr=False)
    of_new_clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """As `values`, for stacks that make their cluster."""


class ApiSite(ABC):
    """The site of one state folder. Objects hold no state: any number may work on one site."""

    CLOUD: ClassVar[str]
    """The cloud's name for people."""

    API_TITLE: ClassVar[str]
    """The API's name for people."""

    API_MODULE: ClassVar[str]
    """The module that runs as the API, with the site's folder as its argument."""

    MORE_PORTS: ClassVar[Mapping[int, str]] = {}
    """The ports beside API_PORT on which its process listens, and their purpose."""

    def __init__(self, folder: StateFolder, *, registry: Path | None = None) -> None:
        self.folder = folder
        self.registry = BlockRegistry(registry or default_registry())
        self.api = ApiProcess(folder, self.API_TITLE, self.API_MODULE, self.MORE_PORTS)

    @abstractmethod
    def revision(self) -> str:
        """The code that an API started now would run."""

    @abstractmethod
    def suspend(self) -> None:
        """Note that the next `up` starts what was running; called after everything has ended, with the data kept."""

    @abstractmethod
    def stack_config(self) -> SiteConfig:
        """What the site adds to the config of its stacks. Raises SiteError while there is no site."""

    @abstractmethod
    def pending(self) -> list[str]:
        """The objects that a stack must wait for because they are changing. Raises SiteError."""

    @abstractmethod
    def crashed_machines(self) -> list[str]:
        """The names of the machines that stopped by themselves."""

    @abstractmethod
    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names. Raises SiteError if the API refuses."""

    @abstractmethod
    def end_simulated_machines(self) -> None:
        """Terminate the machines that tests and benchmarks created beside the real ones. Raises SiteError."""

    @abstractmethod
    def after_up(self, cluster: str) -> list[str]:
        """Lines for people once the stack with the cluster of this id is up: what to know and what to try."""

    @abstractmethod
    def left(self) -> list[str]:
        """The objects of stacks that still exist, by kind and name; empty for a stopped site. Raises SiteError."""

    @abstractmethod
    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """The cloud's objects for a status; `healthy`: the API answers. Raises SiteError."""

    @abstractmethod
    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """That status and a stack's outputs as text for people."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's runs."""
        return dict(inherited)

    def nothing_left(self) -> str | None:
        """The message after `left` found nothing."""
        return None

    @property
    def block(self) -> AddressBlock:
        """The site's addresses. Raises SiteError while it has none."""
        try:
            return self.folder.block()
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; create one with `up` first") from None

    @property
    def endpoint(self) -> str:
        """The URL of the cloud's API."""
        return endpoint(self.block)

    @property
    def token(self) -> str:
        """A secret of the site's own. Raises SiteError while there is no site."""
        try:
            return self.folder.token()
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; create one with `up` first") from None

    def up(self, tell: Tell = to_nobody) -> None:
        """Start what does not run, report what is replaced, and return once the API answers. Raises SiteError."""
        require_loopback_blocks()
        try:
            self.folder.prepare()
            self.registry.prepare()
        except OSError as error:
            raise SiteError(
                f"cannot write the site's folder or the user's registry of addresses: {error}; "
                "choose another folder with --state, another registry with XDG_STATE_HOME"
            ) from None
        with self._lock("up", tell):
            self.folder.ensure_token()
            running = self.api.find()
            if running is not None and self.folder.site_file.exists():
                unfit = self.api.unfit(running, self.endpoint, self.revision())
                if unfit is None:
                    return
                tell(f"{self.API_TITLE} (process {running.pid}) {unfit}: replacing it; what it started keeps running")
            self.api.stop()
            if self.folder.site_file.exists():
                self._start_on_own_block()
            else:
                self._start_on_free_block()

    def down(self, *, keep_data: bool = False, tell: Tell = to_nobody) -> None:
        """Stop everything that the site started, then delete the cloud's data and release the block.

        `keep_data`: like a power cut; the next `up` finds everything as it was and boots the machines again.
        """
        if not self.folder.root.is_dir():
            return
        with self._lock("stop" if keep_data else "down", tell):
            # The API first: it restarts processes that end.
            self.api.stop()
            self._stop_everything_else()
            if keep_data:
                self.suspend()
                return
            shutil.rmtree(self.folder.cloud, ignore_errors=True)
            self.folder.site_file.unlink(missing_ok=True)
            self.registry.release(self.folder.root)

    def wait_settled(self, seconds: float, tell: Tell = to_nobody) -> None:
        """Wait at most `seconds` until nothing is `pending`; a long wait is reported. Raises SiteError."""

        def still() -> None:
            tell(f"waiting for {', '.join(self.pending())}")

        if not wait_until(lambda: not self.pending(), seconds, still):
            raise SiteError(f"still changing after {seconds:g} s: {', '.join(self.pending())}")

    def status(self) -> dict[str, Any]:
        """What runs where, as in JSON."""
        if not self.folder.site_file.exists():
            return {"state_folder": str(self.folder.root), "up": False}
        healthy = self.is_healthy()
        return {
            "state_folder": str(self.folder.root),
            "up": healthy,
            "block": self.block.base,
            "endpoint": self.endpoint,
            "processes": self.processes(),
            **self.objects(healthy=healthy),
        }

    def processes(self) -> list[dict[str, Any]]:
        """The site's processes except those of control planes, as in a status."""
        found = processes.find_all(self.folder.process_record(API).parent)
        return [{"name": each.name, "pid": each.pid, "log": str(each.log)} for each in found]

    def is_running(self) -> bool:
        """Whether the API's process exists, answering or not."""
        return self.api.find() is not None

    def is_healthy(self) -> bool:
        """Whether the API runs and answers; on a busy machine this takes some time."""
        process = self.api.find()
        return process is not None and bool(self.api.health(process, self.endpoint, STOP_GRACE_SECONDS))

    def ended_control_planes(self) -> frozenset[str]:
        """The folder names of the control planes that do not run completely; the API starts them again."""
        clusters = self.folder.cluster("x").parent
        folders = sorted(clusters.iterdir()) if clusters.is_dir() else []
        return frozenset(each.name for each in folders if not _control_plane(each).is_running())

    # -- helpers

    def _start_on_own_block(self) -> None:
        """A site with data keeps its addresses: its objects and certificates contain them."""
        block = self.folder.block()
        try:
            self.registry.reserve(block, self.folder.root)
            self.api.start(block)
        except (NoBlockError, PortBusyError) as error:
            raise SiteError(f"{error}; the data in {self.folder.root} need these addresses") from None

    def _start_on_free_block(self) -> None:
        """Take the first free block; that another user has one shows only when its port is busy."""
        root = self.folder.root
        busy = []
        for block in self.registry.free_blocks(root):
            try:
                self.registry.reserve(block, root)
            except NoBlockError:
                continue  # another site was quicker
            self.folder.write_site(block)
            try:
                self.api.start(block)
                return
            except PortBusyError as error:
                busy.append(str(error))
            self.folder.site_file.unlink()
            self.registry.release(root)
        taken = "; ".join([self.registry.describe(), *busy])
        how = "`down`, or deleting its folder, releases a site's block"
        raise SiteError(f"no block of addresses is free: {taken}; {how}")

    def _stop_everything_else(self) -> None:
        records = self.folder.process_record(API).parent
        clusters = self.folder.cluster("x").parent
        try:
            left = processes.find_all(records)
            with ThreadPoolExecutor(max(1, len(left))) as pool:
                list(pool.map(lambda process: process.stop(MACHINE_GRACE_SECONDS), left))
            machines = self.folder.machine("x").parent
            for directory in sorted(machines.iterdir()) if machines.is_dir() else []:
                kill_leftovers(directory)
            for directory in sorted(clusters.iterdir()) if clusters.is_dir() else []:
                _control_plane(directory).stop()
        except (ProcessError, ControlPlaneError) as error:
            raise SiteError(str(error)) from error

    @contextmanager
    def _lock(self, command: str, tell: Tell) -> Iterator[None]:
        """Serialize `up` and `down` of a site; a wait is reported with the holder."""
        file = os.open(self.folder.root / "site.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(file, 4096, 0).decode(errors="replace") or "unknown"
                tell(f"waiting for another run ({holder}) that starts or stops this site")
                fcntl.flock(file, fcntl.LOCK_EX)
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()}: `{command}` since {strftime('%Y-%m-%d %H:%M:%S')}".encode(), 0)
            yield
        finally:
            os.close(file)


def require_loopback_blocks() -> None:
    """Raise SiteError unless processes can bind every address of 127.0.0.0/8, as on Linux."""
    probe = "127.255.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            if not sys.platform.startswith("linux"):
                raise OSError(f"this is {sys.platform}")
            sock.bind((probe, 0))
        except OSError as error:
            raise SiteError(
                f"a local site needs Linux (or WSL2), where processes can bind any address of 127.0.0.0/8: {error}"
            ) from None


def _control_plane(directory: Path) -> ControlPlane:
    """The control plane of a cluster of which only the folder is known: enough to stop it."""
    nothing = IPv4Network("10.0.0.0/32")
    return ControlPlane(directory, Binaries({}), "10.0.0.1", nothing, nothing, directory.name)
