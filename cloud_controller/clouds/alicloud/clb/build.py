"""What a Service becomes as a classic load balancer. Pure.

Each port of the Service becomes a listener and a server group of the same name (`tcp-80`), except that a redirecting
HTTP port needs no group. Everything carries its owner's tags. On a reused load balancer the names also have the
Service's UID, because names there must not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloud_controller.clouds.alicloud.annotation_entries import BACKEND_TYPE
from cloud_controller.clouds.alicloud.backends import chosen
from cloud_controller.clouds.alicloud.clb.annotations import CLB, field
from cloud_controller.clouds.alicloud.clb.build_listeners import is_checked, listener_attributes
from cloud_controller.clouds.alicloud.clb.refusals import OF_BACKENDS, WITHOUT_VSWITCH
from cloud_controller.clouds.alicloud.clb.request import Request, forwards, protocols
from cloud_controller.clouds.common.names import hashed_name
from cloud_controller.clouds.common.service_spec import is_local
from cloud_controller.load_balancers.backends import Backends, Member
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import (
    Built,
    HealthCheck,
    Ignored,
    Ingress,
    Listener,
    LoadBalancerModel,
    Pool,
    Reuse,
)
from cloud_controller.load_balancers.nameable import named
from cloud_controller.load_balancers.refusals import refuse

EXTERNAL_IP_TAG = "cloud-controller/external-ip-type"
"""On an internal load balancer: whether its Service shows the elastic IP bound to it. A read has no Service."""
EIP, NO_EXTERNAL_IP = "eip", "none"
ENI = "eni"
"""The instance of members that are pods: their network interface is found when they are added."""
HEAVIEST = 100

_LONGEST_NAME = 80
_UNCHECKED = HealthCheck("NONE")
"""CLB's health checks are the listeners'."""
_OF_CHECKS = (
    *("health_check_type", "health_check_connect_port", "health_check_interval", "health_check_connect_timeout"),
    *("health_check_timeout", "healthy_threshold", "unhealthy_threshold", "health_check_uri", "health_check_domain"),
    *("health_check_httpcode", "health_check_method"),
)
_OF_THE_WHOLE = (
    *("address_type", "vswitch_id", "ip", "ip_version", "master_zoneid", "slave_zoneid", "resource_group_id", "name"),
    *("additional_resource_tags", "instance_charge_type", "spec", "charge_type", "bandwidth", "delete_protection"),
    *("modification_protection", "external_ip_type"),
)


def build(request: Request, backends: Backends) -> Built:
    """The model of a Service with these backends. Raises InvalidConfiguration that names the field or annotation."""
    refuse(request.settings, request.spec, CLB.refusals)
    refuse(request.settings, request.spec, () if request.place.vswitch_id else (WITHOUT_VSWITCH,))
    protocol_of = protocols(request)
    forward_to = forwards(request)
    found = _members(request, backends)
    own = request.owner
    suffix = f"-{own.uid}" if request.reused else ""
    listeners, pools = [], []
    for port in request.ports:
        key = (port["protocol"], port["port"])
        redirected = forward_to.get(port["port"]) if protocol_of[key] == "http" else None
        attributes = listener_attributes(request, protocol_of[key], redirected)
        name = f"{port['protocol'].lower()}-{port['port']}{suffix}" if redirected is None else ""
        listeners.append(Listener(*key, pool=name, attributes=attributes, tags=own.tags))
        if redirected is None:
            pools.append(Pool(name, _UNCHECKED, members=found[key], tags=own.tags))
    # The HTTPS listener must be there before an HTTP one redirects to it.
    listeners.sort(key=lambda each: not each.pool)
    reuse = _reuse(request)
    model = LoadBalancerModel(
        name=request.settings.text("name")
        or hashed_name("k8s-", (own.namespace, own.name), f"{own.cluster_id}/{own.uid}", longest=_LONGEST_NAME),
        attributes={} if reuse else _attributes(request),
        listeners=tuple(listeners),
        pools=tuple(pools),
        tags=_tags(request),
    )
    hostname = request.settings.text("hostname")
    return Built(
        model,
        ignored=tuple(_ignored(request, set(protocol_of.values()))),
        reuse=reuse,
        named=tuple(named(CLB.namings, request.settings, request.spec)),
        published=(Ingress(hostname=hostname),) if hostname else (),
    )


def members(request: Request, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
    """The members behind each listener, even if other settings of the Service are invalid."""
    refuse(request.settings, request.spec, OF_BACKENDS)
    return _members(request, backends)


# -------------------------------------------------------------------------------------------------------- backends


def _members(request: Request, backends: Backends) -> dict[tuple[str, int], tuple[Member, ...]]:
    weight = request.settings.integer("default_weight")
    # A node's state and labels say nothing about the pods that serve on it.
    usable = backends if request.by_pod else chosen(backends, request.settings)
    found = {}
    for port in request.ports:
        if port["protocol"] in ("TCP", "UDP") and (request.by_pod or port.get("nodePort")):
            found[port["protocol"], port["port"]] = tuple(_of_port(request, port, usable, weight))
    return found


def _of_port(request: Request, port: dict[str, Any], backends: Backends, weight: int) -> Iterator[Member]:
    if request.by_pod:
        family = "IPv6" if request.settings.text("backend_ip_version") == "ipv6" else "IPv4"
        yield from (each._replace(instance_id=ENI, weight=weight) for each in backends.by_pod(port, family))
    elif is_local(request.spec):
        found = backends.by_local_pods(port, port["nodePort"])
        yield from (each._replace(weight=min(each.weight, HEAVIEST)) for each in found)
    else:
        yield from (each._replace(weight=weight) for each in backends.by_node_port(port["nodePort"]))


# ----------------------------------------------------------------------------------------------- the load balancer


def _attributes(request: Request) -> dict[str, Value | None]:
    settings, given = request.settings, request.settings.given
    found: dict[str, Value | None] = {
        "address_type": settings.text("address_type"),
        "address_ip_version": settings.text("ip_version"),
        "deletion_protection": settings.text("delete_protection"),
        "modification_protection": settings.text("modification_protection"),
        **_charges(request),
    }
    if found["address_type"] == "intranet":
        found["vswitch_id"] = settings.text("vswitch_id") or request.place.vswitch_id
        if "ip" in given:
            found["address"] = given["ip"]
    at_creation = {"master_zoneid": "master_zone_id", "slave_zoneid": "slave_zone_id"}
    for argument, name in {**at_creation, "resource_group_id": "resource_group_id"}.items():
        if argument in given:
            found[name] = given[argument]
    return found


def _charges(request: Request) -> dict[str, Value | None]:
    settings = request.settings
    by_spec = settings.text("instance_charge_type") == "PayBySpec"
    by_bandwidth = settings.text("charge_type") == "paybybandwidth"
    found: dict[str, Value | None] = {"instance_charge_type": settings.text("instance_charge_type")}
    if by_spec:
        found["load_balancer_spec"] = settings.text("spec")
    if settings.text("address_type") == "internet":
        found["internet_charge_type"] = settings.text("charge_type")
        if by_bandwidth:
            found["bandwidth"] = settings.integer("bandwidth")
    return found


def _tags(request: Request) -> dict[str, str]:
    own = request.owner.tags
    if request.settings.text("address_type") == "intranet":
        # Always written: tags of which nothing is wanted stay.
        own[EXTERNAL_IP_TAG] = request.settings.text("external_ip_type") or NO_EXTERNAL_IP
    words = (word.partition("=") for word in request.words("additional_resource_tags"))
    given = {key.strip(): value.strip() for key, _, value in words}
    return {**given, **own}


def _reuse(request: Request) -> Reuse | None:
    if request.reused is None:
        return None
    # An Internet-facing CLB is in no VPC: any cluster of the region can be behind it.
    return Reuse(request.reused, request.settings.flag("force_override_listeners"), request.place.vpc_id)


# --------------------------------------------------------------------------------------------------------- ignored


def _ignored(request: Request, used: set[str]) -> Iterator[Ignored]:
    settings, given = request.settings, request.settings.given
    annotations = CLB.meant(request.service["metadata"].get("annotations"))
    for entry in settings.ignored:
        yield Ignored(f"annotation {entry.name}", entry.text_in(annotations) or "", entry.ignored or "")
    for argument, why in _without_effect(request, used).items():
        if argument in given:
            yield Ignored(field(argument), given[argument], why)
    if request.spec.get("loadBalancerIP"):
        why = "annotation ip sets the address of an internal load balancer"
        yield Ignored("spec.loadBalancerIP", request.spec["loadBalancerIP"], why)
    if request.spec.get("sessionAffinity") == "ClientIP" and {"http", "https"} & used:
        why = "HTTP and HTTPS listeners keep clients by cookies: annotation sticky-session"
        yield Ignored("spec.sessionAffinity", "ClientIP", why)


def _without_effect(request: Request, used: set[str]) -> dict[str, str]:
    """Why settings have no effect here."""
    settings = request.settings
    found: dict[str, str] = {}
    if request.reused:
        found = dict.fromkeys(_OF_THE_WHOLE, "the Service reuses a load balancer and does not change it")
    else:
        found["force_override_listeners"] = "it applies only with annotation id, which is not set"
        if settings.text("address_type") == "internet":
            why = "it applies only with annotation address-type: intranet"
            found |= dict.fromkeys(("vswitch_id", "ip", "external_ip_type"), why)
        else:
            found["charge_type"] = "an internal load balancer has no traffic to pay for"
        if settings.text("charge_type") != "paybybandwidth":
            found["bandwidth"] = "it applies only with annotation charge-type: paybybandwidth"
        elif settings.text("address_type") == "intranet":
            found["bandwidth"] = "an internal load balancer has no traffic to pay for"
    if request.by_pod:
        why = f"with annotation {BACKEND_TYPE}: eni, pods are backends wherever they run"
        found |= dict.fromkeys(("remove_unscheduled_backend", "backend_label"), why)
    elif is_local(request.spec):
        found["default_weight"] = "with externalTrafficPolicy: Local, the weight of a node is the number of its pods"
    if not request.is_on("acl_status"):
        found |= dict.fromkeys(("acl_id", "acl_type"), "it applies only with annotation acl-status: on")
    if not request.is_on("connection_drain"):
        found["connection_drain_timeout"] = "it applies only with annotation connection-drain: on"
    if not request.is_on("sticky_session"):
        why = "it applies only with annotation sticky-session: on"
        found |= dict.fromkeys(("sticky_session_type", "cookie", "cookie_timeout"), why)
    elif settings.text("sticky_session_type") == "insert":
        found["cookie"] = "it applies only with annotation sticky-session-type: server"
    else:
        found["cookie_timeout"] = "it applies only with annotation sticky-session-type: insert"
    if not any(is_checked(request, each) for each in used):
        found |= dict.fromkeys(_OF_CHECKS, "health checks are off")
    if "https" not in used:
        why = "no port is HTTPS; annotation protocol-port makes one (https:443)"
        found |= dict.fromkeys(("cert_id", "domain_extensions", "tls_cipher_policy", "http2_enabled"), why)
    if not {"http", "https"} & used:
        why = "no port is HTTP or HTTPS; annotation protocol-port makes one (http:80)"
        of_http = ("sticky_session", "sticky_session_type", "cookie", "cookie_timeout", "idle_timeout")
        forwarded = tuple(f"xforwardedfor_{each}" for each in ("proto", "slbport", "clientsrcport"))
        found |= dict.fromkeys((*of_http, "request_timeout", *forwarded), why)
    if "tcp" not in used:
        of_tcp = ("persistence_timeout", "established_timeout", "connection_drain", "connection_drain_timeout")
        found |= dict.fromkeys(of_tcp, "no port is TCP")
    return found
