"""UDP beside IPv6: AWS takes both only on a load balancer that has a range of IPv6 addresses to send from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import LeavingZones, Refusal, Refusing
from tests.cloud_controller.clouds.aws.in_the_account import listeners, load_balancers, subnets_of, with_ipv6
from tests.cloud_controller.clouds.aws.services import in_subnets, named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served

UDP = port(53, "UDP")
ON = named(enable_prefix_for_ipv6_source_nat="on")
BOTH_FAMILIES: dict[str, Any] = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
IPV4: dict[str, Any] = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}


@pytest.fixture
def cluster(account: AwsAccount, cluster: Cluster) -> Cluster:
    """A cluster whose public subnets have IPv6 ranges."""
    with_ipv6(account, *account.public_subnets)
    return cluster


@pytest.fixture
def as_documented(account: AwsAccount) -> Refusing:
    """IPv6 beside UDP needs the range, which needs IPv6, which needs subnets that have it."""
    subnets = account.ec2.describe_subnets()["Subnets"]
    without_ipv6 = {each["SubnetId"] for each in subnets if not each["Ipv6CidrBlockAssociationSet"]}

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
            if family == "dualstack" and without_ipv6.intersection(params.get("Subnets", ())):
                return "InvalidConfigurationRequest", "dualstack needs subnets with IPv6"
        return None

    return Refusing(refuses)


def observed(account: AwsAccount) -> tuple[str, str, set[str]]:
    (lb,) = load_balancers(account)
    protocols = {each["Protocol"] for each in listeners(account, lb).values()}
    return lb["IpAddressType"], lb.get("EnablePrefixForIpv6SourceNat", "off"), protocols


def test_udp_is_served_over_both_families_where_the_service_asks_for_the_range(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    cluster.put(nlb(ON, UDP, **BOTH_FAMILIES))

    Running(account, cluster, wrap=as_documented).settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    second = Running(account, cluster).settle()
    assert second.calls.writes == {}, "another process finds it as it should be"


def test_a_load_balancer_that_serves_udp_gets_ipv6_and_the_range_in_one_call(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    running = served(account, cluster, nlb({}, UDP), wrap=as_documented)

    changed(cluster, ON, **BOTH_FAMILIES)
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    assert running.calls.of("elbv2 SetSubnets") == 1
    assert running.calls.of("elbv2 DeleteListener") == 0, "UDP is never cut off"


def test_it_goes_back_to_ipv4_alone_in_one_call(account: AwsAccount, cluster: Cluster, as_documented: Refusing) -> None:
    running = served(account, cluster, nlb(ON, UDP, **BOTH_FAMILIES), wrap=as_documented)

    changed(cluster, **IPV4)
    running.settle()

    assert observed(account) == ("ipv4", "off", {"UDP"})
    assert running.calls.of("elbv2 SetSubnets") == 1


def test_a_subnet_less_leaves_the_range_on(account: AwsAccount, cluster: Cluster, as_documented: Refusing) -> None:
    running = served(account, cluster, nlb(ON, UDP, **BOTH_FAMILIES), wrap=as_documented)

    changed(cluster, named(subnets=account.public_subnets[:2]))
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    (lb,) = load_balancers(account)
    assert len(lb["AvailabilityZones"]) == 2


def test_without_the_range_ipv6_stays_once_udp_has_gone(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    running = served(account, cluster, nlb(ON, UDP, port(80), **BOTH_FAMILIES), wrap=as_documented)

    for name in ON:
        del cluster.service(WEB)["metadata"]["annotations"][name]
    changed(cluster, ports=[port(80)])
    running.settle()

    assert observed(account) == ("dualstack", "off", {"TCP"})


def test_the_range_comes_with_other_subnets_of_which_the_old_ones_have_no_ipv6(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    running = served(account, cluster, nlb(in_subnets(*account.private_subnets), UDP), wrap=as_documented)

    changed(cluster, ON | in_subnets(*account.public_subnets), **BOTH_FAMILIES)
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    assert subnets_of(account) == {*account.public_subnets}


def test_the_range_goes_with_other_subnets_of_which_the_new_ones_have_no_ipv6(
    account: AwsAccount, cluster: Cluster, as_documented: Refusing
) -> None:
    running = served(
        account, cluster, nlb(ON | in_subnets(*account.public_subnets[:2]), UDP, **BOTH_FAMILIES), wrap=as_documented
    )

    changed(cluster, in_subnets(*account.private_subnets), **IPV4)
    running.settle()

    assert observed(account) == ("ipv4", "off", {"UDP"})
    assert subnets_of(account) == {*account.private_subnets}


def test_another_subnet_of_a_zone_is_waited_for(account: AwsAccount, cluster: Cluster) -> None:
    leaving_zones = LeavingZones(account)
    before, after = account.public_subnets[:2], (second_of_the_first_zone(account), account.public_subnets[1])
    running = served(account, cluster, nlb(ON | in_subnets(*before), UDP, **BOTH_FAMILIES), wrap=leaving_zones)

    changed(cluster, in_subnets(*after))
    running.settle()
    assert cluster.reasons[-1] == "Waiting"
    leaving_zones.free()
    running.settle()

    assert observed(account) == ("dualstack", "on", {"UDP"})
    assert subnets_of(account) == {*after}
    assert "SyncLoadBalancerFailed" not in cluster.reasons


def second_of_the_first_zone(account: AwsAccount) -> str:
    """A subnet with IPv6 beside the first public one."""
    private = account.private_subnets[0]
    block = account.ec2.describe_subnets(SubnetIds=[account.public_subnets[0]])["Subnets"][0]
    of_ipv6 = block["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].replace("00::/64", "0f::/64")
    account.ec2.associate_subnet_cidr_block(SubnetId=private, Ipv6CidrBlock=of_ipv6)
    return private
