"""What mycloud refuses about a Service although each of its annotations is valid."""

from __future__ import annotations

from cloud_controller.clouds.common.refusals import (
    SERVED,
    missing_node_port,
    only_ipv4,
    only_ipv6_ranges,
    refused_ranges,
    too_many_ranges,
    unserved_protocol,
)
from cloud_controller.load_balancers.refusals import Refusal, too_many_ports
from cloud_controller.load_balancers.terms import given, number, say, text

PREFIX = "service.beta.kubernetes.io/dlb-"
_TIMEOUT, _INTERVAL = number("health_check_timeout"), number("health_check_interval")

REFUSALS = (
    too_many_ports(),
    too_many_ranges(),
    *only_ipv4("mycloud's load balancers have only IPv4 addresses"),
    unserved_protocol(*SERVED),
    missing_node_port(f"annotation {PREFIX}backend-type: pod-ip").only(~text("backend_type").is_("pod-ip")),
    *refused_ranges(
        given("id"),
        f"not supported with annotation {PREFIX}id: the reused load balancer keeps its own ranges",
        "none; set the ranges on that load balancer",
    ),
    *only_ipv6_ranges(),
    Refusal(
        "health_check_timeout",
        _TIMEOUT.above(_INTERVAL),
        say("{} s is longer than the interval ({} s)", _TIMEOUT, _INTERVAL),
        say("1 to {}", _INTERVAL),
    ),
)
