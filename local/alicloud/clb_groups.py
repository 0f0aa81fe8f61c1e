"""CLB: vServer groups and their backends, which come as JSON texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import PORT, Range, Rule, Text, has_tags, require, shown_tags, tags_of
from local.alicloud.clb_balancers import CLB, GROUP, INVALID, LISTENER, balancer_of, ready
from local.alicloud.machines import ENI, INSTANCE
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

Backend = dict[str, Any]

# In any case: clients of the Go SDK send them with a small first letter.
_FIELDS: Final = {name.lower(): name for name in ("ServerId", "Port", "Weight", "Type", "ServerIp", "Description")}
_RULES: Final[dict[str, Rule]] = {
    "Port": PORT,
    "Weight": Range(0, 100),
    "Type": ("ecs", "eni"),
    "Description": Text(r".{0,80}", "at most 80 characters"),
}
_NAME: Final = Text(r"[\w./-]{1,80}", "1 to 80 letters, digits, . _ - /")


@SLB.action("CreateVServerGroup")
def create_vserver_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of one load balancer, with its first backends."""
    require(arguments, {"VServerGroupName": _NAME}, INVALID)
    balancer = ready(account, balancer_of(account, arguments))
    if len([each for each in account.store.all(GROUP) if each["balancer"] == balancer["id"]]) >= (
        account.quotas.server_groups
    ):
        raise Refusal(400, "TooManyVServerGroups", "The number of vServer groups exceeds the quota.")
    backends = _asked(account, arguments.get("BackendServers", "[]"), balancer)
    new = account.new_id("rsp")
    body = {
        "id": new,
        "balancer": balancer["id"],
        "name": arguments.get("VServerGroupName", new),
        "backends": _merged(account, [], backends),
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        "made": account.now(),
    }
    account.store.put(GROUP, new, body)
    return _answer(body)


@SLB.action("DescribeVServerGroups", "IncludeRule")
def describe_vserver_groups(account: Account, arguments: Arguments) -> dict[str, Any]:
    """All of one load balancer."""
    balancer = balancer_of(account, arguments)
    found = [each for each in account.store.all(GROUP) if each["balancer"] == balancer["id"]]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    shown = [
        {
            "VServerGroupId": each["id"],
            "VServerGroupName": each["name"],
            "ServerCount": len(each["backends"]),
            "CreateTime": each["made"],
            "Tags": {"Tag": shown_tags(each["tags"])},
            **(_users(account, each["id"]) if arguments.get("IncludeListener", False) else {}),
        }
        for each in found
    ]
    return {"VServerGroups": {"VServerGroup": shown}}


@SLB.action("DescribeVServerGroupAttribute")
def describe_vserver_group_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One group with its backends."""
    group = group_of(account, arguments["VServerGroupId"])
    return {
        "VServerGroupId": group["id"],
        "VServerGroupName": group["name"],
        "LoadBalancerId": group["balancer"],
        "BackendServers": {"BackendServer": group["backends"]},
        "CreateTime": group["made"],
        "Tags": {"Tag": shown_tags(group["tags"])},
    }


@SLB.action("SetVServerGroupAttribute")
def set_vserver_group_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Its name, and weights and descriptions of backends that it has."""
    require(arguments, {"VServerGroupName": _NAME}, INVALID)
    group, balancer = _to_change(account, arguments)
    backends = _asked(account, arguments.get("BackendServers", "[]"), balancer)
    had = {_key(each) for each in group["backends"]}
    for each in backends:
        if _key(each) not in had:
            raise Refusal(400, INVALID, f"The backend server {each['ServerId']}:{each['Port']} is not in the group.")
    name = arguments.get("VServerGroupName", group["name"])
    changed = account.fill(GROUP, group["id"], name=name, backends=_merged(account, group["backends"], backends))
    return {**_answer(changed), "VServerGroupName": name}


@SLB.action("AddVServerGroupBackendServers")
def add_vserver_group_backend_servers(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One that is there already gets the new weight."""
    group, balancer = _to_change(account, arguments)
    backends = _asked(account, arguments["BackendServers"], balancer)
    return _answer(account.fill(GROUP, group["id"], backends=_merged(account, group["backends"], backends)))


@SLB.action("RemoveVServerGroupBackendServers")
def remove_vserver_group_backend_servers(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One that is not there is no error."""
    group, _ = _to_change(account, arguments)
    gone = {_key(each) for each in _read(account, arguments["BackendServers"])}
    left = [each for each in group["backends"] if _key(each) not in gone]
    answer = _answer(account.fill(GROUP, group["id"], backends=left))
    fields = ("Port", "ServerId", "Type", "Weight")
    shown = [{name: each[name] for name in fields} for each in answer["BackendServers"]["BackendServer"]]
    return {**answer, "BackendServers": {"BackendServer": shown}}


@SLB.action("DeleteVServerGroup")
def delete_vserver_group(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Refused while a listener uses it."""
    group, _ = _to_change(account, arguments)
    if _using(account, group["id"]):
        raise Refusal(400, "RspoolVipExist", "there are vips associating with this vServer group.")
    account.store.remove(GROUP, group["id"])
    return {}


def group_of(account: Account, id: str) -> Object:
    """The group with this id."""
    missing = Refusal(404, INVALID, "The specified VServerGroupId does not exist.")
    return account.find(GROUP, id, missing)


def _to_change(account: Account, arguments: Arguments) -> tuple[Object, Object]:
    group = group_of(account, arguments["VServerGroupId"])
    balancer = account.store.get(CLB, group["balancer"]) or {}
    return group, ready(account, balancer)


def _asked(account: Account, text: str, balancer: Object) -> list[Backend]:
    """The backends of a request, whose servers run in the load balancer's VPC."""
    backends = _read(account, text)
    for each in backends:
        _require_server(account, each, balancer)
    return backends


def _read(account: Account, text: str) -> list[Backend]:
    try:
        asked = json.loads(text)
    except ValueError:
        asked = None
    if not isinstance(asked, list) or not all(isinstance(each, dict) for each in asked):
        message = "The specified parameter BackendServers is not a JSON list of objects."
        raise Refusal(400, "BackendServersMalformed", message)
    most = account.quotas.clb_backends_a_call
    if len(asked) > most:
        message = f"The total number of input real servers exceeds max supported number: {most}"
        raise Refusal(400, "TooManyBackendServers", message)
    return [_backend(each) for each in asked]


def _backend(asked: Mapping[str, Any]) -> Backend:
    backend: Backend = {"Weight": 100, "Type": "ecs", "ServerIp": "", "Description": ""}
    for key, value in asked.items():
        if key.lower() not in _FIELDS:
            raise Refusal(400, INVALID, f"The specified BackendServers is invalid: a backend has no {key}.")
        field = _FIELDS[key.lower()]
        is_number = field in ("Port", "Weight") and isinstance(value, str) and value.isdecimal()
        backend[field] = int(value) if is_number else value
    if not backend.get("ServerId") or "Port" not in backend:
        raise Refusal(400, INVALID, "The specified BackendServers is invalid: ServerId and Port are required.")
    require(backend, _RULES, INVALID)
    return backend


def _require_server(account: Account, backend: Backend, balancer: Object) -> None:
    kind = INSTANCE if backend["Type"] == "ecs" else ENI
    missing = Refusal(404, "InvalidServerId.NotFound", f"The specified ServerId does not exist: {backend['ServerId']}.")
    server = account.find(kind, backend["ServerId"], missing)
    if kind == INSTANCE and server["status"] != "Running":
        message = "The specified BackendServers is invalid; some of the specified backend servers are not running."
        raise Refusal(400, "ObtainIpFail", message)
    if kind == ENI and backend["ServerIp"] not in (*server["addresses"], *server["ipv6"]):
        message = (
            f"The specified BackendServers is invalid: {backend['ServerId']} has no address {backend['ServerIp']}."
        )
        raise Refusal(400, "ObtainIpFail", message)
    if balancer["vpc"] not in ("", server["vpc"]):
        message = "All BackendServers on one Specified LoadBalancer have to be in the same vpc or all classic"
        raise Refusal(400, "InvalidBackendServers.Inconsistent", message)


def _merged(account: Account, had: Iterable[Backend], more: Iterable[Backend]) -> list[Backend]:
    merged = {_key(each): each for each in had} | {_key(each): each for each in more}
    if len(merged) > account.quotas.backends:
        raise Refusal(400, "TooManyBackendServers", f"A vServer group has at most {account.quotas.backends} backends.")
    return list(merged.values())


def _key(backend: Backend) -> tuple[str, int, str, str]:
    return backend["ServerId"], backend["Port"], backend["Type"], backend["ServerIp"]


def _answer(group: Object) -> dict[str, Any]:
    fields = ("ServerId", "Port", "Weight", "Type", "Description")
    shown = [{name: each[name] for name in fields} for each in group["backends"]]
    return {"VServerGroupId": group["id"], "BackendServers": {"BackendServer": shown}}


def _using(account: Account, group: str) -> list[Object]:
    return [each for each in account.store.all(LISTENER) if each["VServerGroupId"] == group]


def _users(account: Account, group: str) -> dict[str, Any]:
    listeners = [{"Port": each["port"], "Protocol": each["protocol"]} for each in _using(account, group)]
    return {"AssociatedObjects": {"Listeners": {"Listener": listeners}, "Rules": {"Rule": []}}}
