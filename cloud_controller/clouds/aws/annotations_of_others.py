"""The annotations of the AWS Load Balancer Controller that are known here and not honoured: each says why.

Of each it stands here whether it restricts access. One that does not is ignored, by name and with a warning; one that
does is refused, as is every name that is in no table: what its author wanted closed must never be open.
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
        "IPv6 addresses of one's own.",
        restricts=False,
        why="AWS chooses them from the subnets",
    ),
    _other(
        "manage-backend-security-group-rules",
        "flag",
        "Whether the nodes' security groups are opened for the load balancer.",
        restricts=True,
        harmless=("true", *TRUE_WORDS),
        why="one rule in the nodes' security groups is for all load balancers of the cluster;"
        " DisableSecurityGroupIngress in the cloud config leaves them alone",
    ),
    _other(
        "inbound-sg-rules-on-private-link-traffic",
        "text",
        "Whether security groups also judge traffic by PrivateLink.",
        restricts=True,
        harmless=("on", "off"),
        why="AWS's default counts: they do",
    ),
    _other(
        "multi-cluster-target-group",
        "flag",
        "Whether other clusters register targets in the same target groups.",
        restricts=False,
        why="a target group is one Service's own",
    ),
    _other(
        "minimum-load-balancer-capacity",
        "list",
        "Capacity that is reserved for the load balancer.",
        restricts=False,
        why="AWS scales it by its traffic; a reservation is made, and paid, outside of the cluster",
    ),
    _other(
        "source-nat-ipv6-prefixes",
        "list",
        "The prefixes of the addresses that UDP of IPv6 clients comes from.",
        restricts=False,
        why="AWS chooses them from the subnets",
    ),
    _other(
        "enable-tcp-udp-listener",
        "flag",
        "Whether TCP and UDP on one port share a listener.",
        restricts=False,
        why="they always do, for there is no other way on a network load balancer",
    ),
    _other(
        "disable-nlb-sg",
        "flag",
        "Whether the load balancer is made without security groups.",
        restricts=False,
        why="one that is made without can never get any",
    ),
    _other(
        "eip-allocations-discovery-tags",
        "list",
        "The tags by which Elastic IP addresses are found.",
        restricts=False,
        why="eip-allocations names them",
    ),
    _other(
        "proxy-protocol-per-target-group",
        "text",
        "The ports whose targets are told the client's address by the proxy protocol.",
        restricts=False,
        why="target-group-attributes.PORT says proxy_protocol_v2.enabled=true for a port, proxy-protocol for all",
    ),
    _other(
        "quic-enabled-ports",
        "list",
        "UDP ports whose listener speaks QUIC.",
        restricts=False,
        why="what comes to a UDP port is passed on as it is",
    ),
)
