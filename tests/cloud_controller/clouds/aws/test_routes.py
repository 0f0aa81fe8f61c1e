"""Routes to pods in a route table of AWS: one call to read, machines opened, what is there already left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    InvalidConfiguration,
    NotFound,
    Route,
)
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.instances import AwsInstances
from cloud_controller.clouds.aws.routes import AwsRoutes
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.retries import NeverReached
from tests.cloud_controller.clouds.aws.scripted_aws import ec2_answer, ec2_error, scripted

if TYPE_CHECKING:
    from tests.cloud_controller.calls import Calls
    from tests.cloud_controller.clouds.aws.conftest import AwsAccount

POD_CIDRS = ("100.96.0.0/24", "100.96.1.0/24", "100.96.2.0/24")


def routes(api: Api) -> AwsRoutes:
    return AwsRoutes(api, AwsInstances(api, lambda: "vpc-1", Cache()), ConcurrentCalls(4))


def launched(account: AwsAccount, count: int = 1) -> list[str]:
    return [machine["InstanceId"] for machine in account.launch(count)]


def in_table(account: AwsAccount, table: str | None = None) -> list[dict[str, Any]]:
    (found,) = account.ec2.describe_route_tables(RouteTableIds=[table or account.route_table_id])["RouteTables"]
    return [{**route} for route in found["Routes"]]


def told(route: str) -> list[Route]:
    """What a table with this one route of EC2's XML comes to."""
    table = f"<item><routeTableId>rtb-1</routeTableId><routeSet><item>{route}</item></routeSet></item>"
    with scripted([ec2_answer(f"<routeTableSet>{table}</routeTableSet>")]) as aws:
        return [*routes(aws.api()).list()]


# ------------------------------------------------------------------------------------------------------------- read


def test_the_table_of_the_config_needs_no_tag(account: AwsAccount) -> None:
    table = account.ec2.create_route_table(VpcId=account.vpc_id)["RouteTable"]["RouteTableId"]
    (machine,) = launched(account)

    table_routes = routes(account.api(route_table_id=table))
    assert table_routes.create([Route(POD_CIDRS[0], machine)]) == []

    assert POD_CIDRS[0] in {route.get("DestinationCidrBlock") for route in in_table(account, table)}
    assert POD_CIDRS[0] not in {route.get("DestinationCidrBlock") for route in in_table(account)}


def test_a_route_to_a_machine_leads_to_its_id_and_whose_it_is_the_plan_judges() -> None:
    route = "<destinationCidrBlock>100.96.0.0/24</destinationCidrBlock><instanceId>i-1</instanceId>"

    (found,) = told(f"{route}<networkInterfaceId>eni-1</networkInterfaceId><state>active</state>")

    assert found == Route("100.96.0.0/24", "i-1", blackhole=False, owned=None)


def test_a_route_of_ipv6_has_its_range() -> None:
    cidr = "<destinationIpv6CidrBlock>fd00:1::/64</destinationIpv6CidrBlock>"

    (found,) = told(f"{cidr}<instanceId>i-1</instanceId><state>active</state>")

    assert found.destination_cidr == "fd00:1::/64"


def test_a_blackhole_that_still_names_its_machine_is_judged_by_it() -> None:
    (found,) = told(
        "<destinationCidrBlock>100.96.0.0/24</destinationCidrBlock><instanceId>i-1</instanceId>"
        "<networkInterfaceId>eni-1</networkInterfaceId><state>blackhole</state>"
    )

    assert found == Route("100.96.0.0/24", "i-1", blackhole=True, owned=None)


def test_a_blackhole_of_which_only_the_interface_is_left_tells_no_machine() -> None:
    (found,) = told(
        "<destinationCidrBlock>100.96.0.0/24</destinationCidrBlock>"
        "<networkInterfaceId>eni-1</networkInterfaceId><state>blackhole</state>"
    )

    assert found == Route("100.96.0.0/24", "", blackhole=True, owned=None)


@pytest.mark.parametrize(
    "target",
    [
        "<gatewayId>igw-1</gatewayId>",
        "<natGatewayId>nat-1</natGatewayId>",
        "<vpcPeeringConnectionId>pcx-1</vpcPeeringConnectionId>",
        "<transitGatewayId>tgw-1</transitGatewayId>",
    ],
)
@pytest.mark.parametrize("state", ["active", "blackhole"])
def test_a_route_to_anything_else_is_foreign(target: str, state: str) -> None:
    (found,) = told(f"<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock>{target}<state>{state}</state>")

    assert not found.target_instance.startswith("i-")
    assert found.owned is False


def test_no_table_or_two_of_them_are_told_with_what_to_do(account: AwsAccount) -> None:
    with pytest.raises(InvalidConfiguration, match=r"RouteTableID: not set, and no route table has"):
        routes(account.api(cluster_id="another")).list()
    tags = [{"Key": "kubernetes.io/cluster/prod-1", "Value": "owned"}]
    second = account.ec2.create_route_table(VpcId=account.vpc_id)["RouteTable"]["RouteTableId"]
    account.ec2.create_tags(Resources=[second], Tags=tags)  # type: ignore[arg-type]

    with pytest.raises(InvalidConfiguration, match=rf"RouteTableID: not set, and .*{second}.* have the tag"):
        routes(account.api()).list()


def test_a_table_that_does_not_exist_is_a_fault_of_the_config(account: AwsAccount) -> None:
    with pytest.raises(InvalidConfiguration, match="RouteTableID: route table rtb-0123456789abcdef0 does not exist"):
        routes(account.api(route_table_id="rtb-0123456789abcdef0")).list()


# ----------------------------------------------------------------------------------------------------------- create


def test_a_route_of_ipv6_is_written_as_one(account: AwsAccount) -> None:
    (machine,) = launched(account)

    assert routes(account.api()).create([Route("fd00:1::/64", machine)]) == []

    assert "fd00:1::/64" in {route.get("DestinationIpv6CidrBlock") for route in in_table(account)}


def test_a_machine_that_passes_on_already_is_not_touched(account: AwsAccount, calls: Calls) -> None:
    (machine,) = launched(account)
    api = account.api()
    table = routes(api)
    table.create([Route(POD_CIDRS[0], machine)])
    api.observer = calls

    table.create([Route(POD_CIDRS[1], machine)])

    assert calls.made == ["ec2 CreateRoute"]


def test_each_new_route_costs_its_own_writes_and_the_batch_one_look(account: AwsAccount, calls: Calls) -> None:
    machines = launched(account, 3)
    api = account.api()
    table = routes(api)
    table.list()
    api.observer = calls

    table.create([Route(cidr, machine) for cidr, machine in zip(POD_CIDRS, machines, strict=True)])

    expected = {"ec2 DescribeInstances": 1, "ec2 ModifyInstanceAttribute": 3, "ec2 CreateRoute": 3}
    assert calls.counts == expected


def test_a_machine_that_is_gone_fails_its_route_alone(account: AwsAccount) -> None:
    (machine,) = launched(account)
    gone = "i-0123456789abcdef0"

    failures = routes(account.api()).create([Route(POD_CIDRS[0], gone), Route(POD_CIDRS[1], machine)])

    assert [failure.route.target_instance for failure in failures] == [gone]
    assert isinstance(failures[0].error, NotFound)


# ----------------------------------------------------------------------------------------------------------- delete


def test_a_table_that_is_gone_is_no_success() -> None:
    with scripted([ec2_error("InvalidRouteTableID.NotFound")]) as aws:
        (failure,) = routes(aws.api(route_table_id="rtb-1")).delete([Route(POD_CIDRS[0], "i-1")])

    assert isinstance(failure.error, CloudError)


# ------------------------------------------------------------------------------------------------------------ quota


def test_the_quota_is_the_accounts_own(account: AwsAccount, calls: Calls) -> None:
    api = account.api()
    api.observer = calls

    assert routes(api).quota() == 50
    assert calls.made == ["service-quotas GetServiceQuota"]


def test_where_pods_have_addresses_of_both_families_each_has_the_quota(account: AwsAccount) -> None:
    (machine,) = launched(account)
    table = routes(account.api())
    table.create([Route(POD_CIDRS[0], machine), Route("fd00:1::/64", machine)])

    table.list()

    assert table.quota() == 100


@pytest.mark.parametrize("error", [AccessDenied("no"), NeverReached("no way"), NotFound("not there")])
def test_a_quota_that_is_not_told_keeps_no_route_out(monkeypatch: pytest.MonkeyPatch, error: CloudError) -> None:
    def refused(*_args: object, **_params: object) -> dict[str, Any]:
        raise error

    api = Api(Config("c"))
    monkeypatch.setattr(api, "call", refused)

    assert routes(api).quota() is None
