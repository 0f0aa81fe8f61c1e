"""What the cloud must hold for given Services and nodes: said directly, without the code that brings it about.

A load balancer is compared as a dict of plain values: each listener with the pool that it leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cloud_controller.kube import Object

PREFIX = "service.beta.kubernetes.io/dlb-"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
INGRESS = "mycloud.io/ingress-node"
OUR_CLASS = "mycloud.io/load-balancer"

Json = dict[str, Any]
Port = tuple[str, int]


def is_served(service: Object) -> bool:
    """Whether the Service shall have something in the cloud."""
    spec = service["spec"]
    ours = spec.get("loadBalancerClass") in (None, OUR_CLASS)
    return spec["type"] == "LoadBalancer" and ours and "deletionTimestamp" not in service["metadata"]


def named(service: Object) -> str | None:
    """The load balancer that the Service asks to share."""
    return annotation(service, "id")


def annotation(service: Object, name: str) -> str | None:
    """The Service's annotation of this short name."""
    return (service["metadata"].get("annotations") or {}).get(PREFIX + name)


def tags(cluster: str, service: Object) -> Json:
    """What is the Service's carries these."""
    metadata = service["metadata"]
    return {
        "kubernetes.io/cluster": cluster,
        "kubernetes.io/service-uid": metadata["uid"],
        "kubernetes.io/service": f"{metadata['namespace']}/{metadata['name']}",
    }


def own_load_balancer(cluster: str, service: Object, nodes: Sequence[Object], slices: Sequence[Object]) -> Json:
    """The load balancer of a Service that does not share."""
    metadata = service["metadata"]
    return {
        "name": f"{cluster}-{metadata['namespace']}-{metadata['name']}",
        "tags": tags(cluster, service),
        "scheme": annotation(service, "scheme") or "internet-facing",
        "source_ranges": sorted(service["spec"].get("loadBalancerSourceRanges") or []),
        "state": "available",
        "listeners": listeners(service, nodes, slices, {}),
        "spare_pools": [],
    }


def listeners(service: Object, nodes: Sequence[Object], slices: Sequence[Object], tags: Json) -> dict[Port, Json]:
    """What a client of the Service meets on each port, and where it is sent."""
    spec = service["spec"]
    affine = spec.get("sessionAffinity") == "ClientIP"
    found: dict[Port, Json] = {}
    for port in spec["ports"]:
        found[port["protocol"], port["port"]] = {
            "tags": tags,
            "max_qps": int(annotation(service, "listener-maxqps") or 0) or None,
            "idle_timeout_seconds": 60,
            "pool_tags": tags,
            "scheduler": annotation(service, "scheduler") or "round_robin",
            "session_affinity": "CLIENT_IP" if affine else "NONE",
            "session_affinity_timeout_seconds": 10800,
            "check": check(service, port),
            "backends": backends(service, port, nodes, slices),
        }
    return found


def check(service: Object, port: Object) -> tuple[str, int | None]:
    """How a backend is checked: the protocol, and the port if it is not the backend's own."""
    local = is_local(service) and annotation(service, "backend-type") != "pod-ip"
    given = annotation(service, "health-check-port")
    said = annotation(service, "health-check-protocol")
    only_udp = all(each["protocol"] == "UDP" for each in service["spec"]["ports"])
    if port["protocol"] == "UDP" and not local and given is None and not (only_udp and said):
        return ("NONE", None)
    protocol = said or ("HTTP" if local else "TCP")
    number = int(given) if given else service["spec"]["healthCheckNodePort"] if local else None
    return (protocol, number)


def is_local(service: Object) -> bool:
    """Whether only nodes with pods get traffic."""
    return bool(service["spec"].get("externalTrafficPolicy") == "Local")


def backends(
    service: Object, port: Object, nodes: Sequence[Object], slices: Sequence[Object]
) -> dict[tuple[str, str, int], int]:
    """Machine, address and port of each backend on these nodes, and its weight."""
    usable = {node["metadata"]["name"]: node for node in nodes}
    pods = [
        (endpoint["addresses"][0], endpoint["nodeName"])
        for each in slices
        for endpoint in each["endpoints"]
        if endpoint["conditions"]["ready"] and endpoint["nodeName"] in usable
    ]
    if annotation(service, "backend-type") == "pod-ip":
        return {(machine(usable[node]), address, port["targetPort"]): 1 for address, node in pods}
    weights = dict.fromkeys(usable, 1)
    if is_local(service):
        weights = {node: sum(1 for _, of in pods if of == node) for node in {of for _, of in pods}}
    marked = {node: weight for node, weight in weights.items() if is_ingress(usable[node])}
    return {
        (machine(usable[node]), address_of(usable[node]), port["nodePort"]): weight
        for node, weight in (marked or weights).items()
    }


def serving(
    service: Object, nodes: Sequence[Object], slices: Sequence[Object], present: Collection[str]
) -> list[Object]:
    """The nodes that the Service's load balancer may send to. If none of them could serve it, a label alone takes out
    none of the machines that serve it at `present`."""
    usable = [node for node in nodes if is_usable(node)]
    chosen = [node for node in usable if not is_excluded(node)]
    if any(backends(service, port, chosen, slices) for port in service["spec"]["ports"]):
        return chosen
    return [node for node in usable if is_excluded(node) and machine(node) in present]


def is_usable(node: Object) -> bool:
    """Whether load balancers may send to the node, whatever its labels: initialised, not about to go."""
    going = any(taint["key"] == "ToBeDeletedByClusterAutoscaler" for taint in node["spec"].get("taints") or [])
    return "providerID" in node["spec"] and not going


def is_excluded(node: Object) -> bool:
    """Whether a label excludes the node."""
    return "node.kubernetes.io/exclude-from-external-load-balancers" in (node["metadata"].get("labels") or {})


def is_ingress(node: Object) -> bool:
    """Whether the node is marked to take the load balancers' traffic."""
    return (node["metadata"].get("annotations") or {}).get(INGRESS) == "true"


def machine(node: Object) -> str:
    """The id of the node's machine."""
    return str(node["spec"]["providerID"].rpartition("/")[2])


def address_of(node: Object) -> str:
    """The node's address."""
    return str(node["status"]["addresses"][0]["address"])


# ------------------------------------------------------------------------------------------------- what the cloud says


def seen(lb: Mapping[str, Any]) -> Json:
    """A load balancer of the API in the form of this model."""
    pools = {pool["name"]: pool for pool in lb["backend_sets"]}
    used = {listener["backend_set"] for listener in lb["listeners"]}
    return {
        "name": lb["name"],
        "tags": lb["tags"],
        "scheme": lb["scheme"],
        "source_ranges": sorted(lb["source_ranges"]),
        "state": lb["state"],
        "listeners": {
            (each["protocol"], each["port"]): {
                "tags": each["tags"],
                "max_qps": each["max_qps"],
                "idle_timeout_seconds": each["idle_timeout_seconds"],
                **_seen_pool(pools[each["backend_set"]]),
            }
            for each in lb["listeners"]
        },
        "spare_pools": sorted(name for name in pools if name not in used),
    }


def _seen_pool(pool: Mapping[str, Any]) -> Json:
    return {
        "pool_tags": pool["tags"],
        "scheduler": pool["scheduler"],
        "session_affinity": pool["session_affinity"],
        "session_affinity_timeout_seconds": pool["session_affinity_timeout_seconds"],
        "check": (pool["health_check"]["protocol"], pool["health_check"]["port"]),
        "backends": {(b["machine_id"], b["address"], b["port"]): b["weight"] for b in pool["backends"]},
    }
