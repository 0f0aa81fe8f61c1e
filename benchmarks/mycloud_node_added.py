"""The cost of one more node for a daemon with 500 load balancers: one registration each."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bulk_cluster import bulk_cluster, load_balanced
from benchmarks.figure import Figure
from benchmarks.mycloud_nodes import WRITES_A_NODE, figures
from benchmarks.mycloud_services import NODES

PROMISED_SECONDS = 60.0


def measure(services: int) -> Sequence[Figure]:
    """One run, from the node's registration until it is a member of every load balancer."""
    with bulk_cluster() as cluster:
        cluster.add_nodes(NODES, initialised=True, ingress=True)
        cluster.add_services(load_balanced(services))
        with cluster.daemon("--controllers=node,service") as daemon:
            daemon.spent(lambda: cluster.served(services))
            spent = daemon.spent(
                lambda: cluster.memberships() == (NODES + 1) * services,
                trigger=lambda: cluster.add_nodes(1, prefix="added-", ingress=True),
            )
    return figures(
        "mycloud-node-added",
        spent,
        calls=services + 1,
        writes=WRITES_A_NODE,
        seconds=PROMISED_SECONDS,
    )
