"""Which subnets a load balancer is in: upstream's choice, and those that a Service names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import Facts, Subnet
from cloud_controller.clouds.aws.subnets import chosen
from tests.cloud_controller.clouds.aws.services import subnet

CONFIG = Config("prod-1")
OURS = {"kubernetes.io/cluster/prod-1": "shared"}
THEIRS = {"kubernetes.io/cluster/prod-2": "owned"}
FOR_ALL = {"kubernetes.io/role/elb": "1"}
INSIDE = {"kubernetes.io/role/internal-elb": "1"}


def ids(*subnets: Subnet, scheme: str = "internet-facing", named: list[str] | None = None) -> list[str]:
    return [each.id.removeprefix("subnet-") for each in chosen(Facts("vpc-1", subnets), CONFIG, scheme, named)]


def test_there_is_one_a_zone_in_the_order_of_zones() -> None:
    assert ids(subnet("c1"), subnet("a1"), subnet("b1")) == ["a1", "b1", "c1"]


def test_what_faces_the_internet_is_in_public_subnets_and_what_is_internal_in_any() -> None:
    present = (subnet("a1"), subnet("b1", public=False))

    assert ids(*present) == ["a1"]
    assert ids(*present, scheme="internal") == ["a1", "b1"]


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        (subnet("a1"), subnet("a2", tags=FOR_ALL), "a2"),
        (subnet("a1", tags=OURS), subnet("a2", tags=FOR_ALL), "a2"),
        (subnet("a1"), subnet("a2", tags=OURS), "a2"),
        (subnet("a1"), subnet("a2", tags={"KubernetesCluster": "prod-1"}), "a2"),
        (subnet("a1", tags=INSIDE), subnet("a2", tags=FOR_ALL), "a2"),
        (subnet("a1"), subnet("a2"), "a1"),
    ],
)
def test_of_two_in_a_zone_the_role_decides_then_the_cluster_then_the_id(
    first: Subnet, second: Subnet, best: str
) -> None:
    assert ids(first, second) == ids(second, first) == [best]


def test_the_role_of_internal_load_balancers_has_a_tag_of_its_own() -> None:
    assert ids(subnet("a1", tags=FOR_ALL), subnet("a2", tags=INSIDE), scheme="internal") == ["a2"]


def test_those_of_another_cluster_are_not_taken_but_those_of_nobody_are() -> None:
    assert ids(subnet("a1", tags=THEIRS), subnet("b1"), subnet("c1", tags=THEIRS | OURS)) == ["b1", "c1"]


def test_local_zones_are_left_out() -> None:
    local = replace(subnet("a1"), id="subnet-local", zone="us-east-1-bos-1a")

    assert ids(local, subnet("b1")) == ["b1"]


def test_where_nothing_is_tagged_for_us_the_one_of_the_cloud_config_serves() -> None:
    facts = Facts("vpc-1", (subnet("a1", tags=THEIRS), subnet("b1", tags=THEIRS)))

    assert [each.id for each in chosen(facts, Config("prod-1", subnet_id="subnet-b1"), "internal", None)] == [
        "subnet-b1"
    ]
    with pytest.raises(
        InvalidConfiguration, match=r"vpc-1 has no subnet that has the tag kubernetes.io/cluster/prod-1"
    ):
        chosen(facts, CONFIG, "internal", None)


def test_without_a_public_subnet_the_error_says_what_is_missing() -> None:
    with pytest.raises(InvalidConfiguration, match=r"no public subnet \(with a route to an internet gateway\)"):
        ids(subnet("a1", public=False))


def test_named_ones_are_taken_by_id_or_by_name_in_their_order_whatever_their_tags() -> None:
    present = (subnet("a1", tags=THEIRS, public=False), subnet("b1", tags={"Name": "edge-b"}), subnet("c1"))

    assert ids(*present, named=["edge-b", "subnet-a1"]) == ["b1", "a1"]


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        (["subnet-d1"], "no subnets in the VPC have the ID 'subnet-d1'"),
        (["edge"], "2 subnets in the VPC have the Name tag 'edge'"),
        (["subnet-a1", "subnet-a2"], "subnet-a1 and subnet-a2 are both in us-east-1a"),
    ],
)
def test_a_name_that_leads_to_none_or_several_is_refused(named: list[str], hint: str) -> None:
    present = (subnet("a1", tags={"Name": "edge"}), subnet("a2"), subnet("b1", tags={"Name": "edge"}))

    with pytest.raises(InvalidConfiguration, match=hint):
        ids(*present, named=named)
