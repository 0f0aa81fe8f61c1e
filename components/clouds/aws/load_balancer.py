"""The typed settings of a load balancer on AWS: one argument for each annotation of the catalogue that is honoured.

A test holds names and types to `cloud_controller/clouds/aws/annotations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi


class AwsLoadBalancerArgs(TypedDict):
    """The settings of a load balancer on AWS; docs/annotations.md explains each."""

    type: NotRequired[pulumi.Input[Literal["nlb", "classic", "clb", "elb", "external", "nlb-ip"]]]
    """Its kind; `external` and `nlb-ip` leave it to another controller. A change replaces load balancer and address."""
    name: NotRequired[pulumi.Input[str]]
    """What AWS calls the load balancer; only one that is made later gets another name."""
    internal: NotRequired[pulumi.Input[bool]]
    """Whether it is for the VPC and what is joined to it alone. A change replaces load balancer and address."""
    scheme: NotRequired[pulumi.Input[Literal["internet-facing", "internal"]]]
    """The same as `internal`, in AWS's own words."""
    subnets: NotRequired[pulumi.Input[Sequence[str]]]
    """The subnets, by id or by their tag `Name`, one a zone."""
    ip_address_type: NotRequired[pulumi.Input[Literal["ipv4", "dualstack"]]]
    """Whether clients reach it by IPv6 too."""
    enable_prefix_for_ipv6_source_nat: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether UDP reaches a load balancer with IPv6."""
    eip_allocations: NotRequired[pulumi.Input[Sequence[str]]]
    """Elastic IP addresses, by allocation id, one for each subnet, in the order of `subnets` or of the zones."""
    private_ipv4_addresses: NotRequired[pulumi.Input[Sequence[str]]]
    """Addresses of the load balancer inside the subnets, one for each."""
    security_groups: NotRequired[pulumi.Input[Sequence[str]]]
    """Security groups that others manage, instead of one of the Service's own. They decide who may connect: source
    ranges have no effect.
    """
    extra_security_groups: NotRequired[pulumi.Input[Sequence[str]]]
    """Security groups besides the Service's own."""
    load_balancer_source_ranges: NotRequired[pulumi.Input[Sequence[str]]]
    """Who may connect, as CIDRs."""
    security_group_prefix_lists: NotRequired[pulumi.Input[Sequence[str]]]
    """Who may connect, as ids of managed prefix lists."""
    enable_icmp_for_path_mtu_discovery: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether clients in the source ranges may report by ICMP that packets are too big."""
    cross_zone_load_balancing_enabled: NotRequired[pulumi.Input[bool]]
    """Whether each zone's part sends to the targets of all zones."""
    access_log_enabled: NotRequired[pulumi.Input[bool]]
    """Whether requests are logged to S3."""
    access_log_s3_bucket_name: NotRequired[pulumi.Input[str]]
    """The bucket for the logs, whose policy must let AWS's log delivery write."""
    access_log_s3_bucket_prefix: NotRequired[pulumi.Input[str]]
    """The path of the logs in the bucket."""
    access_log_emit_interval: NotRequired[pulumi.Input[Literal["5", "60"]]]
    """Minutes from one log to the next; only for classic load balancers."""
    connection_idle_timeout: NotRequired[pulumi.Input[int]]
    """Seconds that a connection may be silent before it is closed."""
    connection_draining_enabled: NotRequired[pulumi.Input[bool]]
    """Whether connections to a node that leaves may end by themselves; only for classic load balancers."""
    connection_draining_timeout: NotRequired[pulumi.Input[int]]
    """Seconds that they have for it."""
    attributes: NotRequired[pulumi.Input[Sequence[str]]]
    """Attributes of the load balancer under AWS's names, as key=value."""
    additional_resource_tags: NotRequired[pulumi.Input[Sequence[str]]]
    """Tags, as key=value, on everything that is made for the Service."""
    ssl_cert: NotRequired[pulumi.Input[Sequence[str]]]
    """The certificate of TLS listeners, by its ARN in ACM or IAM."""
    ssl_ports: NotRequired[pulumi.Input[Sequence[str]]]
    """The ports with TLS where there is a certificate: numbers or names of the Service's ports, `*` for all."""
    ssl_negotiation_policy: NotRequired[pulumi.Input[str]]
    """AWS's security policy, by name: protocols and ciphers that TLS listeners offer."""
    alpn_policy: NotRequired[pulumi.Input[Literal["HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred", "None"]]]
    """Which application protocols TLS listeners offer to clients."""
    backend_protocol: NotRequired[pulumi.Input[Literal["http", "https", "ssl", "tcp"]]]
    """The protocol between load balancer and targets."""
    listener_attributes: NotRequired[Mapping[str, pulumi.Input[Sequence[str]]]]
    """By listener (`TCP-80`): its attributes under AWS's names, as key=value."""
    proxy_protocol: NotRequired[pulumi.Input[Literal["*"]]]
    """`*`: targets learn the client's address by the proxy protocol."""
    nlb_target_type: NotRequired[pulumi.Input[Literal["instance", "ip"]]]
    """Who gets the traffic: a port on nodes, or the ready pods at their own addresses, which must be the VPC's (as
    AWS's own network plugin has them) and need no node port.
    """
    target_node_labels: NotRequired[pulumi.Input[Sequence[str]]]
    """Only nodes with all of these labels, as key=value."""
    target_group_attributes: NotRequired[pulumi.Input[Sequence[str]]]
    """Attributes of target groups under AWS's names, as key=value: all those that a network load balancer's can
    have.
    """
    target_group_attributes_of_port: NotRequired[Mapping[str, pulumi.Input[Sequence[str]]]]
    """By port of the Service (`80`): the same for its target group alone."""
    healthcheck_protocol: NotRequired[pulumi.Input[Literal["TCP", "HTTP", "HTTPS", "SSL"]]]
    """How targets are checked."""
    healthcheck_port: NotRequired[pulumi.Input[str]]
    """The port that is checked: `traffic-port`, or a number."""
    healthcheck_path: NotRequired[pulumi.Input[str]]
    """The path that an HTTP or HTTPS check asks for."""
    healthcheck_success_codes: NotRequired[pulumi.Input[str]]
    """The codes of an HTTP answer that pass a check, such as `200-299,301`."""
    healthcheck_interval: NotRequired[pulumi.Input[int]]
    """Seconds from one check to the next."""
    healthcheck_timeout: NotRequired[pulumi.Input[int]]
    """Seconds that a check waits for its answer."""
    healthcheck_healthy_threshold: NotRequired[pulumi.Input[int]]
    """Checks in a row that must succeed before a target gets traffic."""
    healthcheck_unhealthy_threshold: NotRequired[pulumi.Input[int]]
    """Checks in a row that must fail before a target gets no more traffic."""
