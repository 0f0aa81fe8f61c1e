"""Combinations of settings that clouds refuse: for each rule a wrong Service, and a right one that differs little."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloud_controller import clouds
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.alicloud.build import AliCloudBuilder
from cloud_controller.clouds.alicloud.build import BuildFacts as AliCloudFacts
from cloud_controller.clouds.aws.attributes import LISTENER, LOAD_BALANCER, TARGET_GROUP, Rule
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.facts import BuildFacts as AwsFacts
from cloud_controller.clouds.mycloud.build import MyCloudBuilder
from cloud_controller.clouds.openstack.octavia.build import OctaviaBuilder
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions
from cloud_controller.clouds.openstack.octavia.topology import Topology
from cloud_controller.load_balancers.annotation import Annotation
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.facts import Fact
from tests.cloud_controller.clouds.alicloud.account import CONFIG as ALICLOUD_CONFIG
from tests.cloud_controller.clouds.aws.services import CONFIG as AWS_CONFIG
from tests.cloud_controller.clouds.aws.services import VPC

MYCLOUD, AWS, OPENSTACK = (clouds.descriptor(name).catalogue for name in ("mycloud", "aws", "openstack"))
CLB, NLB = clouds.descriptor("alicloud").catalogue.kinds
TCP, UDP, SCTP = ({"name": name.lower(), "protocol": name, "port": 80} for name in ("TCP", "UDP", "SCTP"))
HTTPS = {"name": "https", "protocol": "TCP", "port": 443}
NO_NODE_PORTS = {"allocateLoadBalancerNodePorts": False}
RANGES = {"loadBalancerSourceRanges": ["10.0.0.0/8"]}
EVERYBODY = {"loadBalancerSourceRanges": ["10.0.0.0/8", "0.0.0.0/0"]}
IPV6_RANGES = {"loadBalancerSourceRanges": ["2001:db8::/32", "fc00::/7"]}
DUAL = {"ipFamilyPolicy": "RequireDualStack"}
IPV6 = {"ipFamilies": ["IPv6"]}
STICKY = {"sessionAffinity": "ClientIP"}
LOCAL = {"externalTrafficPolicy": "Local"}
CLASSIC, NETWORK = ({"loadBalancerClass": f"cloud-controller/{name}"} for name in ("classic", "nlb"))
CERTIFICATE, ANOTHER = (f"arn:aws:acm:us-east-1:123456789012:certificate/{each}" for each in (1, 2))
ZONE = "cn-hangzhou-k:vsw-0a1"


@dataclass(frozen=True)
class Asked:
    """A Service of a kind: its annotations by argument, its ports and the rest of its spec."""

    kind: Catalogue
    arguments: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[Mapping[str, Any], ...] = (TCP,)
    spec: Mapping[str, Any] = field(default_factory=dict)

    @property
    def annotations(self) -> dict[str, str]:
        """With the zones that every NLB needs."""
        usual = {"zone_maps": ZONE} if self.kind is NLB else {}
        given = {**usual, **self.arguments}
        return {self.kind.of_argument(name).name: text for name, text in given.items() if text}

    def service(self) -> dict[str, Any]:
        """The manifest."""
        of_kind = {"loadBalancerClass": self.kind.classes[-1]} if self.kind.classes else {}
        spec = {"type": "LoadBalancer", "ports": [dict(each) for each in self.ports], **of_kind, **self.spec}
        return {"metadata": {"name": "web", "annotations": self.annotations}, "spec": spec}


def pair(kind: Catalogue, wrong: Mapping[str, str], right: Mapping[str, str], *ports: Any, **spec: Any) -> Any:
    """A wrong and a right Service with the same spec."""
    return tuple(Asked(kind, each, ports or (TCP,), spec) for each in (wrong, right))


def by_spec(kind: Catalogue, given: Mapping[str, str], wrong: Any, right: Any) -> Any:
    """A wrong and a right Service with the same annotations; `wrong`, `right`: ports or the rest of the spec."""
    return tuple(
        Asked(kind, given, (each,)) if "port" in each else Asked(kind, given, spec=each) for each in (wrong, right)
    )


def _ranges(count: int, *more: str) -> Any:
    return {"loadBalancerSourceRanges": [*(f"10.{each}.0.0/16" for each in range(count)), *more]}


def _borders(rule: Rule) -> Iterator[tuple[str, str]]:
    """Wrong values of an AWS attribute, each with a right one that differs little."""
    if rule.words:
        yield f"{rule.words[-1]}x", rule.words[-1]
    if rule.low is not None:
        yield str(rule.low - 1), str(rule.low)
    if rule.high is not None:
        yield str(rule.high + 1), str(rule.high)


_HTTPS = {"protocol_port": "https:443", "cert_id": "c-1"}
_REDIRECTING = {**_HTTPS, "protocol_port": "http:80,https:443", "forward_port": "80:443"}
_TLS = {"protocol_port": "tcpssl:443", "cert_id": "c-1"}
_BY_POD = {"backend_type": "eni"}
_REUSED = {"id": "lb-0a", "protocol_port": "http:80"}
_NLB = {"type": "nlb"}

PAIRS: tuple[tuple[Asked, Asked], ...] = (
    by_spec(MYCLOUD, {}, SCTP, UDP),
    by_spec(MYCLOUD, {}, NO_NODE_PORTS, {}),
    pair(MYCLOUD, {}, {"backend_type": "pod-ip"}, **NO_NODE_PORTS),
    pair(MYCLOUD, {"id": "lb-0a"}, {"scheme": "internal"}, **RANGES),
    pair(MYCLOUD, {"id": "lb-0a", "load_balancer_source_ranges": "10.0.0.0/8"}, {"id": "lb-0a"}),
    by_spec(MYCLOUD, {}, IPV6_RANGES, EVERYBODY),
    pair(MYCLOUD, {"load_balancer_source_ranges": "::/0"}, {"load_balancer_source_ranges": "::/0,10.0.0.0/8"}),
    pair(MYCLOUD, {"health_check_timeout": "3"}, {"health_check_timeout": "3", "health_check_interval": "3"}),
    # ---------------------------------------------------------------------------------------------------- CLB
    pair(CLB, {"backend_ip_version": "ipv6", "ip_version": "ipv6"}, {"ip_version": "ipv6"}),
    pair(
        CLB, {"backend_ip_version": "ipv6", **_BY_POD}, {"backend_ip_version": "IPv6", "ip_version": "ipv6", **_BY_POD}
    ),
    by_spec(CLB, {}, RANGES, EVERYBODY),
    pair(CLB, {"load_balancer_source_ranges": "10.0.0.0/8"}, {"load_balancer_source_ranges": "10.0.0.0/8,::/0"}),
    by_spec(CLB, {}, SCTP, UDP),
    pair(CLB, {}, _BY_POD, **NO_NODE_PORTS),
    pair(CLB, {"protocol_port": "http"}, {"protocol_port": " HTTP : 80 "}),
    # To RE2, which folds case by Unicode, the long s is an s, and the Kelvin sign a k.
    pair(CLB, {**_HTTPS, "protocol_port": "http\u017f:443"}, {**_HTTPS, "protocol_port": "HTTPS:443"}, HTTPS),
    pair(CLB, {**_REUSED, "forward_port": f"80:{'4' * 5000}"}, _REUSED),
    pair(CLB, {"protocol_port": "ftp:80"}, {"protocol_port": "tcp:80"}),
    pair(CLB, {"protocol_port": "http:81"}, {"protocol_port": "http:80,http:443"}, TCP, HTTPS),
    pair(CLB, {"protocol_port": "http:80"}, {"protocol_port": "udp:80"}, UDP),
    pair(CLB, {"protocol_port": "http:80,tcp:80"}, {"protocol_port": "http:80"}),
    pair(CLB, {"forward_port": "80"}, {}),
    pair(CLB, {**_HTTPS, "forward_port": "80:443"}, {**_HTTPS, **_REDIRECTING}, TCP, HTTPS),
    pair(
        CLB,
        {"protocol_port": "http:80", "forward_port": "80:443"},
        {"protocol_port": "http:80", "forward_port": "80:443", "id": "lb-0a"},
    ),
    pair(CLB, {**_REDIRECTING, "forward_port": "80:443,80:443"}, _REDIRECTING, TCP, HTTPS),
    pair(CLB, {"acl_id": "acl-1,acl-2"}, {"acl_id": "acl-1,acl-2", "acl_status": "on"}),
    pair(CLB, {"acl_status": "on"}, {"acl_status": "off", "acl_id": "acl-1"}),
    pair(CLB, {"protocol_port": "http:80", "scheduler": "SCH"}, {"protocol_port": "http:80", "scheduler": "wlc"}),
    pair(CLB, {**_HTTPS, "scheduler": "tch"}, {"scheduler": "tch"}, HTTPS),
    pair(
        CLB,
        {"protocol_port": "http:80", "sticky_session": "on", "sticky_session_type": "server"},
        {"protocol_port": "http:80", "sticky_session": "on", "sticky_session_type": "server", "cookie": "c"},
    ),
    pair(CLB, {"protocol_port": "https:443"}, _HTTPS, HTTPS),
    pair(CLB, {**_HTTPS, "domain_extensions": "a.example"}, {**_HTTPS, "domain_extensions": "a.example:c-2"}, HTTPS),
    pair(
        CLB,
        {**_HTTPS, "domain_extensions": "a.example:c-2,a.example:c-3"},
        {**_HTTPS, "domain_extensions": "a.example:c-2,b.example:c-2"},
        HTTPS,
    ),
    pair(CLB, {"additional_resource_tags": "a=b,=c"}, {"additional_resource_tags": "a=b,c"}),
    pair(CLB, {"spec": "slb.s2.small"}, {"spec": "slb.s2.small", "instance_charge_type": "paybyspec"}),
    pair(
        CLB, {"charge_type": "paybybandwidth"}, {"charge_type": "paybybandwidth", "instance_charge_type": "PayBySpec"}
    ),
    # ---------------------------------------------------------------------------------------------------- NLB
    by_spec(NLB, {}, SCTP, UDP),
    pair(NLB, {"protocol_port": "https:443"}, _TLS, HTTPS),
    pair(NLB, {"protocol_port": "tls:443"}, {"protocol_port": "TCP : 443"}, HTTPS),
    pair(NLB, {**_TLS, "protocol_port": "tcp\u017f\u017fl:443"}, {**_TLS, "protocol_port": "TcpSSL:443"}, HTTPS),
    pair(NLB, {"protocol_port": f"tcp:{'0' * 5000}80"}, {"protocol_port": "tcp:00080"}),
    pair(NLB, {"protocol_port": "tcp:65536"}, {"protocol_port": "tcp:65535"}),
    pair(NLB, {"protocol_port": "udp:80"}, {"protocol_port": "udp:81"}),
    pair(NLB, {**_TLS, "protocol_port": "tcpssl:443"}, {}, {"name": "q", "protocol": "UDP", "port": 443}),
    pair(NLB, {**_TLS, "protocol_port": "tcp:443,tcpssl:443"}, _TLS, HTTPS),
    pair(NLB, {**_BY_POD, "listener_port_range": "2000-1000:80"}, {**_BY_POD, "listener_port_range": "1000-2000:80"}),
    pair(NLB, {**_BY_POD, "listener_port_range": "1000:80"}, {**_BY_POD, "listener_port_range": "1-2 : 80"}),
    pair(NLB, {"listener_port_range": "1000-2000:80"}, {**_BY_POD, "listener_port_range": "1000-65535:80"}),
    pair(NLB, {"protocol_port": "tcpssl:443"}, _TLS, HTTPS),
    pair(NLB, {**_TLS, "cacert": "on"}, {**_TLS, "cacert": "on", "cacert_id": "c-9"}, HTTPS),
    pair(NLB, {"additional_resource_tags": "team"}, {"additional_resource_tags": "team=web"}),
    pair(NLB, {"id": "nlb-1"}, {}, **RANGES),
    pair(NLB, {"id": "nlb-1", "load_balancer_source_ranges": "10.0.0.0/8"}, {"id": "nlb-1"}),
    pair(NLB, {"security_group_ids": "sg-1", "load_balancer_source_ranges": "::/0"}, {"security_group_ids": "sg-1"}),
    pair(NLB, {"id": "nlb-1", "security_group_ids": "sg-1"}, {"security_group_ids": "sg-1"}),
    pair(NLB, {"zone_maps": ""}, {"zone_maps": "", "id": "nlb-1"}),
    pair(NLB, {"zone_maps": "cn-hangzhou-k"}, {"zone_maps": "cn-hangzhou-k : vsw-1"}),
    pair(NLB, {"zone_maps": f"{ZONE}:10.0.0.9:i-1"}, {"zone_maps": f"{ZONE}:10.0.0.9:eip-1"}),
    pair(NLB, {"zone_maps": f"{ZONE}::eip-1", "address_type": "intranet"}, {"zone_maps": f"{ZONE}::eip-1"}),
    pair(NLB, {"zone_maps": f"{ZONE}:10.0.0.256"}, {"zone_maps": f"{ZONE}:10.0.0.255"}),
    pair(
        NLB,
        {"bandwidth_package_id": "cbwp-1", "address_type": "intranet"},
        {
            "bandwidth_package_id": "cbwp-1",
            "address_type": "Intranet",
            "ip_version": "DualStack",
            "ipv6_address_type": "internet",
        },
    ),
    pair(NLB, {"security_group_ids": "sg-1"}, {}, **RANGES),
    pair(NLB, {}, {"ip_version": "dualstack"}, **IPV6_RANGES),
    pair(NLB, {"load_balancer_source_ranges": "::/0"}, {"load_balancer_source_ranges": "::/0,10.0.0.0/8"}),
    pair(NLB, {"security_group_ids": "sg-1,group"}, {"security_group_ids": "sg-1,sg-2"}),
    pair(NLB, {}, _BY_POD, **NO_NODE_PORTS),
    pair(NLB, {"server_group_type": "Ip"}, {"server_group_type": "ip", **_BY_POD}),
    pair(
        NLB,
        {"server_group_type": "Ip", **_BY_POD, "preserve_client_ip": "on"},
        {"server_group_type": "Ip", **_BY_POD, "preserve_client_ip": "off"},
    ),
    pair(NLB, {"health_check_type": "udp"}, {"health_check_type": "udp", "health_check_flag": "off"}),
    by_spec(NLB, {"health_check_type": "udp"}, TCP, UDP),
    # --------------------------------------------------------------------------------------- AWS, both kinds
    pair(AWS, {"type": "nlb"}, {"type": "elb"}, **CLASSIC),
    pair(AWS, {"type": "classic"}, {"type": "nlb"}, **NETWORK),
    by_spec(AWS, {}, {"loadBalancerIP": "192.0.2.1"}, {}),
    pair(AWS, {"scheme": "internal", "internal": "false"}, {"scheme": "internal", "internal": "True"}),
    pair(AWS, {"scheme": "internet-facing", "internal": "0.0.0.0/0"}, {"scheme": "internet-facing"}),
    pair(AWS, {"security_groups": "sg-0a,web"}, {"security_groups": "sg-0a,sg-0b"}),
    pair(AWS, {"extra_security_groups": "sg-x"}, {"extra_security_groups": "sg-0a"}),
    by_spec(AWS, {"security_groups": "sg-0a"}, RANGES, EVERYBODY),
    pair(
        AWS,
        {"security_groups": "sg-0a", "load_balancer_source_ranges": "10.0.0.0/8"},
        {"security_groups": "sg-0a", "load_balancer_source_ranges": "0.0.0.0/0,10.0.0.0/8"},
    ),
    pair(
        AWS,
        {"security_groups": "sg-0a", "security_group_prefix_lists": "pl-0a"},
        {"security_group_prefix_lists": "pl-0a"},
    ),
    pair(AWS, {"security_group_prefix_lists": "list"}, {"security_group_prefix_lists": "pl-0a"}),
    pair(AWS, {"healthcheck_port": "65536"}, {"healthcheck_port": "65535"}),
    pair(AWS, {"access_log_enabled": "true"}, {"access_log_enabled": "true", "access_log_s3_bucket_name": "logs"}),
    # ------------------------------------------------------------------------------------------- AWS, classic
    by_spec(AWS, {}, IPV6_RANGES, EVERYBODY),
    pair(AWS, {"load_balancer_source_ranges": "fc00::/7"}, {"load_balancer_source_ranges": "fc00::/7,10.0.0.0/8"}),
    by_spec(AWS, {}, UDP, TCP),
    by_spec(AWS, {}, NO_NODE_PORTS, {}),
    pair(AWS, {}, _NLB, **STICKY),
    pair(AWS, {"ssl_cert": f"{CERTIFICATE},{ANOTHER}"}, {**_NLB, "ssl_cert": f"{CERTIFICATE},{ANOTHER}"}, HTTPS),
    pair(AWS, {"connection_idle_timeout": "4001"}, {"connection_idle_timeout": "4000"}),
    pair(AWS, {"healthcheck_timeout": "10"}, {"healthcheck_timeout": "9"}),
    pair(
        AWS,
        {"healthcheck_timeout": "61", "healthcheck_interval": "120"},
        {"healthcheck_timeout": "60", "healthcheck_interval": "120"},
    ),
    # ------------------------------------------------------------------------------------------- AWS, network
    by_spec(AWS, _NLB, SCTP, UDP),
    pair(AWS, _NLB, {**_NLB, "nlb_target_type": "ip"}, **NO_NODE_PORTS),
    pair(
        AWS,
        {**_NLB, "ssl_cert": CERTIFICATE, "nlb_target_type": "ip"},
        {**_NLB, "ssl_cert": CERTIFICATE, "ssl_ports": "443", "nlb_target_type": "ip"},
        TCP,
        UDP,
    ),
    pair(AWS, {**_NLB, "eip_allocations": "eip-1"}, {**_NLB, "eip_allocations": "eipalloc-0a"}),
    pair(
        AWS,
        {**_NLB, "eip_allocations": "eipalloc-0a", "internal": "true"},
        {**_NLB, "eip_allocations": "eipalloc-0a", "internal": "false"},
    ),
    pair(AWS, {**_NLB, "eip_allocations": "eipalloc-0a,eipalloc-0a"}, {**_NLB, "eip_allocations": "eipalloc-0b"}),
    pair(
        AWS,
        {**_NLB, "private_ipv4_addresses": "10.0.1.9"},
        {**_NLB, "private_ipv4_addresses": "10.0.1.9", "scheme": "internal"},
    ),
    pair(
        AWS,
        {**_NLB, "private_ipv4_addresses": "10.0.1.999", "internal": "true"},
        {**_NLB, "private_ipv4_addresses": "10.0.1.99", "internal": "true"},
    ),
    pair(AWS, {**_NLB, "healthcheck_protocol": "ssl"}, {**_NLB, "healthcheck_protocol": "https"}),
    pair(AWS, {**_NLB, "healthcheck_timeout": "31"}, {**_NLB, "healthcheck_timeout": "30"}),
    pair(
        AWS,
        {**_NLB, "healthcheck_timeout": "11"},
        {**_NLB, "healthcheck_timeout": "11", "nlb_target_type": "ip"},
        **LOCAL,
    ),
    (
        Asked(AWS, _NLB, ({**TCP, "nodePort": 30081}, {**UDP, "nodePort": 30082})),
        Asked(AWS, _NLB, ({**TCP, "nodePort": 30081}, {**UDP, "nodePort": 30081})),
    ),
    pair(AWS, {**_NLB, "connection_idle_timeout": "59"}, {**_NLB, "connection_idle_timeout": "60"}),
    *(
        pair(
            AWS,
            {**_NLB, "access_log_s3_bucket_name": "logs", "attributes": f"{key}={wrong}", argument: given},
            {
                **_NLB,
                "access_log_s3_bucket_name": "logs",
                "attributes": f"{key}={wrong},{key}={given}",
                argument: given,
            },
        )
        for argument, key, given, wrong in (
            ("cross_zone_load_balancing_enabled", "load_balancing.cross_zone.enabled", "true", "false"),
            ("access_log_enabled", "access_logs.s3.enabled", "true", "false"),
            ("access_log_s3_bucket_name", "access_logs.s3.bucket", "logs", "other"),
            ("access_log_s3_bucket_prefix", "access_logs.s3.prefix", "web", "other"),
        )
    ),
    pair(
        AWS,
        {**_NLB, "attributes": "access_logs.s3.enabled=true"},
        {**_NLB, "attributes": "access_logs.s3.enabled=true,access_logs.s3.bucket=logs"},
    ),
)

_TERMINATION = "target_health_state.unhealthy.connection_termination.enabled"
_DRAINING = "target_health_state.unhealthy.draining_interval_seconds"
_TARGETS = "target_group_attributes"
_OF_80 = f"{_TARGETS}_of_port.80"
_STICKY_TLS = {**_NLB, "ssl_cert": CERTIFICATE}
PAIRS += (
    pair(
        AWS,
        {**_NLB, "proxy_protocol": "*", _TARGETS: "proxy_protocol_v2.enabled=false"},
        {**_NLB, "proxy_protocol": "*"},
    ),
    pair(AWS, {**_NLB, _OF_80: "stickiness.enabled=false"}, {**_NLB, _OF_80: "stickiness.enabled=true"}, **STICKY),
    pair(AWS, _STICKY_TLS, {**_STICKY_TLS, "ssl_ports": "443"}, **STICKY),
    pair(
        AWS,
        {**_STICKY_TLS, _TARGETS: "stickiness.enabled=true"},
        {**_STICKY_TLS, _TARGETS: "stickiness.enabled=true", _OF_80: "stickiness.enabled=false"},
    ),
    pair(
        AWS,
        {**_NLB, _TARGETS: "preserve_client_ip.enabled=false"},
        {**_NLB, _OF_80: "preserve_client_ip.enabled=true"},
        UDP,
    ),
    pair(
        AWS,
        {**_NLB, "nlb_target_type": "ip", _OF_80: "preserve_client_ip.enabled=false"},
        {**_NLB, "nlb_target_type": "ip", _OF_80: "preserve_client_ip.enabled="},
        TCP,
        UDP,
    ),
    pair(AWS, {**_NLB, _TARGETS: f"{_TERMINATION}=true"}, {**_NLB, _TARGETS: f"{_TERMINATION}=false"}, UDP),
    pair(AWS, {**_NLB, _TARGETS: f"{_DRAINING}=9"}, {**_NLB, _TARGETS: f"{_DRAINING}=9,{_TERMINATION}=false"}),
    pair(AWS, {**_NLB, _TARGETS: f"{_DRAINING}=9,{_TERMINATION}=true"}, {**_NLB, _TARGETS: f"{_DRAINING}=9"}, UDP),
)

_TAGS = "additional_resource_tags"
_MANY = {kind: ",".join(f"k{each}=v" for each in range(most)) for kind, most in (("aws", 43), ("CLB", 14), ("NLB", 15))}


def _tags(kind: Catalogue, wrong: str, right: str, **more: str) -> Any:
    return pair(kind, {_TAGS: wrong, **more}, {_TAGS: right, **more})


_OF_AWS = """
    elbv2.k8s.aws/cluster service.k8s.aws/stack ingress.k8s.aws/stack gateway.k8s.aws.nlb/stack eks:cluster-name
    karpenter.sh/discovery karpenter.k8s.aws/cluster KubernetesCluster k8s.io/cluster-autoscaler/enabled
"""
_OF_ALICLOUD = """
    kubernetes.do.not.delete kubernetes.reused.by.user ack.aliyun.com ack.alibabacloud.com/pool k8s.aliyun.com
    ingress.k8s.alibaba/albconfig service.k8s.alibaba/stack karpenter.sh/discovery k8s.io/cluster-autoscaler
"""
_OF_OTHERS = ((AWS, _OF_AWS), (CLB, _OF_ALICLOUD), (NLB, _OF_ALICLOUD))

PAIRS += (
    *(_tags(kind, f"{key}=a", "team=a") for kind, keys in _OF_OTHERS for key in keys.split()),
    _tags(AWS, "team=a,AWS:x=1", "team=a,awsome:x=1"),
    _tags(AWS, "kubernetes.io/service-name=a", "app.kubernetes.io/name=a"),
    _tags(AWS, "team=a;b", "team=\u00e9quipe caf\u00e9 \u4e2d\u0663,a,b=c=d"),
    _tags(AWS, "a!=b", "a-=b"),
    _tags(AWS, f"{'k' * 129}=v", f"{'k' * 128}=v"),
    _tags(AWS, f"k={'v' * 257}", f"k={'v' * 256}"),
    _tags(AWS, _MANY["aws"], _MANY["aws"].removesuffix(",k42=v")),
    _tags(AWS, _MANY["aws"].removesuffix(",k42=v"), _MANY["aws"].removesuffix(",k41=v,k42=v"), **_NLB),
    _tags(AWS, "team=a,=b", "team=a,b"),
    pair(AWS, {"target_node_labels": "=b"}, {"target_node_labels": "a"}),
    _tags(CLB, "Kubernetes.io/x=a", "kubernetes.eu/x=a"),
    _tags(CLB, "a=see https://a.example", "a=see ftp://a.example \u4e2d"),
    _tags(CLB, f"{'k' * 65}=v", f"{'k' * 64}={'v' * 128}"),
    _tags(CLB, _MANY["CLB"], _MANY["CLB"].removesuffix(",k13=v")),
    _tags(CLB, _MANY["CLB"].removesuffix(",k13=v"), "a=b", address_type="intranet", vswitch_id="vsw-1"),
    _tags(NLB, "acs:team=a", "acsteam=a"),
    _tags(NLB, "kubernetes.io/service=a", "app.kubernetes.io/name=a"),
    _tags(NLB, "team=a b", "team=\u4e2da_b"),
    _tags(NLB, f"k={'v' * 129}", f"k={'v' * 128}"),
    _tags(NLB, _MANY["NLB"], _MANY["NLB"].removesuffix(",k14=v")),
    (
        Asked(NLB, {_TAGS: _MANY["NLB"].removesuffix(",k14=v")}, spec=RANGES),
        Asked(NLB, {_TAGS: _MANY["NLB"].removesuffix(",k13=v,k14=v")}, spec=RANGES),
    ),
    # ------------------------------------------------------------------------------------- NLB, ranges and zones
    pair(NLB, {**_BY_POD, "listener_port_range": "443-500:80"}, _BY_POD, TCP, HTTPS),
    pair(
        NLB,
        {**_BY_POD, "listener_port_range": "1-442:80, 300-500 : 443"},
        {**_BY_POD, "listener_port_range": "1-442:80, 443-500 : 443"},
        TCP,
        HTTPS,
    ),
    pair(
        NLB,
        {**_BY_POD, "listener_port_range": "400-500:80"},
        {**_BY_POD, "listener_port_range": "400-500:53"},
        TCP,
        HTTPS,
        {"name": "dns", "protocol": "UDP", "port": 53},
    ),
    pair(NLB, {"zone_maps": "cn-k:vsw-1,cn-k : vsw-2"}, {"zone_maps": "cn-k:vsw-1,cn-l : vsw-2"}),
    by_spec(NLB, {}, _ranges(191), _ranges(190)),
    by_spec(NLB, {"ip_version": "DualStack"}, _ranges(190, "fc00::/7"), _ranges(189, "fc00::/7")),
    by_spec(NLB, {}, _ranges(191), _ranges(190, "fc00::/7")),
    pair(
        NLB,
        {"load_balancer_source_ranges": ",".join(_ranges(191)["loadBalancerSourceRanges"])},
        {"load_balancer_source_ranges": ",".join(_ranges(190)["loadBalancerSourceRanges"])},
    ),
    # -------------------------------------------------------------------------------------------- AWS, attributes
    pair(AWS, {**_NLB, "attributes": "=true"}, {"attributes": "=true"}),
    pair(AWS, {**_NLB, "attributes": "a.b=true"}, {**_NLB, "attributes": ""}),
    *(
        pair(AWS, {**_NLB, argument: f"{key}={wrong}"}, {**_NLB, argument: f"{key}={right}"})
        for arguments, rules in (
            (("attributes",), LOAD_BALANCER),
            ((_TARGETS, _OF_80), TARGET_GROUP),
            (("listener_attributes.TCP-80",), LISTENER),
        )
        for argument in arguments
        for key, rule in rules.items()
        if not rule.free and key != _DRAINING
        for wrong, right in _borders(rule)
    ),
    pair(AWS, {**_NLB, _OF_80: "=true"}, {**_NLB, "target_group_attributes_of_port.81": "=true"}),
    pair(AWS, {**_NLB, _OF_80: "a.b=1"}, {**_NLB, _OF_80: "a.b="}),
    pair(AWS, {**_NLB, _TARGETS: "stickiness.enabled="}, {**_NLB, _OF_80: "stickiness.enabled="}),
    pair(AWS, {**_NLB, "listener_attributes.TCP-80": "a=1"}, {**_NLB, "listener_attributes.TCP-81": "a=1"}),
    pair(AWS, {**_NLB, "listener_attributes.UDP-80": "a"}, {**_NLB, "listener_attributes.TCP-80": "a"}, UDP),
    pair(
        AWS,
        {**_NLB, "listener_attributes.TCP_UDP-80": "a", "nlb_target_type": "ip"},
        {**_NLB, "listener_attributes.UDP-80": "a", "nlb_target_type": "ip"},
        TCP,
        UDP,
    ),
    pair(AWS, {**_NLB, "listener_attributes.TCP-80": "=60"}, {**_NLB, "listener_attributes.TLS-80": "=60"}),
    pair(AWS, {**_NLB, _TARGETS: "=60"}, {**_NLB, _TARGETS: "stickiness.enabled=true"}),
    pair(
        AWS,
        {**_STICKY_TLS, "listener_attributes.TLS-80": "a"},
        {**_STICKY_TLS, "listener_attributes.TLS-80": "a", "ssl_ports": "443"},
    ),
    # ------------------------------------------------------------------------------------------ AWS, what fits
    pair(
        AWS,
        {**_NLB, "healthcheck_success_codes": "200,299-200"},
        {**_NLB, "healthcheck_success_codes": "200,200-200,201-299"},
    ),
    pair(
        AWS,
        {**_NLB, "subnets": "subnet-0a,edge", "eip_allocations": "eipalloc-0a"},
        {**_NLB, "subnets": "subnet-0a,edge", "eip_allocations": "eipalloc-0a,eipalloc-0b"},
    ),
    pair(
        AWS,
        {**_NLB, "subnets": "subnet-0a", "private_ipv4_addresses": "10.0.1.9,10.0.2.9", "internal": "true"},
        {**_NLB, "private_ipv4_addresses": "10.0.1.9,10.0.2.9", "internal": "true"},
    ),
    pair(
        AWS,
        {**_NLB, "ip_address_type": "dualstack"},
        {**_NLB, "ip_address_type": "dualstack", "enable_prefix_for_ipv6_source_nat": "on"},
        UDP,
    ),
)

_LB_ID = {"id": "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"}
PAIRS = (
    *PAIRS,
    by_spec(OPENSTACK, {}, NO_NODE_PORTS, {}),
    by_spec(OPENSTACK, {}, IPV6_RANGES, RANGES),
    pair(OPENSTACK, {"load_balancer_source_ranges": "2001:db8::/32"}, {"load_balancer_source_ranges": "10.0.0.0/8"}),
    pair(OPENSTACK, {"default_tls_container_ref": "https://barbican.example.com/v1/containers/1"}, {}),
    pair(OPENSTACK, {"proxy_protocol": "v2"}, {"proxy_protocol": "false"}, TCP, UDP),
    pair(OPENSTACK, {"x_forwarded_for": "true", "proxy_protocol": "true"}, {"x_forwarded_for": "true"}),
    pair(OPENSTACK, {"health_monitor_timeout": "9", "health_monitor_delay": "5"}, {"health_monitor_timeout": "4"}),
    *(
        pair(OPENSTACK, {**_LB_ID, argument: text}, _LB_ID)
        for argument, text in (
            ("network_id", _LB_ID["id"]),
            ("subnet_id", _LB_ID["id"]),
            ("port_id", _LB_ID["id"]),
            ("flavor_id", _LB_ID["id"]),
            ("availability_zone", "az-1"),
            ("lb_class", "dmz"),
            ("floating_network_id", _LB_ID["id"]),
            ("floating_subnet_id", _LB_ID["id"]),
            ("floating_subnet_name", "public-*"),
            ("floating_subnet_tags", "gold"),
            ("keep_floating_ip", "true"),
        )
    ),
    by_spec(OPENSTACK, _LB_ID, {"loadBalancerIP": "203.0.113.9"}, {}),
)


def many(count: int, *protocols: str) -> tuple[Mapping[str, Any], ...]:
    """So many ports; of each number one for each protocol."""
    of = protocols or ("TCP",)
    return tuple(
        {"name": f"{protocol.lower()}-{1000 + each}", "protocol": protocol, "port": 1000 + each}
        for each in range(count // len(of))
        for protocol in of
    )


def _many_ranges(count: int, *more: str) -> Any:
    return {"loadBalancerSourceRanges": [*(f"10.{each // 250}.{each % 250}.0/24" for each in range(count)), *more]}


# More of something than a load balancer has room for, which is refused before anything looks at each.
BOUNDS: tuple[tuple[Asked, Asked], ...] = (
    *((Asked(kind, {}, many(251)), Asked(kind, {}, many(250))) for kind in (MYCLOUD, AWS, CLB, NLB, OPENSTACK)),
    (Asked(AWS, _NLB, many(51)), Asked(AWS, {**_NLB, "nlb_target_type": "ip"}, many(100, "TCP", "UDP"))),
    (Asked(AWS, _NLB, many(102, "TCP", "UDP")), Asked(AWS, _NLB, many(50, "UDP"))),
    *(by_spec(kind, {}, _many_ranges(1001), _many_ranges(1000)) for kind in (MYCLOUD, AWS, OPENSTACK)),
    by_spec(CLB, {}, _many_ranges(1000, "0.0.0.0/0"), _many_ranges(999, "0.0.0.0/0")),
    by_spec(NLB, {}, _many_ranges(1001), _many_ranges(190)),
    *(
        pair(
            AWS,
            {**_NLB, **{f"{family}{1000 + each}": "a=b" for each in range(101)}},
            {**_NLB, **{f"{family}{1000 + each}": "a=b" for each in range(100)}},
        )
        for family in ("target_group_attributes_of_port.", "listener_attributes.TCP-")
    ),
)

# What an API server without IPv6 refuses by itself.
ONLY_WITH_IPV6: tuple[tuple[Asked, Asked], ...] = (
    by_spec(MYCLOUD, {}, IPV6, {}),
    by_spec(MYCLOUD, {}, DUAL, {"ipFamilyPolicy": "PreferDualStack"}),
    by_spec(NLB, {}, IPV6, DUAL),
    by_spec(OPENSTACK, {}, IPV6, {}),
    by_spec(OPENSTACK, {}, DUAL, {"ipFamilyPolicy": "PreferDualStack"}),
    by_spec(AWS, {}, IPV6, {}),
    by_spec(AWS, {}, DUAL, {}),
    pair(AWS, {**_NLB, "ip_address_type": "ipv4"}, _NLB, ipFamilies=["IPv6"]),
    (Asked(AWS, _NLB, (UDP,), IPV6), Asked(AWS, _NLB, (TCP,), IPV6)),
    (Asked(AWS, _NLB, (UDP,), DUAL), Asked(AWS, _NLB, (UDP,), {"ipFamilyPolicy": "PreferDualStack"})),
)


_BUILDERS: Mapping[str, tuple[Any, Any]] = {
    "mycloud": (MyCloudBuilder("c-1", "internet-facing"), Fact()),
    "aws": (AwsBuilder(AWS_CONFIG), Fact(AwsFacts(VPC))),
    "alicloud": (AliCloudBuilder(ALICLOUD_CONFIG), Fact(AliCloudFacts("vpc-1"))),
    "openstack": (OctaviaBuilder("c-1", LoadBalancerOptions()), Fact(Topology((), {"public": "public"}))),
}


def builder_of(kind: Catalogue) -> tuple[Any, Any]:
    """The kind's builder, and what its builds need to know of the cloud."""
    return _BUILDERS[kind.cloud]


def claims(kind: Catalogue, service: Any) -> bool:
    """Whether the cloud's controller serves this Service."""
    return bool(builder_of(kind)[0].claims(service))


def build(kind: Catalogue, service: Any) -> str | None:
    """What the cloud's build says against this Service, stored by an API server."""
    builder, facts = builder_of(kind)
    try:
        builder.build(service, Backends(), facts)
    except InvalidConfiguration as error:
        return str(error)
    return None


def some(kind: Catalogue, count: int) -> Iterator[Asked]:
    """Services of this kind with a few settings at random, the same ones every time."""
    chance = random.Random(f"{kind.cloud} {kind.kind}")
    entries = [
        entry for entry in kind if not entry.ignored and entry.argument not in ("id", "load_balancer_source_ranges")
    ]
    of_pairs = [each for both in PAIRS for each in both if each.kind is kind]
    for _ in range(count):
        base = chance.choice(of_pairs)
        more = {entry.argument: text(entry, chance) for entry in chance.sample(entries, 2) if not entry.suffix}
        yield Asked(kind, {**base.arguments, **more}, base.ports, base.spec)


def text(entry: Annotation, chance: random.Random) -> str:
    """A text for an annotation, mostly a valid one."""
    wrong = chance.random() < 0.1
    if entry.type is bool:
        return "maybe" if wrong else chance.choice(["true", "false"])
    if entry.type is int:
        bounds = [str(each) for each in (entry.minimum, entry.maximum) if each is not None]
        return "-1" if wrong else chance.choice(bounds)
    return "\\" if wrong else chance.choice([*entry.allowed, *([entry.example] if entry.example else [])] or ["x"])
