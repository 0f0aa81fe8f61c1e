"""The typed settings of a load balancer on OpenStack: one argument for each annotation of the catalogue.

A test holds names and types to `cloud_controller/clouds/openstack/octavia/annotations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi


class OpenstackLoadBalancerArgs(TypedDict):
    """The settings of a load balancer on OpenStack; docs/annotations.md explains each."""

    internal: NotRequired[pulumi.Input[bool]]
    """Whether the load balancer has no floating IP. A change adds or removes the floating IP; the address in the
    load balancer's own subnet stays.
    """
    lb_class: NotRequired[pulumi.Input[str]]
    """The section [LoadBalancerClass "NAME"] of the cloud config that says in which networks the load balancer and
    its floating IP are. A change of the subnet replaces the load balancer; one of the floating network only the
    floating IP.
    """
    floating_network_id: NotRequired[pulumi.Input[str]]
    """The external network of the floating IP. A change replaces the floating IP."""
    floating_subnet_id: NotRequired[pulumi.Input[str]]
    """The subnet of the floating IP. A change replaces a floating IP that is not in it."""
    floating_subnet_name: NotRequired[pulumi.Input[str]]
    """The name of the floating IP's subnet. `*` stands for any text; `~` at the beginning makes it a regular
    expression; `!` negates either. Of several subnets, the first with a free address is used.
    """
    floating_subnet_tags: NotRequired[pulumi.Input[str]]
    """The tags that the floating IP's subnet must have. Of several subnets, the first with a free address is used.
    """
    keep_floating_ip: NotRequired[pulumi.Input[bool]]
    """Keep the floating IP when the Service is deleted or no longer needs it."""
    network_id: NotRequired[pulumi.Input[str]]
    """The network of the load balancer's own address."""
    subnet_id: NotRequired[pulumi.Input[str]]
    """The subnet of the load balancer's own address."""
    port_id: NotRequired[pulumi.Input[str]]
    """An existing port whose address becomes the load balancer's own. It stays when the load balancer is deleted."""
    member_subnet_id: NotRequired[pulumi.Input[str]]
    """The subnet from which the load balancer reaches the nodes. A change makes new pools, to which the listeners
    then forward.
    """
    flavor_id: NotRequired[pulumi.Input[str]]
    """The flavor of the load balancer, which its administrator defines in Octavia."""
    availability_zone: NotRequired[pulumi.Input[str]]
    """The availability zone of the load balancer."""
    id: NotRequired[pulumi.Input[str]]
    """The ID of an existing load balancer to use: one of a Service in the same namespace, or one with the tag
    `cloud-controller/shared-with=CLUSTER/NAMESPACE`. The Service has its own listeners and pools there, marked by
    tags; everything else stays as it is. A port that somebody else uses is an error. Unlike upstream, the controller
    never writes this annotation.
    """
    hostname: NotRequired[pulumi.Input[str]]
    """What the Service's status shows instead of the address. The name must resolve to the address."""
    node_selector: NotRequired[pulumi.Input[Sequence[str]]]
    """The labels of nodes that become members: `key=value`, or `key` for any value."""
    load_balancer_source_ranges: NotRequired[pulumi.Input[Sequence[str]]]
    """The CIDRs of the clients that may connect. `spec.loadBalancerSourceRanges` takes precedence."""
    connection_limit: NotRequired[pulumi.Input[int]]
    """The number of connections that a listener serves at once; -1: no limit."""
    timeout_client_data: NotRequired[pulumi.Input[int]]
    """How long a client may be silent."""
    timeout_member_connect: NotRequired[pulumi.Input[int]]
    """How long a connection to a member may take to open."""
    timeout_member_data: NotRequired[pulumi.Input[int]]
    """How long a member may be silent."""
    timeout_tcp_inspect: NotRequired[pulumi.Input[int]]
    """How long to wait for further packets to inspect."""
    x_forwarded_for: NotRequired[pulumi.Input[bool]]
    """Serve TCP ports as HTTP, and tell members the client's address in the header X-Forwarded-For. A change makes
    each listener anew: the port is closed for a moment.
    """
    default_tls_container_ref: NotRequired[pulumi.Input[str]]
    """The certificate with which listeners end TLS."""
    lb_method: NotRequired[pulumi.Input[Literal["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"]]]
    """How the load balancer chooses a member for a connection."""
    proxy_protocol: NotRequired[pulumi.Input[Literal["true", "false", "v1", "v2"]]]
    """Tell members the client's address by the PROXY protocol: `true` or `v1` for version 1, `v2` for version 2. A
    change makes new pools, to which the listeners then forward.
    """
    enable_health_monitor: NotRequired[pulumi.Input[bool]]
    """Whether the load balancer checks its members: TCP ports by connecting, UDP ports by `UDP-CONNECT`, and with
    `externalTrafficPolicy: Local` by asking kube-proxy.
    """
    health_monitor_delay: NotRequired[pulumi.Input[int]]
    """The time between two checks of a member."""
    health_monitor_timeout: NotRequired[pulumi.Input[int]]
    """The time after which a check fails; at most the delay."""
    health_monitor_max_retries: NotRequired[pulumi.Input[int]]
    """The successes after which a member gets traffic."""
    health_monitor_max_retries_down: NotRequired[pulumi.Input[int]]
    """The failures after which it gets none."""
