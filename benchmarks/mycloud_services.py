"""The cost of making N load balancers for Services that all exist when the daemon starts."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from benchmarks.bulk_cluster import PAGE, bulk_cluster, load_balanced
from benchmarks.figure import Figure
from benchmarks.mycloud_nodes import figures

NODES = 10
WRITES_A_SERVICE = 2
"""The finalizer before anything is made, the address afterwards."""
PROMISED_SECONDS = 90.0


def measure(count: int) -> Sequence[Figure]:
    """One run, from the daemon's start until the last Service has its address.

    Lower bound of the calls: one creation each, and the pages of all of them before (none is known) and after.
    """
    with bulk_cluster() as cluster:
        cluster.add_nodes(NODES, initialised=True, ingress=True)
        cluster.add_services(load_balanced(count))
        with cluster.daemon("--controllers=service") as daemon:
            spent = daemon.spent(lambda: cluster.served(count))
    return figures(
        f"mycloud-services-{count}",
        spent,
        calls=count + ceil(count / PAGE) + 1,
        writes=WRITES_A_SERVICE * count,
        seconds=PROMISED_SECONDS,
    )
