"""Reads the JSON of Octavia as the model of load balancers; tags, and what has no field of its own there. Pure."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloud_controller.clouds.openstack.octavia import faults
from cloud_controller.clouds.openstack.octavia.node_rules import observed_access
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    SERVICE_TAG,
    HealthCheck,
    Ingress,
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
    Pool,
)

View = dict[str, Any]
"""An object as the API shows it."""
OCTAVIA, NEUTRON = "load-balancer", "network"

TOKEN_TAG = "cloud-controller/token"
ATTRIBUTE_TAGS = {
    "floating_network": "cloud-controller/floating-network",
    "floating_subnet": "cloud-controller/floating-subnet",
    "keep_floating_ip": "cloud-controller/keep-floatingip",
    "node_group": "cloud-controller/node-group",
}
"""The attributes that Octavia has no field for; they are among the load balancer's tags."""

STATES = {
    "PENDING_CREATE": LoadBalancerState.PENDING,
    "ACTIVE": LoadBalancerState.READY,
    # It serves while it is changed.
    "PENDING_UPDATE": LoadBalancerState.READY,
    "ERROR": LoadBalancerState.FAILED,
    "PENDING_DELETE": LoadBalancerState.DELETING,
    "DELETED": LoadBalancerState.DELETING,
}
TIMEOUTS = ("timeout_client_data", "timeout_member_connect", "timeout_member_data", "timeout_tcp_inspect")
_TRANSPORT = {"UDP": "UDP", "SCTP": "SCTP"}
MEMBERS_IN = "members in subnet "
"""The description of a pool whose members are not each in its node's subnet."""
_PROXIES = ("PROXY", "PROXYV2")
X_FORWARDED_FOR = "X-Forwarded-For"


@dataclass(slots=True)
class Known:
    """A load balancer with all its parts, by ID; `members` by the ID of their pool."""

    view: View
    listeners: dict[str, View] = field(default_factory=dict)
    pools: dict[str, View] = field(default_factory=dict)
    monitors: dict[str, View] = field(default_factory=dict)
    members: dict[str, list[View]] = field(default_factory=dict)
    floating_ip: View | None = None
    group: View | None = None
    """The Service's security group for nodes."""
    opened: dict[str, View] = field(default_factory=dict)
    """The ports that have it, by ID."""
    unguarded: frozenset[str] = frozenset()
    """Addresses of ports without port security."""
    changed_at: float = field(default_factory=time.monotonic)
    """When this process first saw the view's `updated_at`."""
    read_at: float = -math.inf
    """When its parts were read, not only known from this process's own changes."""

    def pool(self, name: str) -> View | None:
        """The pool with this name that the controller made."""
        return next((each for each in self.pools.values() if each["name"] == name and _is_ours(each)), None)

    def listener(self, protocol: str, port: int) -> View | None:
        """The listener of this transport and port, whoever made it."""
        key = (protocol, port)
        return next((each for each in self.listeners.values() if key_of(each) == key), None)


def key_of(listener: View) -> tuple[str, int]:
    """The transport and port of a listener."""
    return _TRANSPORT.get(listener["protocol"], "TCP"), listener["protocol_port"]


# ------------------------------------------------------------------------------------------------------------- tags


def tags_of(view: Mapping[str, Any]) -> dict[str, str]:
    """The tags as keys and values; Octavia's are texts, KEY=VALUE here."""
    return {key: value for key, _, value in (str(tag).partition("=") for tag in view.get("tags") or ())}


def tag_list(tags: Mapping[str, str]) -> list[str]:
    """The tags as Octavia has them."""
    return [f"{key}={value}" if value else key for key, value in sorted(tags.items())]


def internal_tags(model: LoadBalancerModel, token: str) -> dict[str, str]:
    """The tags that hold the creation's token, and the attributes that Octavia has no field for."""
    found = {ATTRIBUTE_TAGS[key]: _word(value) for key, value in model.attributes.items() if key in ATTRIBUTE_TAGS}
    return {key: value for key, value in found.items() if value} | ({TOKEN_TAG: token} if token else {})


def _word(value: object) -> str:
    return "true" if value is True else "" if value is False else str(value or "")


def describe(tags: Mapping[str, str]) -> str:
    """The description by which people, and the controller itself, know whose a floating IP is."""
    owner = Owner.of_tags(tags)
    if owner is None:
        return ""
    return f"Service {tags.get(SERVICE_TAG, '')} of cluster {owner.cluster_id}, UID {owner.uid}"[-255:]


def is_described(description: str) -> bool:
    """Whether a controller of this project, in any cluster, wrote it."""
    return re.search(r" of cluster .+, UID \S+$", description) is not None


# ------------------------------------------------------------------------------------------------------- what exists


def observed(known: Known) -> ObservedLoadBalancer:
    """The load balancer as the plan sees it: on one with an owner, only parts that the controller made."""
    view = known.view
    status = view["provisioning_status"]
    tags = tags_of(view)
    parts_tagged = Owner.of_tags(tags) is not None
    pools = {key: _pool(each, known) for key, each in known.pools.items() if not parts_tagged or _is_ours(each)}
    names = {key: pool.name for key, pool in pools.items()}
    listeners = [
        _listener(each, known, names) for each in known.listeners.values() if not parts_tagged or _is_ours(each)
    ]
    floating = known.floating_ip
    hidden = {TOKEN_TAG, *ATTRIBUTE_TAGS.values()}
    # A public one without its floating IP has no address to show: clients cannot reach the other one.
    is_public = ATTRIBUTE_TAGS["floating_network"] in tags
    address = floating["floating_ip_address"] if floating else None if is_public else view.get("vip_address")
    used = {each.pool for each in listeners}
    proxy = any(pool.attributes["protocol"] in _PROXIES for pool in pools.values() if pool.name in used)
    return ObservedLoadBalancer(
        id=view["id"],
        state=STATES.get(status, LoadBalancerState.FAILED),
        state_reason=_reason(view),
        model=LoadBalancerModel(
            name=view["name"],
            attributes={
                "internal": floating is None,
                "enabled": view.get("admin_state_up", True),
                "flavor": view.get("flavor_id") or "",
                "availability_zone": view.get("availability_zone") or "",
                "keep_floating_ip": tags.get(ATTRIBUTE_TAGS["keep_floating_ip"]) == "true",
                "node_group": tags.get(ATTRIBUTE_TAGS["node_group"]) == "true",
                **observed_access(known.group, known.opened.values(), member_addresses(known), known.unguarded),
                "floating_network": tags.get(ATTRIBUTE_TAGS["floating_network"], ""),
                "floating_subnet": tags.get(ATTRIBUTE_TAGS["floating_subnet"], ""),
                "load_balancer_ip": floating["floating_ip_address"] if floating else "",
                "vip_port": view.get("vip_port_id") or "",
                "vip_subnet": view.get("vip_subnet_id") or "",
                "vip_network": view.get("vip_network_id") or "",
                "vip_address": view.get("vip_address") or "",
            },
            listeners=tuple(sorted(listeners, key=lambda each: each.key)),
            pools=tuple(sorted(pools.values(), key=lambda each: each.name)),
            tags={key: value for key, value in tags.items() if key not in hidden},
        ),
        ingress=(Ingress(ip=address, ip_mode="Proxy" if proxy else "VIP"),) if address else (),
        created_at=view.get("created_at") or "",
        settled=not status.startswith("PENDING"),
    )


def _reason(view: View) -> str | None:
    if view["provisioning_status"] != "ERROR":
        return None
    return (
        "its provisioning_status is ERROR, and Octavia refuses changes; an administrator may repair it with `openstack"
        f" loadbalancer failover {view['id']}`; once deleted, it is created anew with another address"
    )


def member_of(view: View) -> Member:
    """The member that its fields describe."""
    return Member(view["address"], view["protocol_port"], view["name"], view["weight"])


def faults_of(member: View, pool: View, known: Known) -> list[str]:
    """How a member differs from what the controller writes of every member."""
    return faults.of_member(member, known.view, _member_subnet(pool))


def _member_subnet(pool: View) -> str:
    return str(pool.get("description") or "").removeprefix(MEMBERS_IN)


def member_views(known: Known) -> Iterator[tuple[str, View]]:
    """The members of the owner's own pools, each with the transport of its port."""
    owner = Owner.of_tags(tags_of(known.view))
    for key, pool in known.pools.items():
        if Owner.of_tags(tags_of(pool)) == owner:
            transport = _TRANSPORT.get(pool["protocol"], "TCP").lower()
            yield from ((transport, each) for each in known.members.get(key, ()))


def member_addresses(known: Known) -> set[str]:
    """The addresses of the members of the owner's own pools."""
    return {each["address"] for _, each in member_views(known)}


def foreign_parts(known: Known) -> list[str]:
    """Listeners and pools that no controller made, on a load balancer that one made."""
    kinds = (("listener", known.listeners), ("pool", known.pools))
    return [f"{kind} {each['id']}" for kind, parts in kinds for each in parts.values() if not _is_ours(each)]


def _is_ours(part: View) -> bool:
    return CLUSTER_TAG in tags_of(part)


def _listener(view: View, known: Known, pools: Mapping[str, str]) -> Listener:
    protocol, port = key_of(view)
    cidrs = tuple(sorted(view.get("allowed_cidrs") or ()))
    http = view["protocol"] == "HTTP" and (view.get("insert_headers") or {}).get(X_FORWARDED_FOR) != "true"
    return Listener(
        protocol,
        port,
        pools.get(view.get("default_pool_id") or "", ""),
        {
            # An HTTP listener that lost its header is to be changed too.
            "protocol": "HTTP without X-Forwarded-For" if http else view["protocol"],
            "connection_limit": view["connection_limit"],
            "allowed_cidrs": () if cidrs == ("0.0.0.0/0",) else cidrs,
            "enabled": faults.enabled(view, known.view),
            **{name: view[name] for name in TIMEOUTS},
        },
        tags_of(view),
    )


def _pool(view: View, known: Known) -> Pool:
    members = known.members.get(view["id"], [])
    return Pool(
        view["name"],
        _health_check(known.monitors.get(view.get("healthmonitor_id") or ""), known, members),
        tuple(
            sorted(
                member_of(each)._replace(instance_id=_shown(each, view, known))
                for each in members
                if each.get("provisioning_status") != "PENDING_DELETE"
            )
        ),
        {
            "protocol": view["protocol"],
            "lb_algorithm": view["lb_algorithm"],
            "session_persistence": (view.get("session_persistence") or {}).get("type", ""),
            "member_subnet": _member_subnet(view),
            "enabled": faults.enabled(view, known.view),
        },
        tags_of(view),
    )


def _shown(member: View, pool: View, known: Known) -> str:
    """The name of a member, with what makes it differ from the wanted one."""
    found = faults_of(member, pool, known)
    return f"{member['name']} ({', '.join(found)})" if found else str(member["name"])


def _health_check(view: View | None, known: Known, members: Sequence[View]) -> HealthCheck:
    if view is None:
        return HealthCheck("NONE")
    port = view["name"].rpartition(":")[2]
    wanted = int(port) if port.isdecimal() else None
    # Members that are checked elsewhere show it, also where the monitor's name says no port.
    others = {each.get("monitor_port") for each in members} - {wanted}
    on = faults.enabled(view, known.view)
    return HealthCheck(
        # One that is not as its fields say is to be changed too.
        protocol=view["type"] if on is True else f"{view['type']} {on or 'switched off'}",
        port=min(others, key=str) if others else wanted,
        path=view.get("url_path") if view["type"] == "HTTP" else None,
        interval_seconds=view["delay"],
        timeout_seconds=view["timeout"],
        healthy_threshold=view["max_retries"],
        unhealthy_threshold=view["max_retries_down"],
    )
