"""The Go controller's recorded calls, phase by phase, and what they leave in the stand-in.

The recorded requests are sent to a stand-in of their own, which fills in the API's defaults: so parameters are compared
by what they set. Ids, made-up names and the tags of owners are left out, because each controller has its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from cloud_controller.cloud import CloudError
from tests.compatibility.alicloud_account import PeersAccount
from tests.compatibility.alicloud_left import left
from tests.compatibility.phases import name_of

Json = dict[str, Any]

LEFT_OUT = {"clb/external-ip-eip": "its EIP was bound to the load balancer before there was one"}
"""Scenarios that are not compared, because no cloud does what was recorded."""

REFUSED = {
    "clb": (
        *("bad-annotation", "charge-paybybandwidth", "https-no-cert", "legacy-prefix", "no-vswitch-address"),
        *("reuse-created-by-ccm", "reuse-missing", "scheduler", "spec-only"),
    ),
    "nlb": ("no-zone-maps", "port-range-ecs"),
}
"""Scenarios whose creation fails, of one controller or both. Their later phases are not compared."""

PEER: dict[str, Json] = {
    each["scenario"]: each
    for each in json.loads(Path(__file__).with_name("alicloud_peer.json").read_text())
    if each["scenario"] not in LEFT_OUT
}
"""Of each scenario: the Service, its pods, and for each phase what changed and what the Go controller wrote."""


def results(kind: str, leaves: Callable[[Json], Iterator[Json]]) -> dict[str, Json]:
    """What `leaves` makes of each phase of each scenario of a kind (`clb`), by `scenario` or `scenario: phase`.

    If the creation fails, that is all.
    """
    found: dict[str, Json] = {}
    for name, recorded in PEER.items():
        if not name.startswith(f"{kind}/"):
            continue
        for phase, state in zip(recorded["phases"], leaves(recorded), strict=True):
            refused = state["error"] and phase is recorded["phases"][0]
            found[name_of(recorded, phase)] = {"refused": True} if refused else {"refused": False, **state}
            if refused:
                break
    return found


def of_peer(recorded: Json) -> Iterator[Json]:
    """What the Go controller's calls leave after each phase, and which of them the stand-in refuses."""
    account = PeersAccount(recorded["scenario"])
    client, ids = account.new_cloud()._client, {"<a+uid>": "a-uid"}
    status: list[str] = []
    for phase in recorded["phases"]:
        if "by_hand" in phase:
            account.change_by_hand(phase["by_hand"])
        refused = phase.get("error", False)
        for operation, parameters, *made in phase["calls"]:
            product, _, action = operation.partition(".")
            try:
                answer = client.call(product, action, _sent(action, _nested(parameters, ids)))
            except CloudError:
                refused = True
                continue
            account.settle()
            for each in made:
                ids[each] = next(answer[name] for name in _MADE if name in answer)
        status = phase.get("status", status if phase["title"] != "deletion" else [])
        left_now = state(account, refused, status)
        if phase["title"] == "restart":
            left_now["writes"] = sorted({operation for operation, *_ in phase["calls"]})
        yield left_now


def state(account: PeersAccount, error: bool, ingress: Iterable[str]) -> Json:
    """What is left, whether an error was reported, and what the Service's status says."""
    return {"error": error, "status": [_shown(each) for each in ingress], **left(account)}


def _shown(ingress: str) -> str:
    """What a status says, without addresses and names that are made up."""
    if ingress[0].isdigit():
        return "address"
    return "name of the NLB" if ".nlb." in ingress else ingress


_MADE = (
    *("DomainExtensionId", "ListenerId", "VServerGroupId", "ServerGroupId", "SecurityGroupId"),
    *("LoadBalancerId", "LoadbalancerId"),
)


def _sent(action: str, given: Json) -> Json:
    """The parameters, but for what the stand-in does not take and this controller's page tells of."""
    if "BackendServers" in given:
        given["BackendServers"] = orjson.dumps(given["BackendServers"]).decode()
    if action == "CreateServerGroup" and given["Protocol"] == "TCPSSL":
        given |= {"Protocol": "TCP", "PreserveClientIpEnabled": "false"}
    check = given.get("HealthCheckConfig", {})
    if "HealthCheckType" in check:
        check["HealthCheckType"] = check["HealthCheckType"].upper()
    if action == "CreateListener" and given["ListenerProtocol"] != "TCPSSL":
        given.pop("CertificateIds", None)
    if "UDPListener" in action:
        given.pop("ConnectionDrain", None)
    given.pop("RegionId", None)
    return given


def _nested(flat: Json, ids: dict[str, str]) -> Any:
    """Parameters as they are before they are flattened."""
    tree: Json = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = _known(value, ids)
    return _listed(tree)


def _known(value: Any, ids: dict[str, str]) -> Any:
    if not isinstance(value, str):
        return value
    return ids.get(value, value.replace("<a+uid>", "a-uid"))


def _listed(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    if branch and all(key.isdigit() for key in branch):
        return [_listed(branch[key]) for key in sorted(branch, key=int)]
    return {key: _listed(each) for key, each in branch.items()}
