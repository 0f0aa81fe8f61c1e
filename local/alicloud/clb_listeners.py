"""CLB: listeners of TCP, UDP, HTTP and HTTPS, created stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import has_tags, shown_tags, tags_of
from local.alicloud.clb_acls import acl_of
from local.alicloud.clb_balancers import EXTENSION, INVALID, LISTENER, balancer_of, listeners_of, ready
from local.alicloud.clb_certificates import certificate_of
from local.alicloud.clb_groups import group_of
from local.alicloud.clb_listener_rules import ALIASES, CONFIG, TOP, require_change, require_values, require_whole
from local.alicloud.paging import tokened
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

PROTOCOLS: Final = {"TCP": "tcp", "UDP": "udp", "HTTP": "http", "HTTPS": "https"}
RUNNING, STOPPED = "running", "stopped"


def _create(protocol: str) -> Callable[[Account, Arguments], dict[str, Any]]:
    def create(account: Account, arguments: Arguments) -> dict[str, Any]:
        balancer = ready(account, balancer_of(account, arguments))
        port, given = arguments["ListenerPort"], _given(protocol, arguments)
        require_values(protocol, {**given, "ListenerPort": port})
        others = listeners_of(account, balancer["id"])
        if any(each["port"] == port and (each["protocol"] == "udp") == (protocol == "udp") for each in others):
            raise Refusal(400, "ListenerAlreadyExists", "A listener with the specified port already exists")
        if len(others) >= account.quotas.listeners:
            most = account.quotas.listeners
            raise Refusal(
                400, "VipTooManyListeners", f"The total number of listeners exceeds max supported number: {most}"
            )
        body = {
            "id": listener_id(balancer["id"], protocol, port),
            "balancer": balancer["id"],
            "protocol": protocol,
            "port": port,
            "status": STOPPED,
            "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        }
        account.store.put(LISTENER, body["id"], _changed(account, body, given))
        return {}

    return create


def _set(protocol: str) -> Callable[[Account, Arguments], dict[str, Any]]:
    def change(account: Account, arguments: Arguments) -> dict[str, Any]:
        ready(account, balancer_of(account, arguments))
        listener = _one(account, arguments, protocol)
        given = _given(protocol, arguments)
        require_values(protocol, given)
        require_change(protocol, listener["Scheduler"], {**listener, **given}["Scheduler"])
        uses = arguments.get("VServerGroup")
        if "VServerGroupId" in given and uses != "on":
            raise Refusal(400, "MissingParam.VServerGroup", "VServerGroup must be on to set VServerGroupId.")
        account.store.put(LISTENER, listener["id"], _changed(account, listener, given))
        return {}

    return change


def _describe(protocol: str) -> Callable[[Account, Arguments], dict[str, Any]]:
    def describe(account: Account, arguments: Arguments) -> dict[str, Any]:
        listener = _one(account, arguments, protocol)
        shown = {**_top(listener), **_config(listener), "Status": listener["status"]}
        extensions = [each for each in account.store.all(EXTENSION) if each["listener"] == listener["id"]]
        if protocol == "https":
            told = [
                {name: each[name] for name in ("DomainExtensionId", "Domain", "ServerCertificateId")}
                for each in extensions
            ]
            shown["DomainExtensions"] = {"DomainExtension": told}
        shown["Tags"] = {"Tag": shown_tags(listener["tags"])}
        return {**shown, "LoadBalancerId": listener["balancer"], "ListenerPort": listener["port"]}

    return describe


for _name, _protocol in PROTOCOLS.items():
    SLB.action(f"CreateLoadBalancer{_name}Listener")(_create(_protocol))
    SLB.action(f"SetLoadBalancer{_name}ListenerAttribute")(_set(_protocol))
    SLB.action(f"DescribeLoadBalancer{_name}ListenerAttribute")(_describe(_protocol))


@SLB.action("DescribeLoadBalancerListeners")
def describe_load_balancer_listeners(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of all load balancers, or of at most 10; pages by token."""
    found = account.store.all(LISTENER)
    if "LoadBalancerId" in arguments:
        wanted = arguments["LoadBalancerId"]
        if len(wanted) > 10:
            raise Refusal(400, INVALID, f"LoadBalancerId has {len(wanted)} values, more than 10.")
        found = [each for each in found if each["balancer"] in wanted]
    for parameter, field in (
        ("ListenerPort", "port"),
        ("ListenerProtocol", "protocol"),
        ("Description", "Description"),
    ):
        if parameter in arguments:
            found = [each for each in found if each[field] == arguments[parameter]]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    page, fields = tokened(arguments, found, 20, 100)
    return {"Listeners": [_listed(each) for each in page], "MaxResults": arguments.get("MaxResults", 20), **fields}


@SLB.action("StartLoadBalancerListener")
def start_load_balancer_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Stopped to running."""
    return _to_status(account, arguments, RUNNING)


@SLB.action("StopLoadBalancerListener")
def stop_load_balancer_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Running to stopped."""
    return _to_status(account, arguments, STOPPED)


@SLB.action("DeleteLoadBalancerListener")
def delete_load_balancer_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Its domain extensions go with it. Refused while an HTTP listener forwards to it."""
    ready(account, balancer_of(account, arguments))
    listener = _one(account, arguments, arguments.get("ListenerProtocol"))
    for each in listeners_of(account, listener["balancer"]):
        forwards_to = each["config"].get("ForwardPort") if each["config"].get("ListenerForward") == "on" else None
        if listener["protocol"] == "https" and forwards_to == listener["port"]:
            raise Refusal(400, "ListenerForwardExist", f"The HTTP listener {each['port']} forwards to it.")
    for extension in account.store.all(EXTENSION):
        if extension["listener"] == listener["id"]:
            account.store.remove(EXTENSION, extension["id"])
    account.store.remove(LISTENER, listener["id"])
    return {}


@SLB.action("DescribeHealthStatus")
def describe_health_status(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of each backend of each running listener, as `Account.unhealthy` says."""
    balancer = balancer_of(account, arguments)
    shown = []
    for listener in listeners_of(account, balancer["id"]):
        wanted = (
            arguments.get("ListenerPort", listener["port"]),
            arguments.get("ListenerProtocol", listener["protocol"]),
        )
        if wanted != (listener["port"], listener["protocol"]) or not listener["VServerGroupId"]:
            continue
        for backend in group_of(account, listener["VServerGroupId"])["backends"]:
            health = {True: "normal", False: "abnormal"}[account.is_healthy(backend["ServerId"], backend["Port"])]
            if listener["config"]["HealthCheck"] == "off" or listener["status"] != RUNNING:
                health = "unavailable"
            shown.append(
                {
                    "ListenerPort": listener["port"],
                    "Protocol": listener["protocol"],
                    "Port": backend["Port"],
                    "ServerId": backend["ServerId"],
                    "ServerIp": backend["ServerIp"],
                    "ServerHealthStatus": health,
                }
            )
    return {"BackendServers": {"BackendServer": shown}}


def listener_id(balancer: str, protocol: str, port: int) -> str:
    """As tags name it."""
    return f"{balancer}_{protocol}_{port}"


def _given(protocol: str, arguments: Arguments) -> dict[str, Any]:
    names = {*TOP, *CONFIG[protocol], *ALIASES}
    return {ALIASES.get(name, name): arguments[name] for name in arguments.raw if name in names}


def _changed(account: Account, listener: Object, given: Mapping[str, Any]) -> Object:
    """The listener with the given parameters. Raises Refusal."""
    protocol = listener["protocol"]
    top = {name: given.get(name, listener.get(name, default)) for name, default in TOP.items()}
    before = listener.get("config", CONFIG[protocol])
    config = {name: given.get(name, value) for name, value in before.items()}
    require_whole(protocol, {**top, **config})
    if top["VServerGroupId"] and group_of(account, top["VServerGroupId"])["balancer"] != listener["balancer"]:
        raise Refusal(404, INVALID, "The specified VServerGroupId does not exist in this load balancer.")
    if top["AclStatus"] == "on":
        acl_of(account, top["AclId"])
    if protocol == "https":
        certificate_of(account, config["ServerCertificateId"])
    if config.get("ListenerForward") == "on":
        target = listener_id(listener["balancer"], "https", config["ForwardPort"])
        missing = Refusal(404, "ListenerNotFound", f"There is no HTTPS listener {config['ForwardPort']} to forward to.")
        account.find(LISTENER, target, missing)
    return {**listener, **top, "config": config}


def _one(account: Account, arguments: Arguments, protocol: str | None) -> Object:
    """The listener of a request; without a protocol there must be only one on its port."""
    balancer, port = balancer_of(account, arguments), arguments["ListenerPort"]
    found = [
        each
        for each in listeners_of(account, balancer["id"])
        if each["port"] == port and protocol in (None, each["protocol"])
    ]
    if not found:
        message = (
            f"You have not created a listener for the specified port of the load balancer: {protocol or ''} {port}."
        )
        raise Refusal(404, "ListenerNotFound", message)
    if len(found) > 1:
        raise Refusal(400, "MissingListenerProtocol", f"ListenerProtocol must be given: port {port} has two listeners.")
    return found[0]


def _to_status(account: Account, arguments: Arguments, status: str) -> dict[str, Any]:
    ready(account, balancer_of(account, arguments))
    listener = _one(account, arguments, arguments.get("ListenerProtocol"))
    account.fill(LISTENER, listener["id"], status=status)
    return {}


def _top(listener: Object) -> dict[str, Any]:
    shown = {name: listener[name] for name in TOP if listener[name] != ""}
    return {**shown, "BackendServerPort": 0} if not listener["VServerGroupId"] else shown


def _config(listener: Object) -> dict[str, Any]:
    return {name: value for name, value in listener["config"].items() if value not in (None, "")}


def _listed(listener: Object) -> dict[str, Any]:
    config = _config(listener)
    if "ProxyProtocolV2Enabled" in config:
        config["ProxyProtocolV2Enabled"] = str(config["ProxyProtocolV2Enabled"]).lower()
    return {
        **_top(listener),
        "LoadBalancerId": listener["balancer"],
        "ListenerPort": listener["port"],
        "ListenerProtocol": listener["protocol"],
        "Status": listener["status"],
        "Tags": shown_tags(listener["tags"]),
        f"{listener['protocol'].upper()}ListenerConfig": config,
    }
