"""A new NLB is in effect the one that Alibaba Cloud's own controller makes for the same Service.

`recorded.jsonl` has requests that were recorded of `kubernetes/cloud-provider-alibaba-cloud` (commit eeb0ddc68): for
each scenario what was applied, and the writes until it was served, without names, tags and tokens. They are replayed
on one account of the stand-in, ours are made on another, and what both have then is compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.clouds.alicloud.nlb.build import build
from cloud_controller.load_balancers.backends import Backends, NodeBackend
from local.alicloud import machines
from local.alicloud.clb_certificates import add_certificate
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from tests.cloud_controller.clouds.alicloud.account import VPC
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount, Process
from tests.cloud_controller.clouds.alicloud.nlb.services import Config, Facts, service

RECORDED = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
SCENARIOS = {each["scenario"]: each for each in RECORDED}
PODS = {"192.168.1.101": "node-1", "192.168.1.102": "node-2"}
HERE = {
    **{f"i-bp1ecs000{number}": f"i-n{number}" for number in (1, 2, 3)},
    **dict(zip(("192.168.1.1", "192.168.1.2"), PODS, strict=True)),
    "192.168.0.201": "192.168.2.201",
}
"""What is called otherwise in the account of the tests."""
IN_EFFECT = {
    BALANCER: ("address_type", "ip_version", "ipv6_type", "package", "cross_zone", "deletion", "protection", "cps"),
    GROUP: (
        *("ServerGroupType", "Protocol", "AnyPortEnabled", "Scheduler", "ConnectionDrainEnabled"),
        *("ConnectionDrainTimeout", "PreserveClientIpEnabled", "HealthCheck"),
    ),
    LISTENER: (
        *("protocol", "first", "last", "Cps", "IdleTimeout", "ProxyProtocolEnabled", "ProxyProtocolV2Config"),
        *("CertificateIds", "CaCertificateIds", "CaEnabled", "SecurityPolicyId", "AlpnEnabled", "AlpnPolicy"),
        "more_certificates",
    ),
}
INTENDED = {
    # Its annotations count for NLB too.
    "protection": {"deletion", "protection"},
    # Groups of type Ip cannot preserve client addresses.
    "server-group-ip": {"PreserveClientIpEnabled"},
}
"""By scenario: what is not as the other controller makes it."""


def account() -> NlbAccount:
    made = NlbAccount()
    with made.standin.changing() as world:
        for name in ("cert-1-cn-hangzhou", "cert-a", "cert-b"):
            add_certificate(world, name, name)
        machines.add_eip(world, "eip-2")
        for number, address in enumerate(PODS, start=1):
            machines.add_eni(world, "vsw-h", id=f"eni-pod{number}", address=address, instance="i-n1")
    return made


def in_effect(of: NlbAccount) -> list[dict[str, Any]]:
    """What clients and backends notice of the load balancers in an account."""
    found = []
    groups = {each["id"]: each for each in of.objects(GROUP)}
    for kind, fields in IN_EFFECT.items():
        for each in of.objects(kind):
            content = {key: each[key] for key in fields}
            if kind == GROUP:
                # The stand-in's default is today's API's; ours is the documented one of requirements 002.
                content["HealthCheck"] = {**each["HealthCheck"], "HealthCheckInterval": None}
                content["servers"] = sorted((s["ServerId"], s["Port"], s["Weight"]) for s in each["servers"])
            if kind == BALANCER:
                content["protection"] = each["protection"]["Status"]
                content["zones"] = sorted((zone["vswitch"], zone["eip"]) for zone in each["zones"])
            if kind == LISTENER:
                content["behind"] = sorted(s["Port"] for s in groups[each["ServerGroupId"]]["servers"])
            found.append({"kind": kind, **content})
    return sorted(found, key=str)


def nested(flat: dict[str, Any]) -> Any:
    """Parameters as they are before they are flattened."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = value

    def listed(branch: Any) -> Any:
        if not isinstance(branch, dict):
            return branch
        if all(key.isdigit() for key in branch):
            return [listed(branch[key]) for key in sorted(branch, key=int)]
        return {key: listed(each) for key, each in branch.items()}

    return listed(tree)


def replayed(scenario: dict[str, Any]) -> NlbAccount:
    """An account in which the recorded requests were carried out."""
    theirs = account()
    client = theirs.cloud()._client
    ids = dict(HERE)
    for action, flat, made in scenario["calls"]:
        given = nested({name: ids.get(value, value) for name, value in flat.items()})
        if action in ("CreateLoadBalancer", "CreateServerGroup"):
            given["VpcId"] = VPC
        if action == "CreateServerGroup":
            given["ServerGroupName"] = "recorded"
            if given["Protocol"] == "TCPSSL":  # The API's models have no such protocol: it was TCP for TLS.
                given |= {"Protocol": "TCP", "PreserveClientIpEnabled": "false"}
            check = given.get("HealthCheckConfig", {})
            if "HealthCheckType" in check:
                check["HealthCheckType"] = check["HealthCheckType"].upper()
        if action == "CreateListener" and given["ListenerProtocol"] != "TCPSSL":
            given.pop("CertificateIds", None)  # Sent for every listener, though only TLS has one.
        answer = client.call("nlb", action, given)
        if made:
            key = next(each for each in ("LoadbalancerId", "ListenerId", "ServerGroupId") if each in answer)
            ids[made] = answer[key]
    return theirs


def ours(scenario: dict[str, Any]) -> NlbAccount:
    """An account in which the same Service has its load balancer by this controller."""
    texts = {name: text.replace("192.168.0.201", "192.168.2.201") for name, text in scenario["annotations"].items()}
    spec = scenario["spec"]
    wanted = service(*spec["ports"], annotations=texts)
    wanted["spec"] |= spec
    local = spec.get("externalTrafficPolicy") == "Local"
    pods = {f"10.0.0.{n}": node for n, node in enumerate(scenario["pods"], start=1)} if local else PODS
    slices = tuple(
        {
            "addressType": "IPv4",
            "ports": [{"name": port["name"], "port": port["targetPort"], "protocol": port["protocol"]}],
            "endpoints": [{"addresses": [address], "nodeName": node} for address, node in pods.items()],
        }
        for port in spec["ports"]
    )
    nodes = tuple(NodeBackend(f"node-{number}", f"i-n{number}", f"i-n{number}") for number in (1, 2, 3))
    made = account()
    Process(made).converge(build(wanted, Backends(nodes, slices), Facts(), Config()))
    return made


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_new_load_balancer_is_in_effect_the_recorded_one(name: str) -> None:
    theirs, mine = in_effect(replayed(SCENARIOS[name])), in_effect(ours(SCENARIOS[name]))

    differing = {
        key for one, other in zip(theirs, mine, strict=True) for key in {*one, *other} if one.get(key) != other.get(key)
    }

    assert differing == INTENDED.get(name, set())
