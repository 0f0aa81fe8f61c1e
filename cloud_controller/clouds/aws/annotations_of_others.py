"""The known annotations of the AWS Load Balancer Controller that are not supported, each with the reason.

Each entry states whether the annotation restricts access. The controller ignores those that do not, with a warning.
It refuses those that do, and all unknown names: otherwise a load balancer could be more open than its author
intends.
"""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.aws.annotation_entries import NETWORK, TRUE_WORDS, entry
from cloud_controller.load_balancers.catalogue import Annotation


def _other(
    name: str, kind: str, description: str, *, restricts: bool, why: str, controller: str = "2", **more: Any
) -> Annotation:
    sets = name.replace("-", "_")
    more = {"applies_to": NETWORK, "controller": controller, "ignored": why, "restricts": restricts, **more}
    return entry(name, kind, sets, description, **more)


OTHERS = (
    _other(
        "ipv6-addresses",
        "list",
        "The load balancer's IPv6 addresses.",
        restricts=False,
        why="AWS chooses them from the subnets' ranges",
    ),
    _other(
        "manage-backend-security-group-rules",
        "flag",
        "Whether the controller adds rules for the load balancer to the nodes' security groups.",
        restricts=True,
        harmless=("true", *TRUE_WORDS),
        why="all load balancers of the cluster share one rule in the nodes' security groups; with"
        " DisableSecurityGroupIngress in the cloud config, the controller adds no rules",
    ),
    _other(
        "inbound-sg-rules-on-private-link-traffic",
        "text",
        "Whether security group rules apply to traffic from AWS PrivateLink.",
        restricts=True,
        harmless=("on", "off"),
        why="AWS's default stays in force: the rules apply",
    ),
    _other(
        "multi-cluster-target-group",
        "flag",
        "Whether several clusters register targets in the same target groups.",
        restricts=False,
        why="each target group belongs to one Service",
    ),
    _other(
        "minimum-load-balancer-capacity",
        "list",
        "The load balancer's reserved capacity (load balancer capacity units).",
        restricts=False,
        why=("AWS scales the load balancer with its traffic; reserve capacity, which costs money, outside the cluster"),
    ),
    _other(
        "source-nat-ipv6-prefixes",
        "list",
        "The IPv6 prefixes used as source addresses for UDP targets.",
        restricts=False,
        why="AWS chooses them from the subnets' ranges",
    ),
    _other(
        "enable-tcp-udp-listener",
        "flag",
        "Whether TCP and UDP on the same port share a listener.",
        restricts=False,
        why="they always share one (TCP_UDP), as network load balancers require",
    ),
    _other(
        "disable-nlb-sg",
        "flag",
        "Whether the load balancer is created without security groups.",
        restricts=False,
        why="AWS does not allow security groups to be added to it later",
    ),
    _other(
        "eip-allocations-discovery-tags",
        "list",
        "The tags of the Elastic IP addresses to use.",
        restricts=False,
        why="use eip-allocations, which lists the addresses",
    ),
    _other(
        "proxy-protocol-per-target-group",
        "text",
        "The ports whose target groups use the proxy protocol.",
        restricts=False,
        why="use target-group-attributes.PORT with proxy_protocol_v2.enabled=true for one port, or proxy-protocol"
        " for all",
    ),
    _other(
        "quic-enabled-ports",
        "list",
        "The UDP ports whose listeners use QUIC.",
        restricts=False,
        why="UDP listeners forward QUIC unchanged",
    ),
)
