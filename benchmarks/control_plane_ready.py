"""How long a new control plane takes until pods can be created: from an empty folder, with the binaries built."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure
from local.control_plane.binaries import Binaries, ensure
from local.control_plane.components import ALL_PORTS
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address

PROMISED_SECONDS = 10.0
RUNS = 3


def measure() -> list[Figure]:
    """The median of several runs, each with PKI and etcd data of its own."""
    binaries = ensure(lambda line: print(line, file=sys.stderr))
    seconds = statistics.median(_run(binaries) for _ in range(RUNS))
    return [Figure("control-plane-ready", seconds, "s", PROMISED_SECONDS)]


def _run(binaries: Binaries) -> float:
    with tempfile.TemporaryDirectory(prefix="control-plane-ready-") as directory:
        control_plane = ControlPlane(
            Path(directory), binaries, unused_address(ALL_PORTS), "10.1.0.0/16", "10.2.0.0/24", "benchmark"
        )
        started = time.monotonic()
        try:
            control_plane.start()
            control_plane.wait_ready()
            return time.monotonic() - started
        finally:
            control_plane.stop()
