"""The attributes of a Service's listeners. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.clouds.alicloud.clb.request import Request
from cloud_controller.clouds.common.service_spec import affinity_timeout
from cloud_controller.load_balancers.catalogue import Value

Attributes = dict[str, Value | None]

_UDP_CHECK: Attributes = {"health_check_interval": 5, "health_check_connect_timeout": 10}
"""The API's defaults for UDP, which differ from those of other protocols."""


def listener_attributes(request: Request, protocol: str, forward_port: int | None) -> Attributes:
    """Everything that a listener of this protocol has.

    All of it is set, not only what the Service names: so a removed annotation, and a change by hand, go back.
    """
    found: Attributes = {"protocol": protocol, "status": "running", **_access(request)}
    if forward_port is not None:
        return {**found, "forward_port": forward_port}
    found["scheduler"] = _scheduler(request, protocol)
    found |= _check(request, protocol)
    if protocol in ("tcp", "udp"):
        found["proxy_protocol"] = request.settings.text("proxy_protocol")
    if protocol == "tcp":
        found |= _connections(request)
    if protocol in ("http", "https"):
        found |= _http(request)
    if protocol == "http":
        found["forward_port"] = None
    if protocol == "https":
        found |= _tls(request)
    return found


def is_checked(request: Request, protocol: str) -> bool:
    """Whether listeners of this protocol check their backends."""
    given = request.settings.given
    of_http = protocol in ("http", "https")
    flag = given.get("health_check_flag", "off" if of_http else "on")
    return (flag if of_http else given.get("health_check_switch", flag)) != "off"


def further_certificates(request: Request) -> Iterator[tuple[str, str]]:
    """Domain and certificate of each entry of `domain-extensions`."""
    for word in request.words("domain_extensions"):
        domain, _, certificate = (each.strip() for each in word.partition(":"))
        yield domain, certificate


def _access(request: Request) -> Attributes:
    if not request.is_on("acl_status"):
        return {"acl_status": "off"}
    lists = tuple(sorted(request.words("acl_id")))
    return {"acl_status": "on", "acl_ids": lists, "acl_type": request.settings.text("acl_type")}


def _scheduler(request: Request, protocol: str) -> str | None:
    by_cookies = protocol in ("http", "https")
    if not by_cookies and "scheduler" not in request.settings.given and affinity_timeout(request.spec):
        return "sch"
    return request.settings.text("scheduler")


def _connections(request: Request) -> Attributes:
    settings = request.settings
    found: Attributes = {
        "persistence_timeout": settings.integer("persistence_timeout"),
        "established_timeout": settings.integer("established_timeout"),
        "connection_drain": settings.text("connection_drain"),
    }
    if request.is_on("connection_drain"):
        found["connection_drain_timeout"] = settings.integer("connection_drain_timeout")
    return found


def _http(request: Request) -> Attributes:
    settings = request.settings
    found: Attributes = {
        "sticky_session": settings.text("sticky_session"),
        "idle_timeout": settings.integer("idle_timeout"),
        "request_timeout": settings.integer("request_timeout"),
        "x_forwarded_proto": settings.text("xforwardedfor_proto"),
        "x_forwarded_slbport": settings.text("xforwardedfor_slbport"),
        "x_forwarded_clientsrcport": settings.text("xforwardedfor_clientsrcport"),
    }
    if request.is_on("sticky_session"):
        kind = settings.text("sticky_session_type")
        found["sticky_session_type"] = kind
        if kind == "insert":
            found["cookie_timeout"] = settings.integer("cookie_timeout")
        else:
            found["cookie"] = settings.text("cookie")
    return found


def _tls(request: Request) -> Attributes:
    return {
        "server_certificate_id": request.settings.text("cert_id"),
        "tls_cipher_policy": request.settings.text("tls_cipher_policy"),
        "http2": request.settings.text("http2_enabled"),
        "domain_extensions": tuple(sorted(f"{domain}:{each}" for domain, each in further_certificates(request))),
    }


def _check(request: Request, protocol: str) -> Attributes:
    settings, given = request.settings, request.settings.given
    of_http = protocol in ("http", "https")
    if not is_checked(request, protocol):
        return {"health_check": "off"}
    timeout = "health_check_timeout" if of_http else "health_check_connect_timeout"
    usual = _UDP_CHECK if protocol == "udp" else {}
    found: Attributes = {
        "health_check": "on",
        "health_check_port": settings.number("health_check_connect_port"),
        "health_check_interval": {**usual, **given}.get(
            "health_check_interval", settings.number("health_check_interval")
        ),
        "health_check_timeout": {**usual, **given}.get(timeout, settings.number(timeout)),
        "healthy_threshold": settings.integer("healthy_threshold"),
        "unhealthy_threshold": settings.integer("unhealthy_threshold"),
    }
    if protocol == "tcp":
        found["health_check_type"] = settings.text("health_check_type")
    if of_http or found.get("health_check_type") == "http":
        found["health_check_uri"] = settings.text("health_check_uri")
        domain = settings.text("health_check_domain")
        found["health_check_domain"] = None if domain == "$_ip" else domain
        found["health_check_http_code"] = settings.text("health_check_httpcode")
    if of_http:
        found["health_check_method"] = settings.text("health_check_method")
    return found
