"""Whose catalogue judges a Service: the cloud that the program shows, never the first of several."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.comparison import report
from cloud_stacks.outcome import Outcome, Resource, of_text
from cloud_stacks.serving import catalogues

SERVICE, COMPONENT = "kubernetes:core/v1:Service", "cloudcontroller:index:LoadBalancerService"
BETA = "service.beta.kubernetes.io/"
CLUSTER = "urn:pulumi:dev::shop::pulumi:providers:kubernetes::"
NLB = "cloud-controller/nlb"


def made(kind: str, inputs: Any, name: str = "web", cluster: str = "here", **more: Any) -> Resource:
    urn = f"urn:pulumi:dev::shop::{kind}::{name}"
    return Resource("create", urn, {}, inputs, provider=f"{CLUSTER}{cluster}", **more)


def service(of_class: str | None = None, *names: str, **more: Any) -> Resource:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], **({"loadBalancerClass": of_class} if of_class else {})}
    return made(SERVICE, {"metadata": {"annotations": {f"{BETA}{n}": "true" for n in names}}, "spec": spec}, **more)


def component(cloud: str) -> Resource:
    return made(COMPONENT, {"cloud": cloud})


def ccm(cloud: str, cluster: str = "here") -> Resource:
    container = {"name": "ccm", "image": "registry.example/cloud-controller:1", "args": ["run", f"--cloud={cloud}"]}
    return made(
        "kubernetes:apps/v1:DaemonSet", {"spec": {"template": {"spec": {"containers": [container]}}}}, cluster=cluster
    )


def by(cloud: str, of_class: str | None = NLB) -> Resource:
    return service(of_class, parent=component(cloud).urn)


AWS, CLB, DLB = "aws-load-balancer-internal", "alibaba-cloud-loadbalancer-id", "dlb-scheme"


@pytest.mark.parametrize(
    ("program", "cloud"),
    [
        pytest.param([component("aws"), by("aws")], "aws", id="component of AWS, a class of two clouds"),
        pytest.param([component("alicloud"), by("alicloud")], "alicloud", id="component of Alibaba Cloud, same class"),
        pytest.param([component("openstack"), by("openstack", None)], "openstack", id="component, no class"),
        pytest.param([ccm("aws"), service(NLB)], "aws", id="CCM, a class of two clouds"),
        pytest.param([ccm("alicloud", "there"), ccm("aws"), service(NLB)], "aws", id="CCM of the Service's cluster"),
        pytest.param([ccm("mycloud"), service()], "mycloud", id="CCM, no class"),
        pytest.param([service("mycloud.io/load-balancer")], "mycloud", id="class of one cloud"),
        pytest.param([service("alibabacloud.com/nlb")], "alicloud", id="class served by default"),
        pytest.param([service(NLB, AWS)], "aws", id="annotation, a class of two clouds"),
        pytest.param([service(None, CLB)], "alicloud", id="annotation, no class"),
        pytest.param([made("aws:s3/bucketV2:BucketV2", {}, "b"), service(NLB, CLB)], "alicloud", id="another's bucket"),
        pytest.param([service(NLB)], None, id="a class of two clouds alone"),
        pytest.param([service(NLB, AWS, CLB)], None, id="annotations of two clouds"),
        pytest.param([service(NLB, DLB)], None, id="annotation of neither cloud of the class"),
        pytest.param([ccm("aws"), ccm("alicloud"), service(NLB)], None, id="CCMs of two clouds"),
        pytest.param([ccm("mycloud"), service("example.com/other", DLB)], None, id="class that nobody here serves"),
        pytest.param([service(None, "azure-load-balancer-internal")], None, id="cloud without controllers here"),
        pytest.param([component("[unknown]"), by("[unknown]")], None, id="cloud that is not known yet"),
        pytest.param([service()], None, id="nothing"),
    ],
)
def test_the_cloud_is_the_one_that_the_program_shows(program: list[Resource], cloud: str | None) -> None:
    judging = catalogues(program).get(program[-1].urn)

    assert (judging.cloud if judging else None) == cloud


def test_an_annotation_that_is_removed_shows_the_cloud_too() -> None:
    before, after = service(None, DLB), service()

    [judging] = catalogues([replace(after, op="update", before=before.after)]).values()

    assert judging.cloud == "mycloud"


def test_an_internal_load_balancer_of_aws_is_not_refused_as_one_of_the_first_cloud_with_its_class() -> None:
    internal = {"metadata": {"annotations": {f"{BETA}aws-load-balancer-scheme": "internal"}}}
    shop = by("aws")
    shop = replace(shop, after={**shop.after, **internal})

    _, change = report(Outcome("dev", (component("aws"), shop), (), ())).changes

    assert [str(effect.kind) for effect in change.effects] == ["new address"]


def test_a_service_of_two_possible_clouds_is_reported_as_not_judged() -> None:
    [change] = report(Outcome("dev", (service(NLB, AWS, CLB),), (), ())).changes

    assert [str(effect.kind) for effect in change.effects] == ["not judged", "new address"]


def test_parent_and_cluster_are_read_from_what_an_engine_wrote() -> None:
    step = {
        "op": "create",
        "urn": by("aws").urn,
        "newState": {"parent": "the parent", "provider": f"{CLUSTER}here::id"},
    }

    [found] = of_text(json.dumps({"steps": [step]})).resources

    assert (found.parent, found.provider) == ("the parent", f"{CLUSTER}here")
