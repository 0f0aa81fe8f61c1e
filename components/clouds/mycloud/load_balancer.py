"""The typed settings of a load balancer on mycloud: one argument for each annotation of the catalogue.

A test holds names and types to `cloud_controller/clouds/mycloud/annotations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi


class MycloudLoadBalancerArgs(TypedDict):
    """The settings of a load balancer on mycloud; docs/annotations.md explains each."""

    listener_max_qps: NotRequired[pulumi.Input[int]]
    """The most connections (UDP: new flows) a second that each listener takes."""
    listener_idle_timeout: NotRequired[pulumi.Input[int]]
    """Seconds that a connection or UDP flow may be silent before it is closed."""
    scheme: NotRequired[pulumi.Input[Literal["internet-facing", "internal"]]]
    """Whether the address is public or for the network alone. A change replaces load balancer and address."""
    scheduler: NotRequired[pulumi.Input[Literal["round_robin", "least_connections"]]]
    """How the next backend is chosen."""
    health_check_protocol: NotRequired[pulumi.Input[Literal["TCP", "HTTP", "NONE"]]]
    """How backends are checked."""
    health_check_path: NotRequired[pulumi.Input[str]]
    """The path that an HTTP check asks for."""
    health_check_port: NotRequired[pulumi.Input[int]]
    """The port on the node that the check goes to."""
    health_check_interval: NotRequired[pulumi.Input[int]]
    """Seconds from one check to the next."""
    health_check_timeout: NotRequired[pulumi.Input[int]]
    """Seconds that a check waits for its answer."""
    health_check_healthy_threshold: NotRequired[pulumi.Input[int]]
    """Checks in a row that must succeed before a backend gets traffic."""
    health_check_unhealthy_threshold: NotRequired[pulumi.Input[int]]
    """Checks in a row that must fail before a backend gets no more traffic."""
    load_balancer_source_ranges: NotRequired[pulumi.Input[Sequence[str]]]
    """Who may connect, as CIDRs; everyone if not given."""
    backend_type: NotRequired[pulumi.Input[Literal["node-port", "pod-ip"]]]
    """Who gets the traffic: a port on nodes, or the ready pods at their own addresses."""
    id: NotRequired[pulumi.Input[str]]
    """Use this load balancer, of the same namespace or shared with it. A change changes the address."""
    force_override_listeners: NotRequired[pulumi.Input[bool]]
    """With `id`: take over listeners on its ports that belong to no Service, until the Service goes."""
    preserve_on_delete: NotRequired[pulumi.Input[bool]]
    """Leave the load balancer, without an owner, when the Service goes."""
