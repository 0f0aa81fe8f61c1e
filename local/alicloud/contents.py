"""What an account holds, for the status of its site, and what of it a stack leaves. Pure."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.clb_balancers import CLB
from local.alicloud.clb_balancers import GROUP as CLB_GROUP
from local.alicloud.clb_balancers import LISTENER as CLB_LISTENER
from local.alicloud.cluster import NETWORK_ID
from local.alicloud.machines import BANDWIDTH, EIP, INSTANCE, ROUTE, SECURITY_GROUP, node_name
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from local.standin.store import Object

KINDS: Final = {
    CLB: "CLB",
    CLB_GROUP: "vServer group",
    BALANCER: "NLB",
    GROUP: "server group",
    SECURITY_GROUP: "security group",
    EIP: "elastic IP",
    BANDWIDTH: "bandwidth package",
}
"""What stacks and their controllers make, by the kinds of objects. Routes go with the machines that they lead to."""


def contents(account: Account) -> dict[str, Any]:
    """Machines, their routes, load balancers, and everything of stacks that a new site does not have."""
    names = {each["id"]: node_name(each) for each in account.store.all(INSTANCE)}
    routes = [{"cidr": each["cidr"], "node_name": names.get(each["hop"])} for each in account.store.all(ROUTE)]
    left = [f"{title} {each['id']}" for kind, title in KINDS.items() for each in account.store.all(kind)]
    return {
        "routes": routes,
        "machines": [_machine(each) for each in account.store.all(INSTANCE)],
        "load_balancers": [*_clbs(account), *_nlbs(account)],
        "left": [*left, *(f"route {each['cidr']}" for each in routes if each["node_name"] is None)],
    }


def _machine(instance: Object) -> dict[str, Any]:
    return {
        "id": instance["id"],
        "node_name": node_name(instance),
        "state": instance["status"],
        "zone": instance["zone"],
        "network": NETWORK_ID if instance["vpc"] == NETWORK_ID else instance["vpc"],
    }


def _clbs(account: Account) -> list[dict[str, Any]]:
    listeners = account.store.all(CLB_LISTENER)
    return [
        {
            "id": each["id"],
            "name": each["name"],
            "type": "clb",
            "address": each["address"],
            "listeners": [f"{one['protocol']} {one['port']}" for one in listeners if one["balancer"] == each["id"]],
        }
        for each in account.store.all(CLB)
    ]


def _nlbs(account: Account) -> list[dict[str, Any]]:
    listeners = account.store.all(LISTENER)
    return [
        {
            "id": each["id"],
            "name": each["name"],
            "type": "nlb",
            "address": ", ".join(zone["public"] or zone["private"] for zone in each["zones"]),
            "listeners": [f"{one['protocol']} {one['port']}" for one in listeners if one["balancer"] == each["id"]],
        }
        for each in account.store.all(BALANCER)
    ]
