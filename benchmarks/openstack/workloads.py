"""The workloads on OpenStack, beside the figures of openstack-cloud-controller-manager.

The bound of `.calls` is the project's promise, a tenth and 10 calls more than the fewest that the API allows; that of
`.peer`, in calls too, what the Go controller was recorded to make at the same services (DATA, NOT MEASURED HERE:
kubernetes/cloud-provider-openstack, c453fb7c9bbb). All of our calls count; they go to stderr by operation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import ceil

from benchmarks.daemons import Spent
from benchmarks.figure import Figure
from benchmarks.openstack.cluster import cluster

_SERVERS_A_PAGE = 1000
TOKEN = 1
_RECORDED_NODES = {50: 215, 200: 815}
_ROUTED = 5
_RECORDED_ROUTES = 20
_PERIOD = 10
"""Seconds, as the Go controller reconciles routes by default."""
_PERIODS = 6
_RECORDED_IDLE = 2
"""Calls a period."""


def nodes(count: int) -> Sequence[Figure]:
    """This many nodes, all present when the controller starts, until the last taint is removed."""
    with cluster() as made:
        made.add_nodes(count)
        with made.daemon(["node"]) as daemon:
            spent = daemon.since_start(made.all_initialised)
    fewest = TOKEN + ceil(count / _SERVERS_A_PAGE)
    return figures(f"openstack-nodes-{count}", spent, fewest, _RECORDED_NODES.get(count))


def routes() -> Sequence[Figure]:
    """Five nodes and their pod routes, until the last is there; then periods in which nothing changes."""
    with cluster(routed=True) as made:
        made.add_nodes(_ROUTED)
        with made.daemon(["node", "route"], f"--route-reconciliation-period={_PERIOD}s") as daemon:
            spent = daemon.since_start(lambda: made.all_initialised() and made.routes() == _ROUTED)
            idle = daemon.over(_PERIOD * _PERIODS)
    # Token, servers, router, ports; a pair on each port, and all routes at once.
    fewest = TOKEN + 3 + _ROUTED + 1
    # A window of some periods may start just before one.
    periods = _PERIODS + 1
    return [
        *figures("openstack-routes", spent, fewest, _RECORDED_ROUTES),
        *figures("openstack-routes-idle", idle, periods, periods * _RECORDED_IDLE),
    ]


def figures(name: str, spent: Spent, fewest: int, peer: int | None) -> list[Figure]:
    """The figures of a run. Seconds, processor time and memory have no bound."""
    print(json.dumps({"name": name, "calls": spent.counted.calls}), file=sys.stderr, flush=True)
    return [
        Figure(f"{name}.calls", spent.calls, "calls", 1.1 * fewest + 10, floor=fewest),
        *([] if peer is None else [Figure(f"{name}.peer", spent.calls, "calls", peer)]),
        Figure(f"{name}.seconds", spent.seconds, "s"),
        Figure(f"{name}.cpu", spent.cpu_seconds, "s"),
        Figure(f"{name}.memory", spent.memory, "MiB"),
    ]
