"""CLB's words for load balancers, server groups and tags, and the model's. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from cloud_controller.cloud import CloudError, NotFound
from cloud_controller.clouds.alicloud.clb.build import ENI
from cloud_controller.clouds.alicloud.errors import error_code
from cloud_controller.clouds.alicloud.tags import tags_of
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import LoadBalancerState

_STATES = {"active": LoadBalancerState.READY}
_REASONS = {
    "inactive": "it is stopped (SetLoadBalancerStatus starts it)",
    "locked": "the cloud has locked it, for example for an overdue payment",
}

_SHOWN_AS = {
    "address_type": "AddressType",
    "address_ip_version": "AddressIPVersion",
    "vswitch_id": "VSwitchId",
    "address": "Address",
    "master_zone_id": "MasterZoneId",
    "slave_zone_id": "SlaveZoneId",
    "resource_group_id": "ResourceGroupId",
    "load_balancer_spec": "LoadBalancerSpec",
    "bandwidth": "Bandwidth",
    "deletion_protection": "DeleteProtection",
    "modification_protection": "ModificationProtectionStatus",
}
_CHARGES = {"3": "paybybandwidth", "4": "paybytraffic"}
"""`InternetChargeType` in answers, which some endpoints give in numbers."""


class Server(NamedTuple):
    """A backend of a server group: the member, and the ID under which the group knows it."""

    member: Member
    id: str


@dataclass(frozen=True, slots=True)
class Group:
    """A server group with its backends."""

    id: str
    load_balancer_id: str
    name: str
    tags: Mapping[str, str]
    servers: tuple[Server, ...] = ()


def balancer_attributes(shown: Mapping[str, Any]) -> dict[str, Value | None]:
    """The model's attributes of a load balancer as DescribeLoadBalancers shows it."""
    found: dict[str, Value | None] = {name: shown.get(wire) or None for name, wire in _SHOWN_AS.items()}
    # Sites with a single way of charging do not show it.
    found["instance_charge_type"] = shown.get("InstanceChargeType") or "PayByCLCU"
    charge = str(shown.get("InternetChargeTypeAlias") or shown.get("InternetChargeType") or "")
    found["internet_charge_type"] = _CHARGES.get(charge, charge) or None
    return found


def state_of(shown: Mapping[str, Any]) -> tuple[LoadBalancerState, str | None]:
    """State and reason of a load balancer."""
    word = str(shown.get("LoadBalancerStatus") or "active")
    return _STATES.get(word, LoadBalancerState.FAILED), None if word in _STATES else _REASONS.get(word, word)


def group_of(shown: Mapping[str, Any]) -> Group:
    """A server group as DescribeVServerGroupAttribute shows it."""
    servers = ((shown.get("BackendServers") or {}).get("BackendServer")) or []
    tags = ((shown.get("Tags") or {}).get("Tag")) or []
    return Group(
        id=shown["VServerGroupId"],
        load_balancer_id=shown.get("LoadBalancerId") or "",
        name=shown.get("VServerGroupName") or "",
        tags=tags_of(tags),
        servers=tuple(sorted(map(_server_of, servers))),
    )


def is_gone(error: CloudError) -> bool:
    """Whether the API says that what was named does not exist; of server groups, its code does not tell."""
    of_group = error_code(error) == "InvalidParameter" and "does not exist" in str(error)
    return isinstance(error, NotFound) or of_group


def backend_servers(servers: Sequence[Server]) -> str:
    """The parameter `BackendServers` of these."""
    return orjson.dumps([_backend_server(each) for each in servers]).decode()


def _server_of(shown: Mapping[str, Any]) -> Server:
    # Each node is a backend of many load balancers.
    server = sys.intern(shown["ServerId"])
    pod = shown.get("Type") == "eni"
    address, instance = (sys.intern(shown.get("ServerIp") or server), ENI) if pod else (server, server)
    return Server(Member(address, int(shown["Port"]), instance, int(shown.get("Weight") or 0)), server)


def _backend_server(server: Server) -> dict[str, str]:
    member = server.member
    found = {"ServerId": server.id, "Port": str(member.port), "Weight": str(member.weight), "Type": "ecs"}
    return {**found, "Type": "eni", "ServerIp": member.address} if member.instance_id == ENI else found
