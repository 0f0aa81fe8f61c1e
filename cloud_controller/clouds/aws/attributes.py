"""The attributes of load balancers and target groups under AWS's own names: defaults, and what each may hold. Pure.

What a model holds of them is text, as AWS's API has it (`true`, `60`). A read that finds AWS silent about one reports
AWS's default, so that both directions are equal.

A model's `attributes`, by kind (`type`):

- both: `type`, `scheme`, `subnets` (ids, sorted), `security_groups` (of people, sorted), `ingress_rules` (texts of
  `security_rules`, sorted; None where people's groups stand for them), `access_logs.s3.enabled`,
  `load_balancing.cross_zone.enabled`; with logs enabled `access_logs.s3.bucket` and `access_logs.s3.prefix` (AWS keeps
  both when logs are switched off, so that they are not compared then);
- `network`: `ip_address_type`, with `dualstack` `source_nat` (`on`, `off`),
  `load_balancer_name` (where people chose it; AWS's name alone), `eip_allocations` and
  `private_ipv4_addresses` (empty, or one for each of `subnets`), and what else of `LOAD_BALANCER` annotations name;
- `classic`: `idle_timeout.timeout_seconds`, `connection_draining.enabled`; with draining enabled
  `connection_draining.timeout_seconds`; with logs enabled `access_logs.s3.emit_interval`.

Listeners: `network`: `protocol`, `certificates` (the default one first, the others sorted), `ssl_policy`, `alpn_policy`
(the last three empty or None without TLS; never None with it: AWS's default is named), and with TCP those of
`LISTENER`; `classic`: `protocol`,
`instance_protocol`, `instance_port`, `certificate`, `ssl_policy` (None: AWS's own choice), `proxy_protocol`.

Pools: `network`: `protocol`, `target_type`, `ip_address_type` and attributes of target groups; `classic`: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancers.catalogue import Value

DEFAULT_SSL_POLICY = "ELBSecurityPolicy-2016-08"
"""AWS's default for TLS listeners that are created without a policy through the API."""

DEFAULT_ALPN_POLICY = "None"

DEFAULT_SUCCESS_CODES = "200-399"
"""AWS's default for target groups of network load balancers with HTTP health checks."""

ENABLED, BUCKET, PREFIX = "access_logs.s3.enabled", "access_logs.s3.bucket", "access_logs.s3.prefix"
EMIT_INTERVAL = "access_logs.s3.emit_interval"
DELETION_PROTECTION = "deletion_protection.enabled"
CROSS_ZONE = "load_balancing.cross_zone.enabled"
IDLE_TIMEOUT = "idle_timeout.timeout_seconds"
DRAINING, DRAINING_TIMEOUT = "connection_draining.enabled", "connection_draining.timeout_seconds"

OF_ANNOTATIONS: Mapping[str, str] = {
    "cross_zone_load_balancing_enabled": CROSS_ZONE,
    "access_log_enabled": ENABLED,
    "access_log_s3_bucket_name": BUCKET,
    "access_log_s3_bucket_prefix": PREFIX,
}
"""Attributes of load balancers that have annotations of their own, by argument."""

SOURCE_NAT = "source_nat"
NAME = "load_balancer_name"

PRESERVE_CLIENT_IP = "preserve_client_ip.enabled"
PROXY_PROTOCOL = "proxy_protocol_v2.enabled"
STICKINESS, STICKINESS_TYPE = "stickiness.enabled", "stickiness.type"
DEREGISTRATION_DELAY = "deregistration_delay.timeout_seconds"
TCP_IDLE_TIMEOUT = "tcp.idle_timeout.seconds"
TERMINATE_UNHEALTHY = "target_health_state.unhealthy.connection_termination.enabled"
DRAIN_UNHEALTHY = "target_health_state.unhealthy.draining_interval_seconds"


@dataclass(frozen=True, slots=True)
class Rule:
    """The valid values of an attribute: one of `words`, or a number from `low` to `high`."""

    words: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    default: str = ""
    free: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """Of its numbers; without numbers, those of no number."""
        return (1, 0) if self.low is None else (self.low, 999_999_999 if self.high is None else self.high)

    def allows(self, value: str) -> bool:
        """Whether AWS accepts the value."""
        if self.free or value in self.words:
            return True
        low, high = self.bounds
        return value.isascii() and value.isdigit() and len(value) <= 9 and low <= int(value) <= high

    @property
    def text(self) -> str:
        """The valid values, as text."""
        numbers = [] if self.low is None else [f"{self.low} to {'any' if self.high is None else f'{self.high:,}'}"]
        return ", ".join([*self.words, *numbers])


_FLAG = Rule(("true", "false"), default="false")
_COUNT = Rule(("off",), low=1, default="1")
_PERCENTAGE = Rule(("off",), low=1, high=100, default="off")

LOAD_BALANCER: Mapping[str, Rule] = {
    ENABLED: _FLAG,
    BUCKET: Rule(free=True),
    PREFIX: Rule(free=True),
    CROSS_ZONE: _FLAG,
    DELETION_PROTECTION: _FLAG,
    "dns_record.client_routing_policy": Rule(
        ("any_availability_zone", "availability_zone_affinity", "partial_availability_zone_affinity"),
        default="any_availability_zone",
    ),
    "ipv6.deny_all_igw_traffic": _FLAG,
    "secondary_ips.auto_assigned.per_subnet": Rule(low=0, high=7, default="0"),
    "zonal_shift.config.enabled": _FLAG,
}
"""The attributes of network load balancers. AWS's default of `ipv6.deny_all_igw_traffic` is `true` for internal
ones."""

_HEALTH = "target_group_health"
TARGET_GROUP: Mapping[str, Rule] = {
    DEREGISTRATION_DELAY: Rule(low=0, high=3600, default="300"),
    "deregistration_delay.connection_termination.enabled": _FLAG,
    CROSS_ZONE: Rule(("true", "false", "use_load_balancer_configuration"), default="use_load_balancer_configuration"),
    PRESERVE_CLIENT_IP: _FLAG,
    PROXY_PROTOCOL: _FLAG,
    STICKINESS: _FLAG,
    STICKINESS_TYPE: Rule(("source_ip",), default="source_ip"),
    f"{_HEALTH}.dns_failover.minimum_healthy_targets.count": _COUNT,
    f"{_HEALTH}.dns_failover.minimum_healthy_targets.percentage": _PERCENTAGE,
    f"{_HEALTH}.unhealthy_state_routing.minimum_healthy_targets.count": Rule(low=1, default="1"),
    f"{_HEALTH}.unhealthy_state_routing.minimum_healthy_targets.percentage": _PERCENTAGE,
    TERMINATE_UNHEALTHY: Rule(("true", "false"), default="true"),
    DRAIN_UNHEALTHY: Rule(low=0, high=360_000, default="0"),
}
"""The attributes of network load balancers' target groups."""


LISTENER: Mapping[str, Rule] = {TCP_IDLE_TIMEOUT: Rule(low=60, high=6000, default="350")}
"""The attributes of network load balancers' TCP listeners. The timeouts of TLS and UDP listeners are fixed."""


def listener_defaults(protocol: str) -> dict[str, str]:
    """AWS's defaults for a new listener of this protocol."""
    return {key: rule.default for key, rule in LISTENER.items()} if protocol == "TCP" else {}


def target_group_defaults(protocol: str, target_type: str) -> dict[str, str]:
    """AWS's defaults for a new target group of this protocol (TCP, TLS, UDP, TCP_UDP)."""
    datagrams = protocol in ("UDP", "TCP_UDP")
    return {
        **{key: rule.default for key, rule in TARGET_GROUP.items()},
        PRESERVE_CLIENT_IP: "true" if datagrams or target_type == "instance" else "false",
        "deregistration_delay.connection_termination.enabled": "true" if datagrams else "false",
        TERMINATE_UNHEALTHY: "false" if datagrams else "true",
    }


def load_balancer_defaults(scheme: str) -> dict[str, str]:
    """AWS's defaults for a new network load balancer."""
    defaults = {key: rule.default for key, rule in LOAD_BALANCER.items()}
    return defaults | {"ipv6.deny_all_igw_traffic": "true" if scheme == "internal" else "false"}


def texts(value: Value | None) -> tuple[str, ...]:
    """A list value of a model as texts."""
    return tuple(str(each) for each in value) if isinstance(value, tuple) else ()


class Arn(str):
    """An ARN. Comparisons ignore case, because AWS may return another case than it was given."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.lower())


def pairs(field: str, words: tuple[str, ...]) -> dict[str, str]:
    """`key=value` words as a mapping; a key alone has an empty value, and the last value of a repeated key is used.

    A value may contain `=`. Raises InvalidConfiguration for a word without a key.
    """
    found: dict[str, str] = {}
    for word in words:
        key, _, value = (part.strip() for part in word.partition("="))
        if not key:
            raise InvalidConfiguration(field, f"{word!r} is not of the form key=value", "comma-separated key=value")
        found[key] = value
    return found


def contradictions(words: tuple[str, ...]) -> dict[str, str]:
    """The keys with several different values, each with the last one."""
    values: dict[str, list[str]] = {}
    for word in words:
        key, _, value = (part.strip() for part in word.partition("="))
        values.setdefault(key, []).append(value)
    return {key: given[-1] for key, given in values.items() if len({*given}) > 1}
