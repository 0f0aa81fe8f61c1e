"""UDP beside IPv6: AWS takes both only on a load balancer that has a range of IPv6 addresses to send from."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.aws.annotations import CATALOGUE
from tests.cloud_controller.clouds.aws import as_aws
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.nlb_world import (
    WEB,
    Refusal,
    Refusing,
    Running,
    listeners,
    load_balancers,
    nlb,
    port,
    put_nodes,
)
from tests.cloud_controller.clouds.mycloud.service_world import Cluster

ON = CATALOGUE.annotations({"enable_prefix_for_ipv6_source_nat": "on"})
BOTH_FAMILIES: dict[str, Any] = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}


@pytest.fixture
def cluster(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    as_aws.mend(monkeypatch)
    made = Cluster()
    put_nodes(made, account.launch(1))
    vpc = account.ec2.describe_vpcs(VpcIds=[account.vpc_id])["Vpcs"][0]
    prefix = vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].removesuffix("00::/56")
    for number, subnet in enumerate(account.public_subnets):
        account.ec2.associate_subnet_cidr_block(SubnetId=subnet, Ipv6CidrBlock=f"{prefix}{number:02x}::/64")
    return made


@pytest.fixture
def as_documented(account: AwsAccount) -> Refusing:
    """IPv6 beside UDP needs the range, which needs IPv6."""

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        present = load_balancers(account)
        family = params.get("IpAddressType") or (present[0]["IpAddressType"] if present else "ipv4")
        # A call that does not name it switches it off.
        given = params.get("EnablePrefixForIpv6SourceNat", "off")
        kept = present[0].get("EnablePrefixForIpv6SourceNat", "off") if present else "off"
        range_ = given if operation in ("CreateLoadBalancer", "SetSubnets") else kept
        udp = any("UDP" in each["Protocol"] for lb in present for each in listeners(account, lb).values())
        udp = udp or (operation == "CreateListener" and "UDP" in params["Protocol"])
        if operation in ("CreateLoadBalancer", "SetSubnets", "SetIpAddressType", "CreateListener"):
            if range_ == "on" and family != "dualstack":
                return "InvalidConfigurationRequest", "a source NAT prefix needs dualstack"
            if udp and family == "dualstack" and range_ != "on":
                return "InvalidConfigurationRequest", "dualstack with UDP listeners needs source NAT prefixes"
        return None

    return Refusing(refuses)


def observed(account: AwsAccount) -> tuple[str, str, set[str]]:
    (lb,) = load_balancers(account)
    protocols = {each["Protocol"] for each in listeners(account, lb).values()}
    return lb["IpAddressType"], lb.get("EnablePrefixForIpv6SourceNat", "off"), protocols


def test_udp_is_served_over_both_families_where_the_service_asks_for_the_range(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    cluster.put(nlb("web", port(53, 30053, "UDP"), annotations=ON, **BOTH_FAMILIES))

    Running(account, cluster, wrap=as_documented).settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    second = Running(account, cluster)
    second.settle()
    assert second.calls.writes == {}, "another process finds it as it should be"


def test_a_load_balancer_that_serves_udp_gets_ipv6_and_the_range_in_one_call(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    cluster.put(nlb("web", port(53, 30053, "UDP")))
    running = Running(account, cluster, wrap=as_documented)
    running.settle()
    running.calls.clear()

    cluster.service(WEB)["metadata"]["annotations"] |= ON
    cluster.service(WEB)["spec"] |= BOTH_FAMILIES
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    assert running.calls.of("elbv2 SetSubnets") == 1
    assert running.calls.of("elbv2 DeleteListener") == 0, "UDP is never cut off"


def test_it_goes_back_to_ipv4_alone_in_one_call(account: AwsAccount, cluster: Cluster, as_documented: Refusing) -> None:
    cluster.put(nlb("web", port(53, 30053, "UDP"), annotations=ON, **BOTH_FAMILIES))
    running = Running(account, cluster, wrap=as_documented)
    running.settle()
    running.calls.clear()

    cluster.service(WEB)["spec"] |= {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    running.settle()

    assert observed(account) == ("ipv4", "off", {"UDP"})
    assert running.calls.of("elbv2 SetSubnets") == 1


def test_a_subnet_less_leaves_the_range_on(account: AwsAccount, cluster: Cluster, as_documented: Refusing) -> None:
    cluster.put(nlb("web", port(53, 30053, "UDP"), annotations=ON, **BOTH_FAMILIES))
    running = Running(account, cluster, wrap=as_documented)
    running.settle()

    fewer = CATALOGUE.annotations({"subnets": account.public_subnets[:2]})
    cluster.service(WEB)["metadata"]["annotations"] |= fewer
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    (lb,) = load_balancers(account)
    assert len(lb["AvailabilityZones"]) == 2
