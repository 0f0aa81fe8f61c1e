"""The cost of an idle daemon: twenty periods of every controller, all periods shortened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import ceil

from benchmarks.bulk_cluster import PAGE, bulk_cluster, load_balanced
from benchmarks.figure import Figure
from benchmarks.mycloud_nodes import PROMISED_MIB
from benchmarks.mycloud_services import NODES as _MEMBERS

PERIOD_SECONDS = 5
PERIODS = 20
_PERIOD_FLAGS = (
    "--node-monitor-period",
    "--node-status-update-frequency",
    "--route-reconciliation-period",
    "--service-resync-period",
)


def measure(nodes: int, services: int) -> Sequence[Figure]:
    """One run with all nodes initialised and all load balancers made.

    Bound of the calls: in each period the machines' pages, the load balancers' pages and the routes' page once. Of the
    writes: none; the figure's bound is 1 because a ratio needs one.
    """
    flags = [f"{flag}={PERIOD_SECONDS}s" for flag in _PERIOD_FLAGS]
    with bulk_cluster() as cluster:
        cluster.add_nodes(_MEMBERS, initialised=True, ingress=True)
        cluster.add_services(load_balanced(services))
        with cluster.daemon("--controllers=service") as daemon:
            daemon.spent(lambda: cluster.served(services))
        cluster.add_nodes(nodes - _MEMBERS, prefix="more-")
        with cluster.daemon("--cluster-cidr=10.200.0.0/16", "--controllers=*,-volume", *flags) as daemon:
            everywhere = _MEMBERS * services
            daemon.spent(lambda: cluster.all_initialised() and cluster.memberships() == everywhere)
            end = time.monotonic() + PERIODS * PERIOD_SECONDS
            spent = daemon.spent(lambda: time.monotonic() >= end)
    pages = ceil(nodes / PAGE) + ceil(services / PAGE) + 1
    return [
        Figure("mycloud-idle.calls", spent.calls, "calls", PERIODS * pages),
        Figure("mycloud-idle.writes", spent.writes, "writes", 1),
        Figure("mycloud-idle.seconds", spent.seconds, "s", PERIODS * PERIOD_SECONDS),
        Figure("mycloud-idle.cpu", spent.cpu_seconds, "s", spent.seconds),
        Figure("mycloud-idle.memory", spent.memory, "MiB", PROMISED_MIB),
    ]
