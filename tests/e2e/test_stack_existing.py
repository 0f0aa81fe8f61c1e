"""A stack on a cluster that the cloud's API made: what it adds, and that a destroy leaves the cluster as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import DAEMON_SETS, NODES, SERVICES, STORAGE_CLASSES, NotFoundError, Resource
from local.mycloud.site import Site
from tests.e2e.local_stack import LocalStack, answers, eventually
from tests.e2e.mycloud_cluster import MycloudCluster

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

MACHINES = {"plane": "control-plane", "a": "worker", "b": "worker"}
THEIRS = {
    "metadata": {"name": "theirs", "namespace": "default"},
    "spec": {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": [{"port": 8090}]},
}


def stack_file(cluster: MycloudCluster) -> dict[str, Any]:
    """As a user writes it, but for the kubeconfig."""
    config = {
        "cloud": "mycloud",
        "cluster": "existing",
        "clusterName": "shop",
        "existing": {
            "clusterId": cluster.id,
            "networkId": cluster.network_id,
            "podCidr": cluster.pods,
            "controlPlaneNodes": 1,
            "machines": sorted(MACHINES),
        },
        "executors": {"node": "pulumi", "route": "pulumi"},
        "workloads": True,
        "sourceRanges": ["127.0.0.0/8"],
    }
    return {"config": {f"cloud-controller:{key}": value for key, value in config.items()}}


def encrypt_kubeconfig(stack: LocalStack, kubeconfig: str) -> None:
    """As docs/existing-clusters.md says."""
    stack.pulumi("config", "set", "--secret", "kubeconfig", given=kubeconfig)


@pytest.fixture(scope="module")
def cluster(state_folder: Path) -> MycloudCluster:
    """The cluster, and a Service of somebody else in it."""
    made = MycloudCluster(Site(state_folder), MACHINES)
    made.kube.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **THEIRS})
    return made


@pytest.fixture(scope="module")
def stack(cluster: MycloudCluster, state_folder: Path) -> Iterator[LocalStack]:
    """The stack, up."""
    file = state_folder / "input" / "Pulumi.shop.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(stack_file(cluster)))
    stack = LocalStack(state_folder, file, "shop")
    encrypt_kubeconfig(stack, cluster.kubeconfig)
    stack.run("up")
    yield stack


def web_url(stack: LocalStack) -> str:
    return str(stack.outputs["webUrl"])


def has(cluster: MycloudCluster, resource: Resource, name: str, namespace: str | None = None) -> bool:
    try:
        cluster.kube.get(resource, name, namespace)
    except NotFoundError:
        return False
    return True


def initialised(cluster: MycloudCluster) -> set[str]:
    nodes = cluster.kube.list(NODES).items
    return {each["metadata"]["name"] for each in nodes if not has_taint(each, UNINITIALIZED_TAINT)}


def services_with_load_balancers(cluster: MycloudCluster) -> set[str]:
    found = cluster.cloud.list("load_balancers")
    return {each["tags"]["kubernetes.io/service"] for each in found if each["state"] == "available"}


def test_the_machines_are_initialised_and_a_service_answers_through_its_load_balancer(
    cluster: MycloudCluster, stack: LocalStack
) -> None:
    assert initialised(cluster) == set(MACHINES)
    assert len(cluster.cloud.list(cluster.routes)) == len(MACHINES)
    eventually(lambda: answers(web_url(stack)), "a pod answers")


def test_the_state_has_no_resource_of_the_cloud(stack: LocalStack) -> None:
    state = json.loads(stack.pulumi("stack", "export"))
    types = {each["type"] for each in state["deployment"]["resources"]}

    assert not {each for each in types if "/mycloud:" in each}
    assert "cloudcontroller:index:Cluster" in types


def test_the_kubeconfig_is_in_no_file_of_the_stack_in_plain_text(cluster: MycloudCluster, stack: LocalStack) -> None:
    key = yaml.safe_load(cluster.kubeconfig)["users"][0]["user"]["client-key-data"]
    files = [file for folder in ("stacks", "input") for file in (stack.state / folder).rglob("*") if file.is_file()]

    assert files
    assert not [file for file in files if key.encode() in file.read_bytes()]


def test_neither_preview_nor_refresh_nor_up_changes_anything(stack: LocalStack) -> None:
    assert stack.changes("preview") == {}
    assert stack.changes("refresh") == {}
    assert stack.changes("up") == {}


def test_a_machine_that_the_cloud_does_not_have_is_refused_by_its_name(
    cluster: MycloudCluster, stack: LocalStack
) -> None:
    right = stack_file(cluster)["config"]["cloud-controller:existing"]
    stack.configure("existing", {**right, "machines": [*right["machines"], "c"]})
    try:
        assert "machine c is not in the cloud" in stack.run("preview", "--json", expect=1)
    finally:
        stack.configure("existing", right)


def test_a_machine_that_the_stack_file_no_longer_names_is_left_alone(
    cluster: MycloudCluster, stack: LocalStack
) -> None:
    right = stack_file(cluster)["config"]["cloud-controller:existing"]
    stack.configure("existing", {**right, "machines": ["plane"]})

    stack.run("up")

    assert initialised(cluster) == set(MACHINES)
    assert len(cluster.cloud.list(cluster.routes)) == len(MACHINES)


def test_down_refuses_to_delete_what_others_have_in_the_cluster(cluster: MycloudCluster, stack: LocalStack) -> None:
    eventually(lambda: "default/theirs" in services_with_load_balancers(cluster), "their Service has its load balancer")

    shown = stack.run("down", "--delete-unmanaged", expect=1)

    assert "only for clusters that the stack made" in shown
    assert has(cluster, DAEMON_SETS, "cloud-controller-manager", "kube-system")


def test_a_destroy_removes_what_the_stack_made_and_leaves_the_cluster_as_it_was(
    cluster: MycloudCluster, stack: LocalStack
) -> None:
    before, routes = cluster.objects(), len(cluster.cloud.list(cluster.routes))

    stack.on_copy("destroy")

    assert cluster.objects() == before
    assert len(cluster.cloud.list(cluster.routes)) == routes
    assert initialised(cluster) == set(MACHINES)
    assert services_with_load_balancers(cluster) == {"default/theirs"}
    assert has(cluster, SERVICES, "theirs", "default")
    for resource, name, namespace in (
        (DAEMON_SETS, "cloud-controller-manager", "kube-system"),
        (SERVICES, "web", "default"),
        (STORAGE_CLASSES, "mycloud", None),
    ):
        assert not has(cluster, resource, name, namespace), name


def test_the_next_up_serves_their_service_again_and_down_keeps_the_sites_data(
    cluster: MycloudCluster, stack: LocalStack
) -> None:
    [before] = cluster.cloud.list("load_balancers")

    stack.run("up")
    assert before["id"] in {each["id"] for each in cluster.cloud.list("load_balancers")}
    stack.run("down")

    assert cluster.site.folder.database.exists()
