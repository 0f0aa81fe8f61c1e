"""The service controller on a harness's account: a cluster with a Service, and what a person may do past it."""

from __future__ import annotations

from typing import Any

from cloud_controller.binding import Binding
from cloud_controller.kube import Object
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, served
from tests.contract.harness import Harness, web

BINDING = Binding("uid-of-the-cluster")


def serving(harness: Harness, *nodes: Object) -> tuple[Cluster, Running]:
    """A cluster with these nodes, and a controller that has given its Service a load balancer."""
    cluster = Cluster()
    cluster.objects["namespaces"] = {"kube-system": {"metadata": {"uid": BINDING.uid}}}
    for node in nodes:
        put_node(cluster, node)
    return cluster, served(as_account(harness), cluster, web(harness), binding=BINDING)


def put_node(cluster: Cluster, node: Object) -> None:
    """The machine's node joins the cluster."""
    address = node["status"]["addresses"][0]["address"]
    cluster.put_node(node["metadata"]["name"], node["spec"]["providerID"], address)


def started(harness: Harness, cluster: Cluster) -> Running:
    """A controller in a new process that has done what it may."""
    return Running(as_account(harness), cluster, binding=BINDING).settle()


def as_account(harness: Harness) -> Any:
    """As the tests of controllers have it, where `new_cloud` takes a config."""
    return harness
