"""A measured controller as a process of its own, and its costs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.counts import Counted, Counting

PROJECT = Path(__file__).resolve().parents[1]
PATIENCE = 900.0
SETTLE_SECONDS = 3.0
"""A controller counts as done after this long without a call, so that work after its last visible change counts."""
_POLL_SECONDS = 0.1

OURS_MODULE = ("-P", "-m", "cloud_controller.cli")
FLAGS = (
    *("--kube-api-qps=500", "--kube-api-burst=1000"),
    "--concurrent-node-syncs=10",
    *("--leader-elect=false", "--secure-port=0"),
)
"""The same for every controller."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a controller spent on a workload."""

    counted: Counted
    seconds: float
    """Until the condition held; without one, until the last call was answered."""
    cpu_seconds: float
    memory: float
    """MiB, the highest since its start."""

    @property
    def calls(self) -> int:
        """All calls, including failed ones."""
        return self.counted.total

    @property
    def writes(self) -> dict[str, int]:
        """The successful calls that change something, by operation."""
        reading = ("Describe", "Get", "List")
        calls = self.counted.calls.items()
        return {call: count for call, count in calls if not call.replace(".", " ").split()[1].startswith(reading)}


@dataclass(frozen=True, slots=True)
class Files:
    """A controller's configuration files, and its log."""

    cloud_config: Path
    kubeconfig: Path
    log: Path

    @classmethod
    def in_folder(cls, folder: Path, cloud_config: str, kubeconfig: str) -> Files:
        """The files, written."""
        files = cls(folder / "cloud.conf", folder / "kubeconfig", folder / "daemon.log")
        files.cloud_config.write_text(cloud_config)
        files.kubeconfig.write_text(kubeconfig)
        return files

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that name them."""
        return f"--cloud-config={self.cloud_config}", f"--kubeconfig={self.kubeconfig}"


def ours(
    cloud: str, files: Files, controllers: Sequence[str], flags: Sequence[str], module: Sequence[str] = OURS_MODULE
) -> list[str]:
    """The command line of this project's controller."""
    what = ["--cloud", cloud, f"--controllers={','.join(controllers)}", "--log-level=warning"]
    return [sys.executable, *module, "run", *what, *files.flags, *FLAGS, *flags]


class Daemon:
    """A running controller."""

    def __init__(self, process: subprocess.Popen[bytes], cloud: Counting, log: Path) -> None:
        self._process = process
        self._cloud = cloud
        self._log = log
        self._started = time.monotonic()
        self._before = cloud.counted()

    def since_start(self, until: Callable[[], bool] | None = None) -> Spent:
        """The cost since its start, once the condition holds and it has settled."""
        return self._spent(self._started, self._before, 0.0, until)

    def spent(self, until: Callable[[], bool] | None, trigger: Callable[[], object]) -> Spent:
        """The cost from `trigger` on until the condition holds and it has settled.

        Raises RuntimeError when it ends, or takes too long.
        """
        before, cpu, started = self._cloud.counted(), cpu_seconds(self._process.pid), time.monotonic()
        trigger()
        return self._spent(started, before, cpu, until)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds and every call in progress was answered."""
        self._wait(condition)
        self._wait(lambda: self._cloud.counted().busy == 0)

    def rest(self) -> None:
        """Wait until it has made no call for the settling time."""
        began = time.monotonic()

        def quiet() -> bool:
            counted = self._cloud.counted()
            return counted.busy == 0 and time.monotonic() >= max(counted.last, began) + SETTLE_SECONDS

        self._wait(quiet)

    def over(self, seconds: float) -> Spent:
        """The cost of a number of seconds."""
        before, cpu, started = self._cloud.counted(), cpu_seconds(self._process.pid), time.monotonic()
        self._wait(lambda: time.monotonic() >= started + seconds)
        return self._since(before, time.monotonic() - started, cpu_seconds(self._process.pid) - cpu)

    def _spent(self, started: float, before: Counted, cpu: float, until: Callable[[], bool] | None) -> Spent:
        ended = None
        if until is not None:
            self._wait(until)
            ended = time.monotonic()
        used = 0.0

        def settled() -> bool:
            nonlocal used
            counted = self._cloud.counted()
            common = counted.since(before).total > 0 or until is not None
            quiet_since = max(counted.last, ended or started)
            if counted.busy == 0 and time.monotonic() < quiet_since + SETTLE_SECONDS / 2:
                used = cpu_seconds(self._process.pid) - cpu
            return common and counted.busy == 0 and time.monotonic() >= quiet_since + SETTLE_SECONDS

        self._wait(settled)
        return self._since(before, (self._cloud.counted().last if ended is None else ended) - started, used)

    def _since(self, before: Counted, seconds: float, cpu: float) -> Spent:
        return Spent(self._cloud.counted().since(before), seconds, cpu, peak_memory(self._process.pid))

    def _wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not until():
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"the controller ended with exit code {self._process.returncode}:\n{_tail(self._log)}"
                )
            if time.monotonic() > deadline:
                raise RuntimeError(f"did not finish within {PATIENCE:g} s:\n{_tail(self._log)}")
            time.sleep(_POLL_SECONDS)


@contextmanager
def running(arguments: Sequence[str], environment: Mapping[str, str], cloud: Counting, log: Path) -> Iterator[Daemon]:
    """A controller, until the block ends."""
    with log.open("ab") as stream:
        process = subprocess.Popen(arguments, cwd=PROJECT, env=environment, stdout=stream, stderr=stream)
        try:
            yield Daemon(process, cloud, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def cpu_seconds(pid: int) -> float:
    """The processor time of a process so far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def peak_memory(pid: int) -> float:
    """The most memory that a process has had, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def check(holds: bool, otherwise: str) -> None:
    """A controller that does not do its work is not measured. Raises RuntimeError."""
    if not holds:
        raise RuntimeError(otherwise)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
