"""Starts a container's process by way of `sandbox.py`, signals and awaits it, and finds leftovers.

Every process of a machine has MARK in its environment, and so do its descendants: by it a booting machine finds the
leftovers of an earlier run, without trusting any record.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.machine import sandbox
from local.machine.volumes import Mount

MARK = "CLOUD_CONTROLLER_MACHINE_DIRECTORY"
_EXEC_SECONDS = 0.5
"""How long a process may be without an environment before that is final."""
_LAUNCHER = (sys.executable, "-I", "-S", str(Path(sandbox.__file__).resolve()))


class LaunchError(Exception):
    """The process could not be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: its exit code as in a shell (128 + signal), and the signal if there was one."""

    code: int
    signal: int | None


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start. `root` is an empty directory for its file system's root, None to share the machine's."""

    argv: Sequence[str]
    env: dict[str, str]
    cwd: str | None
    log: Path
    mounts: Sequence[Mount] = ()
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class Streams:
    """The descriptors of a process's standard streams, instead of its log. The caller closes them."""

    stdin: int
    stdout: int
    stderr: int
    terminal: bool = False
    """Whether they are a terminal: the process then leads a session with it as controlling terminal."""


class ContainerProcess:
    """A started process with its descendants: they share a process group."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.pid = process.pid
        self.started_at = time.time()
        asyncio.get_running_loop().add_reader(self._pidfd, self._ended)

    async def wait(self) -> Exit:
        """Wait until the process has ended and the rest of its group is killed."""
        return await asyncio.shield(self._exit)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not self._exit.done()

    def terminate(self) -> None:
        """Send SIGTERM to the process alone, as a container runtime does."""
        if not self._exit.done():
            self._process.terminate()

    def kill(self) -> None:
        """Kill its group at once."""
        if not self._exit.done():
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, grace_seconds: float) -> Exit:
        """SIGTERM, and SIGKILL after `grace_seconds`."""
        self.terminate()
        try:
            async with asyncio.timeout(grace_seconds):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()

    def _ended(self) -> None:
        """Called once: while the process is a zombie, no other group can have its number."""
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        os.killpg(self.pid, signal.SIGKILL)
        code = self._process.wait()
        if not self._exit.done():
            self._exit.set_result(Exit(128 - code, -code) if code < 0 else Exit(code, None))


async def start(command: Command, mark: Path, streams: Streams | None = None) -> ContainerProcess:
    """Start `command` and return once it runs. Must be called on the main thread, whose end ends the process.

    `mark` is the machine's directory. Raises LaunchError.
    """
    terminal = streams is not None and streams.terminal
    spec: sandbox.SandboxSpec = {
        "argv": list(command.argv),
        "cwd": command.cwd,
        "parent": os.getpid(),
        "terminal": terminal,
        "root": None if command.root is None else str(command.root),
        "mounts": [{"source": str(m.source), "target": m.target, "read_only": m.read_only} for m in command.mounts],
    }
    spec_fd = os.memfd_create("spec")
    os.write(spec_fd, json.dumps(spec).encode())
    os.lseek(spec_fd, 0, os.SEEK_SET)
    status, status_child = os.pipe()
    log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [*_LAUNCHER, str(spec_fd), str(status_child)],
            stdin=streams.stdin if streams else subprocess.DEVNULL,
            stdout=streams.stdout if streams else log,
            stderr=streams.stderr if streams else log,
            env={**command.env, MARK: str(mark)},
            pass_fds=(spec_fd, status_child),
            process_group=None if terminal else 0,
            start_new_session=terminal,
        )
    except OSError as error:
        os.close(status)
        raise LaunchError(str(error)) from error
    finally:
        for descriptor in (spec_fd, status_child, log):
            os.close(descriptor)
    try:
        problem = await _read_to_end(status)
    finally:
        os.close(status)
    started = ContainerProcess(process)
    if problem:
        await started.wait()
        raise LaunchError(problem)
    return started


async def can_mount(directory: Path) -> bool:
    """Whether this user's processes can have private mounts; `directory` is an empty one for the test."""
    probe = Command(argv=["true"], env={"PATH": os.defpath}, cwd=None, log=Path(os.devnull), root=directory)
    try:
        process = await start(probe, directory)
    except LaunchError:
        return False
    return (await process.wait()).code == 0


def leftovers(mark: Path) -> Iterator[int]:
    """Pidfds of the running processes that a machine with this directory started; the caller closes them."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            pidfd = os.pidfd_open(int(entry.name))
        except ProcessLookupError:
            continue
        # Read after opening: the descriptor identifies one process, whatever happens to the pid.
        if wanted in _environment(entry).split(b"\0"):
            yield pidfd
        else:
            os.close(pidfd)


def kill_leftovers(mark: Path) -> int:
    """Kill the leftovers of an earlier run of the machine; returns their number."""
    count = 0
    for pidfd in leftovers(mark):
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            count += 1
        except ProcessLookupError:
            continue
        finally:
            os.close(pidfd)
    return count


def _environment(entry: Path) -> bytes:
    """A process's environment; empty for another user's, the kernel's own, and one that is gone."""
    deadline = time.monotonic() + _EXEC_SECONDS
    try:
        while not (found := (entry / "environ").read_bytes()) and time.monotonic() < deadline:
            # A process in the middle of exec has none for an instant. The kernel's have no program.
            (entry / "exe").readlink()
            time.sleep(0)
        return found
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        return b""


async def _read_to_end(descriptor: int) -> str:
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    done: asyncio.Future[None] = loop.create_future()
    received = bytearray()

    def readable() -> None:
        chunk = os.read(descriptor, 4096)
        received.extend(chunk)
        if not chunk and not done.done():
            done.set_result(None)

    loop.add_reader(descriptor, readable)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)
    return received.decode(errors="replace")
