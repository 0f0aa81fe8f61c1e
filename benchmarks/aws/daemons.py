"""The two measured controllers, each a process of its own with the same settings, and their costs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from benchmarks.aws.account import CREDENTIALS
from benchmarks.aws.moto import PROJECT, Counted, Simulator

Who = Literal["peer", "ours"]
PEER: Who = "peer"
OURS: Who = "ours"

PATIENCE = 900.0
SETTLE_SECONDS = 3.0
"""A controller counts as done after this long without a call, so that work after its last visible change counts."""
_POLL_SECONDS = 0.1

# The peer's names of controllers are upstream's.
_CONTROLLERS = {"node": "cloud-node-controller", "service": "service-lb-controller"}
_SAME_FLAGS = (
    *("--kube-api-qps=500", "--kube-api-burst=1000"),
    *("--concurrent-node-syncs=10", "--concurrent-service-syncs=4"),
    *("--leader-elect=false", "--configure-cloud-routes=false", "--secure-port=0"),
)


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


@dataclass(frozen=True, slots=True)
class Files:
    """A controller's configuration files, and its log."""

    cloud_config: Path
    kubeconfig: Path
    log: Path


def command(
    who: Who, peer: Path, files: Files, controllers: Sequence[str], flags: Sequence[str], haste: int
) -> list[str]:
    """The command line of a controller. `peer`: the Go controller's binary; `haste`: see `fast_caches.py`."""
    common = [f"--cloud-config={files.cloud_config}", f"--kubeconfig={files.kubeconfig}", *_SAME_FLAGS, *flags]
    if who == PEER:
        names = ",".join(_CONTROLLERS[name] for name in controllers)
        return [str(peer), "--cloud-provider=aws", f"--controllers={names}", "--authentication-skip-lookup", *common]
    names = ",".join(controllers)
    program = ["-P", "-m", "cloud_controller.cli"] if haste == 1 else ["-m", "benchmarks.aws.fast_caches", str(haste)]
    ours = [sys.executable, *program, "run", "--cloud", "aws"]
    return [*ours, f"--controllers={names}", "--log-level=warning", *common]


class Daemon:
    """A running controller."""

    def __init__(self, process: subprocess.Popen[bytes], simulator: Simulator, log: Path) -> None:
        self._process = process
        self._simulator = simulator
        self._log = log
        self._started = time.monotonic()
        self._before = simulator.counted()

    def since_start(self, until: Callable[[], bool] | None = None) -> Spent:
        """The cost since its start, once the condition holds and it has settled."""
        return self._spent(self._started, self._before, 0.0, until)

    def spent(self, until: Callable[[], bool] | None, trigger: Callable[[], object]) -> Spent:
        """The cost from `trigger` on until the condition holds and it has settled.

        Raises RuntimeError when it ends, or takes too long.
        """
        before, cpu, started = self._simulator.counted(), self._cpu_seconds(), time.monotonic()
        trigger()
        return self._spent(started, before, cpu, until)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds and every call in progress was answered."""
        self._wait(condition)
        self._wait(lambda: self._simulator.counted().busy == 0)

    def rest(self) -> None:
        """Wait until it has made no call for the settling time."""
        began = time.monotonic()

        def quiet() -> bool:
            counted = self._simulator.counted()
            return counted.busy == 0 and time.monotonic() >= max(counted.last, began) + SETTLE_SECONDS

        self._wait(quiet)

    def over(self, seconds: float) -> Spent:
        """The cost of a number of seconds."""
        before, cpu, started = self._simulator.counted(), self._cpu_seconds(), time.monotonic()
        self._wait(lambda: time.monotonic() >= started + seconds)
        counted = self._simulator.counted().since(before)
        return Spent(counted, time.monotonic() - started, self._cpu_seconds() - cpu, self._peak_memory())

    def _spent(self, started: float, before: Counted, cpu: float, until: Callable[[], bool] | None) -> Spent:
        ended = None
        if until is not None:
            self._wait(until)
            ended = time.monotonic()
        cpu_seconds = 0.0

        def settled() -> bool:
            nonlocal cpu_seconds
            counted = self._simulator.counted()
            common = counted.since(before).total > 0 or until is not None
            quiet_since = max(counted.last, ended or started)
            if counted.busy == 0 and time.monotonic() < quiet_since + SETTLE_SECONDS / 2:
                cpu_seconds = self._cpu_seconds() - cpu
            return common and counted.busy == 0 and time.monotonic() >= quiet_since + SETTLE_SECONDS

        self._wait(settled)
        counted = self._simulator.counted()
        seconds = (counted.last if ended is None else ended) - started
        return Spent(counted.since(before), seconds, cpu_seconds, self._peak_memory())

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

    def _cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def _peak_memory(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024


@contextmanager
def running(arguments: Sequence[str], simulator: Simulator, log: Path) -> Iterator[Daemon]:
    """A controller, until the block ends."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    # Only the cloud config names AWS's endpoints, and there is no metadata service to wait for.
    environment |= CREDENTIALS | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    with log.open("ab") as stream:
        process = subprocess.Popen(arguments, cwd=PROJECT, env=environment, stdout=stream, stderr=stream)
        try:
            yield Daemon(process, simulator, log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
