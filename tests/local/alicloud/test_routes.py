"""Machines and routes: what a controller of nodes and routes reads and changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.alicloud import machines
from tests.local.alicloud.caller import Refused, call
from tests.local.alicloud.conftest import Site


def entry(site: Site, number: int, hop: str | None = None) -> dict[str, str]:
    return {
        "RouteTableId": site.table,
        "DstCidrBlock": f"10.0.{number}.0/24",
        "NextHop": hop or site.machines[0],
        "NextHopType": "Instance",
    }


def listed(site: Site, **filters: Any) -> list[str]:
    answer = call(site.cloud, "vpc.DescribeRouteEntryList", RouteTableId=site.table, MaxResult=500, **filters)
    return [each["DestinationCidrBlock"] for each in answer["RouteEntrys"]["RouteEntry"]]


def test_more_than_a_hundred_ids_are_refused(site: Site) -> None:
    with pytest.raises(Refused) as refused:
        call(site.cloud, "ecs.DescribeInstances", InstanceIds=json.dumps(["i-1"] * 101))

    assert refused.value.code == "InvalidInstanceIds.ExceedLimit"


def test_pages_come_by_token_or_by_number(site: Site) -> None:
    first = call(site.cloud, "ecs.DescribeInstances", MaxResults=2)
    second = call(site.cloud, "ecs.DescribeInstances", MaxResults=2, NextToken=first["NextToken"])
    numbered = call(site.cloud, "ecs.DescribeInstances", PageSize=2, PageNumber=2)

    assert len(first["Instances"]["Instance"]) == 2
    assert "NextToken" not in second
    assert second["Instances"] == numbered["Instances"]
    assert (numbered["TotalCount"], numbered["PageNumber"], numbered["PageSize"]) == (3, 2, 2)
    for wrong in ({"MaxResults": 101}, {"NextToken": "%"}, {"PageNumber": 0}, {"PageNumber": 1, "MaxResults": 5}):
        with pytest.raises(Refused, match=r"InvalidMaxResults|InvalidNextToken|InvalidPageNumber|InvalidParameter"):
            call(site.cloud, "ecs.DescribeInstances", **wrong)


def test_an_instance_has_its_elastic_ip_and_further_interfaces(site: Site) -> None:
    with site.cloud.changing() as account:
        eip = machines.add_eip(account, instance=site.machines[0], kind="EcsInstance")
        subnet = site.vswitches["cn-hangzhou-h"]
        eni = machines.add_eni(account, subnet, instance=site.machines[0], ipv6=["2001:db8::1"])

    (found,) = call(site.cloud, "ecs.DescribeInstances", InstanceIds=json.dumps(site.machines[:1]))["Instances"][
        "Instance"
    ]
    (shown,) = call(site.cloud, "vpc.DescribeEipAddresses", AllocationId=eip)["EipAddresses"]["EipAddress"]

    assert found["EipAddress"]["IpAddress"] == shown["IpAddress"]
    assert [each["Type"] for each in found["NetworkInterfaces"]["NetworkInterface"]] == ["Primary", "Secondary"]
    (by_address,) = call(site.cloud, "ecs.DescribeNetworkInterfaces", Ipv6Address=["2001:db8::1"])[
        "NetworkInterfaceSets"
    ]["NetworkInterfaceSet"]
    assert by_address["NetworkInterfaceId"] == eni


def test_a_table_has_at_most_48_routes_and_a_call_50(site: Site) -> None:
    answer = call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[entry(site, number) for number in range(50)])

    assert (answer["SuccessCount"], answer["FailedCount"]) == (48, 2)
    assert {each["FailedCode"] for each in answer["FailedRouteEntries"]} == {"QuotaExceeded"}
    with pytest.raises(Refused) as refused:
        call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[entry(site, number) for number in range(51)])
    assert refused.value.code == "InvalidParameter.RouteEntries"


def test_a_route_within_a_vswitch_or_to_a_malformed_block_is_refused(site: Site) -> None:
    for block, code in (("192.168.0.0/28", "InvalidCidrBlock"), ("10.0.0.1/24", "InvalidCidrBlock.Malformed")):
        answer = call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[{**entry(site, 1), "DstCidrBlock": block}])
        assert answer["FailedRouteEntries"][0]["FailedCode"] == code


def test_a_route_outlives_its_machine(site: Site) -> None:
    call(site.cloud, "vpc.CreateRouteEntries", RouteEntries=[entry(site, 1)])

    with site.cloud.changing() as account:
        machines.remove_instance(account, site.machines[0])

    assert listed(site, RouteEntryType="Custom") == ["10.0.1.0/24"]
    assert call(site.cloud, "ecs.DescribeInstances", InstanceIds=json.dumps(site.machines[:1]))["TotalCount"] == 0


def test_the_quota_of_routes_is_told_by_the_quota_center(site: Site) -> None:
    site.cloud.world.quotas.custom_routes = 7

    answer = call(site.cloud, "quotas.GetProductQuota", ProductCode="vpc", QuotaActionCode="vpc_quota_route_entrys_num")

    assert answer["Quota"]["TotalQuota"] == 7
    with pytest.raises(Refused, match="does not know the quota"):
        call(site.cloud, "quotas.GetProductQuota", ProductCode="ecs", QuotaActionCode="q")
