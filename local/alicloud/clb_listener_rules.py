"""CLB: what a listener of each protocol takes, its defaults and ranges. Pure.

Ranges and choices are those of the SDK's documentation of the Create… actions, defaults too where it names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from local.alicloud.checks import ON_OFF, PORT, Range, Rule, Text, require
from local.alicloud.clb_balancers import INVALID
from local.standin.refusals import Refusal

TOP: Final[dict[str, Any]] = {
    "Description": "",
    "Bandwidth": -1,
    "Scheduler": "wrr",
    "VServerGroupId": "",
    "AclStatus": "off",
    "AclId": "",
    "AclType": "",
}
"""What listeners of every protocol have, and its defaults."""

_CHECK_OF_LAYER_4: Final[dict[str, Any]] = {"HealthCheck": "on", "HealthyThreshold": 3, "UnhealthyThreshold": 3}
_OF_LAYER_7: Final[dict[str, Any]] = {
    "Cookie": "",
    "CookieTimeout": None,
    "Gzip": "on",
    "HealthCheck": None,
    "HealthCheckConnectPort": None,
    "HealthCheckDomain": "",
    "HealthCheckHttpCode": "http_2xx",
    "HealthCheckInterval": 2,
    "HealthCheckMethod": "head",
    "HealthCheckTimeout": 5,
    "HealthCheckURI": "/",
    "HealthyThreshold": 3,
    "IdleTimeout": 15,
    "RequestTimeout": 60,
    "StickySession": "off",
    "StickySessionType": "",
    "UnhealthyThreshold": 3,
    "XForwardedFor": "on",
    "XForwardedFor_ClientSrcPort": "off",
    "XForwardedFor_SLBID": "off",
    "XForwardedFor_SLBIP": "off",
    "XForwardedFor_SLBPORT": "off",
    "XForwardedFor_proto": "off",
}
CONFIG: Final[dict[str, dict[str, Any]]] = {
    "tcp": {
        **_CHECK_OF_LAYER_4,
        "ConnectionDrain": "off",
        "ConnectionDrainTimeout": None,
        "EstablishedTimeout": 900,
        "HealthCheckConnectPort": None,
        "HealthCheckConnectTimeout": 5,
        "HealthCheckDomain": "",
        "HealthCheckHttpCode": "http_2xx",
        "HealthCheckInterval": 2,
        "HealthCheckType": "tcp",
        "HealthCheckURI": "",
        "PersistenceTimeout": 0,
        "ProxyProtocolV2Enabled": False,
    },
    "udp": {
        **_CHECK_OF_LAYER_4,
        "HealthCheckConnectPort": None,
        "HealthCheckConnectTimeout": 10,
        "HealthCheckExp": "",
        "HealthCheckInterval": 5,
        "HealthCheckReq": "",
        "ProxyProtocolV2Enabled": False,
    },
    "http": {**_OF_LAYER_7, "ForwardPort": None, "ListenerForward": "off"},
    "https": {
        **_OF_LAYER_7,
        "CACertificateId": "",
        "EnableHttp2": "on",
        "ServerCertificateId": "",
        "TLSCipherPolicy": "tls_cipher_policy_1_0",
    },
}
"""What listeners of a protocol have beside, with defaults; None: not shown until it is set."""

ALIASES: Final = {
    "HealthCheckSwitch": "HealthCheck",
    "healthCheckInterval": "HealthCheckInterval",
    "healthCheckExp": "HealthCheckExp",
    "healthCheckReq": "HealthCheckReq",
}
"""Names of parameters that answers write in another way."""

_PATH: Final = Text(r"/[\w\-/.%?#&]{0,79}", "1 to 80 characters, / first")
_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("AclStatus", "ConnectionDrain", "EnableHttp2", "Gzip", "HealthCheck", "ListenerForward"), ON_OFF),
    **dict.fromkeys((name for name in _OF_LAYER_7 if name.startswith("XForwardedFor")), ON_OFF),
    **dict.fromkeys(("BackendServerPort", "ForwardPort", "ListenerPort"), PORT),
    "AclType": ("white", "black"),
    "Bandwidth": Range(1, 5120, also=(-1,)),
    "ConnectionDrainTimeout": Range(10, 900),
    "Cookie": Text(r"(?!\$)[^,; ]{1,200}", "1 to 200 characters without , ; and spaces, no $ first"),
    "CookieTimeout": Range(1, 86400),
    "Description": Text(r"[\w\-/.]{1,256}", "1 to 256 letters, digits, - / . _"),
    "EstablishedTimeout": Range(10, 900),
    # -520 is what the cloud shows for the backend's own port.
    "HealthCheckConnectPort": Range(1, 65535, also=(-520,)),
    "HealthCheckConnectTimeout": Range(1, 300),
    "HealthCheckDomain": Text(r"\$_ip|[\w.\-]{0,80}", "$_ip or at most 80 letters, digits, . -"),
    "HealthCheckHttpCode": Text(r"http_[2-5]xx(,http_[2-5]xx)*", "http_2xx to http_5xx, separated by commas"),
    "HealthCheckInterval": Range(1, 50),
    "HealthCheckMethod": ("head", "get"),
    "HealthCheckTimeout": Range(1, 300),
    "HealthCheckType": ("tcp", "http"),
    "HealthCheckURI": _PATH,
    "HealthyThreshold": Range(2, 10),
    "IdleTimeout": Range(1, 60),
    "PersistenceTimeout": Range(0, 3600),
    "RequestTimeout": Range(1, 180),
    "StickySession": ON_OFF,
    "StickySessionType": ("insert", "server"),
    "TLSCipherPolicy": (
        *("tls_cipher_policy_1_0", "tls_cipher_policy_1_1", "tls_cipher_policy_1_2"),
        *("tls_cipher_policy_1_2_strict", "tls_cipher_policy_1_2_strict_with_1_3"),
    ),
    "UnhealthyThreshold": Range(2, 10),
}
_SCHEDULERS: Final = {
    "tcp": ("wrr", "rr", "sch", "tch"),
    "udp": ("wrr", "rr", "sch", "tch", "qch"),
    "http": ("wrr", "rr"),
    "https": ("wrr", "rr"),
}
_BY_HASH: Final = ("sch", "tch", "qch")


def require_values(protocol: str, values: Mapping[str, Any]) -> None:
    """Raise Refusal for a value outside its range."""
    require(values, {**_RULES, "Scheduler": _SCHEDULERS[protocol]}, INVALID)


def require_change(protocol: str, before: str, after: str) -> None:
    """Raise Refusal for a change of the scheduler that the documentation of the Set… action excludes."""
    if before != after and (after in _BY_HASH or (protocol == "udp" and before in _BY_HASH)):
        raise Refusal(400, INVALID, f"The Scheduler of a {protocol} listener cannot change from {before} to {after}.")


def require_whole(protocol: str, listener: Mapping[str, Any]) -> None:
    """Raise Refusal for parameters that need each other. `listener` is as it will be, config and all."""
    if listener["AclStatus"] == "on" and not (listener["AclId"] and listener["AclType"]):
        raise _missing("AclId", "AclType", because="AclStatus is on")
    if listener.get("ConnectionDrain") == "on" and listener.get("ConnectionDrainTimeout") is None:
        raise _missing("ConnectionDrainTimeout", because="ConnectionDrain is on")
    if listener.get("StickySession") == "on":
        kind = listener["StickySessionType"]
        needed = {"insert": "CookieTimeout", "server": "Cookie", "": "StickySessionType"}[kind]
        if not listener[needed]:
            raise _missing(needed, because=f"StickySession is on, its type {kind or 'not given'}")
    if listener.get("ListenerForward") == "on":
        if listener["ForwardPort"] is None:
            raise _missing("ForwardPort", because="ListenerForward is on")
    elif not listener["VServerGroupId"]:
        raise _missing("VServerGroupId", because="the stand-in has no default server group")
    if protocol == "https" and not listener["ServerCertificateId"]:
        raise _missing("ServerCertificateId", because="the listener is one of HTTPS")


def _missing(*names: str, because: str) -> Refusal:
    return Refusal(400, f"MissingParam.{names[0]}", f"{' and '.join(names)} must be given: {because}.")
