"""A project of its own with a network, a router and servers: what a test or a site gives a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from local.openstack.api import Api, Object
from local.openstack.configs import PASSWORD
from local.openstack.peer import Peer

ROLES = ("member", "load-balancer_member")
HOST_NAME = "OS-EXT-SRV-ATTR:hostname"
"""The field of a server that Nova shows."""


class Project:
    """A fresh project, and `api`, its user. Others see nothing of it but what is on external networks."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.name = f"p-{uuid.uuid4().hex[:8]}"
        admin = peer.admin
        self.id: str = admin.post("identity", "projects", {"project": {"name": self.name}})["project"]["id"]
        user = {"name": self.name, "password": PASSWORD}
        self.user_id: str = admin.post("identity", "users", {"user": user})["user"]["id"]
        for role in admin.get("identity", "roles")["roles"]:
            if role["name"] in ROLES:
                admin.put("identity", f"projects/{self.id}/users/{self.user_id}/roles/{role['id']}")
        self.api = peer.api(self.name, self.name)

    def network(self, name: str, *ranges: str, external: bool = False) -> tuple[Object, list[Object]]:
        """A new network and its subnets. An external one is the administrator's, for everybody's floating IPs."""
        api = self._peer.admin if external else self.api
        wanted: Object = {"name": name} | ({"router:external": True} if external else {})
        network = api.post("network", "networks", {"network": wanted})["network"]
        return network, [self._subnet(api, network, cidr) for cidr in ranges]

    def router(self, *subnets: Object, external: str | None = None) -> str:
        """The ID of a new router with interfaces in these subnets, and a gateway to the external network."""
        wanted: Object = {"name": "router"} | ({"external_gateway_info": {"network_id": external}} if external else {})
        router: str = self.api.post("network", "routers", {"router": wanted})["router"]["id"]
        for subnet in subnets:
            self.api.put("network", f"routers/{router}/add_router_interface", {"subnet_id": subnet["id"]})
        return router

    def server(
        self, name: str, *networks: tuple[Object, Sequence[Object]], floating: str = "", **more: Any
    ) -> tuple[str, list[Object]]:
        """The ID of a new running server, and its ports: one in each network, with an address of each subnet.

        `floating`: an address that Nova shows as floating on the first port.
        """
        server = str(uuid.uuid4())
        ports = [self._port(server, network, subnets) for network, subnets in networks]
        interfaces = [
            self._interface(network, subnets, port) for (network, subnets), port in zip(networks, ports, strict=True)
        ]
        if floating:
            interfaces[0]["ips"][0]["floating"] = [floating]
        owner = {"project_id": self.id, "user_id": self.user_id}
        wanted = {"id": server, "name": name, **owner, "interfaces": interfaces, **more}
        self._peer.admin.post("compute-peer", "servers", wanted)
        return server, ports

    def host_name(self, id: str) -> str:
        """The host name that Nova gave a server, under which its kubelet registers."""
        return str(self.api.get("compute", f"servers/{id}")["server"][HOST_NAME])

    def end_server(self, id: str) -> None:
        """Delete a server and, as Nova would, its ports."""
        self._peer.admin.delete("compute-peer", f"servers/{id}")
        for port in self.api.get("network", f"ports?device_id={id}")["ports"]:
            self._peer.admin.delete("network", f"ports/{port['id']}")

    def set_server(self, id: str, **columns: Any) -> None:
        """Change what Nova knows of a server: `vm_state`, `display_name`."""
        self._peer.admin.put("compute-peer", f"servers/{id}", columns)

    def _subnet(self, api: Api, network: Object, cidr: str) -> Object:
        wanted: Object = {"network_id": network["id"], "cidr": cidr, "ip_version": 6 if ":" in cidr else 4}
        made: Object = api.post("network", "subnets", {"subnet": wanted})["subnet"]
        return made

    def _port(self, server: str, network: Object, subnets: Sequence[Object]) -> Object:
        wanted: Mapping[str, Any] = {
            "device_id": server,
            "device_owner": "compute:nova",
            "network_id": network["id"],
            "fixed_ips": [{"subnet_id": subnet["id"]} for subnet in subnets],
        }
        made: Object = self.api.post("network", "ports", {"port": wanted})["port"]
        return made

    def _interface(self, network: Object, subnets: Sequence[Object], port: Object) -> Object:
        cidrs = {subnet["id"]: subnet["cidr"] for subnet in subnets}
        ips = [{"cidr": cidrs[ip["subnet_id"]], "address": ip["ip_address"]} for ip in port["fixed_ips"]]
        return {
            "network_id": network["id"],
            "network": network["name"],
            "port_id": port["id"],
            "mac": port["mac_address"],
            "ips": ips,
        }
