"""What the Go controller's recorded calls, and this controller, leave in the stand-in for the same Service.

The recorded requests are sent to a stand-in of their own, which fills in the API's defaults: so parameters are compared
by what they set. Ids, made-up names and the tags of owners are left out, because each controller has its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from cloud_controller.cloud import CloudError, Postponed
from cloud_controller.kube import key
from local.alicloud import machines
from local.alicloud.account import REGION
from local.alicloud.clb_acls import ACL
from local.alicloud.clb_balancers import CLB, EXTENSION, GROUP, LISTENER
from local.alicloud.clb_certificates import add_certificate
from tests.cloud_controller.clouds.alicloud.account import VPC, Account
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, service

PEER: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("alicloud_clb_peer.json").read_text())
"""Of each Service: its annotations, spec and pods, and the Go controller's writes when it created its load balancer."""

_POOLS = {"node-1": "a", "node-2": "a", "node-3": "b"}
_MACHINES = {name: f"i-bp1ecs000{number}" for number, name in enumerate(_POOLS, start=1)}
_OWNERS = ("kubernetes.do.not.delete", "ack.aliyun.com", "kubernetes.io/", "cloud-controller/")
_MADE_UP = ("a-uid", "k8s-")
_UNCOMPARED = {
    "id",
    "name",
    "reason",
    "balancer",
    "listener",
    "VServerGroupId",
    "DomainExtensionId",
    "made",
    "settles",
    "Description",
}


class PeersAccount(Account):
    """An account with what the recorded Services name."""

    def __init__(self) -> None:
        super().__init__()
        with self.standin.changing() as world:
            world.fill(machines.VPC, VPC, ipv6_cidr="2408:4005::/56")
            for name, cidr in (("vsw-h", "192.168.128.0/24"), ("vsw-k", "192.168.130.0/24")):
                machines.add_vswitch(world, VPC, f"{REGION}-{name[-1]}", cidr, name)
            for name in ("cert-1", "cert-a", "cert-b"):
                add_certificate(world, name, name)
            acl = {"id": "acl-1", "name": "acl-1", "entries": {}, "ip_version": "ipv4", "tags": {}, "made": world.now()}
            world.store.put(ACL, "acl-1", acl)
            for name, machine in _MACHINES.items():
                machines.add_instance(world, "vsw-k", machine, name=name)
            for number in (1, 2):
                machines.add_eni(
                    world,
                    "vsw-k",
                    f"eni-pod{number}",
                    address=f"192.168.130.{100 + number}",
                    ipv6=[f"2408:4005::{number}"],
                    instance=_MACHINES[f"node-{number}"],
                )

    def new_cloud(self, **config: Any) -> Any:
        """The cloud as a new process sees it."""
        return self.cloud(vswitch_id="vsw-k", **config)

    def settle(self) -> None:
        """Nothing: the stand-in does everything at once."""

    def left(self) -> dict[str, Any]:
        """The load balancers, listeners and backends, by name of field."""
        groups = {each["id"]: sorted(map(_backend, each["backends"])) for each in self.objects(GROUP)}
        found: dict[str, Any] = {}
        for each in self.objects(CLB):
            found |= {f"load balancer/{name}": value for name, value in _compared(each).items()}
        for each in self.objects(LISTENER):
            where = f"listener {each['protocol']}:{each['port']}"
            found[f"{where}/backends"] = groups.get(each["VServerGroupId"])
            found |= {f"{where}/{name}": value for name, value in _compared(each).items()}
        for each in self.objects(EXTENSION):
            found[f"certificate/{each['Domain']}"] = each["ServerCertificateId"]
        return found


def results(leaves: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What `leaves` makes of each Service, and whether it is refused."""
    found: dict[str, dict[str, Any]] = {}
    for name, recorded in PEER.items():
        try:
            found[name] = {"refused": False, **leaves(recorded)}
        except CloudError:
            found[name] = {"refused": True}
    return found


def of_peer(recorded: dict[str, Any]) -> dict[str, Any]:
    """What the Go controller's calls leave. Raises CloudError if the stand-in refuses one."""
    account = PeersAccount()
    client = account.cloud()._client
    ids: dict[str, str] = {"vpc-1": VPC}
    for call in recorded["calls"]:
        given = {
            name: ids.get(value, value) if isinstance(value, str) else value for name, value in _sent(call).items()
        }
        answer = client.call("slb", call["action"], given)
        if "made" in call:
            ids[call["made"]] = str(answer.get("VServerGroupId") or answer["LoadBalancerId"])
    return account.left()


def of_ours(recorded: dict[str, Any]) -> dict[str, Any]:
    """What this controller leaves for the same Service. Raises CloudError if it refuses it."""
    account, cluster = PeersAccount(), Cluster()
    for number, (name, pool) in enumerate(_POOLS.items(), start=1):
        cluster.put_node(name, f"{REGION}.{_MACHINES[name]}", f"192.168.130.{number}", labels={"pool": pool})
    spec = {name: value for name, value in recorded["spec"].items() if name not in ("ports", "selector")}
    annotations = {name: _placed(text) for name, text in recorded["annotations"].items()}
    given = service(annotations, *recorded["spec"]["ports"], name="svc", **spec)
    cluster.put(given)
    family = "ipv6" if "ipv6" in recorded["annotations"].values() else "ipv4"
    pods = [endpoint(_address(pod, family), node) for node, pod in recorded["endpoints"]]
    slices = endpoint_slice(*pods, of="svc", name="svc-1")
    slices["addressType"] = "IPv6" if family == "ipv6" else "IPv4"
    slices["ports"] = [
        {"name": each.get("name", ""), "protocol": each["protocol"], "port": each.get("targetPort", 8080)}
        for each in recorded["spec"]["ports"]
    ]
    cluster.objects["endpointslices"]["default/svc-1"] = slices
    running = Running(account, cluster)
    running.take_slice(slices)
    for _ in range(2):
        with suppress(Postponed):
            running.handle(key(given))
    if not account.objects(CLB):
        raise CloudError(str(cluster.events))
    return account.left()


def _sent(call: dict[str, Any]) -> dict[str, Any]:
    given = dict(call["parameters"])
    tags: dict[str, dict[str, str]] = {}
    for name in [each for each in given if each.startswith("Tag.")]:
        _, number, field = name.split(".")
        tags.setdefault(number, {})[field] = given.pop(name).replace("<a+uid>", "a-uid")
    if tags:
        given["Tag"] = [tags[number] for number in sorted(tags, key=int)]
    if "BackendServers" in given:
        servers = [
            {**each, "serverIp": _address(each["serverIp"])} if each.get("type") == "eni" else each
            for each in given["BackendServers"]
        ]
        given["BackendServers"] = orjson.dumps(servers).decode()
    if given.get("LoadBalancerName") == "<a+uid>":
        given["LoadBalancerName"] = "a-uid"
    if given.get("Address"):
        given["Address"] = _placed(given["Address"])
    if "ModificationProtectionReason" in given:
        given["ModificationProtectionReason"] = "managed"
    return given


def _placed(text: str) -> str:
    """The text with an address of the stand-in's vSwitch."""
    return text.replace("192.168.0.", "192.168.130.")


def _address(pod: str, family: str = "ipv4") -> str:
    """The address of a pod (`pod-1`) or of its recorded address, in the stand-in's network."""
    number = pod.rpartition("-")[2].rpartition(".")[2].rpartition(":")[2]
    return f"2408:4005::{number}" if family == "ipv6" or ":" in pod else f"192.168.130.{100 + int(number)}"


def _backend(backend: dict[str, Any]) -> tuple[str, str, int, int]:
    return backend["ServerId"], backend["ServerIp"], backend["Port"], backend["Weight"]


def _compared(thing: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in thing.items() if name not in _UNCOMPARED}
    found |= found.pop("config", {})
    if not thing.get("name", "").startswith(_MADE_UP):
        found["name"] = thing.get("name")
    tags = {name: value for name, value in found.pop("tags").items() if not name.startswith(_OWNERS)}
    return {**found, **{f"tags/{name}": value for name, value in tags.items()}}
