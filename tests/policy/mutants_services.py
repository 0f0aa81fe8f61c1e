"""Damages of Services in production stacks, one for each rule about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.policy.mutants import Mutant

SERVICE = "kubernetes:core/v1:Service"
_BETA = "service.beta.kubernetes.io/"
_DLB, _AWS, _NLB = f"{_BETA}dlb-", f"{_BETA}aws-load-balancer-", f"{_BETA}alibaba-cloud-loadbalancer-"


def _annotated(name: str, value: str) -> Callable[[Any], None]:
    return lambda properties: properties["metadata"].setdefault("annotations", {}).update({name: value})


def _spec(**fields: Any) -> Callable[[Any], None]:
    return lambda properties: properties["spec"].update(fields)


def _port(**fields: Any) -> Callable[[Any], None]:
    return lambda properties: properties["spec"]["ports"][0].update(fields)


def _one_zone(properties: Any) -> None:
    annotations = properties["metadata"]["annotations"]
    annotations[f"{_NLB}zone-maps"] = annotations[f"{_NLB}zone-maps"].partition(",")[0]
    annotations[f"{_NLB}cross-zone-enabled"] = "off"


def _kube_proxy_checked(properties: Any) -> None:
    _spec(externalTrafficPolicy="Local")(properties)
    _annotated(f"{_DLB}health-check-port", "10256")(properties)


def _many_ports(properties: Any) -> None:
    properties["spec"] |= {"ports": [{"port": number, "protocol": "TCP"} for number in range(1, 52)]}


def _as_the_other(properties: Any) -> None:
    properties["metadata"]["name"] = "echo"


def _shared(properties: Any) -> None:
    _annotated(f"{_DLB}id", "lb-0a")(properties)
    _spec(loadBalancerSourceRanges=[])(properties)
    _port(port=8080, protocol="TCP")(properties)


MUTANTS = [
    Mutant("lb-service-fit-annotations", "mycloud-prod", SERVICE, _annotated(f"{_DLB}listener-qps", "9"), name="web"),
    Mutant("lb-service-fit-annotations", "aws-prod", SERVICE, _annotated(f"{_AWS}scheme", "public"), name="web"),
    Mutant("lb-service-fit-annotations", "aws-staging", SERVICE, _annotated(f"{_AWS}intern", "true"), name="web"),
    Mutant("lb-service-fit-annotations", "alicloud-prod", SERVICE, _annotated(f"{_NLB}id", "web"), name="web"),
    Mutant(
        "lb-service-annotations-take-effect",
        "mycloud-ha",
        SERVICE,
        _annotated(f"{_AWS}cross-zone-load-balancing-enabled", "true"),
        name="web",
    ),
    Mutant("lb-service-have-one-owner", "mycloud-prod", SERVICE, _as_the_other, name="web"),
    Mutant("lb-service-share-without-clash", "mycloud-ha", SERVICE, _shared, every=True),
    Mutant("lb-service-limit-sources", "mycloud-prod", SERVICE, _spec(loadBalancerSourceRanges=["0.0.0.0/1"])),
    Mutant("lb-service-limit-sources", "aws-prod", SERVICE, _spec(loadBalancerSourceRanges=["2000::/3"])),
    Mutant(
        "lb-service-check-local-nodes",
        "mycloud-ha",
        SERVICE,
        _kube_proxy_checked,
    ),
    Mutant("lb-service-serve-node-zones", "alicloud-staging", SERVICE, _one_zone, name="web"),
    Mutant("lb-service-encrypt-https", "mycloud-prod", SERVICE, _port(port=443), name="web"),
    Mutant(
        "lb-service-protect-from-deletion",
        "aws-prod",
        SERVICE,
        _annotated(f"{_AWS}attributes", "deletion_protection.enabled=false"),
    ),
    Mutant(
        "lb-service-log-access",
        "aws-prod",
        SERVICE,
        _annotated(f"{_AWS}ssl-cert", "arn:aws:acm:eu-central-1:123456789012:certificate/0a"),
        name="web",
    ),
    # What no load balancer can have, the controller refuses too.
    Mutant(
        "lb-service-stay-within-quotas",
        "aws-prod",
        SERVICE,
        _many_ports,
        name="web",
        also=frozenset({"lb-service-fit-annotations"}),
    ),
    Mutant(
        "lb-service-have-one-owner",
        "aws-prod",
        "kubernetes:apps/v1:Deployment",
        lambda p: p["spec"]["template"]["spec"]["containers"][0]["args"].remove("--require-load-balancer-class"),
        name="cloud-controller-manager",
    ),
]
