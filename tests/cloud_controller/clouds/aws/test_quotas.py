"""The quotas that doctor judges: of what the service controller creates, counted over the whole region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.cloud import Quotas

if TYPE_CHECKING:
    from tests.cloud_controller.calls import Calls
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount


def used(account: AwsAccount) -> dict[str, int]:
    return {each.of: each.used or 0 for read in account.new_cloud().quotas(["service"]) for each in read()}


def test_aws_tells_its_quotas(account: AwsAccount) -> None:
    cloud = account.new_cloud()

    assert isinstance(cloud, Quotas)
    # moto's limits, and AWS's documented one of classic load balancers.
    assert [(each.of, each.limit) for read in cloud.quotas(["service"]) for each in read()] == [
        ("classic load balancers", 20),
        ("network load balancers", 20),
        ("target groups", 3000),
    ]


def test_what_everybody_in_the_region_made_is_counted(account: AwsAccount) -> None:
    before = used(account)

    account.elb.create_load_balancer(
        LoadBalancerName="theirs",
        Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 80, "InstanceProtocol": "TCP", "InstancePort": 80}],
        Subnets=[account.public_subnets[0]],
    )
    account.elbv2.create_load_balancer(Name="theirs", Type="network", Subnets=[account.public_subnets[0]])
    account.elbv2.create_target_group(Name="theirs", Protocol="TCP", Port=80, VpcId=account.vpc_id)

    assert used(account) == {of: count + 1 for of, count in before.items()}


def test_application_load_balancers_have_a_quota_of_their_own(account: AwsAccount) -> None:
    before = used(account)

    account.elbv2.create_load_balancer(Name="web", Type="application", Subnets=[*account.public_subnets])

    assert used(account) == before


def test_where_no_controller_makes_load_balancers_nothing_is_read(account: AwsAccount, calls: Calls) -> None:
    cloud = account.new_cloud()
    cloud.observe_calls(calls)

    assert [*cloud.quotas(["node", "route"])] == []
    assert calls.made == []
