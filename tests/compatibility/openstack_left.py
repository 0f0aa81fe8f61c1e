"""What is left in Octavia and Neutron, by names of fields, as two controllers are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
World = Mapping[str, Mapping[str, Json]]
"""The objects of a project by kind (`listeners`) and ID. Networks, subnets and flavors have their names for IDs."""

_LISTENER = (
    *("admin_state_up", "connection_limit", "default_tls_container_ref", "insert_headers", "protocol"),
    *("timeout_client_data", "timeout_member_connect", "timeout_member_data", "timeout_tcp_inspect"),
)
_POOL = ("admin_state_up", "lb_algorithm", "protocol")
_MONITOR = (
    *("admin_state_up", "delay", "expected_codes", "http_method", "max_retries", "max_retries_down", "timeout"),
    *("type", "url_path"),
)
_BALANCER = (
    *("admin_state_up", "availability_zone", "flavor_id", "provider", "provisioning_status"),
    *("vip_network_id", "vip_subnet_id"),
)
_TRANSPORTS = {"UDP": "udp", "SCTP": "sctp"}
_OWNERS = ("kube_service_", "kubernetes.io/", "cloud-controller/")
SHARED = "cloud-controller/shared-with=peer/default"
"""What the user writes on a load balancer so that this controller takes it."""
_ADDRESSES = {"10.1.2.64": "node0", "10.1.1.123": "node1", "10.1.3.111": "node2", "10.1.2.125": "node3"}
NODES = {name: address for address, name in _ADDRESSES.items()}
ASKED_FOR = ("10.1.200.", "203.0.113.38", "203.0.113.200", "203.0.113.207")
"""Addresses that recorded Services name, or their beginnings; any other is made up."""
SUBNETS = {"203.0.113.": "pub-a", "198.51.100.": "pub-b", "192.0.2.": "pub2-a"}


def left(world: World) -> Json:
    """The load balancers with their parts and floating IPs, and how many there are of each kind."""
    found: Json = {}
    for number, balancer in enumerate(world["loadbalancers"].values(), 1):
        found["load balancer" if number == 1 else f"load balancer {number}"] = _balancer(balancer)
    vip_ports = {each.get("vip_port_id") for each in world["loadbalancers"].values()}
    by_address = sorted(world["floatingips"].values(), key=lambda each: str(each["floating_ip_address"]))
    for number, each in enumerate(by_address, 1):
        found["floating IP" if number == 1 else f"floating IP {number}"] = {
            "network": each["floating_network_id"],
            "subnet": next(name for start, name in SUBNETS.items() if each["floating_ip_address"].startswith(start)),
            "address": asked_for(each["floating_ip_address"]),
            "port": "the load balancer's" if each.get("port_id") in vip_ports else each.get("port_id") and "another",
        }
    for key, each in world["security_groups"].items():
        ports = {node: port for node, port in world["node ports"].items() if key in port["security_groups"]}
        rules = [_rule(rule) for rule in each["security_group_rules"] if rule["direction"] == "ingress"]
        found["security group"] = {"rules": sorted(rules), "nodes": sorted(ports)}
    used = set()
    for each in world["listeners"].values():
        where = f"{_TRANSPORTS.get(each['protocol'], 'tcp')}:{each['protocol_port']}"
        found[f"listener {where}"] = {
            **{name: each.get(name) or None for name in _LISTENER},
            "allowed_cidrs": sorted(each.get("allowed_cidrs") or ()),
            "owned": _is_owned(each),
        }
        pool = world["pools"].get(each.get("default_pool_id") or "")
        if pool is not None:
            used.add(each["default_pool_id"])
            found[f"pool {where}"] = _pool(world, each["default_pool_id"], pool)
            monitor = world["healthmonitors"].get(pool.get("healthmonitor_id") or "")
            if monitor is not None:
                found[f"monitor {where}"] = {name: monitor.get(name) for name in _MONITOR}
    return {
        **found,
        "load balancers": len(world["loadbalancers"]),
        "floating IPs": len(world["floatingips"]),
        "VIP ports": len(world["ports"]),
        "security groups": len(world["security_groups"]),
        "unused pools": len(world["pools"].keys() - used),
    }


def _rule(rule: Json) -> str:
    return f"{rule['protocol']} {rule['port_range_min']}-{rule['port_range_max']} from {rule.get('remote_ip_prefix')}"


def asked_for(address: str | None) -> str | None:
    """The address, if it was not made up."""
    return address if address and address.startswith(ASKED_FOR) else None


def _balancer(balancer: Json) -> Json:
    return {
        **{name: balancer.get(name) or None for name in _BALANCER},
        "vip_address": asked_for(balancer["vip_address"]),
        "name": balancer["name"] if balancer["name"] == "made-by-hand" else None,
        "tags": sorted(each for each in balancer.get("tags") or () if not each.startswith(_OWNERS)),
        "owned": _is_owned(balancer),
    }


def _pool(world: World, id: str, pool: Json) -> Json:
    members = sorted(
        (each for each in world["members"].values() if each["pool_id"] == id), key=lambda each: str(each["address"])
    )
    return {
        **{name: pool.get(name) for name in _POOL},
        "session_persistence": (pool.get("session_persistence") or {}).get("type"),
        "members": sorted(f"{_ADDRESSES[each['address']]}:{each['protocol_port']}" for each in members),
        "members' weights": sorted({each["weight"] for each in members}),
        "members' subnets": sorted({str(each.get("subnet_id")) for each in members}),
        "members' monitor ports": sorted({str(each.get("monitor_port")) for each in members}),
        "members switched off": sum(not each["admin_state_up"] for each in members),
        "backup members": sum(each["backup"] for each in members),
    }


def _is_owned(thing: Json) -> bool:
    return any(each.startswith(_OWNERS) and each != SHARED for each in thing.get("tags") or ())
