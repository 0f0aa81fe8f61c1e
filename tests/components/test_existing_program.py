"""The whole program on a cluster that is there already: what it makes, and that nothing of the cluster is among it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.cluster import Cluster
from tests.components.stack_runs import unguarded, visible

ROOT = Path(__file__).parents[2]
SECRET = "a-key-that-nobody-may-see"
KUBECONFIG = yaml.safe_dump({"clusters": [{"name": "c"}], "contexts": [{"name": "c"}], "users": [{"name": SECRET}]})
CLUSTER = "cloudcontroller:index:Cluster"
CONTROLLER = "pulumi-python:dynamic/cloudcontroller:CloudController"
ADDRESS = "pulumi-python:dynamic/cloudcontroller:ServiceAddress"
GUARD = "pulumi-python:dynamic/cloudcontroller:DestroyGuard"
SERVICE = "kubernetes:core/v1:Service"
CONFIG: dict[str, Any] = {
    "cloud": "mycloud",
    "cluster": "existing",
    "clusterName": "shop",
    "existing": {
        "clusterId": "c-1",
        "networkId": "net-1",
        "podCidr": "10.20.0.0/16",
        "controlPlaneNodes": 3,
        "machines": ["a", "b"],
    },
    "kubeconfig": KUBECONFIG,
    "nodePools": [],
    "executors": {},
    "workloads": True,
    "protect": False,
    "mycloud": {"endpoint": "http://127.16.0.1:7070"},
    "mycloudToken": "t",
}
MADE = {SERVICE: {"status": {"loadBalancer": {"ingress": [{"ip": "127.19.0.10"}]}}}}


@pytest.fixture
def run_stack(run_program: Any) -> Callable[..., Any]:
    """Run `__main__.py` as if everything was made: `run_stack(executors={"node": "pulumi"})`."""
    return lambda **more: run_program(lambda: runpy.run_path(str(ROOT / "__main__.py")), {**CONFIG, **more}, MADE)


def test_no_resource_of_the_cloud_is_made_and_the_cluster_has_no_children(run_stack: Any) -> None:
    recording = run_stack()

    packages = {r.request.type.partition(":")[0] for r in recording.registrations}
    assert packages == {"pulumi", "pulumi-python", "kubernetes", "cloudcontroller"}
    assert {r.request.type for r in recording.registrations if r.request.type.startswith("pulumi-python")} == {
        CONTROLLER,
        GUARD,
        ADDRESS,
    }
    cluster = recording.one(CLUSTER, "shop")
    assert cluster.urn not in {r.request.parent for r in recording.registrations}
    assert recording.outputs["clusterId"] == "c-1"


def test_the_controllers_are_told_of_the_cluster_and_wait_for_the_named_machines(run_stack: Any) -> None:
    recording = run_stack()

    controller = recording.one(CONTROLLER, "cloud-controller").inputs
    guard = recording.one(GUARD, "destroy-guard").inputs
    assert controller["machines"] == [{"name": "a"}, {"name": "b"}]
    assert controller["existing"] is guard["existing"] is True
    assert (controller["cluster_id"], controller["network_id"]) == ("c-1", "net-1")
    assert controller["cluster_cidr"] == "10.20.0.0/16"


def test_the_ccm_runs_on_the_control_planes_nodes_or_on_workers_where_there_are_none(run_stack: Any) -> None:
    without = {key: value for key, value in CONFIG["existing"].items() if key != "controlPlaneNodes"}

    def workloads(recording: Any) -> list[str]:
        apps = "kubernetes:apps/v1:"
        return [
            r.request.type.removeprefix(apps)
            for r in recording.registrations
            if r.request.type.startswith(apps) and r.request.name == "cloud-controller-manager"
        ]

    assert workloads(run_stack()) == ["DaemonSet"]
    assert workloads(run_stack(existing=without)) == ["Deployment"]


def test_objects_are_deleted_one_by_one_because_the_cluster_stays(run_stack: Any) -> None:
    assert not [r.urn for r in run_stack().registrations if r.request.deletedWith]


def test_only_secrets_hold_the_kubeconfig(run_stack: Any, is_secret: Any) -> None:
    recording = run_stack()

    assert SECRET not in visible(recording, is_secret)
    assert is_secret(recording.outputs["kubeconfig"])
    assert is_secret(recording.one("pulumi:providers:kubernetes", "shop").inputs["kubeconfig"])


def test_the_guard_is_deleted_before_everything_else(run_stack: Any) -> None:
    assert unguarded(run_stack()) == set()


def test_a_new_endpoint_of_the_cluster_does_not_replace_what_is_in_it(run_stack: Any) -> None:
    api = run_stack().one("pulumi:providers:kubernetes", "shop").inputs

    assert api["clusterIdentifier"] == "c-1"


def existing(**more: Any) -> Any:
    return {
        "cloud": "mycloud",
        "cluster_id": "c-1",
        "network_id": "net-1",
        "pod_cidr": "10.20.0.0/16",
        "kubeconfig": "k",
        **more,
    }


@pytest.mark.parametrize(
    ("args", "path", "hint"),
    [
        (existing(pod_cidr="10.20.0.1/16"), "pod_cidr", "host bits"),
        (existing(cloud="nimbus"), "cloud", "mycloud"),
        (existing(kubeconfig=None), "kubeconfig", "is missing"),
        (existing(zones=["zone-a"]), "zones", "unknown argument"),
    ],
)
def test_a_wrong_input_of_an_existing_cluster_is_refused_by_its_name(
    args: Any, path: str, hint: str, run_program: Any
) -> None:
    with pytest.raises(pulumi.InputPropertyError) as caught:
        run_program(lambda: Cluster.get("c", args))

    assert caught.value.property_path == path
    assert hint in caught.value.reason
    assert "Cluster 'c' (" in str(caught.value)
