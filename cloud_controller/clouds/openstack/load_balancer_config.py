"""The sections [LoadBalancer] and [LoadBalancerClass "NAME"] of the cloud config, with upstream's keys and defaults."""

from __future__ import annotations

from collections.abc import Sequence

from cloud_controller.clouds.common.gcfg import Section
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions, Networks
from cloud_controller.clouds.openstack.octavia.topology import name_pattern

CLASS_KEYS = (
    *("floating-network-id", "floating-subnet", "floating-subnet-id", "floating-subnet-tags"),
    *("member-subnet-id", "network-id", "subnet-id"),
)
_IGNORED = (
    "cascade-delete",
    "ingress-hostname-suffix",
    "lb-version",
    "max-shared-lb",
    "provider-requires-serial-api-calls",
    "use-octavia",
)
"""How calls are made is not for people to say here."""
_REFUSED = {
    "container-store": "TLS is not ended at load balancers yet",
    "default-tls-container-ref": "TLS is not ended at load balancers yet",
    "enable-ingress-hostname": "the status says ipMode Proxy instead; the annotation hostname sets a name of your own",
    "node-security-group": "each Service has a group of its own, by manage-security-groups",
}
_FLAGS = ("enable-ingress-hostname",)
KEYS = (
    *CLASS_KEYS,
    *("availability-zone", "create-monitor", "enabled", "flavor-id"),
    *("internal-lb", "lb-method", "lb-provider", "manage-security-groups", "monitor-delay", "monitor-max-retries"),
    *("monitor-max-retries-down", "monitor-timeout", "node-selector"),
    *_IGNORED,
    *_REFUSED,
)
_METHODS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP")


def load_balancer_options(one: Section, classes: Sequence[Section]) -> LoadBalancerOptions | None:
    """The options; None if load balancers are not enabled. Raises InvalidConfiguration."""
    if "enabled" in one.values and not one.flag("enabled"):
        return None
    for key, why in _REFUSED.items():
        if one.flag(key) if key in _FLAGS else one.text(key):
            raise one.wrong(key, why)
    one.one_of("lb-provider", ("amphora", "octavia"), "amphora")
    default = LoadBalancerOptions()
    selector = tuple(part.strip() for part in (one.text("node-selector") or "").split(",") if part.strip())
    delay = _seconds(one, "monitor-delay", default.monitor_delay)
    timeout = _seconds(one, "monitor-timeout", default.monitor_timeout)
    if timeout > delay:
        why = "longer than monitor-delay, or that is shorter than the default"
        raise one.wrong("monitor-timeout", why, "at most monitor-delay")
    return LoadBalancerOptions(
        networks=_networks(one),
        classes={each.own: _networks(each) for each in classes},
        method=one.one_of("lb-method", _METHODS, default.method),
        # `octavia` is its older name.
        provider="amphora" if one.text("lb-provider") else "",
        internal=one.flag("internal-lb"),
        flavor_id=one.text("flavor-id") or "",
        availability_zone=one.text("availability-zone") or "",
        create_monitor=one.flag("create-monitor"),
        monitor_delay=delay,
        monitor_timeout=timeout,
        monitor_max_retries=_retries(one, "monitor-max-retries", default.monitor_max_retries),
        monitor_max_retries_down=_retries(one, "monitor-max-retries-down", default.monitor_max_retries_down),
        manage_security_groups=one.flag("manage-security-groups"),
        node_selector=selector,
    )


def _networks(one: Section) -> Networks:
    if subnet := one.text("floating-subnet"):
        # At the start, once, and not for each Service.
        name_pattern(subnet, f"cloud config: {one.shown} floating-subnet")
    return Networks(**{key.replace("-", "_"): one.text(key) or "" for key in CLASS_KEYS})


def _seconds(one: Section, key: str, default: int) -> int:
    """Seconds, as Go writes durations (`10s`, `1m`), or a plain number."""
    value = one.matching(key, r"[1-9]\d{0,4}[sm]?", "not a duration", "such as 5s or 1m")
    if value is None:
        return default
    return int(value.rstrip("sm")) * (60 if value.endswith("m") else 1)


def _retries(one: Section, key: str, default: int) -> int:
    value = one.matching(key, r"[1-9]|10", "not a number of retries", "1 to 10")
    return default if value is None else int(value)
