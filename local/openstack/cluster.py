"""The cluster that a site has from its beginning: a project with a network, a router and servers.

Stacks find it as they find a cluster that somebody else made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from local.addresses import AddressBlock
from local.openstack.api import Api, Object
from local.openstack.peer import Peer
from local.openstack.project import HOST_NAME, Project
from local.state_folder import write_private

CLUSTER_ID: Final = "site"
WORKERS: Final = ("worker-0", "worker-1", "worker-2")
_PUBLIC_RANGE: Final = "203.0.113.0/24"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a stack must know of the cluster, and how the site asks the services about it."""

    project: str
    """The name of the project and of its user."""
    network_id: str
    router_id: str
    public_network_id: str
    credential_id: str
    credential_secret: str = field(repr=False)


def prepared(peer: Peer, block: AddressBlock, file: Path) -> Cluster:
    """The cluster of the file; made now, in a project of its own, if there is no file."""
    if not file.exists():
        write_private(file, json.dumps(asdict(_make(peer, block))) + "\n")
    return Cluster(**json.loads(file.read_text()))


def wanted_machines(api: Api) -> Mapping[str, Mapping[str, Any]]:
    """What boots the servers that are ACTIVE (`machine.json`), by their IDs."""
    return {
        each["id"]: {
            "id": each["id"],
            "node_name": node_name(each),
            "address": _address(each),
            "size": {"cpus": 2, "memory": "2Gi"},
            "role": "worker",
        }
        for each in servers(api)
        if each["status"] == "ACTIVE"
    }


def servers(api: Api) -> list[Object]:
    """The project's servers, as Nova shows them."""
    found: list[Object] = api.get("compute", "servers/detail")["servers"]
    return found


def node_name(server: Object) -> str:
    """The name under which the server's kubelet registers: as every kubelet, it lower-cases the host name."""
    return str(server[HOST_NAME]).lower()


def _make(peer: Peer, block: AddressBlock) -> Cluster:
    project = Project(peer)
    public, _ = project.network("public", _PUBLIC_RANGE, external=True)
    network, (subnet,) = project.network("nodes", str(block.network(0).machines))
    router = project.router(subnet, external=public["id"])
    for name in WORKERS:
        project.server(name, (network, [subnet]))
    wanted = {"name": "controllers", "roles": [{"name": name} for name in ("member", "load-balancer_member")]}
    path = f"users/{project.user_id}/application_credentials"
    made = project.api.post("identity", path, {"application_credential": wanted})["application_credential"]
    return Cluster(project.name, network["id"], router, public["id"], made["id"], made["secret"])


def _address(server: Object) -> str:
    return str(next(ip["addr"] for ips in server["addresses"].values() for ip in ips))
