"""The typed settings of a load balancer on Alibaba Cloud: one argument for each annotation that a kind honours.

A value that only one kind allows is allowed here; `LoadBalancerService` checks it for the Service's class. A test holds
names and types to `cloud_controller/clouds/alicloud/annotations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

import pulumi


class AlicloudLoadBalancerArgs(TypedDict):
    """The settings of a load balancer on Alibaba Cloud; docs/annotations.md explains each."""

    address_type: NotRequired[pulumi.Input[Literal["internet", "intranet"]]]
    """Whether clients connect from the Internet or only from the VPC and networks connected to it."""
    vswitch_id: NotRequired[pulumi.Input[str]]
    """CLB: The vSwitch of an internal load balancer's address."""
    ip: NotRequired[pulumi.Input[str]]
    """CLB: The private IPv4 address of an internal load balancer, out of its vSwitch."""
    ip_version: NotRequired[pulumi.Input[Literal["ipv4", "ipv6", "DualStack"]]]
    """The IP version of the load balancer's address."""
    master_zoneid: NotRequired[pulumi.Input[str]]
    """CLB: The primary zone of the load balancer."""
    slave_zoneid: NotRequired[pulumi.Input[str]]
    """CLB: The secondary zone of the load balancer."""
    resource_group_id: NotRequired[pulumi.Input[str]]
    """The resource group in which the load balancer is created."""
    name: NotRequired[pulumi.Input[str]]
    """The load balancer's name, which need not be unique."""
    additional_resource_tags: NotRequired[pulumi.Input[Sequence[str]]]
    """Tags of the load balancer, as key=value. Tags that are no longer listed stay: others may have added them."""
    instance_charge_type: NotRequired[pulumi.Input[Literal["PayByCLCU", "PayBySpec"]]]
    """CLB: Whether the load balancer is paid by use (PayByCLCU) or by specification. The cloud can change PayBySpec
    to PayByCLCU, but not back. PayByCLCU is the default of Alibaba Cloud's own controller from 2.11 or 2.12 on.
    """
    spec: NotRequired[pulumi.Input[str]]
    """CLB: The specification. An error unless `instance-charge-type` is PayBySpec."""
    charge_type: NotRequired[pulumi.Input[Literal["paybytraffic", "paybybandwidth"]]]
    """CLB: Whether Internet traffic is paid by volume or by bandwidth. By bandwidth needs `instance-charge-type:
    PayBySpec`.
    """
    bandwidth: NotRequired[pulumi.Input[int]]
    """CLB: The bandwidth of a load balancer that is paid by bandwidth."""
    delete_protection: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether the cloud refuses to delete the load balancer. The controller takes the protection off itself when the
    Service goes.
    """
    modification_protection: NotRequired[pulumi.Input[Literal["ConsoleProtection", "NonProtection"]]]
    """Whether the load balancer can be changed in the console. Changes by the controller are always possible."""
    id: NotRequired[pulumi.Input[str]]
    """The ID of an existing CLB to use. The Service has its own listeners and server groups there, marked by tags;
    everything else stays untouched. A port that is already in use is an error.
    """
    force_override_listeners: NotRequired[pulumi.Input[bool]]
    """With `id`: take over listeners on the Service's ports that belong to no Service. Their server groups stay
    unchanged; when the Service is deleted, the listeners return to them.
    """
    preserve_on_delete: NotRequired[pulumi.Input[bool]]
    """When the Service is deleted or no longer needs a load balancer, keep its cloud resources unchanged and without
    an owner. The tag `cloud-controller/preserved-from` names the former owner.
    """
    hostname: NotRequired[pulumi.Input[str]]
    """CLB: The host name in the Service's status, instead of the load balancer's address. The DNS record is not the
    controller's.
    """
    external_ip_type: NotRequired[pulumi.Input[Literal["eip"]]]
    """CLB: `eip`: the Service's status shows the elastic IP that is bound to an internal load balancer, as soon as
    there is one. The controller does not bind it.
    """
    type: NotRequired[pulumi.Input[Literal["clb"]]]
    """CLB: The kind of load balancer."""
    load_balancer_source_ranges: NotRequired[pulumi.Input[Sequence[str]]]
    """The CIDRs of the clients that may connect. CLB admits clients by access control lists: ranges that do not
    admit everyone are an error that names the annotations for them, like `spec.loadBalancerSourceRanges`, which
    takes precedence.
    """
    protocol_port: NotRequired[pulumi.Input[Sequence[str]]]
    """The protocol of single ports, as PROTOCOL:PORT. The protocols are tcp, udp, http and https (on a TCP port of
    the Service). A change of the protocol makes the listener anew; its port is closed meanwhile.
    """
    forward_port: NotRequired[pulumi.Input[Sequence[str]]]
    """CLB: HTTP ports whose requests are redirected to an HTTPS port of the same load balancer, as HTTP-PORT:HTTPS-
    PORT. A change makes the listener anew.
    """
    cert_id: NotRequired[pulumi.Input[str]]
    """The certificate of HTTPS listeners, which need one."""
    domain_extensions: NotRequired[pulumi.Input[Sequence[str]]]
    """CLB: Certificates for further domains, as DOMAIN:CERTIFICATE."""
    tls_cipher_policy: NotRequired[pulumi.Input[str]]
    """The TLS versions and ciphers."""
    http2_enabled: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether clients may use HTTP/2."""
    scheduler: NotRequired[pulumi.Input[Literal["wrr", "rr", "wlc", "sch", "tch"]]]
    """How the load balancer chooses a backend: weighted round robin (wrr), round robin (rr), weighted least
    connections (wlc), or by a hash of the source address (sch) or of both addresses and ports (tch). HTTP and
    HTTPS listeners do not offer sch and tch. A Service with sessionAffinity ClientIP gets sch.
    """
    persistence_timeout: NotRequired[pulumi.Input[int]]
    """CLB: How long a client stays with its backend. 0: not at all."""
    established_timeout: NotRequired[pulumi.Input[int]]
    """CLB: The time after which an idle connection is closed."""
    connection_drain: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether removed or unhealthy backends keep their connections for the drain timeout."""
    connection_drain_timeout: NotRequired[pulumi.Input[int]]
    """How long connections drain. Only with `connection-drain: on`."""
    proxy_protocol: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether the load balancer sends a header of the proxy protocol, version 2, to backends, which must expect it."""
    sticky_session: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether a cookie keeps a client with its backend."""
    sticky_session_type: NotRequired[pulumi.Input[Literal["insert", "server"]]]
    """CLB: Whether the load balancer inserts a cookie of its own or rewrites the backend's, which `cookie` names."""
    cookie: NotRequired[pulumi.Input[str]]
    """CLB: The name of the backend's cookie. Required with `sticky-session-type: server`."""
    cookie_timeout: NotRequired[pulumi.Input[int]]
    """CLB: How long the inserted cookie is valid."""
    idle_timeout: NotRequired[pulumi.Input[int]]
    """The time after which an idle connection is closed."""
    request_timeout: NotRequired[pulumi.Input[int]]
    """CLB: The time after which a request without a response gets HTTP 504."""
    xforwardedfor_proto: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether requests to backends have a header with the listener's protocol (X-Forwarded-Proto)."""
    xforwardedfor_slbport: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether requests to backends have a header with the listener's port (XForwardedFor_SLBPORT)."""
    xforwardedfor_clientsrcport: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether requests to backends have a header with the client's port (XForwardedFor_ClientSrcPort)."""
    acl_status: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether the access control lists of `acl-id` apply."""
    acl_id: NotRequired[pulumi.Input[Sequence[str]]]
    """CLB: The access control lists. Required with `acl-status: on`."""
    acl_type: NotRequired[pulumi.Input[Literal["white", "black"]]]
    """CLB: Whether only the listed clients may connect (white) or all others (black)."""
    health_check_flag: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """Whether backends are checked. If not, all of them get traffic."""
    health_check_switch: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Like `health-check-flag`, and takes precedence over it."""
    health_check_type: NotRequired[pulumi.Input[Literal["tcp", "http", "udp"]]]
    """The protocol of health checks. Listeners of other protocols are checked by their own."""
    health_check_connect_port: NotRequired[pulumi.Input[int]]
    """The port that health checks connect to."""
    health_check_interval: NotRequired[pulumi.Input[int]]
    """The interval between health checks."""
    health_check_connect_timeout: NotRequired[pulumi.Input[int]]
    """The timeout of a health check."""
    health_check_timeout: NotRequired[pulumi.Input[int]]
    """CLB: The timeout of a health check."""
    healthy_threshold: NotRequired[pulumi.Input[int]]
    """The number of consecutive successful health checks before a backend gets traffic."""
    unhealthy_threshold: NotRequired[pulumi.Input[int]]
    """The number of consecutive failed health checks before a backend gets no more traffic."""
    health_check_uri: NotRequired[pulumi.Input[str]]
    """The path that health checks request."""
    health_check_domain: NotRequired[pulumi.Input[str]]
    """The host name in health checks."""
    health_check_method: NotRequired[pulumi.Input[Literal["head", "get", "GET", "HEAD"]]]
    """The method of health checks. TCP listeners always use head."""
    health_check_httpcode: NotRequired[pulumi.Input[str]]
    """The HTTP codes of a healthy backend, comma-separated."""
    backend_type: NotRequired[pulumi.Input[Literal["ecs", "eni"]]]
    """The type of backends: `ecs` registers nodes by node port; `eni` registers ready pods by their address, which
    needs addresses of the VPC (as the Terway plugin assigns) but no node ports.
    """
    backend_ip_version: NotRequired[pulumi.Input[Literal["ipv4", "ipv6"]]]
    """CLB: The IP version of pods as backends. ipv6 needs `backend-type: eni` and `ip-version: ipv6`."""
    backend_label: NotRequired[pulumi.Input[str]]
    """The labels that a node must have to be a backend, as key=value."""
    remove_unscheduled_backend: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """CLB: Whether cordoned nodes are no backends."""
    default_weight: NotRequired[pulumi.Input[int]]
    """CLB: The weight of each backend. With externalTrafficPolicy Local, a node's weight is the number of its ready
    pods instead.
    """
    zone_maps: NotRequired[pulumi.Input[Sequence[str]]]
    """NLB: The zones of the load balancer, each with one vSwitch of the cluster's VPC, as ZONE:VSWITCH, and after
    it, if wanted, the private IPv4 address and the elastic IP of the zone: ZONE:VSWITCH:ADDRESS:EIP, or
    ZONE:VSWITCH::EIP. Required, unless `id` is set. Where a region has two zones, at least two are needed; at
    most 10. Removing a zone takes the load balancer out of it.
    """
    ipv6_address_type: NotRequired[pulumi.Input[Literal["internet", "intranet"]]]
    """NLB: Whether clients may connect to the IPv6 addresses from the Internet. Only with `ip-version: DualStack`."""
    bandwidth_package_id: NotRequired[pulumi.Input[str]]
    """NLB: The Internet Shared Bandwidth instance that the load balancer's public addresses use. Without the
    annotation, the load balancer is taken out of the one that it is in.
    """
    security_group_ids: NotRequired[pulumi.Input[Sequence[str]]]
    """NLB: The security groups of the load balancer: all of them, so others are left, and an empty text leaves every
    one. Without the annotation the groups stay as they are, so that removing it never opens a load balancer.
    """
    cross_zone_enabled: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: Whether the load balancer sends to backends in other zones than its own."""
    listener_port_range: NotRequired[pulumi.Input[Sequence[str]]]
    """NLB: A range of ports that one listener serves instead of a port of the Service, as FIRST-LAST:PORT. Traffic
    goes to the same port of the pods, so the Service needs `backend-type: eni`. A change makes the listener anew.
    """
    cps: NotRequired[pulumi.Input[int]]
    """NLB: The most new connections a second, in each zone. 0: no limit."""
    ppv2_pvl_ep_id_enabled: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: With `proxy-protocol: on`: whether the header tells backends the ID of the client's PrivateLink endpoint."""
    ppv2_pvl_eps_id_enabled: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: With `proxy-protocol: on`: whether the header tells backends the ID of the PrivateLink endpoint service."""
    ppv2_pvl_vpc_id_enabled: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: With `proxy-protocol: on`: whether the header tells backends the ID of the client's VPC."""
    additional_cert_ids: NotRequired[pulumi.Input[Sequence[str]]]
    """NLB: Further server certificates, which the listener chooses from by server name."""
    cacert: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: Whether clients must have a certificate of the CA in `cacert-id` (mutual TLS)."""
    cacert_id: NotRequired[pulumi.Input[str]]
    """NLB: The CA certificate against which clients' certificates are checked, with `cacert: on`."""
    alpn: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: Whether the application protocol is negotiated (ALPN), as `alpn-policy` says."""
    alpn_policy: NotRequired[pulumi.Input[Literal["HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred"]]]
    """NLB: The versions of HTTP that ALPN offers, and which it prefers. Only with `alpn: on`."""
    server_group_type: NotRequired[pulumi.Input[Literal["Instance", "Ip"]]]
    """NLB: The type of the server groups. `Instance` holds ECS instances, and pods by their network interface; `Ip`
    holds pods by their address alone and needs `backend-type: eni`. On a change, new server groups replace the
    old.
    """
    preserve_client_ip: NotRequired[pulumi.Input[Literal["on", "off"]]]
    """NLB: Whether backends see the client's address. The backends of TCPSSL listeners and of `Ip` server groups
    never do; use `proxy-protocol` there.
    """
    weight: NotRequired[pulumi.Input[int]]
    """NLB: The weight of each backend. With externalTrafficPolicy Local, a node's weight is the number of its ready
    pods instead.
    """
