"""The facts of a VPC: read in one batch, kept for a while, and true to what this process changes."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.facts import Facts, SecurityGroup, Subnet
from cloud_controller.clouds.aws.vpc_state import LIFETIME, VpcState, read_facts
from cloud_controller.clouds.common.cache import Cache
from tests.clock import Clock
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, AwsAccount, tag_list

BATCH = {"ec2 DescribeSubnets": 1, "ec2 DescribeRouteTables": 1, "ec2 DescribeSecurityGroups": 1}


def vpc_state(account: AwsAccount, calls: Calls, clock: Clock | None = None, vpc_id: str | None = None) -> VpcState:
    api = account.api()
    api.observer = calls
    return VpcState(api, CLUSTER_TAG, vpc_id or account.vpc_id, Cache(clock or Clock(1000.0)))


def test_one_batch_of_three_calls_tells_everything(account: AwsAccount, calls: Calls) -> None:
    facts = vpc_state(account, calls).facts()

    assert calls.counts == BATCH
    assert facts.vpc_id == account.vpc_id
    assert {subnet.id for subnet in facts.subnets} == {*account.public_subnets, *account.private_subnets}
    assert [group.id for group in facts.groups] == [account.node_group_id]


def test_a_subnet_is_public_if_its_own_route_table_or_else_the_main_one_leads_to_an_internet_gateway(
    account: AwsAccount, calls: Calls
) -> None:
    facts = vpc_state(account, calls).facts()

    assert {subnet.id for subnet in facts.subnets if subnet.public} == set(account.public_subnets)


def test_a_subnet_tells_zone_range_and_tags(account: AwsAccount, calls: Calls) -> None:
    facts = vpc_state(account, calls).facts()

    found = {subnet.id: subnet for subnet in facts.subnets}[account.public_subnets[1]]
    assert (found.zone, found.cidr, found.ipv6_cidr) == ("eu-central-1b", "10.0.1.0/24", None)
    assert found.tags == {CLUSTER_TAG: "shared", "kubernetes.io/role/elb": "1"}


def test_a_subnet_tells_its_ipv6_range(account: AwsAccount, calls: Calls) -> None:
    vpc = account.ec2.describe_vpcs(VpcIds=[account.vpc_id])["Vpcs"][0]
    cidr = vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].replace("/56", "/64")
    account.ec2.associate_subnet_cidr_block(SubnetId=account.public_subnets[0], Ipv6CidrBlock=cidr)

    facts = vpc_state(account, calls).facts()

    assert [subnet.ipv6_cidr for subnet in facts.subnets if subnet.ipv6_cidr] == [cidr]


@pytest.mark.parametrize(
    ("zone", "regional"),
    [
        ("us-east-1a", True),
        ("us-gov-west-1b", True),
        ("cn-northwest-1c", True),
        ("us-west-2-lax-1a", False),
        ("us-east-1-wl1-bos-wlz-1", False),
    ],
)
def test_local_and_wavelength_zones_are_told_from_those_of_the_region(zone: str, regional: bool) -> None:
    assert Subnet("subnet-1", zone, "10.0.0.0/24").in_regional_zone is regional


def test_the_vpc_is_found_by_the_tagged_subnets_once(account: AwsAccount, calls: Calls) -> None:
    api = account.api()
    api.observer = calls
    found = VpcState(api, CLUSTER_TAG, None, Cache())

    assert found.facts().vpc_id == account.vpc_id
    found.facts(max_age=0)

    assert calls.counts == {**dict.fromkeys(BATCH, 2), "ec2 DescribeSubnets": 3}


def test_without_a_tagged_subnet_the_config_must_name_the_vpc(account: AwsAccount) -> None:
    api = account.api()

    with pytest.raises(InvalidConfiguration, match=r"\[Global\] VPC: not set, and no subnet has the tag"):
        VpcState(api, "kubernetes.io/cluster/another", None, Cache()).facts()


def test_with_tagged_subnets_of_two_vpcs_the_config_must_name_one(account: AwsAccount) -> None:
    other = account.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = account.ec2.create_subnet(VpcId=other, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    account.ec2.create_tags(Resources=[subnet], Tags=tag_list({CLUSTER_TAG: "shared"}))

    with pytest.raises(InvalidConfiguration, match=f"(?=.*{other})(?=.*{account.vpc_id})"):
        VpcState(account.api(), CLUSTER_TAG, None, Cache()).facts()


def test_facts_are_kept_for_their_lifetime(account: AwsAccount, calls: Calls) -> None:
    clock = Clock(1000.0)
    kept = vpc_state(account, calls, clock)
    kept.facts()
    clock.now += LIFETIME

    kept.facts()
    assert calls.counts == BATCH

    clock.now += 1
    kept.facts()
    assert calls.counts == dict.fromkeys(BATCH, 2)


def test_own_changes_are_known_without_a_call(account: AwsAccount, calls: Calls) -> None:
    kept = vpc_state(account, calls)
    kept.facts()

    kept.changed("sg-new", SecurityGroup("sg-new", "new"))
    kept.changed(account.node_group_id, None)

    assert [group.id for group in kept.facts().groups] == ["sg-new"]
    assert calls.counts == BATCH


def test_what_was_just_changed_outlives_a_list_that_lags_and_takes_long(
    account: AwsAccount, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(1000.0)
    kept = vpc_state(account, calls, clock)
    kept.changed("sg-new", SecurityGroup("sg-new", "new"))

    def slow(*asked: Any) -> Facts:
        clock.now += 30
        return read_facts(*asked)

    monkeypatch.setattr("cloud_controller.clouds.aws.vpc_state.read_facts", slow)
    clock.now += 45

    assert "sg-new" in [group.id for group in kept.facts().groups]


def test_groups_of_machines_are_told_from_those_of_load_balancers(account: AwsAccount, calls: Calls) -> None:
    for name, tags in (
        ("k8s-elb-a0123456789", {CLUSTER_TAG: "owned"}),
        ("k8s-default-web-0123456789", {CLUSTER_TAG: "owned", "kubernetes.io/service-uid": "uid"}),
    ):
        account.ec2.create_security_group(
            GroupName=name,
            Description="of a load balancer",
            VpcId=account.vpc_id,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list(tags)}],
        )

    facts = vpc_state(account, calls).facts()

    assert len(facts.groups) == 3
    assert [group.id for group in facts.node_groups] == [account.node_group_id]
