"""Pods as targets of network load balancers: which addresses of an EndpointSlice are registered with AWS."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.controllers.service import ServiceOptions
from cloud_controller.kube import EventType
from tests.cloud_controller.clouds.aws import as_aws
from tests.cloud_controller.clouds.aws.conftest import AwsAccount
from tests.cloud_controller.clouds.aws.nlb_world import (
    WEB,
    Refusing,
    Running,
    nlb,
    port,
    put_nodes,
    target_groups,
    targets,
)
from tests.cloud_controller.clouds.mycloud.service_world import Cluster


@pytest.fixture(autouse=True)
def _as_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    as_aws.mend(monkeypatch)


def endpoint_slice(node: str, *addresses: str) -> dict[str, Any]:
    pod = {"kind": "Pod", "namespace": "default", "name": "web-0"}
    return {
        "metadata": {"namespace": "default", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", "port": 8000}],
        "endpoints": [{"addresses": [each], "nodeName": node, "targetRef": pod} for each in addresses],
    }


def test_targets_are_pods_of_the_vpc_and_neither_nodes_nor_what_is_elsewhere(account: AwsAccount) -> None:
    cluster = Cluster()
    (machine,) = account.launch(1)
    put_nodes(cluster, [machine])
    own, free = machine["PrivateIpAddress"], _another_in_the_subnet(account)
    cluster.put(nlb("web", port(80, 30080), annotations=CATALOGUE.annotations({"nlb_target_type": "ip"})))
    running = Running(account, cluster)
    lies = endpoint_slice(machine["InstanceId"], free, own, "8.8.8.8", "10.244.0.7")

    running.controller._endpoints._slice_changed(EventType.ADDED, None, lies)
    running.settle(WEB)

    (group,) = target_groups(account)
    assert targets(account, group) == {(free, 8000)}
    ((_, message),) = [event for event in cluster.events if event[0] == "EndpointsLeftOut"]
    assert f"{own}: it is an address of node {machine['InstanceId']}" in message
    assert "8.8.8.8: it is outside the pods' ranges" in message


def test_a_pod_on_fargate_is_a_target_though_its_address_is_its_nodes(account: AwsAccount) -> None:
    cluster = Cluster()
    address = _another_in_the_subnet(account)
    name = f"fargate-ip-{address.replace('.', '-')}.eu-central-1.compute.internal"
    cluster.objects["nodes"][name] = {
        "metadata": {"name": name},
        "spec": {"providerID": f"aws:///eu-central-1a/0123456789-0123456789abcdef/{name}"},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }
    cluster.put(nlb("web", port(80, 30080), annotations=CATALOGUE.annotations({"nlb_target_type": "ip"})))
    running = Running(account, cluster)

    running.controller._endpoints._slice_changed(EventType.ADDED, None, endpoint_slice(name, address))
    running.settle(WEB)

    (group,) = target_groups(account)
    assert targets(account, group) == {(address, 8000)}


def test_a_pod_outside_of_the_vpc_is_a_target_in_no_zone_and_the_service_is_warned(
    account: AwsAccount,
) -> None:
    # The pods of an EKS hybrid node: the cluster knows their range, the VPC has a route there and no subnet.
    cluster = Cluster()
    (machine,) = account.launch(1)
    put_nodes(cluster, [machine])
    inside, outside = _another_in_the_subnet(account), "10.85.0.7"
    cluster.put(nlb("web", port(80, 30080), annotations=CATALOGUE.annotations({"nlb_target_type": "ip"})))
    registered: list[dict[str, Any]] = []

    def record(operation: str, params: dict[str, Any]) -> None:
        if operation == "RegisterTargets":
            registered.extend(params["Targets"])

    options = ServiceOptions(resync=300.0, pod_ranges=("10.85.0.0/16",))
    running = Running(account, cluster, wrap=Refusing(record), options=options)
    slice_ = endpoint_slice(machine["InstanceId"], inside, outside)
    running.controller._endpoints._slice_changed(EventType.ADDED, None, slice_)
    running.settle(WEB)

    assert sorted(registered, key=lambda each: each["Id"]) == [
        {"Id": inside, "Port": 8000},
        {"Id": outside, "Port": 8000, "AvailabilityZone": "all"},
    ]
    ((_, message),) = [event for event in cluster.events if event[0] == "TargetsOutsideVpc"]
    assert message == f"{outside}: in no subnet of {account.vpc_id}, which must have a route there"


def _another_in_the_subnet(account: AwsAccount) -> str:
    (subnet,) = account.ec2.describe_subnets(SubnetIds=[account.private_subnets[0]])["Subnets"]
    return f"{subnet['CidrBlock'].rpartition('.')[0]}.250"
