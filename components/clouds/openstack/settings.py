"""The settings of a cluster on OpenStack, and the tags that its resources share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

import pulumi

DEFAULT_NETWORK_CIDR = "10.0.0.0/16"
DEFAULT_POD_CIDR = "172.20.0.0/16"
DEFAULT_SERVICE_CIDR = "172.21.0.0/20"
DEFAULT_ROLES = ("member", "load-balancer_member")
"""What Octavia's own policy asks for, besides the others'."""


class OpenstackClusterArgs(TypedDict):
    """The settings of a cluster on OpenStack. Plain values: they decide which resources exist."""

    kubernetes_version: str
    """The minor version, such as 1.36."""
    image_id: str
    """The machines' image: with cloud-init, dnf, and containerd in its repositories."""
    external_network_id: str
    """The network that the router leads to, and from which floating IPs are."""
    network_cidr: NotRequired[str]
    """The range of the machines' subnet; 10.0.0.0/16 if not given."""
    pod_cidr: NotRequired[str]
    """The range of the pods, to whose parts routes of the router lead; 172.20.0.0/16 if not given."""
    service_cidr: NotRequired[str]
    """The range of Services' cluster IPs; 172.21.0.0/20 if not given."""
    api_sources: NotRequired[Sequence[str]]
    """IPv4 ranges that reach the API server by a floating IP; if not given, it has none."""
    control_plane_egress: NotRequired[Sequence[str]]
    """IPv4 ranges that machines of the control plane reach besides the cluster, DNS, NTP and, on port 443,
    everything."""
    controllers: NotRequired[Sequence[str]]
    """The controllers that the CCM runs, and `manage-security-groups` if it does or did: its credential may do what
    they call, and no more."""
    credential_roles: NotRequired[Sequence[str]]
    """The roles of the CCM's credential in the project; `member` and `load-balancer_member` if not given."""
    credential_expires: NotRequired[str]
    """The last day of the CCM's credential, as YYYY-MM-DD; if not given, it does not expire."""


def checked_settings(settings: Mapping[str, Any]) -> OpenstackClusterArgs:
    """The settings as `ClusterArgs` has checked them already."""
    return cast("OpenstackClusterArgs", settings)


def tags() -> list[str]:
    """The tags of a resource: whose stack's it is."""
    return [f"pulumi.com/project={pulumi.get_project()}", f"pulumi.com/stack={pulumi.get_stack()}"]
