"""Rule `lb-service-share-without-clash`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import balanced, ours, port, said
from tests.policy_objects import resource

RULE = "lb-service-share-without-clash"
BETA = "service.beta.kubernetes.io/"
SHARED = f"{BETA}dlb-id"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def sharing(name: str, *ports: Any, id: Any = "lb-0a", annotation: str = SHARED) -> AnalyzedResource:
    return balanced(name, *ports, annotations={annotation: id}, loadBalancerSourceRanges=[])


def test_services_with_different_ports_share_a_load_balancer(pack: PolicyHost) -> None:
    udp = port(80, protocol="UDP")

    assert messages(pack, ours("mycloud"), sharing("a", port(80)), sharing("b", port(443)), sharing("c", udp)) == []


def test_the_same_port_of_one_load_balancer_is_reported_at_the_second_service(pack: PolicyHost) -> None:
    second = sharing("b", port(443), port(80))

    [finding] = said(pack, RULE, ours("mycloud"), sharing("a", port(80)), second)

    assert (finding.level, finding.severity, finding.urn) == ("advisory", "high", second.urn)
    assert finding.message == "TCP 80 of the shared load balancer is also a port of Service kube-system/a"


@pytest.mark.parametrize(
    ("type", "annotation"),
    [
        ("alicloud:vpc/network:Network", f"{BETA}alibaba-cloud-loadbalancer-id"),
        ("alicloud:vpc/network:Network", f"{BETA}alicloud-loadbalancer-id"),
        ("huaweicloud:Vpc/vpc:Vpc", "kubernetes.io/elb.id"),
        ("openstack:networking/network:Network", "loadbalancer.openstack.org/load-balancer-id"),
        ("tencentcloud:Vpc/instance:Instance", "service.kubernetes.io/tke-existed-lbid"),
    ],
)
def test_every_clouds_annotation_for_sharing_is_known(pack: PolicyHost, type: str, annotation: str) -> None:
    network = resource(type, {}, "network")
    clash = [sharing(name, port(80), annotation=annotation) for name in "ab"]

    assert len(messages(pack, network, *clash)) == 1


def test_the_same_port_of_different_load_balancers_passes(pack: PolicyHost) -> None:
    assert messages(pack, ours("mycloud"), sharing("a", id="lb-0a"), sharing("b", id="lb-0b"), balanced("c")) == []


@pytest.mark.parametrize(
    ("cloud", "annotation", "first", "second"),
    [
        ("aws", "aws-load-balancer-eip-allocations", "eipalloc-0a,eipalloc-0b", "eipalloc-0b,eipalloc-0c"),
        ("aws", "aws-load-balancer-private-ipv4-addresses", "10.0.1.9", "10.0.1.9"),
        ("aws", "aws-load-balancer-name", "edge", "edge"),
        ("alicloud", "alibaba-cloud-loadbalancer-zone-maps", "cn-k:vsw-1::eip-1", "cn-k:vsw-1::eip-1"),
        ("alicloud", "alibaba-cloud-loadbalancer-ip", "10.0.1.9", "10.0.1.9"),
    ],
)
def test_two_services_cannot_claim_what_one_load_balancer_has(
    pack: PolicyHost, cloud: str, annotation: str, first: str, second: str
) -> None:
    of_class = {"loadBalancerClass": "alibabacloud.com/nlb"} if "zone-maps" in annotation else {}
    claims = [
        balanced(name, annotations={f"{BETA}{annotation}": value}, **of_class)
        for name, value in (("a", first), ("b", second))
    ]

    [message] = messages(pack, ours(cloud), *claims)

    assert message == f"annotation {BETA}{annotation} claims what Service kube-system/a claims too"


def test_the_same_zone_and_subnet_is_no_claim(pack: PolicyHost) -> None:
    annotations = {f"{BETA}alibaba-cloud-loadbalancer-zone-maps": "cn-k:vsw-1,cn-h:vsw-2"}
    both = [balanced(name, annotations=annotations, loadBalancerClass="cloud-controller/nlb") for name in "ab"]

    assert messages(pack, ours("alicloud"), *both) == []


def test_an_unknown_id_is_not_evaluated_and_hides_no_clash(pack: PolicyHost) -> None:
    found = said(pack, RULE, ours("mycloud"), sharing("a"), sharing("b", id=UNKNOWN), sharing("c"))

    assert [finding.level for finding in found] == ["advisory", "not-evaluated"]
