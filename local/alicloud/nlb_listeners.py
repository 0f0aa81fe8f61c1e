"""NLB: listeners of TCP, UDP and TCPSSL, created running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.checks import Range, Rule, Text, has_tags, require, shown_tags, tags_of
from local.alicloud.clb_certificates import CERTIFICATE
from local.alicloud.nlb_balancers import at_most
from local.alicloud.nlb_groups import group_of
from local.alicloud.nlb_jobs import ILLEGAL, LISTENER, active, begin, begin_removal, not_found, require_status
from local.alicloud.paging import tokened
from local.alicloud.products import NLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

RUNNING, STOPPED = "Running", "Stopped"
_MOST_CERTIFICATES: Final = 15
_RULES: Final[dict[str, Rule]] = {
    "AlpnPolicy": ("HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred"),
    "Cps": Range(0, 1000000),
    "EndPort": Range(0, 65535),
    "IdleTimeout": Range(10, 900),
    "ListenerDescription": Text(r"[\w,.;/@\-]{2,256}", "2 to 256 letters, digits, , . ; / @ _ -"),
    "ListenerPort": Range(0, 65535),
    "ListenerProtocol": ("TCP", "UDP", "TCPSSL"),
    "Mss": Range(0, 1500),
    "StartPort": Range(0, 65535),
}
_POLICIES: Final = (
    *("tls_cipher_policy_1_0", "tls_cipher_policy_1_1", "tls_cipher_policy_1_2"),
    *("tls_cipher_policy_1_2_strict", "tls_cipher_policy_1_2_strict_with_1_3"),
)
_DEFAULTS: Final[dict[str, Any]] = {
    "AlpnEnabled": False,
    "AlpnPolicy": "",
    "CaCertificateIds": [],
    "CaEnabled": False,
    "CertificateIds": [],
    "Cps": 0,
    "IdleTimeout": None,
    "ListenerDescription": "",
    "Mss": 0,
    "ProxyProtocolEnabled": False,
    "ProxyProtocolV2Config": {},
    "SecSensorEnabled": False,
    "SecurityPolicyId": "",
    "ServerGroupId": "",
}
_OF_TLS: Final = ("AlpnEnabled", "AlpnPolicy", "CaCertificateIds", "CaEnabled", "CertificateIds", "SecurityPolicyId")
_GROUPS_OF: Final = {"TCP": ("TCP", "TCP_UDP"), "UDP": ("UDP", "TCP_UDP"), "TCPSSL": ("TCP", "TCPSSL")}


@NLB.action("CreateListener")
def create_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """It is Provisioning, then Running."""
    require(arguments, _RULES, ILLEGAL)
    balancer = active(account, arguments)
    protocol, first, last = arguments["ListenerProtocol"], *_ports(arguments)
    others = [each for each in account.store.all(LISTENER) if each["balancer"] == balancer["id"]]
    for each in others:
        if (each["protocol"] == "UDP") == (protocol == "UDP") and first <= each["last"] and each["first"] <= last:
            message = f"The port {arguments['ListenerPort'] or f'{first}-{last}'} has a listener already: {each['id']}."
            raise Refusal(400, "ResourceAlreadyExist.listener", message)
    if len(others) >= account.quotas.listeners:
        raise Refusal(400, "QuotaExceeded.ListenersNum", f"A load balancer has at most {account.quotas.listeners}.")
    new = account.new_id("lsn")
    body = {
        "id": new,
        "balancer": balancer["id"],
        "status": "",
        "protocol": protocol,
        "port": arguments["ListenerPort"],
        "first": first,
        "last": last,
        "more_certificates": [],
        "tags": tags_of(arguments.get("Tag", []), account.quotas.tags),
        **_changed(account, _DEFAULTS, arguments, protocol, is_range=arguments["ListenerPort"] == 0),
    }
    account.store.put(LISTENER, new, body)
    return {"ListenerId": new, "JobId": begin(account, LISTENER, new, "Provisioning", RUNNING)}


@NLB.action("GetListenerAttribute")
def get_listener_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One listener."""
    listener = listener_of(account, arguments)
    return {**_shown(account, listener), "Tags": shown_tags(listener["tags"])}


@NLB.action("ListListeners")
def list_listeners(account: Account, arguments: Arguments) -> dict[str, Any]:
    """By ids and load balancers (at most 20), tags, protocol; pages by token."""
    found = account.store.all(LISTENER)
    for parameter, field in (("ListenerIds", "id"), ("LoadBalancerIds", "balancer")):
        if parameter in arguments:
            wanted = at_most(arguments[parameter], 20, parameter)
            found = [each for each in found if each[field] in wanted]
    if "ListenerProtocol" in arguments:
        found = [each for each in found if each["protocol"] == arguments["ListenerProtocol"]]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    page, fields = tokened(arguments, found, 20, 100)
    shown = [{**_shown(account, each), "Tags": shown_tags(each["tags"], "Key", "Value")} for each in page]
    return {"Listeners": shown, "MaxResults": arguments.get("MaxResults", 20), **fields}


@NLB.action("UpdateListenerAttribute")
def update_listener_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """All but protocol and port."""
    require(arguments, _RULES, ILLEGAL)
    listener = settled(account, arguments)
    changes = _changed(account, listener, arguments, listener["protocol"], is_range=listener["port"] == 0)
    return _begin(account, listener, "Configuring", listener["status"], **changes)


@NLB.action("StartListener")
def start_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Stopped to Running."""
    return _begin(account, require_status("listener", listener_of(account, arguments), STOPPED), "Starting", RUNNING)


@NLB.action("DeleteListener")
def delete_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Its server group stays."""
    return {"JobId": begin_removal(account, LISTENER, settled(account, arguments)["id"], "Deleting")}


@NLB.action("GetListenerHealthStatus")
def get_listener_health_status(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Tells only of servers that are not healthy, as `Account.unhealthy` says."""
    listener = listener_of(account, arguments)
    group = group_of(account, listener["ServerGroupId"])
    enabled = group["HealthCheck"]["HealthCheckEnabled"]
    bad = [
        {
            "ServerId": each["ServerId"],
            "ServerIp": each["ServerIp"],
            "Port": each["Port"],
            "Status": "Unhealthy" if enabled else "Unavailable",
            "Reason": {"ReasonCode": "CONNECT_FAILED"} if enabled else {},
        }
        for each in group["servers"]
        if not enabled or not account.is_healthy(each["ServerId"], each["Port"])
    ]
    infos = [{"ServerGroupId": group["id"], "HeathCheckEnabled": enabled, "NonNormalServers": bad}]
    shown = {
        "ListenerId": listener["id"],
        "ListenerPort": listener["port"],
        "ListenerProtocol": listener["protocol"],
        "ServerGroupInfos": infos,
    }
    return {"ListenerHealthStatus": [shown], "TotalCount": 1, "MaxResults": 20}


@NLB.action("AssociateAdditionalCertificatesWithListener")
def associate_additional_certificates_with_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """At most 15 in a call, of a TCPSSL listener."""
    listener, asked = settled(account, arguments), arguments["AdditionalCertificateIds"]
    if listener["protocol"] != "TCPSSL":
        raise Refusal(400, ILLEGAL.format("ListenerId"), "Additional certificates are for TCPSSL listeners.")
    at_most(asked, _MOST_CERTIFICATES, "AdditionalCertificateIds")
    for each in asked:
        account.find(CERTIFICATE, each, not_found("Certificate", each))
        if each in (*listener["more_certificates"], *listener["CertificateIds"]):
            raise Refusal(
                400, "ResourceAlreadyAssociated.Certificate", f"The listener has the certificate {each} already."
            )
    return _begin(
        account, listener, "Configuring", listener["status"], more_certificates=[*listener["more_certificates"], *asked]
    )


@NLB.action("DisassociateAdditionalCertificatesWithListener")
def disassociate_additional_certificates_with_listener(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Additional ones that the listener has."""
    listener, gone = settled(account, arguments), arguments["AdditionalCertificateIds"]
    for each in gone:
        if each not in listener["more_certificates"]:
            raise Refusal(
                400, "ResourceNotAssociated.Certificate", f"The listener does not have the certificate {each}."
            )
    left = [each for each in listener["more_certificates"] if each not in gone]
    return _begin(account, listener, "Configuring", listener["status"], more_certificates=left)


@NLB.action("ListListenerCertificates")
def list_listener_certificates(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The server's, the additional and the CA's."""
    listener, kind = listener_of(account, arguments), arguments.get("CertType", "Server")
    default = listener["CaCertificateIds"] if kind == "Ca" else listener["CertificateIds"]
    all_of_it = [*default, *(listener["more_certificates"] if kind == "Server" else [])]
    if "CertificateIds" in arguments:
        all_of_it = [each for each in all_of_it if each in arguments["CertificateIds"]]
    page, fields = tokened(arguments, all_of_it, 20, 100)
    shown = [
        {"CertificateId": each, "CertificateType": kind, "IsDefault": each in default, "Status": "Associated"}
        for each in page
    ]
    more = {"MaxResults": arguments.get("MaxResults", 20), **fields}
    return {"Certificates": shown, "CertificateIds": page, **more}


def listener_of(account: Account, arguments: Arguments) -> Object:
    """The listener that a request names."""
    asked = arguments["ListenerId"]
    return account.find(LISTENER, asked, not_found("listener", asked))


def settled(account: Account, arguments: Arguments) -> Object:
    """The listener that a request is to change. Raises Refusal while another change runs."""
    return require_status("listener", listener_of(account, arguments), RUNNING, STOPPED)


def _begin(account: Account, listener: Object, during: str, after: str, **changes: Any) -> dict[str, Any]:
    return {"JobId": begin(account, LISTENER, listener["id"], during, after, **changes)}


def _ports(arguments: Arguments) -> tuple[int, int]:
    port = arguments["ListenerPort"]
    if port:
        if "StartPort" in arguments or "EndPort" in arguments:
            raise Refusal(400, ILLEGAL.format("ListenerPort"), "StartPort and EndPort need ListenerPort 0.")
        return port, port
    for name in ("StartPort", "EndPort"):
        if name not in arguments:
            raise Refusal(400, f"MissingParam.{name}", f"The param of {name} is missing: ListenerPort is 0.")
    first, last = arguments["StartPort"], arguments["EndPort"]
    if first >= last:
        raise Refusal(400, ILLEGAL.format("EndPort"), f"EndPort {last} must be greater than StartPort {first}.")
    return first, last


def _changed(
    account: Account, before: Mapping[str, Any], arguments: Arguments, protocol: str, *, is_range: bool
) -> dict[str, Any]:
    """The fields of a listener with what a request gives. Raises Refusal."""
    listener = {name: arguments.get(name, before[name]) for name in _DEFAULTS}
    if listener["IdleTimeout"] is None:
        listener["IdleTimeout"] = 20 if protocol == "UDP" else 900
    if protocol == "UDP":
        require(listener, {"IdleTimeout": Range(10, 20)}, ILLEGAL)
    if protocol == "TCPSSL":
        _require_tls(account, listener)
    else:
        for name in _OF_TLS:
            if arguments.raw.get(name):
                raise Refusal(400, ILLEGAL.format(name), f"{name} is for TCPSSL listeners.")
    if not listener["ServerGroupId"]:
        raise Refusal(400, "MissingParam.ServerGroupId", "The param of ServerGroupId is missing.")
    group = group_of(account, listener["ServerGroupId"])
    if group["status"] == "Creating":
        require_status("serverGroup", group)
    fits = group["Protocol"] in _GROUPS_OF[protocol]
    if not fits or (protocol == "TCPSSL" and group["Protocol"] == "TCP" and group["PreserveClientIpEnabled"]):
        message = f"A listener of {protocol} can't use a group of {group['Protocol']}"
        raise Refusal(
            400, "Mismatch.Protocol", f"{message} that preserves client addresses." if fits else f"{message}."
        )
    if is_range and not group["AnyPortEnabled"]:
        raise Refusal(400, "Mismatch.AnyPortEnabled", "A range of ports needs a group with multi-port forwarding.")
    return listener


def _require_tls(account: Account, listener: dict[str, Any]) -> None:
    listener["SecurityPolicyId"] = listener["SecurityPolicyId"] or "tls_cipher_policy_1_0"
    require(listener, {"SecurityPolicyId": _POLICIES}, ILLEGAL)
    if listener["AlpnEnabled"] and not listener["AlpnPolicy"]:
        raise Refusal(400, "MissingParam.AlpnPolicy", "The param of AlpnPolicy is missing.")
    if listener["CaEnabled"] and not listener["CaCertificateIds"]:
        raise Refusal(400, "MissingParam.CaCertificateIds", "The param of CaCertificateIds is missing.")
    if not listener["CertificateIds"]:
        raise Refusal(400, "MissingParam.CertificateIds", "The param of CertificateIds is missing.")
    for name in ("CertificateIds", "CaCertificateIds"):
        at_most(listener[name], 1, name)
        for each in listener[name]:
            account.find(CERTIFICATE, each, not_found("Certificate", each))


def _shown(account: Account, listener: Object) -> dict[str, Any]:
    shown = {name: listener[name] for name in _DEFAULTS}
    ports = {"StartPort": str(listener["first"]), "EndPort": str(listener["last"])} if not listener["port"] else {}
    return {
        **shown,
        **ports,
        "ListenerId": listener["id"],
        "ListenerPort": listener["port"],
        "ListenerProtocol": listener["protocol"],
        "ListenerStatus": listener["status"],
        "LoadBalancerId": listener["balancer"],
        "RegionId": account.region,
    }
