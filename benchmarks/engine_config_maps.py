"""The speed of the embedded engine with a real API server: config maps, which are ready as soon as they are stored."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.engine_stack import EngineStack, engine_stack
from benchmarks.figure import Figure
from local.control_plane.binaries import ensure
from local.control_plane.components import ALL_PORTS
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address

RUNS = 3
CLI_SECONDS = {"preview": 4.8, "up": 6.3, "noop": 3.2}
"""What Pulumi's CLI took for 200 of them on such a machine."""

PROGRAM = """
import pulumi
import pulumi_kubernetes as kubernetes

cluster = kubernetes.Provider("cluster", kubeconfig={kubeconfig!r})
for number in range({count}):
    kubernetes.core.v1.ConfigMap(
        f"map-{{number}}", data={{"number": str(number)}}, opts=pulumi.ResourceOptions(provider=cluster)
    )
"""


def measure(count: int, what: str) -> list[Figure]:
    """The median of several runs of `preview` or `up` of a new stack, or `noop`: a preview afterwards."""
    with _config_maps(count) as stack:
        floors, seconds = [], []
        if what == "noop":
            stack.seconds("up")
        for _ in range(RUNS):
            floors.append(stack.floor())
            seconds.append(stack.seconds("up" if what == "up" else "preview"))
            if what == "up":
                stack.seconds("destroy")
                stack.reset()
    name = f"configmaps-{count}-{what}"
    return [Figure(name, statistics.median(seconds), "s", CLI_SECONDS[what], floor=statistics.median(floors))]


@contextmanager
def _config_maps(count: int) -> Iterator[EngineStack]:
    binaries = ensure(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="config-maps-") as directory:
        control_plane = ControlPlane(
            Path(directory), binaries, unused_address(ALL_PORTS), "10.1.0.0/16", "10.2.0.0/24", "benchmark"
        )
        try:
            control_plane.start()
            control_plane.wait_ready()
            kubeconfig = Path(directory) / "kubeconfig"
            kubeconfig.write_text(control_plane.kubeconfig("benchmark", ["system:masters"], timedelta(hours=1)))
            with engine_stack(PROGRAM.format(count=count, kubeconfig=str(kubeconfig))) as stack:
                yield stack
        finally:
            control_plane.stop()
