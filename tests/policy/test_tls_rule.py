"""Rule `lb-service-encrypt-https`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy.services import balanced, ours, port, said
from tests.policy_objects import resource

RULE = "lb-service-encrypt-https"
BETA = "service.beta.kubernetes.io/"
AWS, CLB = f"{BETA}aws-load-balancer-", f"{BETA}alibaba-cloud-loadbalancer-"
CERTIFICATE = "arn:aws:acm:eu-central-1:123456789012:certificate/0a"


def messages(pack: PolicyHost, *stack: AnalyzedResource) -> list[str]:
    return [finding.message for finding in said(pack, RULE, *stack)]


def test_a_public_port_443_that_says_nothing_of_tls_is_reported(pack: PolicyHost) -> None:
    [finding] = said(pack, RULE, ours("mycloud"), balanced("web", port(443)))

    assert (finding.level, finding.severity) == ("advisory", "medium")
    assert finding.message == (
        "port 443 is public, and nothing says who ends TLS there: a certificate of the load balancer, or appProtocol: "
        "https if the pods do"
    )


@pytest.mark.parametrize(
    "wrong", [port(8443, "https"), port(443, appProtocol="http"), port(443, appProtocol="kubernetes.io/h2c")]
)
def test_a_port_named_https_and_protocols_in_clear_are_reported(pack: PolicyHost, wrong: Any) -> None:
    assert len(messages(pack, ours("mycloud"), balanced("web", wrong))) == 1


@pytest.mark.parametrize(
    "right",
    [
        port(443, appProtocol="https"),
        port(443, appProtocol="kubernetes.io/wss"),
        port(443, protocol="UDP"),
        port(8443),
        port(80, "http"),
    ],
)
def test_pods_that_end_tls_quic_and_other_ports_pass(pack: PolicyHost, right: Any) -> None:
    assert messages(pack, ours("mycloud"), balanced("web", right)) == []


@pytest.mark.parametrize(
    ("cloud", "annotations"),
    [
        ("aws", {f"{AWS}ssl-cert": CERTIFICATE}),
        ("aws", {f"{AWS}ssl-cert": CERTIFICATE, f"{AWS}ssl-ports": "443"}),
        ("alicloud", {f"{CLB}protocol-port": "https:443", f"{CLB}cert-id": "c-1"}),
        ("alicloud", {f"{CLB}protocol-port": "HTTPS : 443", f"{CLB}cert-id": "c-1"}),
    ],
)
def test_a_load_balancer_that_ends_tls_on_the_port_passes(
    pack: PolicyHost, cloud: str, annotations: dict[str, str]
) -> None:
    assert messages(pack, ours(cloud), balanced("web", port(443), annotations=annotations)) == []


def test_an_nlb_of_alicloud_that_ends_tls_passes(pack: PolicyHost) -> None:
    annotations = {f"{CLB}protocol-port": "tcpssl:443", f"{CLB}cert-id": "c-1", f"{CLB}zone-maps": "cn-k:vsw-1"}
    nlb = balanced("web", port(443), annotations=annotations, loadBalancerClass="cloud-controller/nlb")

    assert messages(pack, ours("alicloud"), nlb) == []


@pytest.mark.parametrize(
    ("type", "annotation"),
    [
        ("openstack:networking/network:Network", "loadbalancer.openstack.org/default-tls-container-ref"),
        ("huaweicloud:Vpc/vpc:Vpc", "kubernetes.io/elb.cert-id"),
        ("tencentcloud:Vpc/instance:Instance", "service.cloud.tencent.com/tke-service-config"),
    ],
)
def test_certificates_of_clouds_without_controllers_here_count(pack: PolicyHost, type: str, annotation: str) -> None:
    network = resource(type, {}, "network")

    assert messages(pack, network, balanced("web", port(443), annotations={annotation: "x"})) == []
    assert len(messages(pack, network, balanced("web", port(443)))) == 1


def test_a_certificate_for_other_ports_does_not_count(pack: PolicyHost) -> None:
    annotations = {f"{AWS}ssl-cert": CERTIFICATE, f"{AWS}ssl-ports": "8443"}

    assert len(messages(pack, ours("aws"), balanced("web", port(443), annotations=annotations))) == 1


def test_an_internal_load_balancer_passes_and_another_clouds_annotation_makes_none(pack: PolicyHost) -> None:
    internal = {f"{AWS}internal": "true"}

    assert messages(pack, ours("aws"), balanced("web", port(443), annotations=internal)) == []
    assert len(messages(pack, ours("mycloud"), balanced("web", port(443), annotations=internal))) == 1


def test_http_beside_https_is_redirected_on_a_clb(pack: PolicyHost) -> None:
    both = {f"{CLB}protocol-port": "http:80,https:443", f"{CLB}cert-id": "c-1"}
    ports = (port(80), port(443))

    [message] = messages(pack, ours("alicloud"), balanced("web", *ports, annotations=both))
    redirected = balanced("web", *ports, annotations={**both, f"{CLB}forward-port": "80:443"})

    assert message == (f"HTTP is served beside HTTPS and not redirected: port 80: annotation {CLB}forward-port: 80:443")
    assert messages(pack, ours("alicloud"), redirected) == []


@pytest.mark.parametrize(
    "unknown",
    [
        balanced("web", port(443), annotations={f"{AWS}ssl-cert": UNKNOWN}),
        balanced("web", port(443), annotations={f"{AWS}internal": UNKNOWN}),
        balanced("web", port(UNKNOWN)),
    ],
)
def test_what_depends_on_an_unknown_value_is_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert [finding.level for finding in said(pack, RULE, ours("aws"), unknown)] == ["not-evaluated"]
