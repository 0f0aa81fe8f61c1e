"""Pods as targets of network load balancers: which addresses of an EndpointSlice are registered with AWS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cloud_controller.cloud import CloudError, Throttled
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.pod_groups import PodGroups
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.controllers.service.controller import ServiceOptions
from tests.cloud_controller.clouds.aws.conftest import CLUSTER_TAG, REGION, AwsAccount, tag_list
from tests.cloud_controller.clouds.aws.faulty_aws import Refusing
from tests.cloud_controller.clouds.aws.in_the_account import target_groups, targets
from tests.cloud_controller.clouds.aws.services import named, nlb
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, port


@pytest.fixture
def node(cluster: Cluster) -> str:
    """The first of the cluster's nodes; `default/web` sends to pods, not to nodes."""
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    return next(iter(cluster.objects["nodes"]))


def put_pods(cluster: Cluster, node: str, *addresses: str) -> None:
    """The Service's pods have these addresses, on this node."""
    cluster.put_slice(endpoint_slice(*(endpoint(each, node) for each in addresses)))


def test_targets_are_pods_of_the_vpc_and_neither_nodes_nor_what_is_elsewhere(
    account: AwsAccount, cluster: Cluster, node: str
) -> None:
    own, free = cluster.address(node), _another_in_the_subnet(account)
    put_pods(cluster, node, free, own, "8.8.8.8", "10.244.0.7")

    Running(account, cluster).settle()

    (group,) = target_groups(account)
    assert targets(account, group) == {(free, 8000)}
    ((_, message),) = [event for event in cluster.events if event[0] == "EndpointsLeftOut"]
    assert f"{own}: it is an address of node {node}" in message
    assert "8.8.8.8: it is outside the pod CIDRs" in message


def test_a_pod_on_fargate_is_a_target_though_its_address_is_its_nodes(account: AwsAccount) -> None:
    cluster = Cluster()
    address = _another_in_the_subnet(account)
    name = f"fargate-ip-{address.replace('.', '-')}.eu-central-1.compute.internal"
    cluster.put_node(name, f"aws:///eu-central-1a/0123456789-0123456789abcdef/{name}", address)
    cluster.put(nlb(named(nlb_target_type="ip"), port(80)))
    put_pods(cluster, name, address)

    Running(account, cluster).settle()

    (group,) = target_groups(account)
    assert targets(account, group) == {(address, 8000)}


def test_a_pod_outside_of_the_vpc_is_a_target_in_no_zone_and_the_service_is_warned(
    account: AwsAccount, cluster: Cluster, node: str
) -> None:
    # The cluster knows the pods' range; the VPC has routes there, and no subnet.
    inside, outside = _another_in_the_subnet(account), "10.85.0.7"
    put_pods(cluster, node, inside, outside)
    registered: list[dict[str, Any]] = []

    def record(operation: str, params: dict[str, Any]) -> None:
        if operation == "RegisterTargets":
            registered.extend(params["Targets"])

    options = ServiceOptions(resync=300.0, pod_ranges=("10.85.0.0/16",))
    Running(account, cluster, wrap=Refusing(record), options=options).settle()

    assert sorted(registered, key=lambda each: each["Id"]) == [
        {"Id": inside, "Port": 8000},
        {"Id": outside, "Port": 8000, "AvailabilityZone": "all"},
    ]
    ((_, message),) = [event for event in cluster.events if event[0] == "TargetsOutsideVpc"]
    assert message == f"{outside}: not in a subnet of {account.vpc_id}, which needs a route to them"


@pytest.fixture
def pod(account: AwsAccount, cluster: Cluster, node: str) -> str:
    """The address of the Service's only pod."""
    address = _another_in_the_subnet(account)
    put_pods(cluster, node, address)
    return address


def pod_interface(account: AwsAccount, address: str, **tags: str) -> str:
    """The security group of a pod's own network interface, which has these tags."""
    group = account.ec2.create_security_group(GroupName="of-pods", Description="x", VpcId=account.vpc_id)["GroupId"]
    if tags:
        account.ec2.create_tags(Resources=[group], Tags=tag_list(tags))
    made = account.ec2.create_network_interface(
        SubnetId=account.private_subnets[0], PrivateIpAddress=address, Groups=[group]
    )["NetworkInterface"]
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][REGION]
    backend.enis[made["NetworkInterfaceId"]].interface_type = "branch"
    return group


def sources_of(account: AwsAccount, group: str) -> set[str]:
    """The names of the groups that a security group lets in."""
    found = account.ec2.describe_security_groups()["SecurityGroups"]
    names = {each["GroupId"]: each["GroupName"] for each in found}
    (of,) = (each for each in found if each["GroupId"] == group)
    return {names[pair["GroupId"]] for each in of["IpPermissions"] for pair in each["UserIdGroupPairs"]}


def test_the_security_group_of_a_pod_is_opened_to_load_balancers_where_it_has_the_clusters_tag(
    account: AwsAccount, cluster: Cluster, pod: str
) -> None:
    group = pod_interface(account, pod, **{CLUSTER_TAG: "shared"})

    Running(account, cluster).settle()

    assert {name.startswith("k8s-shared-") for name in sources_of(account, group)} == {True}
    assert "PodSecurityGroups" not in cluster.reasons


def test_one_without_the_tag_is_left_alone_and_the_service_is_warned(
    account: AwsAccount, cluster: Cluster, pod: str
) -> None:
    group = pod_interface(account, pod)

    Running(account, cluster).settle()

    assert sources_of(account, group) == set()
    ((_, message),) = [event for event in cluster.events if event[0] == "PodSecurityGroups"]
    assert message.startswith(f"{pod} ({group}): none of these pods' security groups has the tag {CLUSTER_TAG}")


@pytest.mark.usefixtures("pod")
def test_interfaces_of_pods_are_one_list_for_many_visits_and_none_where_targets_are_nodes(
    account: AwsAccount, cluster: Cluster
) -> None:
    running = Running(account, cluster).settle().settle()
    assert running.calls.of("ec2 DescribeNetworkInterfaces") == 1

    del cluster.service(WEB)["metadata"]["annotations"][CATALOGUE.by_argument["nlb_target_type"].name]
    by_node = Running(account, cluster).settle()

    assert by_node.calls.of("ec2 DescribeNetworkInterfaces") == 0


def test_pods_without_an_interface_beside_pods_with_one_cost_no_further_lists(
    account: AwsAccount, cluster: Cluster, node: str, pod: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod_interface(account, pod)
    put_pods(cluster, node, pod, _another_in_the_subnet(account, 251))
    running = Running(account, cluster)
    now, start = [0.0], time.monotonic()
    monkeypatch.setattr(running.cloud._cache, "clock", lambda: start + now[0])

    for now[0] in range(0, 1800, 30):
        running.settle(rounds=1)

    (group,) = target_groups(account)
    assert len(targets(account, group)) == 2
    assert running.calls.of("ec2 DescribeNetworkInterfaces") == 3, "one in ten minutes"


def test_the_interface_of_a_new_pod_is_found_within_a_minute() -> None:
    api, now = Interfaces("10.0.0.9"), 0.0
    groups = PodGroups(api, Cache(lambda: now))  # type: ignore[arg-type]
    groups.of("vpc-1", ["10.0.0.9", "10.0.0.50"])

    api.addresses.append("10.0.0.10")
    now = 61.0
    found = groups.of("vpc-1", ["10.0.0.50", "10.0.0.10"])
    now = 130.0
    groups.of("vpc-1", ["10.0.0.50", "10.0.0.10"])

    assert found == {"10.0.0.10": ("sg-pods",)}
    assert api.lists == 2


def test_a_pod_that_is_asked_for_while_the_list_is_read_is_looked_for_again() -> None:
    api, now = Interfaces("10.0.0.9"), 0.0
    groups = PodGroups(api, Cache(lambda: now))  # type: ignore[arg-type]
    other = threading.Thread(target=groups.of, args=("vpc-1", ["10.0.0.10"]))

    def ask() -> None:
        other.start()
        while "10.0.0.10" not in groups._asked_for:
            time.sleep(0.001)

    api.during = ask
    groups.of("vpc-1", ["10.0.0.9"])
    other.join()
    api.addresses.append("10.0.0.10")
    now = 61.0

    assert groups.of("vpc-1", ["10.0.0.10"]) == {"10.0.0.10": ("sg-pods",)}


def test_a_list_that_failed_is_read_again_at_the_next_visit() -> None:
    api = Interfaces("10.0.0.9")
    groups = PodGroups(api, Cache(lambda: 0.0))  # type: ignore[arg-type]
    api.failure = Throttled("slow down", 1.0)
    with pytest.raises(Throttled):
        groups.of("vpc-1", ["10.0.0.9"])

    api.failure = None

    assert groups.of("vpc-1", ["10.0.0.9"]) == {"10.0.0.9": ("sg-pods",)}


class Interfaces:
    """AWS, with interfaces of pods that have these addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = [*addresses]
        self.lists = 0
        self.failure: CloudError | None = None
        self.during: Callable[[], None] | None = None
        """Happens once while a list is read."""

    def pages(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        if self.failure:
            raise self.failure
        self.lists += 1
        during, self.during = self.during, None
        if during:
            during()
        return [{"PrivateIpAddress": each, "Groups": [{"GroupId": "sg-pods"}]} for each in self.addresses]


def test_without_the_right_to_see_interfaces_pods_are_served_all_the_same(
    account: AwsAccount, cluster: Cluster, pod: str
) -> None:

    denied = Refusing.of("DescribeNetworkInterfaces", "UnauthorizedOperation")

    Running(account, cluster, wrap=denied).settle()

    (group,) = target_groups(account)
    assert targets(account, group) == {(pod, 8000)}


def _another_in_the_subnet(account: AwsAccount, number: int = 250) -> str:
    (subnet,) = account.ec2.describe_subnets(SubnetIds=[account.private_subnets[0]])["Subnets"]
    return f"{subnet['CidrBlock'].rpartition('.')[0]}.{number}"
