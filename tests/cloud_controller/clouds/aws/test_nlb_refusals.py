"""What AWS refuses of network load balancers, and moto never."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, NotFound
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.load_balancers.model import LoadBalancerState
from cloud_controller.load_balancers.operations import UpdateLoadBalancer
from tests.cloud_controller.clouds.aws import as_aws
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.nlb_world import (
    WEB,
    Refusal,
    Refusing,
    Running,
    groups_made,
    listeners,
    load_balancers,
    nlb,
    port,
    put_nodes,
    target_groups,
    targets,
)
from tests.cloud_controller.clouds.mycloud.service_world import Cluster

CERTIFICATES = [f"arn:aws:iam::123456789012:server-certificate/{name}" for name in "abc"]


@pytest.fixture
def cluster(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster of two nodes."""
    as_aws.mend(monkeypatch)
    made = Cluster()
    put_nodes(made, account.launch(2))
    return made


def with_certificates(*names: str) -> dict[str, str]:
    return {CATALOGUE.by_argument["ssl_cert"].name: ",".join(names)}


def test_an_address_that_is_in_use_is_waited_for_with_one_set_of_parts(account: AwsAccount, cluster: Cluster) -> None:
    in_use = Refusing(
        lambda operation, _: (
            ("ResourceInUse", "The allocation IDs are not available for use")
            if operation == "CreateLoadBalancer"
            else None
        )
    )
    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster, wrap=in_use)
    for _ in range(3):
        with pytest.raises(Exception, match="ResourceInUse"):
            running.controller.handle(WEB)

    assert len(groups_made(account)) == 2, "its own and the shared one"
    assert len(target_groups(account)) == 1

    in_use.end()
    running.settle()
    assert len(load_balancers(account)) == 1
    assert cluster.ingress


def test_members_follow_the_nodes_though_a_setting_is_refused(account: AwsAccount, cluster: Cluster) -> None:
    no_bucket = Refusing(
        lambda operation, _: (
            ("InvalidConfigurationRequest", "Access Denied for bucket: logs")
            if operation == "ModifyLoadBalancerAttributes"
            else None
        )
    )
    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster, wrap=no_bucket)
    running.settle()
    logs = {"access_log_enabled": "true", "access_log_s3_bucket_name": "logs"}
    cluster.service()["metadata"]["annotations"] |= {
        CATALOGUE.by_argument[argument].name: text for argument, text in logs.items()
    }
    gone, stays = sorted(cluster.objects["nodes"])
    del cluster.objects["nodes"][gone]
    (new,) = account.launch(1)
    put_nodes(cluster, [new])

    running.take_nodes()
    for _ in range(2):
        with pytest.raises(InvalidConfiguration, match="Access Denied for bucket"):
            running.controller.handle(WEB)

    (group,) = target_groups(account)
    assert targets(account, group) == {(stays, 30080), (new["InstanceId"], 30080)}
    assert "Access Denied for bucket" in cluster.events[-1][1]


def test_where_no_target_can_be_registered_none_is_taken_out(account: AwsAccount, cluster: Cluster) -> None:
    no_right = Refusing(
        lambda operation, _: ("AccessDenied", "not authorized") if operation == "RegisterTargets" else None
    )
    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster)
    running.settle()
    before = [*cluster.objects["nodes"]]
    cluster.objects["nodes"].clear()
    put_nodes(cluster, account.launch(2))
    no_right(running.cloud)

    running.take_nodes()
    with pytest.raises(AccessDenied):
        running.controller.handle(WEB)

    (group,) = target_groups(account)
    assert targets(account, group) == {(node, 30080) for node in before}


def test_an_address_outside_of_the_vpc_keeps_no_other_out(account: AwsAccount, cluster: Cluster) -> None:
    outside, inside = sorted(cluster.objects["nodes"])

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "RegisterTargets" and outside in {each["Id"] for each in params["Targets"]}:
            return "ValidationError", f"The Availability Zone is required for IP address '{outside}'."
        return None

    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster, wrap=Refusing(refuses))
    running.settle()

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
    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster, wrap=Refusing(refuses))

    with pytest.raises(InvalidConfiguration, match="Availability Zone is required"):
        running.controller.handle(WEB)

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

    cluster.put(nlb("web", port(443, 30443), annotations=with_certificates(*before)))
    running = Running(account, cluster, wrap=Refusing(refuses))
    running.settle()

    cluster.service()["metadata"]["annotations"] |= with_certificates(*after)
    running.settle()

    (lb,) = load_balancers(account)
    assert listeners(account, lb)[443]["Certificates"][0] == {"CertificateArn": after[0]}


def test_a_listener_that_ends_no_tls_any_more_has_no_certificates_to_take_off(
    account: AwsAccount, cluster: Cluster
) -> None:
    of_tls_alone = Refusing(
        lambda operation, _: ("UnsupportedProtocol", "not TLS") if "ListenerCertificates" in operation else None
    )
    cluster.put(nlb("web", port(443, 30443), annotations=with_certificates(*CERTIFICATES)))
    running = Running(account, cluster)
    running.settle()
    of_tls_alone(running.cloud)

    cluster.service()["metadata"]["annotations"] |= with_certificates()
    running.settle()

    (lb,) = load_balancers(account)
    assert listeners(account, lb)[443]["Protocol"] == "TCP"


def with_ipv6(account: AwsAccount, *subnets: str) -> None:
    """These subnets have IPv6 ranges."""
    vpc = account.ec2.describe_vpcs(VpcIds=[account.vpc_id])["Vpcs"][0]
    prefix = vpc["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"].removesuffix("00::/56")
    for number, subnet in enumerate(subnets):
        account.ec2.associate_subnet_cidr_block(SubnetId=subnet, Ipv6CidrBlock=f"{prefix}{number:02x}::/64")


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
            subnets = subnets or [each["SubnetId"] for each in lb["AvailabilityZones"]]
        if kind == "dualstack" and without in (subnets or ()):
            return "InvalidSubnet", f"You must specify subnets with an associated IPv6 CIDR block: {without}"
        return None

    wanted = {
        kind: {
            CATALOGUE.by_argument["ip_address_type"].name: kind,
            CATALOGUE.by_argument["subnets"].name: f"{with_},{without if kind == 'ipv4' else also_with}",
        }
        for kind in ("ipv4", "dualstack")
    }
    cluster.put(nlb(annotations=wanted.pop(first)))
    running = Running(account, cluster, wrap=Refusing(refuses))
    running.settle()
    ((then, annotations),) = wanted.items()

    cluster.service()["metadata"]["annotations"] |= annotations
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == then
    assert (without in {each["SubnetId"] for each in lb["AvailabilityZones"]}) is (then == "ipv4")


@pytest.mark.parametrize("stays", [[port(80, 30080)], [port(53, 30053)]], ids=["its port too", "its transport"])
def test_ipv6_comes_when_udp_has_gone(account: AwsAccount, cluster: Cluster, stays: list[dict[str, Any]]) -> None:
    with_ipv6(account, *account.public_subnets)

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetIpAddressType" and params["IpAddressType"] == "dualstack":
            (lb,) = load_balancers(account)
            if any("UDP" in each["Protocol"] for each in listeners(account, lb).values()):
                return "InvalidConfigurationRequest", "dualstack is not supported with UDP listeners"
        return None

    families: dict[str, Any] = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}
    cluster.put(nlb("web", *stays, port(53, 30053, "UDP"), **families))
    running = Running(account, cluster, wrap=Refusing(refuses))
    running.settle()
    assert [lb["IpAddressType"] for lb in load_balancers(account)] == ["ipv4"]

    cluster.service()["spec"]["ports"] = stays
    running.settle()

    (lb,) = load_balancers(account)
    assert lb["IpAddressType"] == "dualstack"
    assert {number: each["Protocol"] for number, each in listeners(account, lb).items()} == {stays[0]["port"]: "TCP"}
    assert len(target_groups(account)) == 1


def test_one_that_goes_while_it_is_changed_is_gone_not_anothers(account: AwsAccount, cluster: Cluster) -> None:
    cluster.put(nlb("web", port(80, 30080)))
    running = Running(account, cluster)
    running.settle()
    (present,) = running.cloud.load_balancers.read({"uid-web"})
    account.elbv2.delete_load_balancer(LoadBalancerArn=load_balancers(account)[0]["LoadBalancerArn"])
    # moto tells of what is gone that it has no tags.
    gone = Refusing(lambda operation, _: ("LoadBalancerNotFound", "gone") if operation == "DescribeTags" else None)
    gone(running.cloud)

    with pytest.raises(NotFound, match="no longer exists"):
        running.cloud.load_balancers.update(UpdateLoadBalancer(present.id, present.model))

    (left,) = running.cloud.load_balancers.read((), {present.id})
    assert left.state is LoadBalancerState.PARTIAL, "though it was made a moment ago"


def test_a_subnet_makes_place_before_another_of_its_zone_comes(account: AwsAccount, cluster: Cluster) -> None:
    zones = {each["SubnetId"]: each["AvailabilityZone"] for each in account.ec2.describe_subnets()["Subnets"]}

    def refuses(operation: str, params: dict[str, Any]) -> Refusal | None:
        if operation == "SetSubnets":
            (lb,) = load_balancers(account)
            present = {each["SubnetId"] for each in lb["AvailabilityZones"]}
            if {zones[each] for each in {*params["Subnets"]} - present} & {zones[each] for each in present}:
                return "InvalidConfigurationRequest", "an Availability Zone that is already associated"
        return None

    def annotations(*subnets: str) -> dict[str, str]:
        arguments = {"internal": "true", "subnets": ",".join(subnets)}
        return {CATALOGUE.by_argument[argument].name: text for argument, text in arguments.items()}

    cluster.put(nlb(annotations=annotations(*account.private_subnets)))
    running = Running(account, cluster, wrap=Refusing(refuses))
    running.settle()
    wanted = (account.public_subnets[0], *account.private_subnets[1:])

    cluster.service()["metadata"]["annotations"] |= annotations(*wanted)
    running.settle()

    (lb,) = load_balancers(account)
    assert {each["SubnetId"] for each in lb["AvailabilityZones"]} == {*wanted}
    assert running.calls.of("elbv2 SetSubnets") == 2
