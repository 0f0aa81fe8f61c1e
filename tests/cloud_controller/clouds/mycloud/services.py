"""Services and nodes of mycloud, and what of its load balancers tests look at."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.build import MyCloudBuilder
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.kube import Object
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import port, service

BUILDER = MyCloudBuilder("c-1", "internet-facing")
MAX_QPS = CATALOGUE.by_argument["listener_max_qps"].name
SCHEME = CATALOGUE.by_argument["scheme"].name


def named(**arguments: Any) -> dict[str, str]:
    """The annotations of these arguments."""
    return CATALOGUE.annotations(arguments)


def web(annotations: dict[str, str] | None = None, *ports: dict[str, Any], **more: Any) -> Object:
    """A Service that asks for a load balancer; without ports, for port 8080 (mycloud has none below 1024)."""
    return service(annotations, *ports or [port(8080)], **more)


def put_node(
    cluster: Cluster, machine: dict[str, Any], *, ingress: bool = False, labels: dict[str, str] | None = None
) -> None:
    """A node of this machine."""
    annotations = {INGRESS_NODE: "true"} if ingress else {}
    cluster.put_node(
        machine["name"], provider_id(machine), machine["private_ips"][0], labels=labels, annotations=annotations
    )


def members(lb: dict[str, Any]) -> set[str]:
    """`ADDRESS:PORT` of each member."""
    return {f"{b['address']}:{b['port']}" for s in lb["backend_sets"] for b in s["backends"]}


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The only one of these."""
    assert len(found) == 1
    return found[0]
