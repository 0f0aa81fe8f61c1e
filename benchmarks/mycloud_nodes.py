"""The cost of initialising N nodes that all exist when the daemon starts."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from benchmarks.bulk_cluster import PAGE, Spent, bulk_cluster
from benchmarks.figure import Figure

PROMISED_SECONDS = 90.0
"""For 5,000 nodes; for fewer in proportion."""
PROMISED_MIB = 300.0
WRITES_A_NODE = 2
"""One of status, one of metadata and spec: the API server has two endpoints for them."""


def measure(count: int) -> Sequence[Figure]:
    """One run, from the daemon's start until the last taint is removed. Bounds: the pages that N machines fill; the
    necessary writes; for seconds and memory the project's promise.
    """
    with bulk_cluster() as cluster:
        cluster.add_nodes(count)
        with cluster.daemon("--controllers=node,node-lifecycle") as daemon:
            spent = daemon.spent(cluster.all_initialised)
    return figures(
        f"mycloud-nodes-{count}",
        spent,
        calls=ceil(count / PAGE),
        writes=WRITES_A_NODE * count,
        seconds=PROMISED_SECONDS * count / 5000,
    )


def figures(name: str, spent: Spent, *, calls: float, writes: float, seconds: float) -> list[Figure]:
    """The costs, each with its bound; processor time with the wall time of the run."""
    return [
        Figure(f"{name}.calls", spent.calls, "calls", calls),
        Figure(f"{name}.writes", spent.writes, "writes", writes),
        Figure(f"{name}.seconds", spent.seconds, "s", seconds),
        Figure(f"{name}.cpu", spent.cpu_seconds, "s", spent.seconds),
        Figure(f"{name}.memory", spent.memory, "MiB", PROMISED_MIB),
    ]
