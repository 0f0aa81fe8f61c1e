"""A cluster of mycloud that no stack made: network, subnet, control plane and machines by the API."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import Kube
from local.mycloud.site import Site
from tests.e2e.local_stack import PATIENCE


class MycloudCluster:
    """Its machines (by name) have run and registered their nodes before any CCM does."""

    def __init__(self, site: Site, roles: dict[str, str]) -> None:
        site.up()
        self.site = site
        self.cloud = Client(site.endpoint, site.token)
        network = self._made("networks", {"name": "n"})
        self.network_id = str(network["id"])
        self.routes = f"route_tables/{network['route_table_id']}/routes"
        self.pods = str(network["pod_cidr"])
        subnet = self._made("subnets", {"name": "s", "network_id": network["id"], "zone": "zone-a"})
        cluster = self._made("clusters", {"name": "c", "network_id": network["id"]})
        self.id = str(cluster["id"])
        self.kubeconfig = str(self.cloud.get_path(f"clusters/{self.id}/kubeconfig")["kubeconfig"])
        self.kube = Kube.from_kubeconfig(self.kubeconfig)
        shared = {"subnet_id": subnet["id"], "cluster_id": self.id, "type": "m1.small"}
        tags = {"kubernetes.io/cluster": self.id}
        for name, role in roles.items():
            self._made("machines", {"name": name, "role": role, "tags": tags, **shared}, "running")

    def _made(self, collection: str, body: dict[str, Any], state: str = "available") -> dict[str, Any]:
        made = self.cloud.create(collection, body)
        return self.cloud.wait_for_state(collection, made["id"], [state], PATIENCE)

    def objects(self) -> dict[str, dict[str, str]]:
        """Everything but load balancers: the state of each object by its id."""
        kinds = ("networks", "subnets", "clusters", "machines", "volumes")
        return {kind: {each["id"]: each["state"] for each in self.cloud.list(kind)} for kind in kinds}
