"""The class of the AWS Load Balancer Controller: served where the cloud config says so, and never by two at once."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import PREFIX
from cloud_controller.clouds.aws.cloud import Aws
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.in_the_account import assert_nothing_left, load_balancers
from tests.cloud_controller.clouds.aws.services import BUILDER, CERTIFICATE, classic, model, named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, port

CLASS = "service.k8s.aws/nlb"
FINALIZER = "service.k8s.aws/resources"
"""The AWS Load Balancer Controller's own."""


def of_the_class(annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    return classic(annotations, loadBalancerClass=CLASS, **spec)


# -------------------------------------------------------------------------------------------- what a Service comes to


def test_the_service_of_the_requirements_is_an_internal_network_load_balancer_with_tls() -> None:
    # requirements 002 §5.3: its annotations as they stand there, but for the subnets.
    asked = {
        "type": "nlb",
        "nlb-target-type": "ip",
        "internal": "true",
        "scheme": "internal",
        "ssl-cert": CERTIFICATE,
        "ssl-ports": "443",
        "ssl-negotiation-policy": "ELBSecurityPolicy-TLS13-1-2-2021-06",
        "healthcheck-protocol": "HTTP",
        "healthcheck-path": "/health",
        "healthcheck-port": "traffic-port",
        "healthcheck-interval": "10",
        "healthcheck-timeout": "5",
        "healthcheck-healthy-threshold": "2",
        "healthcheck-unhealthy-threshold": "3",
        "cross-zone-load-balancing-enabled": "true",
        "proxy-protocol": "*",
        "access-log-enabled": "true",
        "access-log-s3-bucket-name": "my-nlb-logs",
        "access-log-s3-bucket-prefix": "prod-nlb",
        "additional-resource-tags": "Environment=Production,Team=Platform",
    }
    service = of_the_class(
        {f"{PREFIX}{name}": text for name, text in asked.items()},
        ports=[{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 8443}],
        externalTrafficPolicy="Local",
        healthCheckNodePort=31000,
    )

    found = model(service)

    assert (found.attributes["type"], found.attributes["scheme"]) == ("network", "internal")
    assert [each.attributes["protocol"] for each in found.listeners] == ["TLS"]


@pytest.mark.parametrize(
    ("annotations", "scheme"),
    [
        ({}, "internal"),
        (named(scheme="internet-facing"), "internet-facing"),
        (named(internal=False), "internet-facing"),
        (named(internal=True), "internal"),
    ],
    ids=["nothing said", "internet-facing", "not internal", "internal"],
)
def test_the_scheme_is_internal_unless_the_service_says_otherwise_as_the_other_controller_has_it(
    annotations: dict[str, str], scheme: str
) -> None:
    assert model(of_the_class(annotations)).attributes["scheme"] == scheme


@pytest.mark.parametrize("said", ["nlb", "external"])
def test_the_types_that_the_other_controller_takes_go_with_its_class(said: str) -> None:
    assert model(of_the_class({f"{PREFIX}type": said})).attributes["type"] == "network"


@pytest.mark.parametrize("said", ["classic", "nlb-ip"])
def test_a_type_that_contradicts_the_class_is_refused(said: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"'{said}' contradicts spec.loadBalancerClass '{CLASS}'"):
        model(of_the_class({f"{PREFIX}type": said}))


def test_a_service_with_the_other_controllers_finalizer_is_not_claimed() -> None:
    service = of_the_class()
    assert BUILDER.claims(service)

    service["metadata"]["finalizers"] = [FINALIZER]

    assert not BUILDER.claims(service)


# --------------------------------------------------------------------------------------------------------- in AWS


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.put(nlb(named(scheme="internal"), port(80), port(443), loadBalancerClass=CLASS))
    return cluster


def test_without_the_option_the_class_is_another_controllers(account: AwsAccount, cluster: Cluster) -> None:
    Running(account, cluster).settle()

    assert load_balancers(account) == []
    assert cluster.events == []


def test_with_the_option_the_service_is_served(account: AwsAccount, cluster: Cluster) -> None:
    Running(account, cluster, serve_nlb_class=True).settle()

    (lb,) = load_balancers(account)
    assert lb["Scheme"] == "internal"
    assert cluster.ingress == [{"hostname": lb["DNSName"]}]


def test_once_the_other_controller_has_taken_it_up_ours_goes_and_the_status_stays(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = Running(account, cluster, serve_nlb_class=True).settle()
    service = cluster.service(WEB)
    service["metadata"]["finalizers"].append(FINALIZER)
    service["status"] = {"loadBalancer": {"ingress": [{"hostname": "of-the-other"}]}}

    running.settle()

    assert_nothing_left(account)
    assert cluster.ingress == [{"hostname": "of-the-other"}]
    assert FINALIZER in service["metadata"]["finalizers"]


def test_the_option_is_told_to_the_controllers_as_one_more_class(account: AwsAccount) -> None:
    without, with_it = (Aws(account.config(serve_nlb_class=each)).load_balancer_classes for each in (False, True))

    assert with_it - without == {CLASS}
