"""What restricts access to a Service is honoured or refused by every cloud, never passed over."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE as AWS
from cloud_controller.clouds.mycloud.annotations import CATALOGUE as MYCLOUD
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES

DOMAIN = "service.beta.kubernetes.io"
CATALOGUES = [pytest.param(AWS, id="aws"), pytest.param(MYCLOUD, id="mycloud")]

pytestmark = pytest.mark.parametrize("catalogue", CATALOGUES)


@pytest.mark.parametrize(
    "name",
    [
        "service.kubernetes.io/load-balancer-source-ranges",
        "service.alpha.kubernetes.io/load-balancer-source-ranges",
        "load-balancer-source-ranges",
        f"{DOMAIN}/load-balancer-source-range",
        f"{DOMAIN}/load-balancer-sources-ranges",
        f"{DOMAIN}/load_balancer_source_ranges",
        f"{DOMAIN}/loadBalancerSourceRanges",
        f"{DOMAIN}/source-ranges",
        f"{DOMAIN}/source-cidrs",
        f"{DOMAIN}/azure-allowed-ip-ranges",
        f"{DOMAIN}/azure-allowed-service-tags",
        f"{DOMAIN}/azure-deny-all-except-load-balancer-source-ranges",
        "alb.ingress.kubernetes.io/inbound-cidrs",
        "alb.ingress.kubernetes.io/security-group-prefix-lists",
        "alb.ingress.kubernetes.io/wafv2-acl-arn",
        "nginx.ingress.kubernetes.io/whitelist-source-range",
        "nginx.ingress.kubernetes.io/denylist-source-range",
        f"{DOMAIN}/alibaba-cloud-loadbalancer-acl-id",
        f"{DOMAIN}/alibaba-cloud-loadbalancer-security-group-ids",
        "kubernetes.io/elb.acl-id",
        f"{DOMAIN}/do-loadbalancer-deny-rules",
        f"{DOMAIN}/do-loadbalancer-allow-rules",
        f"{DOMAIN}/linode-loadbalancer-firewall-id",
        "example.com/load-balancer-mutual-authentication",
    ],
)
def test_a_restriction_of_clients_under_another_name_is_refused_with_the_right_one(
    catalogue: Catalogue, name: str
) -> None:
    with pytest.raises(InvalidConfiguration, match="load-balancer-source-ranges") as refused:
        catalogue.parse({name: "192.0.2.0/24"})

    assert refused.value.field == f"annotation {name}"


INTERNAL = [
    (f"{DOMAIN}/cce-load-balancer-internal-vpc", "true"),
    ("example.com/load-balancer-internal", "0.0.0.0/0"),
    (f"{DOMAIN}/openstack-internal-load-balancer", "true"),
    (f"{DOMAIN}/alibaba-cloud-loadbalancer-address-type", "intranet"),
    (f"{DOMAIN}/do-loadbalancer-network", "INTERNAL"),
    ("networking.gke.io/load-balancer-type", "Internal"),
    ("load-balancer.hetzner.cloud/disable-public-network", "true"),
    ("service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "subnet-1"),
    ("service.kubernetes.io/load-balancer-scheme", "internal"),
]


@pytest.mark.parametrize(("name", "text"), INTERNAL)
def test_an_internal_load_balancer_under_another_name_is_refused(catalogue: Catalogue, name: str, text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="it would be public"):
        catalogue.parse({name: text})


@pytest.mark.parametrize(("name", "text"), INTERNAL)
def test_a_service_that_asks_for_an_internal_one_here_may_carry_the_names_of_other_clouds(
    catalogue: Catalogue, name: str, text: str
) -> None:
    ours = catalogue.annotations({"scheme": "internal"})

    assert catalogue.parse({name: text, **ours}).text("scheme") == "internal"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (f"{DOMAIN}/cce-load-balancer-internal-vpc", "false"),
        (f"{DOMAIN}/azure-allowed-ip-ranges", ""),
        (f"{DOMAIN}/alibaba-cloud-loadbalancer-acl-status", "off"),
        ("networking.gke.io/load-balancer-type", "External"),
        (f"{DOMAIN}/azure-load-balancer-tcp-idle-timeout", "4"),
        (f"{DOMAIN}/azure-pip-tags", "a=b"),
        ("metallb.universe.tf/allow-shared-ip", "web"),
        ("external-dns.alpha.kubernetes.io/internal-hostname", "web.internal"),
        ("kubectl.kubernetes.io/last-applied-configuration", '{"load-balancer-source-ranges": "192.0.2.0/24"}'),
        ("meta.helm.sh/release-name", "internal"),
        ("prometheus.io/scrape", "true"),
    ],
)
def test_an_unknown_annotation_that_restricts_nothing_is_ignored(catalogue: Catalogue, name: str, text: str) -> None:
    assert catalogue.parse({name: text}).given == {}


def test_source_ranges_are_honoured_by_every_cloud(catalogue: Catalogue) -> None:
    assert not catalogue.by_name[SOURCE_RANGES].ignored
