"""The components Cluster and NodePool: what they refuse, and what they hand on."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.cluster import Cluster
from components.controller_manager import CloudControllerManager
from components.node_pool import NodePool
from components.workload import Workload

NETWORK = "pulumi-python:dynamic/mycloud:Network"
CLUSTER = "pulumi-python:dynamic/mycloud:Cluster"


def pool(**more: Any) -> Any:
    return {
        "cloud": "mycloud",
        "cluster_name": "c",
        "cluster_id": "c-1",
        "subnet_ids": {"zone-a": "subnet-1"},
        "count": 1,
        "type": "m1.small",
        "zones": ["zone-a"],
        **more,
    }


def manager(**more: Any) -> Any:
    return {
        "cloud": "mycloud",
        "cluster_name": "c",
        "cluster_cidr": "10.20.0.0/16",
        "cloud_config": "[Global]",
        "controllers": ["service"],
        **more,
    }


@pytest.mark.parametrize(
    ("make", "path", "hint"),
    [
        (lambda: Cluster("My_Cluster", {"cloud": "mycloud", "zones": ["zone-a"]}), "name", "DNS label"),
        (lambda: Cluster("c", {"cloud": "nimbus", "zones": ["zone-a"]}), "cloud", "mycloud"),
        (lambda: Cluster("c", {"cloud": "mycloud", "zones": []}), "zones", "at least one"),
        (lambda: NodePool("p", pool(count=-1)), "count", "at least 0"),
        (lambda: NodePool("p", pool(role="master")), "role", "control-plane, worker"),
        (lambda: NodePool("p", pool(zones=["zone-a", "zone-b"])), "zones[1]", "the network's zones: zone-a"),
        (lambda: NodePool("p", pool(labels={"a b": "c"})), "labels[a b]", "is not a valid label name"),
        (lambda: NodePool("p", pool(labels={"a": "-"})), "labels[a]", "has an invalid value"),
        (lambda: NodePool("p", pool(labels={"cloud-controller/pool": "x"})), "labels[cloud-controller/pool]", "itself"),
        (lambda: NodePool("n" * 60, pool(cluster_name="cluster")), "name", "at most 63"),
        (lambda: CloudControllerManager("m", manager(cluster_cidr="10.20.0.1/16")), "cluster_cidr", "host bits"),
        (lambda: CloudControllerManager("m", manager(controllers=[])), "controllers", "at least one"),
        (lambda: CloudControllerManager("m", manager(controllers=["ingress"])), "controllers", "node, node-lifecycle"),
        (lambda: CloudControllerManager("m", manager(machines=-1)), "machines", "at least 0"),
        (lambda: Workload("w", {"image": "x", "port": 70000}), "port", "1 to 65535"),
        (lambda: Workload("w", {"image": "x", "port": 53, "protocol": "SCTP"}), "protocol", "TCP, UDP"),
    ],
)
def test_a_wrong_input_is_refused_by_its_name(make: Any, path: str, hint: str, run_program: Any) -> None:
    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(make)

    assert caught.value.property_path == path
    assert hint in caught.value.reason


def test_the_parts_of_a_cluster_inherit_its_protection(run_program: Any) -> None:
    def program() -> None:
        Cluster("c", {"cloud": "mycloud", "zones": ["zone-a"]}, opts=pulumi.ResourceOptions(protect=True))

    recording = run_program(program)

    # The engine passes `protect` on from parent to child.
    cluster = recording.one("cloudcontroller:index:Cluster", "c")
    assert cluster.request.protect
    assert {recording.one(t, "c").request.parent for t in (NETWORK, CLUSTER)} == {cluster.urn}


def test_the_kubeconfig_is_secret_from_the_beginning(run_program: Any) -> None:
    recording = run_program(lambda: Cluster("c", {"cloud": "mycloud", "zones": ["zone-a"]}))

    assert list(recording.one(CLUSTER, "c").request.additionalSecretOutputs) == ["kubeconfig"]


def test_no_dynamic_resource_has_credentials_among_its_inputs(run_program: Any) -> None:
    def program() -> None:
        cluster = Cluster("c", {"cloud": "mycloud", "zones": ["zone-a"]})
        NodePool("p", pool(cluster_id=cluster.cluster_id, subnet_ids=cluster.subnet_ids))

    recording = run_program(program)

    dynamic = [r for r in recording.registrations if r.request.type.startswith("pulumi-python:")]
    assert len(dynamic) == 4
    for registration in dynamic:
        assert not {"token", "endpoint", "credentials"} & set(registration.inputs)
        # By reference: a short text that holds a module's and a class's name, and no secret.
        assert len(registration.inputs["__provider"]) < 120
