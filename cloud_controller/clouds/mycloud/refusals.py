"""What mycloud refuses about a Service although each of its annotations is valid."""

from __future__ import annotations

from cloud_controller.clouds.common.refusals import (
    SERVED,
    missing_node_port,
    only_ipv6_ranges,
    refused_ranges,
    unserved_protocol,
)
from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import FIRST_FAMILY, given, number, say, spec, text

PREFIX = "service.beta.kubernetes.io/dlb-"
_ONLY_IPV4 = "mycloud's load balancers have only IPv4 addresses"
_TIMEOUT, _INTERVAL = number("health_check_timeout"), number("health_check_interval")

REFUSALS = (
    Refusal(
        "spec.ipFamilies",
        ~FIRST_FAMILY.is_("IPv4"),
        say(f"{{}} cannot be the first family: {_ONLY_IPV4}", FIRST_FAMILY),
        "IPv4 as the first family",
    ),
    Refusal(
        "spec.ipFamilyPolicy",
        spec("ipFamilyPolicy").is_("RequireDualStack"),
        f"RequireDualStack is not supported: {_ONLY_IPV4}",
        "SingleStack, PreferDualStack",
    ),
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
