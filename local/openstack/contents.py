"""What a site's project holds, asked of the services themselves, and what of it a stack leaves."""

from __future__ import annotations

from typing import Any, Final

from local.openstack.api import Api, ApiError, Object
from local.openstack.cluster import Cluster, node_name, servers

KINDS: Final = ("load balancer", "floating IP", "security group", "port", "route", "address pair")
"""What controllers make."""
_OF_NEW_PROJECTS: Final = "default"
"""The security group that every project has."""


def contents(api: Api, cluster: Cluster) -> dict[str, Any]:
    """Machines, their routes, load balancers, and everything that a new site does not have."""
    machines = servers(api)
    nodes = {ip["addr"]: node_name(each) for each in machines for ips in each["addresses"].values() for ip in ips}
    routes = api.get("network", f"routers/{cluster.router_id}")["router"]["routes"]
    balancers = api.get("load-balancer", "lbaas/loadbalancers")["loadbalancers"]
    listeners = api.get("load-balancer", "lbaas/listeners")["listeners"]
    floating = api.get("network", "floatingips")["floatingips"]
    ports = api.get("network", "ports")["ports"]
    groups = api.get("network", "security-groups")["security_groups"]
    own = {each["id"] for each in machines} | {cluster.router_id}
    # Routes, and what lets a port send from their addresses, go with the machines that they lead to.
    kept = {each["destination"] for each in routes if each["nexthop"] in nodes}
    left = [
        *(f"load balancer {each['name']}" for each in balancers),
        *(f"floating IP {each['floating_ip_address']}" for each in floating),
        *(f"security group {each['name']}" for each in groups if each["name"] != _OF_NEW_PROJECTS),
        *(f"port {each['name'] or each['id']}" for each in ports if each["device_id"] not in own),
        *(f"route {each['destination']}" for each in routes if each["destination"] not in kept),
        *(
            f"address pair {pair['ip_address']} of port {each['id']}"
            for each in ports
            for pair in each["allowed_address_pairs"]
            if pair["ip_address"] not in kept
        ),
    ]
    return {
        "machines": [_machine(each) for each in machines],
        "routes": [{"cidr": each["destination"], "node_name": nodes.get(each["nexthop"])} for each in routes],
        "load_balancers": [_balancer(each, floating, listeners, _members(api, each)) for each in balancers],
        "left": left,
    }


def _machine(server: Object) -> dict[str, Any]:
    return {
        "id": server["id"],
        "node_name": node_name(server),
        "state": server["status"],
        "zone": server["OS-EXT-AZ:availability_zone"],
    }


def _members(api: Api, balancer: Object) -> list[str]:
    """The members of its listeners: address and port."""
    try:
        tree = api.get("load-balancer", f"lbaas/loadbalancers/{balancer['id']}/status")["statuses"]["loadbalancer"]
    except ApiError as error:
        if error.status != 404:
            raise
        return []  # It was deleted after it was listed.
    pools = [pool for listener in tree["listeners"] for pool in listener["pools"]]
    return sorted({f"{each['address']}:{each['protocol_port']}" for pool in pools for each in pool["members"]})


def _balancer(balancer: Object, floating: list[Object], listeners: list[Object], members: list[str]) -> dict[str, Any]:
    public = [each["floating_ip_address"] for each in floating if each["port_id"] == balancer["vip_port_id"]]
    return {
        "id": balancer["id"],
        "name": balancer["name"],
        "state": balancer["provisioning_status"],
        "address": (public or [balancer["vip_address"]])[0],
        "listeners": [
            f"{each['protocol']} {each['protocol_port']}"
            for each in listeners
            if {"id": balancer["id"]} in each["loadbalancers"]
        ],
        "members": members,
    }
