"""Translates models into the parameters of NLB's actions, and the API's objects into models. Pure."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from cloud_controller.clouds.alicloud.nlb.names import POOL_TAG, part_name
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.clouds.alicloud.tags import tags_of as _tags_of
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import HealthCheck, Listener, LoadBalancerModel, Owner, Pool

View = Mapping[str, Any]
"""An object as the API returns it."""
Params = dict[str, Any]

PROTECTION_REASON = "managed-by-cloud-controller"

_PPV2 = {
    "ppv2_ep_id": "Ppv2PrivateLinkEpIdEnabled",
    "ppv2_eps_id": "Ppv2PrivateLinkEpsIdEnabled",
    "ppv2_vpc_id": "Ppv2VpcIdEnabled",
}
_SCHEDULERS = {"wrr": "Wrr", "wlc": "Wlc"}


def token_of(*parts: str) -> str:
    """The client token for these parts: the API takes at most 64 characters."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()


def tags_of(view: View) -> dict[str, str]:
    """The tags of an object."""
    return _tags_of(view.get("Tags") or ())


def words(value: object) -> tuple[str, ...]:
    """The words of an attribute that is a list; one that was kept as JSON is a list too."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


# ------------------------------------------------------------------------------------------------- load balancers


def load_balancer_params(model: LoadBalancerModel, vpc_id: str) -> Params:
    """The parameters of CreateLoadBalancer."""
    attributes = model.attributes
    protected = attributes["modification_protection"] == "ConsoleProtection"
    reason = {"Reason": PROTECTION_REASON} if protected else {}
    return {
        "LoadBalancerName": model.name,
        "VpcId": vpc_id,
        "AddressType": attributes["address_type"],
        "AddressIpVersion": attributes["address_ip_version"],
        "ZoneMappings": zone_mappings(attributes),
        "BandwidthPackageId": attributes.get("bandwidth_package_id"),
        "ResourceGroupId": attributes.get("resource_group_id"),
        "DeletionProtectionConfig": {"Enabled": attributes["deletion_protection"]},
        "ModificationProtectionConfig": {"Status": attributes["modification_protection"], **reason},
        "Tag": tag_list(model.tags),
    }


def zone_mappings(attributes: Mapping[str, Value | None], *, addresses: bool = True) -> list[Params]:
    """All zones: those that a request leaves out are removed."""
    mappings = []
    for each in words(attributes["zones"]):
        zone, _, vswitch = each.partition(":")
        mapping = {"ZoneId": zone, "VSwitchId": vswitch, "AllocationId": attributes.get(f"eip.{zone}")}
        if addresses:
            mapping["PrivateIPv4Address"] = attributes.get(f"private_ipv4.{zone}")
        mappings.append({key: value for key, value in mapping.items() if value})
    return mappings


def load_balancer_attributes(view: View) -> dict[str, Value | None]:
    """The attributes of an existing load balancer, without those of a security group of its own."""
    attributes: dict[str, Value | None] = {
        "zones": tuple(sorted(f"{zone['ZoneId']}:{zone['VSwitchId']}" for zone in view.get("ZoneMappings") or ())),
        "address_type": str(view.get("AddressType") or "").capitalize(),
        "address_ip_version": "DualStack" if str(view.get("AddressIpVersion")).lower() == "dualstack" else "ipv4",
        "ipv6_address_type": str(view.get("Ipv6AddressType") or "Intranet").capitalize(),
        "bandwidth_package_id": view.get("BandwidthPackageId") or None,
        "resource_group_id": view.get("ResourceGroupId"),
        "cross_zone_enabled": view.get("CrossZoneEnabled", True),
        "deletion_protection": bool((view.get("DeletionProtectionConfig") or {}).get("Enabled")),
        "modification_protection": (view.get("ModificationProtectionConfig") or {}).get("Status") or "NonProtection",
        "security_group_ids": tuple(sorted(view.get("SecurityGroupIds") or ())),
        "source_ranges": (),
    }
    for zone in view.get("ZoneMappings") or ():
        for address in zone.get("LoadBalancerAddresses") or ():
            for key, name in (("private_ipv4", "PrivateIPv4Address"), ("eip", "AllocationId")):
                if address.get(name):
                    attributes[f"{key}.{zone['ZoneId']}"] = str(address[name])
    return attributes


# ------------------------------------------------------------------------------------------------------ listeners


def listener_params(listener: Listener) -> Params:
    """The parameters of a listener that can be changed later too."""
    given = listener.attributes
    params: Params = {
        "Cps": given.get("cps"),
        "IdleTimeout": given.get("idle_timeout"),
        "ProxyProtocolEnabled": given.get("proxy_protocol"),
    }
    if given.get("proxy_protocol"):
        params["ProxyProtocolV2Config"] = {name: given.get(key, False) for key, name in _PPV2.items()}
    if given["protocol"] == "TCPSSL":
        params |= {
            "CertificateIds": [*words(given.get("certificates"))],
            "CaEnabled": given.get("ca_enabled"),
            "CaCertificateIds": [*words(given.get("ca_certificates"))],
            "SecurityPolicyId": given.get("security_policy"),
            "AlpnEnabled": given.get("alpn"),
            "AlpnPolicy": given.get("alpn_policy") if given.get("alpn") else None,
        }
    return params


def new_listener_params(listener: Listener, owner: Owner | None) -> Params:
    """The parameters of a listener that are set when it is created."""
    first, _, last = str(listener.attributes.get("port_range") or "").partition("-")
    ports = {"ListenerPort": 0, "StartPort": int(first), "EndPort": int(last)} if last else {}
    return {
        "ListenerProtocol": listener.attributes["protocol"],
        "ListenerDescription": part_name(owner, f"{listener.protocol.lower()}-{listener.port}"),
        **(ports or {"ListenerPort": listener.port}),
        **listener_params(listener),
    }


def listener_of(view: View, pool: str, certificates: Collection[str] = ()) -> Listener:
    """The model of an existing listener. `certificates`: the additional ones."""
    protocol = str(view["ListenerProtocol"]).upper()
    ranged = not int(view.get("ListenerPort") or 0)
    proxy = view.get("ProxyProtocolV2Config") or {}
    attributes: dict[str, Value | None] = {
        "protocol": protocol,
        "port_range": f"{view['StartPort']}-{view['EndPort']}" if ranged else None,
        "running": view.get("ListenerStatus") not in ("Stopped", "Stopping"),
        "cps": int(view.get("Cps") or 0),
        "idle_timeout": int(view.get("IdleTimeout") or 0),
        "proxy_protocol": bool(view.get("ProxyProtocolEnabled")),
        **{key: bool(proxy.get(name)) for key, name in _PPV2.items()},
    }
    if protocol == "TCPSSL":
        attributes |= {
            "certificates": tuple(view.get("CertificateIds") or ()),
            "additional_certificates": tuple(sorted(certificates)),
            "ca_enabled": bool(view.get("CaEnabled")),
            "ca_certificates": tuple(view.get("CaCertificateIds") or ()),
            "security_policy": view.get("SecurityPolicyId"),
            "alpn": bool(view.get("AlpnEnabled")),
            "alpn_policy": view.get("AlpnPolicy"),
        }
    port = int(view["StartPort"] if ranged else view["ListenerPort"])
    return Listener("UDP" if protocol == "UDP" else "TCP", port, pool, attributes, tags_of(view))


# -------------------------------------------------------------------------------------------------- server groups


def group_params(pool: Pool) -> Params:
    """The parameters of a server group that can be changed later too."""
    given, check = pool.attributes, pool.health_check
    scheduler = str(given.get("scheduler"))
    health: Params = {"HealthCheckEnabled": check.protocol != "NONE"}
    if check.protocol != "NONE":
        health |= {
            "HealthCheckType": check.protocol,
            "HealthCheckConnectPort": check.port or 0,
            "HealthCheckConnectTimeout": check.timeout_seconds,
            "HealthCheckInterval": check.interval_seconds,
            "HealthyThreshold": check.healthy_threshold,
            "UnhealthyThreshold": check.unhealthy_threshold,
        }
    if check.protocol == "HTTP":
        health |= {
            "HealthCheckUrl": check.path,
            "HealthCheckDomain": given.get("health_check_domain"),
            "HealthCheckHttpCode": (check.success_codes or "http_2xx").split(","),
            "HttpCheckMethod": given.get("health_check_method"),
        }
    return {
        "Scheduler": _SCHEDULERS.get(scheduler, scheduler),
        "ConnectionDrainEnabled": given.get("connection_drain"),
        "ConnectionDrainTimeout": given.get("connection_drain_timeout"),
        "PreserveClientIpEnabled": given.get("preserve_client_ip"),
        "HealthCheckConfig": health,
    }


def new_group_params(pool: Pool, vpc_id: str, tags: Mapping[str, str]) -> Params:
    """The parameters of CreateServerGroup."""
    return {
        "ServerGroupName": part_name(Owner.of_tags(tags), pool.name.removesuffix(f"-{_uid(tags)}")),
        "ServerGroupType": pool.attributes["server_group_type"],
        "Protocol": pool.attributes["protocol"],
        "AnyPortEnabled": pool.attributes["any_port"],
        "VpcId": vpc_id,
        "Tag": tag_list(tags),
        **group_params(pool),
    }


def pool_of(view: View, members: Iterable[Member]) -> Pool:
    """The model of an existing server group; one that this controller did not make is named by its ID."""
    tags, check = tags_of(view), view.get("HealthCheck") or {}
    health, attributes = HealthCheck("NONE"), _group_attributes(view)
    if check.get("HealthCheckEnabled"):
        protocol = str(check.get("HealthCheckType") or "TCP").upper()
        http = protocol == "HTTP"
        codes = check.get("HealthCheckHttpCode") or ()
        health = HealthCheck(
            protocol=protocol,
            port=int(check.get("HealthCheckConnectPort") or 0) or None,
            path=check.get("HealthCheckUrl") if http else None,
            interval_seconds=int(check.get("HealthCheckInterval") or 0),
            timeout_seconds=int(check.get("HealthCheckConnectTimeout") or 0),
            healthy_threshold=int(check.get("HealthyThreshold") or 0),
            unhealthy_threshold=int(check.get("UnhealthyThreshold") or 0),
            success_codes=",".join(sorted(codes)) if http else None,
        )
        attributes["health_check_domain"] = check.get("HealthCheckDomain")
        attributes["health_check_method"] = str(check.get("HttpCheckMethod") or "GET").upper()
    return Pool(tags.get(POOL_TAG) or str(view["ServerGroupId"]), health, tuple(sorted(members)), attributes, tags)


def _group_attributes(view: View) -> dict[str, Value | None]:
    return {
        "protocol": str(view.get("Protocol")).upper(),
        "server_group_type": view.get("ServerGroupType") or "Instance",
        "any_port": bool(view.get("AnyPortEnabled")),
        "scheduler": str(view.get("Scheduler") or "").lower(),
        "connection_drain": bool(view.get("ConnectionDrainEnabled")),
        "connection_drain_timeout": int(view.get("ConnectionDrainTimeout") or 0),
        "preserve_client_ip": bool(view.get("PreserveClientIpEnabled")),
    }


class Server(NamedTuple):
    """A server of a group. There are many, and each node is one of many groups: share its strings."""

    id: str
    kind: str
    address: str | None
    port: int
    weight: int

    @classmethod
    def of(cls, id: str, kind: str, address: str | None, port: int, weight: int) -> Server:
        """A server whose strings are shared."""
        return cls(sys.intern(id), sys.intern(kind), sys.intern(address) if address else None, port, weight)

    @classmethod
    def of_view(cls, view: View) -> Server:
        """The server that the API shows."""
        address, port, weight = view.get("ServerIp"), int(view.get("Port") or 0), int(view.get("Weight") or 0)
        return cls.of(str(view["ServerId"]), str(view.get("ServerType") or ""), address, port, weight)

    @property
    def member(self) -> Member:
        """The member that it is: an instance by its ID, a pod by its address."""
        address = self.id if self.kind == "Ecs" else self.address or self.id
        return Member(address, self.port, address, self.weight)

    @property
    def name(self) -> Params:
        """What names it in a group: an instance has no address there."""
        address = {"ServerIp": self.address} if self.address and self.kind != "Ecs" else {}
        return {"ServerId": self.id, **address, "ServerType": self.kind, "Port": self.port}


def server_of(member: Member, interface: str | None, *, by_address: bool) -> Server:
    """A member as a server of a group. `interface`: of a pod in a group that is not of type Ip."""
    if by_address:
        return Server.of(member.address, "Ip", member.address, member.port, member.weight)
    if interface is None:
        return Server.of(member.instance_id, "Ecs", None, member.port, member.weight)
    return Server.of(interface, "Eni", member.address, member.port, member.weight)


def _uid(tags: Mapping[str, str]) -> str:
    owner = Owner.of_tags(tags)
    return owner.uid if owner else ""
