"""Services and nodes for the tests of Octavia's load balancers."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.openstack.octavia.annotations import CATALOGUE
from tests.cloud_controller.cluster import Cluster


def named(**arguments: Any) -> dict[str, str]:
    """The annotations of these arguments."""
    return CATALOGUE.annotations(arguments)


def nodes(*names: str, cluster: Cluster | None = None, **labels: str) -> Cluster:
    """A cluster with these nodes, `node1` at 10.1.0.1."""
    cluster = cluster or Cluster()
    for name in names:
        number = int(name.removeprefix("node"))
        provider_id = f"openstack:///00000000-0000-4000-8000-{number:012d}"
        cluster.put_node(name, provider_id, f"10.1.0.{number}", labels=labels)
    return cluster
