"""Which resources of other people a Service on AWS names, as the administrator's list sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.facts import BuildFacts, SecurityGroup
from cloud_controller.clouds.aws.named import named_ids
from cloud_controller.kube import Object
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Owner
from cloud_controller.load_balancers.nameable import Nameable
from tests.cloud_controller.clouds.aws.services import (
    CERTIFICATE,
    CONFIG,
    VPC,
    backends,
    built,
    classic,
    named,
    nlb,
    subnet,
)

LOGS = {"access_log_enabled": True, "access_log_s3_bucket_name": "logs", "access_log_s3_bucket_prefix": "shop/web"}


def names(service: Object, **more: Any) -> set[tuple[str, str]]:
    return {(each.kind, each.names[0]) for each in built(service, **more).named}


def test_a_service_that_names_nothing_needs_no_permission() -> None:
    assert names(nlb()) == names(classic()) == set()


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"subnets": ("subnet-a1", "subnet-b1")}, {("subnet", "subnet-a1"), ("subnet", "subnet-b1")}),
        ({"security_groups": ("sg-1",)}, {("security-group", "sg-1")}),
        ({"extra_security_groups": ("sg-1",)}, {("security-group", "sg-1")}),
        ({"security_group_prefix_lists": ("pl-1",)}, {("prefix-list", "pl-1")}),
        ({"ssl_cert": (CERTIFICATE,)}, {("certificate", CERTIFICATE)}),
        (LOGS, {("log-bucket", "logs"), ("log-prefix", "shop/web")}),
        (
            {"access_log_enabled": True, "access_log_s3_bucket_name": "logs"},
            {("log-bucket", "logs"), ("log-prefix", "")},
        ),
    ],
)
def test_what_annotations_name_is_found(arguments: dict[str, Any], found: set[tuple[str, str]]) -> None:
    assert names(nlb(named(**arguments))) == names(classic(named(**arguments))) == found


def test_elastic_addresses_are_found() -> None:
    found = names(nlb(named(eip_allocations=("eipalloc-1", "eipalloc-2", "eipalloc-3"))))

    assert found == {("elastic-ip", f"eipalloc-{number}") for number in (1, 2, 3)}


def test_a_bucket_that_is_named_as_an_attribute_is_found_too() -> None:
    words = ("access_logs.s3.enabled=true", "access_logs.s3.bucket=theirs")

    assert names(nlb(named(attributes=words))) == {("log-bucket", "theirs"), ("log-prefix", "")}


def refused(service: Object, listed: str = "", **more: Any) -> str | None:
    try:
        Nameable.parse(listed.split(",")).require(built(service, **more).named)
    except InvalidConfiguration as error:
        return str(error)
    return None


def test_a_subnet_that_carries_another_clusters_tag_alone_is_refused() -> None:
    theirs = subnet("a1", tags={"kubernetes.io/cluster/c-2": "owned", "Name": "edge"})
    facts = replace(VPC, subnets=(theirs, subnet("b1")))

    assert "has the tag of cluster c-2" in str(refused(nlb(named(subnets=("edge",))), facts=facts))
    assert refused(nlb(named(subnets=("edge",))), "subnet=subnet-a1", facts=facts) is None
    assert refused(nlb(named(subnets=("edge",))), "subnet=tag:Name=edge", facts=facts) is None
    both = replace(theirs, tags={**theirs.tags, CONFIG.cluster_tag: "shared"})
    assert refused(nlb(named(subnets=("edge",))), facts=replace(VPC, subnets=(both,))) is None


def test_a_group_of_another_services_load_balancer_is_refused() -> None:
    other, own = Owner("prod-1", "uid-2", "bank", "api"), Owner("prod-1", "uid-web", "default", "web")
    groups = tuple(SecurityGroup(f"sg-{n}", f"g{n}", each.tags) for n, each in enumerate([other, own]))
    facts = replace(VPC, groups=groups)

    told = refused(classic(named(extra_security_groups=("sg-0",))), facts=facts)

    assert "belongs to the load balancer of Service bank/api" in str(told)
    assert refused(classic(named(extra_security_groups=("sg-1",))), facts=facts) is None


@pytest.mark.parametrize(
    ("tags", "whose"),
    [
        ({"kubernetes.io/cluster/c-2": "owned"}, "has the tag of cluster c-2"),
        ({"kubernetes.io/cluster": "c-2"}, "has the tag of cluster c-2"),
        ({"kubernetes.io/cluster/c-2": "owned", CONFIG.cluster_tag: "shared"}, None),
        ({"Team": "shop"}, None),
    ],
)
def test_an_elastic_address_with_another_clusters_tag_alone_is_refused(tags: dict[str, str], whose: str | None) -> None:
    service = nlb(named(eip_allocations=("eipalloc-1", "eipalloc-2", "eipalloc-3")))
    known = Fact(BuildFacts(VPC, address_tags={"eipalloc-2": tags}))

    found = {each.names[0]: each.whose for each in AwsBuilder(CONFIG).build(service, backends(), known).named}

    assert found == {"eipalloc-1": None, "eipalloc-2": whose, "eipalloc-3": None}


def test_groups_are_found_before_the_build_in_valid_annotations_only() -> None:
    names = {"security_groups": ("sg-1", "sg-*", "edge"), "extra_security_groups": ("sg-2",)}

    assert {*named_ids(nlb(named(**names)), "security-group")} == {"sg-1", "sg-2"}
