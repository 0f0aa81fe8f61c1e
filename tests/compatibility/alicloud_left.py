"""What is left of load balancers in the stand-in, by names of fields, as two controllers are compared."""

from __future__ import annotations

from typing import Any

from cloud_controller.load_balancers.model import SERVICE_UID_TAG
from local.alicloud.clb_balancers import CLB, EXTENSION, GROUP, LISTENER
from local.alicloud.machines import SECURITY_GROUP
from local.alicloud.nlb_jobs import BALANCER
from local.alicloud.nlb_jobs import GROUP as SERVER_GROUP
from local.alicloud.nlb_jobs import LISTENER as NLB_LISTENER
from tests.compatibility.alicloud_account import SECURITY_GROUPS, PeersAccount

Json = dict[str, Any]

_OWNERS = ("kubernetes.do.not.delete", "ack.aliyun.com", "kubernetes.io/", "cloud-controller/")
_OWNER = ("kubernetes.do.not.delete", SERVICE_UID_TAG)
"""The tag by which each controller knows what belongs to a Service."""
_MADE_UP = ("a-uid", "k8s-", "c-1-", "nlb-")
_UNCOMPARED = {
    *("id", "name", "tags", "made", "settles", "balancer", "listener", "reason", "Description", "DomainExtensionId"),
    *("VServerGroupId", "vpc", "VpcId", "zones", "servers", "ServerGroupId", "ServerGroupName", "groups"),
    *("ListenerDescription", "IpVersionAffinityMode"),
}
_BY_DEFAULT = {"HealthCheckConnectPort": (-520,), "HealthCheckDomain": ("$_ip",)}
_ASKED_FOR = ("192.168.0.200", "192.168.0.201")
"""The addresses that recorded Services name; any other is made up."""


def left(account: PeersAccount) -> Json:
    """The load balancers, listeners, certificates and backends, and how many there are of each kind."""
    clb, nlb = _clb(account), _nlb(account)
    return {**account.counts, **clb, **nlb, "unused groups": [*clb["unused groups"], *nlb["unused groups"]]}


def _clb(account: PeersAccount) -> Json:
    found: Json = {}
    groups = {each["id"]: sorted(map(_backend, each["backends"])) for each in account.objects(GROUP)}
    for each in account.objects(CLB):
        found["load balancer"] = _balancer(each)
    for each in account.objects(LISTENER):
        fields = {**_compared(each), "backends": groups.get(each["VServerGroupId"])}
        found[f"listener {each['protocol']}:{each['port']}"] = fields
    used = {each["VServerGroupId"] for each in account.objects(LISTENER)}
    found["unused groups"] = sorted(backends for name, backends in groups.items() if name not in used)
    for each in account.objects(EXTENSION):
        found[f"certificate {each['Domain']}"] = each["ServerCertificateId"]
    return found


def _nlb(account: PeersAccount) -> Json:
    found: Json = {}
    for each in account.objects(BALANCER):
        found["load balancer"] = {
            **_balancer(each),
            "protection": each["protection"]["Status"],
            "zones": sorted((zone["vswitch"], zone["eip"], _asked_for(zone["private"])) for zone in each["zones"]),
            "security groups": sorted(name if name in SECURITY_GROUPS else "its own" for name in each["groups"]),
        }
    for each in account.objects(SECURITY_GROUP):
        if each["id"] not in SECURITY_GROUPS:
            found["its security group"] = {"rules": sorted(map(_rule, each["rules"]))}
    groups = {each["id"]: each for each in account.objects(SERVER_GROUP)}
    for each in account.objects(NLB_LISTENER):
        where, group = f"{each['protocol']}:{each['first']}", groups[each["ServerGroupId"]]
        found[f"listener {where}"] = _compared(each)
        found[f"server group {where}"] = {**_compared(group), "servers": _servers(group)}
    used = {each["ServerGroupId"] for each in account.objects(NLB_LISTENER)}
    found["unused groups"] = sorted(_servers(group) for name, group in groups.items() if name not in used)
    return found


def _servers(group: Json) -> list[tuple[str, str, int, int]]:
    return sorted((each["ServerId"], each["ServerType"], each["Port"], each["Weight"]) for each in group["servers"])


def _balancer(thing: Json) -> Json:
    name = thing["name"] if not thing["name"].startswith(_MADE_UP) else None
    tags = {f"tags/{key}": value for key, value in thing["tags"].items() if not key.startswith(_OWNERS)}
    owned = any(key in thing["tags"] for key in _OWNER)
    return {**_compared(thing), **tags, "name": name, "owned": owned, "address": _asked_for(thing.get("address"))}


def _asked_for(address: str | None) -> str | None:
    return address if address in _ASKED_FOR else None


def _rule(rule: Json) -> tuple[str, ...]:
    fields = ("Policy", "IpProtocol", "Priority", "SourceCidrIp", "Ipv6SourceCidrIp")
    return tuple(str(rule.get(name, "")).upper() for name in fields)


def _backend(backend: Json) -> tuple[str, str, int, int]:
    return backend["ServerId"], backend["ServerIp"], backend["Port"], backend["Weight"]


def _compared(thing: Json) -> Json:
    found = {name: value for name, value in thing.items() if name not in _UNCOMPARED}
    found |= found.pop("config", {})
    # The API's words for what it does if the parameter is missing.
    return {name: None if value in ("", *_BY_DEFAULT.get(name, ())) else value for name, value in found.items()}
