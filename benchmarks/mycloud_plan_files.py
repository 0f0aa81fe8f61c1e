"""The cost of `plan -f` for manifests of N Services: none of which exists, then all of which have a load balancer."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from benchmarks.bulk_cluster import PAGE, bulk_cluster, load_balanced
from benchmarks.figure import Figure
from cloud_controller.kube import Object

NODES = 10
PROMISED_SECONDS = 30.0
"""For 500 Services."""


def measure(count: int) -> Sequence[Figure]:
    """Two runs of the command, from its start to its end, each with what it needs alone.

    Lower bound of the calls: the pages of all load balancers.
    """
    services = [{"apiVersion": "v1", "kind": "Service", **service} for service in load_balanced(count)]
    seconds = PROMISED_SECONDS * count / 500
    figures: list[Figure] = []

    def add(name: str, changed: Sequence[Object], outcome: str, pages: int) -> None:
        spent = cluster.plan(changed, f"{count} Services: {count} {outcome}")
        figures.append(Figure(f"mycloud-plan-{count}.{name}.seconds", spent.seconds, "s", seconds))
        figures.append(Figure(f"mycloud-plan-{count}.{name}.calls", spent.calls, "calls", pages))
        figures.append(Figure(f"mycloud-plan-{count}.{name}.cpu", spent.cpu_seconds, "s", spent.seconds))
        figures.append(Figure(f"mycloud-plan-{count}.{name}.memory", spent.memory, "MiB"))

    with bulk_cluster() as cluster:
        cluster.add_nodes(NODES, initialised=True, ingress=True)
        add("new", services, "created", 1)
        cluster.add_services(services)
        with cluster.daemon("--controllers=service") as daemon:
            daemon.spent(lambda: cluster.served(count))
        more = {"spec": {**services[0]["spec"], "ports": [{"port": 8080, "name": "a"}, {"port": 8081, "name": "b"}]}}
        add("changed", [{**service, **more} for service in services], "changed in place", ceil(count / PAGE))
    return figures
