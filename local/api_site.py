"""A site of any cloud: a block of addresses and the process of the cloud's API, which starts all the rest.

Everything runs detached, and whatever a killed run left behind is found by its records: `up` completes it, `down`
ends it. All of a site lies under one state folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, ClassVar

import urllib3

from local import processes
from local.addresses import API_PORT, AddressBlock
from local.blocks import BlockRegistry, NoBlockError, default_registry
from local.control_plane.binaries import Binaries
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.engine.stack.lock import Holder
from local.machine.processes import kill_leftovers
from local.ports import PortBusyError, require_free
from local.processes import Process, ProcessError
from local.stack_copy import SiteConfig
from local.state_folder import StateFolder, endpoint

API = "api"

HEALTHY_SECONDS = 120.0
"""How long an API may take to come up; one that ends is noticed at once."""

STOP_GRACE_SECONDS = 10.0
PROBE_SECONDS = 2.0
MACHINE_GRACE_SECONDS = 20.0
POLL_SECONDS = 0.05
QUIET_SECONDS = 2.0
"""A wait that takes longer is told."""

# What servers get of the environment: no passphrase, token or cloud credential is handed on to them and their pods.
_ENVIRONMENT = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ", "KUBEBUILDER_ASSETS"}
    | {"XDG_CACHE_HOME", "XDG_STATE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "VIRTUAL_ENV"}
)


Tell = Callable[[str], None]
"""Takes a line for a person."""


def to_nobody(line: str) -> None:
    """Tell nobody."""
    del line


class SiteError(Exception):
    """The site could not be brought up or down; the message says why and what to do."""


class ApiSite(ABC):
    """The site of one state folder. Objects hold no state: any number may speak of one site."""

    CLOUD: ClassVar[str]
    """What people call the cloud."""

    API_TITLE: ClassVar[str]
    """What people call the API."""

    API_MODULE: ClassVar[str]
    """What runs as the API, with the site's folder as its argument."""

    MORE_PORTS: ClassVar[Mapping[int, str]] = {}
    """What its process listens on beside the API's port, and what for."""

    def __init__(self, folder: StateFolder, *, registry: Path | None = None) -> None:
        self.folder = folder
        self.registry = BlockRegistry(registry or default_registry())

    @abstractmethod
    def revision(self) -> str:
        """Which code an API started now would run."""

    @abstractmethod
    def suspend(self) -> None:
        """Note that the next `up` shall start what ran: called when all has ended and the data are kept."""

    @abstractmethod
    def stack_config(self) -> SiteConfig:
        """What the site adds to the config of its stacks. Raises SiteError while there is no site."""

    @abstractmethod
    def wait_settled(self, seconds: float, tell: Tell = to_nobody) -> None:
        """Wait until nothing that a stack waits for is on its way, at most `seconds`; raises SiteError.

        `tell` gets a line where that takes long.
        """

    @abstractmethod
    def crashed_machines(self) -> list[str]:
        """The names of the machines that are stopped though nobody stopped them."""

    @abstractmethod
    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names; raises SiteError if the API refuses."""

    @abstractmethod
    def end_simulated_machines(self) -> None:
        """Terminate what tests and benchmarks made beside the real machines; raises SiteError."""

    @abstractmethod
    def after_up(self, cluster: str) -> list[str]:
        """What people should know, or can try, now that the stack of this cluster's id is up, a line each."""

    @abstractmethod
    def left(self) -> list[str]:
        """What of a stack's is still there, by kind and name; empty of a site that does not run. Raises SiteError."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """What runs where, as JSON has it."""

    @abstractmethod
    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """That status, and a stack's outputs, for a person to read."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """What the engine of a stack gets of an environment."""
        return dict(inherited)

    def nothing_left(self) -> str | None:
        """What to say when `left` found nothing."""
        return None

    @property
    def block(self) -> AddressBlock:
        """The site's addresses; raises SiteError while it has none."""
        try:
            return self.folder.block()
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; bring one up first") from None

    @property
    def endpoint(self) -> str:
        """The URL of the cloud's API."""
        return endpoint(self.block)

    @property
    def token(self) -> str:
        """A secret of the site's own; raises SiteError while there is no site."""
        try:
            return self.folder.token()
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; bring one up first") from None

    def up(self, tell: Tell = to_nobody) -> None:
        """Return once the site's API answers; starts what does not run, tells what it replaces. Raises SiteError."""
        require_loopback_blocks()
        try:
            self.folder.prepare()
            self.registry.prepare()
        except OSError as error:
            raise SiteError(
                f"the site's folder or its user's registry of addresses can't be written: {error}; "
                "name others: the folder by --state, the registry's by XDG_STATE_HOME"
            ) from None
        with self._lock("up", tell):
            self.folder.ensure_token()
            running = self._process(API)
            if running is not None and self.folder.site_file.exists():
                unfit = self._unfit(running)
                if unfit is None:
                    return
                tell(f"{self.API_TITLE} (process {running.pid}) {unfit}: it is replaced; what it has started runs on")
            self._stop(API)
            if self.folder.site_file.exists():
                self._start_on_own_block()
            else:
                self._start_on_free_block()

    def down(self, *, keep_data: bool = False, tell: Tell = to_nobody) -> None:
        """Stop everything that the site started, then delete the cloud's data and give the block back.

        `keep_data`: like cutting the power; the next `up` finds everything as it was and boots the machines again.
        """
        if not self.folder.root.is_dir():
            return
        with self._lock("stop" if keep_data else "down", tell):
            # The API first: it would start again what it sees ending.
            self._stop(API)
            self._stop_everything_else()
            if keep_data:
                self.suspend()
                return
            shutil.rmtree(self.folder.cloud, ignore_errors=True)
            self.folder.site_file.unlink(missing_ok=True)
            self.registry.release(self.folder.root)

    def processes(self) -> list[dict[str, Any]]:
        """The site's processes but those of control planes, as a status has them."""
        return [
            {"name": each.name, "pid": each.pid, "log": str(each.log)}
            for each in processes.find_all(self.folder.process_record(API).parent)
        ]

    def is_running(self) -> bool:
        """Whether there is a process of the site's API, answering or not."""
        return self._process(API) is not None

    def is_healthy(self) -> bool:
        """Whether the site's API runs and answers; on a busy machine it may take some time."""
        api = self._process(API)
        return api is not None and bool(self._health_in_time(api, self.endpoint, STOP_GRACE_SECONDS))

    def ended_control_planes(self) -> frozenset[str]:
        """The folders' names of the control planes that do not run, or not wholly: the API starts them again."""
        clusters = self.folder.cluster("x").parent
        folders = sorted(clusters.iterdir()) if clusters.is_dir() else []
        return frozenset(each.name for each in folders if not _control_plane(each).is_running())

    # -- helpers

    def _start_on_own_block(self) -> None:
        """A site with data has its addresses for good: they stand in its objects and certificates."""
        block = self.folder.block()
        try:
            self.registry.reserve(block, self.folder.root)
            self._start_api(block)
        except (NoBlockError, PortBusyError) as error:
            raise SiteError(f"{error}; the data of {self.folder.root} need these addresses") from None

    def _start_on_free_block(self) -> None:
        """Take the first block that nobody has; another user's is noticed only by what listens there."""
        root = self.folder.root
        busy = []
        for block in self.registry.free_blocks(root):
            try:
                self.registry.reserve(block, root)
            except NoBlockError:
                continue  # another site was quicker
            self.folder.write_site(block)
            try:
                self._start_api(block)
                return
            except PortBusyError as error:
                busy.append(str(error))
            self.folder.site_file.unlink()
            self.registry.release(root)
        taken = "; ".join([self.registry.describe(), *busy])
        raise SiteError(
            f"no block of addresses is free: {taken}; a site gives its own back by `down`, or if its folder is deleted"
        )

    def _start_api(self, block: AddressBlock) -> None:
        """Raises PortBusyError if somebody else listens on the block's address, before the API or while it starts."""
        title = self.API_TITLE
        self._require_free(block)
        try:
            api = processes.start(
                title,
                # -P: nothing that lies in the working directory is ever imported.
                [sys.executable, "-P", "-m", self.API_MODULE, str(self.folder.root)],
                record=self.folder.process_record(API),
                log=self.folder.log(API),
                env=server_environment(os.environ),
                cwd=self.folder.cloud,
            )
        except ProcessError as error:
            raise SiteError(str(error)) from error
        if self._health_in_time(api, endpoint(block), HEALTHY_SECONDS):
            return
        ended = not api.is_running()
        tail = api.log_tail()
        self._stop(API)
        self._require_free(block)
        what = "ended" if ended else f"does not answer within {HEALTHY_SECONDS:g} s"
        raise SiteError(f"{title} {what}; its log ({api.log}) ends:\n{tail}")

    def _require_free(self, block: AddressBlock) -> None:
        for port, purpose in {API_PORT: self.API_TITLE, **self.MORE_PORTS}.items():
            require_free(block.api_address, port, purpose)

    def _unfit(self, api: Process) -> str | None:
        """What is wrong with the running API: no answer in time (it may just be starting), or an older code."""
        health = self._health_in_time(api, self.endpoint, STOP_GRACE_SECONDS)
        if not health:
            return f"has not answered for {STOP_GRACE_SECONDS:g} s"
        return None if health.get("revision") == self.revision() else "runs the code from before an update"

    def _health_in_time(self, api: Process, url: str, seconds: float) -> dict[str, Any]:
        """What this site's own API says of itself, and not another user's that was quicker.

        Waits at most `seconds`; nothing if it does not answer until then, or ends.
        """
        site, health = self.folder.fingerprint(), dict[str, Any]()

        def answers() -> bool:
            nonlocal health
            health = self._health(url)
            return health.get("site") == site

        wait_until(lambda: answers() or not api.is_running(), seconds)
        return health if health.get("site") == site else {}

    def _health(self, url: str) -> dict[str, Any]:
        """What a healthy API says of itself; nothing if none answers."""
        with urllib3.PoolManager(retries=False, timeout=PROBE_SECONDS) as pool:
            try:
                answer = pool.request("GET", f"{url}/healthz")
                return dict(answer.json()) if answer.status == 200 else {}
            except (urllib3.exceptions.HTTPError, ValueError):
                return {}

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

    def _process(self, name: str) -> Process | None:
        try:
            return processes.find(self.folder.process_record(name))
        except ProcessError as error:
            raise SiteError(str(error)) from error

    def _stop(self, name: str) -> None:
        process = self._process(name)
        if process is not None:
            try:
                process.stop(STOP_GRACE_SECONDS)
            except ProcessError as error:
                raise SiteError(str(error)) from error

    @contextmanager
    def _lock(self, command: str, tell: Tell) -> Iterator[None]:
        """One `up` or `down` of a site at a time; who has to wait is told for whom."""
        file = os.open(self.folder.root / "site.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell(f"waiting for another run ({Holder.read(file) or 'unknown'}), which starts or stops this site")
                fcntl.flock(file, fcntl.LOCK_EX)
            Holder.this(command).write(file)
            yield
        finally:
            os.close(file)


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the site's servers get of an environment: nothing that could be a secret."""
    return {name: value for name, value in environment.items() if name in _ENVIRONMENT}


def require_loopback_blocks() -> None:
    """Raise SiteError unless this system gives every address of 127.0.0.0/8 to its processes (Linux does)."""
    probe = "127.255.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        try:
            if not sys.platform.startswith("linux"):
                raise OSError(f"this is {sys.platform}")
            sock.bind((probe, 0))
        except OSError as error:
            raise SiteError(
                f"a local site needs Linux (or WSL2), where any address of 127.0.0.0/8 can be bound: {error}"
            ) from None


def wait_until(condition: Callable[[], bool], seconds: float, still: Callable[[], None] | None = None) -> bool:
    """Wait for a condition, at most `seconds`; whether it came about. `still` is called once if that takes long."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited >= seconds:
            return False
        if still is not None and waited >= QUIET_SECONDS:
            still()
            still = None
        time.sleep(POLL_SECONDS)
    return True


def _control_plane(directory: Path) -> ControlPlane:
    """Of a cluster of which nothing is known but its directory: enough to stop it."""
    nothing = IPv4Network("10.0.0.0/32")
    return ControlPlane(directory, Binaries({}), "10.0.0.1", nothing, nothing, directory.name)
