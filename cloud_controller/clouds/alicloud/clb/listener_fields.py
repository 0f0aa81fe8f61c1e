"""The attributes of listeners in the model, and where each stands in CLB's requests and answers. Pure.

Create and Set name some differently, and TCP and HTTP have different words for the same health check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cloud_controller.load_balancers.catalogue import Value

BACKENDS_OWN_PORT = -520
"""In a request: health checks connect to the backend's own port again. The API shows it as this, or not at all."""
OWN_ADDRESS = "$_ip"
"""In a request: the host name of health checks is the backend's address again."""

_TCP, _UDP, _HTTP, _HTTPS = (frozenset({each}) for each in ("tcp", "udp", "http", "https"))
_L4, _L7 = _TCP | _UDP, _HTTP | _HTTPS


def _same(value: Any) -> Any:
    return value


def _number(value: Any) -> int | None:
    return None if value in (None, "") else int(value)


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None


def _port(value: Any) -> int | None:
    found = _number(value)
    return found if found is not None and found > 0 else None


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute: its name on the wire for these protocols, and its value there and back.

    `create`: another name in the Create action. `shown`: another name in answers. `on_top`: the answer has it beside
    the protocol's own settings.
    """

    name: str
    wire: str
    protocols: frozenset[str]
    read: Callable[[Any], Any] = _text
    write: Callable[[Any], Any] = _same
    create: str | None = None
    shown: str | None = None
    on_top: bool = False


_ALL = _L4 | _L7

FIELDS = (
    Field("scheduler", "Scheduler", _ALL, on_top=True),
    Field("acl_status", "AclStatus", _ALL, on_top=True),
    Field(
        "acl_ids",
        "AclId",
        _ALL,
        read=lambda ids: tuple(sorted(ids)),
        write=lambda ids: ",".join(ids) if ids else None,
        shown="AclIds",
        on_top=True,
    ),
    Field("acl_type", "AclType", _ALL, on_top=True),
    Field("persistence_timeout", "PersistenceTimeout", _TCP, read=_number),
    Field("established_timeout", "EstablishedTimeout", _TCP, read=_number),
    Field("connection_drain", "ConnectionDrain", _TCP),
    Field("connection_drain_timeout", "ConnectionDrainTimeout", _TCP, read=_number),
    Field(
        "proxy_protocol",
        "ProxyProtocolV2Enabled",
        _L4,
        read=lambda enabled: "on" if str(enabled).lower() == "true" else "off",
        write=lambda on: on == "on",
    ),
    Field("health_check", "HealthCheckSwitch", _L4, shown="HealthCheck"),
    Field("health_check", "HealthCheck", _L7),
    Field("health_check_type", "HealthCheckType", _TCP),
    Field(
        "health_check_port",
        "HealthCheckConnectPort",
        _ALL,
        read=_port,
        write=lambda port: port or BACKENDS_OWN_PORT,
    ),
    Field("health_check_interval", "HealthCheckInterval", _L4, read=_number, create="healthCheckInterval"),
    Field("health_check_interval", "HealthCheckInterval", _L7, read=_number),
    Field("health_check_timeout", "HealthCheckConnectTimeout", _L4, read=_number),
    Field("health_check_timeout", "HealthCheckTimeout", _L7, read=_number),
    Field("healthy_threshold", "HealthyThreshold", _ALL, read=_number),
    Field("unhealthy_threshold", "UnhealthyThreshold", _ALL, read=_number),
    Field("health_check_uri", "HealthCheckURI", _TCP | _L7),
    Field(
        "health_check_domain",
        "HealthCheckDomain",
        _TCP | _L7,
        read=lambda domain: None if domain == OWN_ADDRESS else _text(domain),
        write=lambda domain: domain or OWN_ADDRESS,
    ),
    Field("health_check_method", "HealthCheckMethod", _L7),
    Field("health_check_http_code", "HealthCheckHttpCode", _TCP | _L7),
    Field("sticky_session", "StickySession", _L7),
    Field("sticky_session_type", "StickySessionType", _L7),
    Field("cookie", "Cookie", _L7),
    Field("cookie_timeout", "CookieTimeout", _L7, read=_number),
    Field("idle_timeout", "IdleTimeout", _L7, read=_number),
    Field("request_timeout", "RequestTimeout", _L7, read=_number),
    Field("x_forwarded_proto", "XForwardedFor_proto", _L7),
    Field("x_forwarded_slbport", "XForwardedFor_SLBPORT", _L7),
    Field("x_forwarded_clientsrcport", "XForwardedFor_ClientSrcPort", _L7),
    Field("server_certificate_id", "ServerCertificateId", _HTTPS),
    Field("tls_cipher_policy", "TLSCipherPolicy", _HTTPS),
    Field("http2", "EnableHttp2", _HTTPS),
)


def create_parameters(attributes: Mapping[str, Value | None]) -> dict[str, Any]:
    """The settings in a Create action. What is not set is the API's default."""
    protocol = str(attributes["protocol"])
    wanted = {
        each.create or each.wire: each.write(attributes[each.name])
        for each in FIELDS
        if protocol in each.protocols and attributes.get(each.name) is not None
    }
    if attributes.get("forward_port"):
        # A redirecting listener has no backends, but the API demands these two.
        return {"ListenerForward": "on", "ForwardPort": attributes["forward_port"], **_WITHOUT_BACKENDS, **wanted}
    return wanted


def set_parameters(attributes: Mapping[str, Value | None]) -> dict[str, Any]:
    """The whole settings in a Set action: what is None goes back to the API's default."""
    protocol = str(attributes["protocol"])
    return {
        each.wire: each.write(attributes[each.name])
        for each in FIELDS
        if protocol in each.protocols and each.name in attributes
    }


def attributes_of(shown: Mapping[str, Any]) -> dict[str, Value | None]:
    """The model's attributes of a listener as DescribeLoadBalancerListeners shows it."""
    protocol = str(shown["ListenerProtocol"]).lower()
    own = shown.get(f"{protocol.upper()}ListenerConfig") or {}
    found: dict[str, Value | None] = {"protocol": protocol, "status": _status(shown.get("Status"))}
    for each in FIELDS:
        if protocol in each.protocols:
            value = (shown if each.on_top else own).get(each.shown or each.wire)
            found[each.name] = None if value is None else each.read(value)
    if not found["acl_ids"] and shown.get("AclId"):
        found["acl_ids"] = tuple(sorted(str(shown["AclId"]).split(",")))
    if protocol == "http":
        found["forward_port"] = _port(own.get("ForwardPort")) if own.get("ListenerForward") == "on" else None
    return found


_WITHOUT_BACKENDS = {"HealthCheck": "off", "StickySession": "off"}


def _status(shown: Any) -> str:
    # A listener that is being started or configured runs.
    return "stopped" if str(shown).lower() in ("stopped", "stopping") else "running"
