"""Running services, shared by whoever uses the same folder: the workers of a test run.

The first user starts them as a process of their own, which ends when the last user is gone, however that one ended:
each holds a shared lock on a file until then.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.errors import Report
from local.one_process import alone
from local.openstack import environment, state
from local.openstack.api import Api
from local.openstack.environment import EnvironmentFailed
from local.openstack.process import Service, free_ports
from local.waiting import to_nobody, wait_until

_VERSIONS = {"network": "/v2.0", "load-balancer": "/v2", "compute": "/v2.1"}
_LOOK_SECONDS = 1.0
"""How often the services look whether they still have users."""
_START_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Peer:
    """The services, each at its port. `admin` is their administrator, and reaches what they have below /peer."""

    ports: Mapping[str, int]
    pids: Mapping[str, int]
    admin: Api

    def url(self, service: str) -> str:
        """Without version."""
        return f"http://127.0.0.1:{self.ports[service]}"

    def api(self, user: str, project: str) -> Api:
        """The services as this user of this project sees them."""
        return Api(self.url("identity"), user, project, self.admin.urls)


@contextmanager
def shared(folder: Path, report: Report = to_nobody, *, keep: bool = False) -> Iterator[Peer]:
    """The services of this folder while the block runs. What is missing is installed, made and started first.

    `keep`: their databases stay in the folder for the next time.

    Raises EnvironmentFailed.
    """
    state.ensure(environment.ensure(report), report)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        running = folder / "running.json"
        with alone(folder / "starting", "starting OpenStack's services", report):
            if not running.exists() or _is_free(folder / "serving"):
                # Without a process that holds the lock, the file is left of one that was killed.
                running.unlink(missing_ok=True)
                _start(folder, running, *(["--keep"] if keep else []))
        told = json.loads(running.read_text())
        ports = told["ports"]
        urls = {service: f"http://127.0.0.1:{ports[service]}{version}" for service, version in _VERSIONS.items()}
        peers = {f"{service}-peer": f"http://127.0.0.1:{ports[service]}/peer" for service in _VERSIONS}
        admin = Api(f"http://127.0.0.1:{ports['identity']}", urls=urls | peers)
        yield Peer(ports, told["pids"], admin)


def serve(folder: Path, *, keep: bool = False) -> None:
    """Run the services on a copy of the state, until no user of the folder is left."""
    python = environment.ensure(to_nobody)
    made = state.ensure(python, to_nobody)
    ports = free_ports()
    copy = folder / "state"
    if not keep:
        shutil.rmtree(copy, ignore_errors=True)
    with ExitStack() as stack:
        fcntl.flock(stack.enter_context((folder / "serving").open("a")), fcntl.LOCK_EX)
        if not keep:
            stack.callback(shutil.rmtree, copy, ignore_errors=True)
        if not copy.exists():
            state.copy(made, copy)
        state.direct(copy, ports, python.parents[1])
        # All start at once; each takes seconds.
        services = {service: Service(service, python, copy, port) for service, port in ports.items()}
        for each in services.values():
            stack.callback(each.end)
        for each in services.values():
            each.wait()
        growing = folder / "running.new"
        growing.write_text(json.dumps({"ports": ports, "pids": {name: each.pid for name, each in services.items()}}))
        growing.rename(folder / "running.json")
        with (folder / "users").open("a") as users:
            while not _alone(users.fileno()):
                time.sleep(_LOOK_SECONDS)
            # A user that waits for the lock by now finds no services, and starts others.
            (folder / "running.json").unlink()


def _start(folder: Path, running: Path, *arguments: str) -> None:
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "local.openstack", str(folder), *arguments],
            cwd=Path(__file__).parents[2],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if not wait_until(lambda: running.exists() or process.poll() is not None, _START_SECONDS) or not running.exists():
        process.terminate()
        raise EnvironmentFailed(f"the services did not start:\n{(folder / 'log').read_text()[-3000:]}")


def _is_free(lock: Path) -> bool:
    with lock.open("a") as file:
        return _alone(file.fileno())


def _alone(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
