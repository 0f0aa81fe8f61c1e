"""What AWS refuses of network load balancers, and moto never."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import InvalidConfiguration, NotFound
from cloud_controller.load_balancers.model import LoadBalancerState
from cloud_controller.load_balancers.operations import UpdateLoadBalancer
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.faulty_aws import Refusal, Refusing
from tests.cloud_controller.clouds.aws.in_the_account import (
    groups_made,
    listeners,
    load_balancers,
    subnets_of,
    target_groups,
    targets,
    with_ipv6,
)
from tests.cloud_controller.clouds.aws.services import in_subnets, named, nlb, put_nodes
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, performed, port, served

CERTIFICATES = [f"arn:aws:iam::123456789012:server-certificate/{name}" for name in "abc"]


def test_an_address_that_is_in_use_is_waited_for_with_one_set_of_parts(account: AwsAccount, cluster: Cluster) -> None:
    in_use = Refusing.of("CreateLoadBalancer", "ResourceInUse", "The allocation IDs are not available for use")
    cluster.put(nlb({}, port(80)))
    running = Running(account, cluster, wrap=in_use)
    for _ in range(3):
        with pytest.raises(Exception, match="ResourceInUse"):
            running.handle()

    assert len(groups_made(account)) == 2, "its own and the shared one"
    assert len(target_groups(account)) == 1

    in_use.end()
    running.settle()
    assert len(load_balancers(account)) == 1
    assert cluster.ingress


def test_an_address_outside_of_the_vpc_keeps_no_other_out(account: AwsAccount, cluster: Cluster) -> None:
    outside, inside = sorted(cluster.objects["nodes"])

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "RegisterTargets" and outside in {each["Id"] for each in params["Targets"]}:
            return "ValidationError", f"The Availability Zone is required for IP address '{outside}'."
        return None

    served(account, cluster, nlb({}, port(80)), wrap=Refusing(refuses))

    (group,) = target_groups(account)
    assert targets(account, group) == {(inside, 30080)}


def test_where_all_addresses_are_outside_of_the_vpc_the_service_is_told(account: AwsAccount, cluster: Cluster) -> None:
    calls: list[int] = []

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation != "RegisterTargets":
            return None
        calls.append(len(params["Targets"]))
        first = params["Targets"][0]["Id"]
        return "ValidationError", f"The Availability Zone is required for IP address '{first}'."

    put_nodes(cluster, account.launch(30))
    cluster.put(nlb({}, port(80)))
    running = Running(account, cluster, wrap=Refusing(refuses))

    with pytest.raises(InvalidConfiguration, match="Availability Zone is required"):
        running.handle()

    assert len(calls) < 10


@pytest.mark.parametrize(
    ("before", "after"),
    [(CERTIFICATES[:2], CERTIFICATES[1:2]), (CERTIFICATES[:2], CERTIFICATES[1::-1]), (CERTIFICATES, CERTIFICATES[2:])],
    ids=["it alone", "changed places", "the last one alone"],
)
def test_a_certificate_that_becomes_the_default_is_not_taken_off(
    account: AwsAccount, cluster: Cluster, before: list[str], after: list[str]
) -> None:
    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        removed = [each["CertificateArn"] for each in params.get("Certificates", ())]
        if operation == "RemoveListenerCertificates" and after[0] in removed:
            return "OperationNotPermitted", "the default certificate"
        return None

    running = served(account, cluster, nlb(named(ssl_cert=before), port(443)), wrap=Refusing(refuses))

    changed(cluster, named(ssl_cert=after))
    running.settle()

    (lb,) = load_balancers(account)
    assert listeners(account, lb)[443]["Certificates"][0] == {"CertificateArn": after[0]}


def test_a_listener_that_ends_no_tls_any_more_has_no_certificates_to_take_off(
    account: AwsAccount, cluster: Cluster
) -> None:
    of_tls_alone = Refusing(
        lambda operation, _: ("UnsupportedProtocol", "not TLS") if "ListenerCertificates" in operation else None
    )
    running = served(account, cluster, nlb(named(ssl_cert=CERTIFICATES), port(443)))
    of_tls_alone(running.cloud)

    changed(cluster, named(ssl_cert=()))
    running.settle()

    (lb,) = load_balancers(account)
    assert listeners(account, lb)[443]["Protocol"] == "TCP"


@pytest.mark.parametrize("first", ["ipv4", "dualstack"])
def test_subnets_without_ipv6_come_and_go_while_the_load_balancer_has_none(
    account: AwsAccount, cluster: Cluster, first: str
) -> None:
    with_, also_with, without = account.public_subnets
    with_ipv6(account, with_, also_with)

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        kind = params.get("IpAddressType")
        subnets = params.get("Subnets")
        if operation in ("SetSubnets", "SetIpAddressType"):
            (lb,) = load_balancers(account)
            kind = kind or lb["IpAddressType"]
            subnets = subnets or subnets_of(account)
        if kind == "dualstack" and without in (subnets or ()):
            return "InvalidSubnet", f"You must specify subnets with an associated IPv6 CIDR block: {without}"
        return None

    wanted = {
        "ipv4": named(ip_address_type="ipv4", subnets=(with_, without)),
        "dualstack": named(ip_address_type="dualstack", subnets=(with_, also_with)),
    }
    running = served(account, cluster, nlb(wanted.pop(first), port(80), port(443)), wrap=Refusing(refuses))
    ((then, annotations),) = wanted.items()

    changed(cluster, annotations)
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == then
    assert (without in subnets_of(account)) is (then == "ipv4")


@pytest.mark.parametrize("stays", [[port(80)], [port(53)]], ids=["its port too", "its transport"])
def test_ipv6_comes_when_udp_has_gone(account: AwsAccount, cluster: Cluster, stays: list[dict[str, Any]]) -> None:
    with_ipv6(account, *account.public_subnets)

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetIpAddressType" and params["IpAddressType"] == "dualstack":
            (lb,) = load_balancers(account)
            if any("UDP" in each["Protocol"] for each in listeners(account, lb).values()):
                return "InvalidConfigurationRequest", "dualstack is not supported with UDP listeners"
        return None

    families: dict[str, Any] = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}
    running = served(account, cluster, nlb({}, *stays, port(53, "UDP"), **families), wrap=Refusing(refuses))
    assert [lb["IpAddressType"] for lb in load_balancers(account)] == ["ipv4"]

    changed(cluster, ports=stays)
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == "dualstack"
    assert {number: each["Protocol"] for number, each in listeners(account, lb).items()} == {stays[0]["port"]: "TCP"}
    assert len(target_groups(account)) == 1


def test_one_that_goes_while_it_is_changed_is_gone_not_anothers(account: AwsAccount, cluster: Cluster) -> None:
    running = served(account, cluster, nlb({}, port(80)))
    (present,) = running.cloud.load_balancers.read({"uid-web"})
    account.elbv2.delete_load_balancer(LoadBalancerArn=load_balancers(account)[0]["LoadBalancerArn"])
    # moto tells of what is gone that it has no tags.
    Refusing.of("DescribeTags", "LoadBalancerNotFound")(running.cloud)

    with pytest.raises(NotFound, match="no longer exists"):
        performed(running.cloud.load_balancers, UpdateLoadBalancer(present.id, present.model), on=present)

    (left,) = running.cloud.load_balancers.read((), {present.id})
    assert left.state is LoadBalancerState.PARTIAL, "though it was made a moment ago"


def test_a_subnet_makes_place_before_another_of_its_zone_comes(account: AwsAccount, cluster: Cluster) -> None:
    zones = {each["SubnetId"]: each["AvailabilityZone"] for each in account.ec2.describe_subnets()["Subnets"]}

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetSubnets":
            present = subnets_of(account)
            if {zones[each] for each in {*params["Subnets"]} - present} & {zones[each] for each in present}:
                return "InvalidConfigurationRequest", "an Availability Zone that is already associated"
        return None

    running = served(account, cluster, nlb(in_subnets(*account.private_subnets)), wrap=Refusing(refuses))
    wanted = (account.public_subnets[0], *account.private_subnets[1:])

    changed(cluster, in_subnets(*wanted))
    running.settle()

    assert subnets_of(account) == {*wanted}
    assert running.calls.of("elbv2 SetSubnets") == 2
