"""What a Service's security group admits to nodes, as texts: `tcp 30080 10.1.0.0/16` (protocol, port, clients). Pure.

The clients are load balancers, which reach each member from the member's own subnet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import Pool

View = Mapping[str, Any]


def wanted_rules(pools: Iterable[tuple[str, Pool]], subnets: Mapping[str, str]) -> tuple[str, ...]:
    """The rules for pools, each with its port's protocol; `subnets`: the range of each member's subnet, by address.

    Members without a subnet get none.
    """
    found = set()
    for protocol, pool in pools:
        check = pool.health_check
        # kube-proxy's port; other checks go to the member's own.
        checked = {("tcp", check.port)} if check.port else set()
        for member in (each for each in pool.members if each.address in subnets):
            ports = {(protocol.lower(), member.port), *checked}
            found |= {f"{of} {port} {subnets[member.address]}" for of, port in ports}
    return tuple(sorted(found))


def text_of(rule: View) -> str:
    """A rule of Neutron; one that the controller does not write has another form than `wanted_rules`."""
    port, last = rule["port_range_min"], rule["port_range_max"]
    clients = rule.get("remote_ip_prefix")
    if rule["direction"] == "ingress" and rule["ethertype"] == "IPv4" and port == last and clients:
        return f"{rule['protocol']} {port} {clients}"
    from_group = rule.get("remote_group_id") or rule.get("remote_address_group_id") or clients or "anywhere"
    return f"{rule['direction']} {rule['ethertype']} {rule['protocol']} {port}-{last} {from_group}"


def body_of(text: str, group_id: str) -> dict[str, Any]:
    """The body of a new rule."""
    protocol, port, clients = text.split(" ")
    return {
        "security_group_id": group_id,
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": protocol,
        "port_range_min": int(port),
        "port_range_max": int(port),
        "remote_ip_prefix": clients,
    }


def observed_access(
    group: View | None, ports: Iterable[View], members: Collection[str], unguarded: Collection[str]
) -> dict[str, Value | None]:
    """The attributes `node_rules` and `open_nodes` of a model; `ports`: which have the group, `unguarded`: the
    addresses of ports that no group can be on, and that admit everything.
    """
    found = {*members} & {*unguarded}
    for port in ports:
        addresses = addresses_of([port])
        # One that is no member's any more is shown, so that the group is taken off.
        found |= addresses & {*members} or addresses
    rules = {text_of(each) for each in group["security_group_rules"]} if group else set()
    return {"node_rules": tuple(sorted(rules)), "open_nodes": tuple(sorted(found))}


def addresses_of(ports: Iterable[View]) -> set[str]:
    """The IPv4 addresses of ports."""
    return {ip["ip_address"] for port in ports for ip in port["fixed_ips"] if ":" not in ip["ip_address"]}
