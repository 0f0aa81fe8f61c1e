"""What Octavia cannot give a Service, or what this controller does not support there, although each value is valid."""

from __future__ import annotations

from dataclasses import replace

from cloud_controller.clouds.common.refusals import missing_node_port, only_ipv4, only_ipv6_ranges, too_many_ranges
from cloud_controller.load_balancers.nameable import Naming
from cloud_controller.load_balancers.refusals import Refusal, too_many_ports
from cloud_controller.load_balancers.terms import (
    ALWAYS,
    PORTS,
    PROTOCOL,
    Term,
    flag,
    given,
    number,
    one,
    say,
    spec,
    text,
)

PREFIX = "loadbalancer.openstack.org/"
INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"

_PROXY, _HTTP = ~text("proxy_protocol").is_("false"), flag("x_forwarded_for")
_DELAY, _TIMEOUT = number("health_monitor_delay", 5), number("health_monitor_timeout", 3)
_OF_WHOLE = (
    "network_id",
    "subnet_id",
    "port_id",
    "flavor_id",
    "availability_zone",
    "lb_class",
    "floating_network_id",
    "floating_subnet_id",
    "floating_subnet_name",
    "floating_subnet_tags",
    "keep_floating_ip",
)

REFUSALS = (
    too_many_ports(),
    too_many_ranges(),
    *only_ipv4("load balancers on OpenStack have no IPv6 addresses yet"),
    missing_node_port(),
    *only_ipv6_ranges(),
    Refusal(
        "default_tls_container_ref",
        given("default_tls_container_ref"),
        "listeners that end TLS (TERMINATED_HTTPS) are not supported by this controller",
        "no annotation; end TLS in the cluster",
    ),
    Refusal(
        "proxy_protocol",
        _PROXY & PORTS.where(~PROTOCOL.is_("TCP")).any,
        "only TCP ports can have the PROXY protocol, and the Service has others",
        "false, or a Service of its own for the other ports",
    ),
    Refusal(
        "x_forwarded_for",
        _HTTP & _PROXY,
        f"it excludes {PREFIX}proxy-protocol: members learn the client's address by one of the two",
        "one of the two",
    ),
    Refusal(
        "health_monitor_timeout",
        # What only one of them says is compared with the cloud config by Octavia itself.
        given("health_monitor_timeout") & given("health_monitor_delay") & _TIMEOUT.above(_DELAY),
        say("{} s is longer than the delay ({} s)", _TIMEOUT, _DELAY),
        say("1 to {}", _DELAY),
    ),
    *(
        Refusal(
            argument,
            given("id") & given(argument),
            "the Service uses an existing load balancer and cannot change it",
            f"no annotation, or none {PREFIX}load-balancer-id",
        )
        for argument in _OF_WHOLE
    ),
    Refusal(
        "spec.loadBalancerIP",
        given("id") & ~spec("loadBalancerIP").is_(""),
        "the Service uses an existing load balancer and cannot change its address",
        "none",
    ),
)

_OWN = ~given("id")
_PUBLIC = _OWN & ~flag("internal")
_ADDRESS = spec("loadBalancerIP")


def _by(kind: str, argument: str, when: Term = ALWAYS) -> Naming:
    return Naming(kind, argument, one(text(argument)), when & given(argument))


_OF_FLOATING_IPS = tuple(
    # The API server knows neither the cloud config, which may make all internal, nor a subnet's name and tags.
    replace(each, only_name=~ALWAYS)
    for each in (
        _by("network", "floating_network_id", _PUBLIC),
        # Of the three, the first that is set counts.
        _by("subnet", "floating_subnet_id", _PUBLIC),
        _by("subnet", "floating_subnet_name", _PUBLIC & ~given("floating_subnet_id")),
        _by("subnet", "floating_subnet_tags", _PUBLIC & ~given("floating_subnet_id") & ~given("floating_subnet_name")),
        # An internal load balancer has the address in its own subnet.
        Naming("floating-ip", "spec.loadBalancerIP", one(_ADDRESS), _PUBLIC & ~_ADDRESS.is_("")),
    )
)
OF_FLOATING_IPS = frozenset(each.argument for each in _OF_FLOATING_IPS)
"""What has no effect where load balancers are internal."""
NAMINGS = (
    *_OF_FLOATING_IPS,
    _by("network", "network_id", _OWN),
    _by("subnet", "subnet_id", _OWN),
    _by("port", "port_id", _OWN),
    _by("subnet", "member_subnet_id"),
)
"""The existing resources that annotations name."""
