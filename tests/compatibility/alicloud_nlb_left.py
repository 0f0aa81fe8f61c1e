"""What the Go controller's recorded calls, and this controller, leave of NLBs in the stand-in for the same Service.

The recorded requests are sent to a stand-in of their own, which fills in the API's defaults: so parameters are compared
by what they set. Ids, made-up names and the tags of owners are left out, because each controller has its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.alicloud.nlb.build import build
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from local.alicloud import machines
from local.alicloud.clb_certificates import add_certificate
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from tests.cloud_controller.clouds.alicloud.account import VPC
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount, Process
from tests.cloud_controller.clouds.alicloud.nlb.services import Config, Facts, service

PEER: dict[str, dict[str, Any]] = {
    each["scenario"]: each
    for each in map(json.loads, Path(__file__).with_name("alicloud_nlb_peer.jsonl").read_text().splitlines())
}
"""Of each Service: its annotations, spec and pods, and the Go controller's writes when it created its load balancer."""

_PODS = {"192.168.1.101": "node-1", "192.168.1.102": "node-2"}
_HERE = {
    **{f"i-bp1ecs000{number}": f"i-n{number}" for number in (1, 2, 3)},
    **dict(zip(("192.168.1.1", "192.168.1.2"), _PODS, strict=True)),
    "192.168.0.201": "192.168.2.201",
}
"""What is called otherwise in the stand-in's network."""
_OWNERS = ("kubernetes.io/", "cloud-controller/")
_MADE_UP = ("c1-", "nlb-")
_UNCOMPARED = frozenset(
    {
        *("id", "balancer", "made", "vpc", "VpcId", "status", "zones", "servers", "ServerGroupId", "ServerGroupName"),
        *("ListenerDescription", "IpVersionAffinityMode", "name", "tags"),
    }
)


class PeersAccount(NlbAccount):
    """An account with what the recorded Services name."""

    def __init__(self) -> None:
        super().__init__()
        with self.standin.changing() as world:
            for name in ("cert-1-cn-hangzhou", "cert-a", "cert-b"):
                add_certificate(world, name, name)
            machines.add_eip(world, "eip-2")
            for number, address in enumerate(_PODS, start=1):
                machines.add_eni(world, "vsw-h", id=f"eni-pod{number}", address=address, instance="i-n1")

    def compared(self) -> dict[str, Any]:
        """The load balancers, listeners and server groups, by name of field."""
        found: dict[str, Any] = {}
        for each in self.objects(BALANCER):
            zones = sorted((zone["vswitch"], zone["eip"]) for zone in each["zones"])
            name = each["name"] if not each["name"].startswith(_MADE_UP) else None
            fields = {**_compared(each), "zones": zones, "name": name}
            fields["protection"] = each["protection"]["Status"]
            tags = {key: text for key, text in each["tags"].items() if not key.startswith(_OWNERS)}
            found |= {f"load balancer/{key}": value for key, value in fields.items()} | {"load balancer/tags": tags}
        groups = {each["id"]: each for each in self.objects(GROUP)}
        for each in self.objects(LISTENER):
            where, group = f"{each['protocol']}:{each['first']}", groups[each["ServerGroupId"]]
            servers = sorted((s["ServerId"], s["ServerType"], s["Port"], s["Weight"]) for s in group["servers"])
            found |= {f"listener {where}/{key}": value for key, value in _compared(each).items()}
            found |= {f"server group {where}/{key}": value for key, value in _compared(group).items()}
            found[f"server group {where}/servers"] = servers
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
    client, ids = account.cloud()._client, dict(_HERE)
    for action, flat, made in recorded["calls"]:
        given = _sent(action, _nested({name: ids.get(value, value) for name, value in flat.items()}))
        answer = client.call("nlb", action, given)
        if made:
            key = next(each for each in ("LoadbalancerId", "ListenerId", "ServerGroupId") if each in answer)
            ids[made] = answer[key]
    return account.compared()


def of_ours(recorded: dict[str, Any]) -> dict[str, Any]:
    """What this controller leaves for the same Service. Raises CloudError if it refuses it."""
    annotations = {
        name: text.replace("192.168.0.201", "192.168.2.201") for name, text in recorded["annotations"].items()
    }
    spec = recorded["spec"]
    wanted = service(*spec["ports"], annotations=annotations)
    wanted["metadata"]["annotations"] = annotations
    wanted["spec"] |= spec
    local = spec.get("externalTrafficPolicy") == "Local"
    pods = {f"10.0.0.{n}": node for n, node in enumerate(recorded["pods"], start=1)} if local else _PODS
    slices = tuple(
        {
            "addressType": "IPv4",
            "ports": [{"name": port["name"], "port": port["targetPort"], "protocol": port["protocol"]}],
            "endpoints": [{"addresses": [address], "nodeName": node} for address, node in pods.items()],
        }
        for port in spec["ports"]
    )
    nodes = tuple(NodeBackend(f"node-{number}", f"i-n{number}", f"i-n{number}") for number in (1, 2, 3))
    account = PeersAccount()
    Process(account).converge(build(wanted, Backends(nodes, slices), Facts(), Config()))
    return account.compared()


def _sent(action: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters, but for what the stand-in does not take and this controller's page tells of."""
    if action in ("CreateLoadBalancer", "CreateServerGroup"):
        given["VpcId"] = VPC
    if action == "CreateServerGroup":
        given["ServerGroupName"] = "recorded"
        if given["Protocol"] == "TCPSSL":
            given |= {"Protocol": "TCP", "PreserveClientIpEnabled": "false"}
        check = given.get("HealthCheckConfig", {})
        if "HealthCheckType" in check:
            check["HealthCheckType"] = check["HealthCheckType"].upper()
    if action == "CreateListener" and given["ListenerProtocol"] != "TCPSSL":
        given.pop("CertificateIds", None)
    return given


def _nested(flat: dict[str, Any]) -> Any:
    """Parameters as they are before they are flattened."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = value
    return _listed(tree)


def _listed(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    if all(key.isdigit() for key in branch):
        return [_listed(branch[key]) for key in sorted(branch, key=int)]
    return {key: _listed(each) for key, each in branch.items()}


def _compared(thing: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in thing.items() if name not in _UNCOMPARED}
