"""The CCM without Pulumi: applied from `cloud-controller manifests` in a new cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import DAEMON_SETS, NODES, SERVICES, Object, PatchType, name, namespace
from local.mycloud.site import Site
from tests.e2e.local_stack import ROOT, eventually
from tests.e2e.mycloud_cluster import MycloudCluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


class Cluster(MycloudCluster):
    """A cluster with a control-plane machine and a worker, and no CCM yet."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, {"control-plane": "control-plane", "worker": "worker"})

    def manifests(self, directory: Path) -> list[Object]:
        """The command's output with the cloud config of this cluster."""
        file = directory / "cloud.conf"
        file.write_text(render(Config(self.site.endpoint, self.site.token, self.id)))
        options = [f"--with-cloud-config={file}", f"--cluster-cidr={self.pods}", "--cluster-name=c"]
        command = [sys.executable, "-m", "cloud_controller.cli", "manifests", "--cloud=mycloud", *options]
        command += ["--image=registry.local/cloud-controller:0.1.0"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        return list(yaml.safe_load_all(done.stdout))

    def apply(self, objects: list[Object]) -> None:
        """As `kubectl apply --server-side` does."""
        for obj in objects:
            resource = self.kube.resource(obj["apiVersion"], obj["kind"])
            self.kube.patch(resource, name(obj), obj, namespace(obj), type=PatchType.APPLY, field_manager="kubectl")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with the CCM applied."""
    directory = tmp_path_factory.mktemp("site")
    site = Site(directory / "state")
    try:
        found = Cluster(site)
        found.apply(found.manifests(directory))
        yield found
    finally:
        site.down()


def test_the_daemon_set_rolls_out(cluster: Cluster) -> None:
    def available() -> bool:
        status = cluster.kube.get(DAEMON_SETS, "cloud-controller-manager", "kube-system").get("status", {})
        return bool(status.get("desiredNumberScheduled") == status.get("numberAvailable") == 1)

    eventually(available, "one daemon runs on the control-plane machine, ready")


def test_every_node_is_initialised_and_has_a_route(cluster: Cluster) -> None:
    def initialised() -> bool:
        nodes = cluster.kube.list(NODES).items
        return len(nodes) == 2 and not any(has_taint(node, UNINITIALIZED_TAINT) for node in nodes)

    eventually(initialised, "both nodes are initialised")
    ranges = {node["spec"]["podCIDR"] for node in cluster.kube.list(NODES).items}
    eventually(
        lambda: ranges == {r["destination_cidr"] for r in cluster.cloud.list(cluster.routes)}, "both have routes"
    )


def test_a_service_gets_an_address(cluster: Cluster) -> None:
    spec = {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": [{"port": 8080, "protocol": "TCP"}]}
    made = {"metadata": {"name": "shop", "namespace": "default"}, "spec": spec}
    cluster.kube.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **made})

    def address() -> str | None:
        found = cluster.kube.get(SERVICES, "shop", "default")["status"].get("loadBalancer", {}).get("ingress", [])
        return found[0]["ip"] if found else None

    assert eventually(address, "its load balancer is made")
    cluster.kube.delete(SERVICES, "shop", "default")
    eventually(lambda: not cluster.cloud.list("load_balancers"), "its load balancer goes with it")


def test_applying_the_manifests_again_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    def versions() -> dict[str, int]:
        objects = cluster.manifests(tmp_path)
        found = [
            cluster.kube.get(cluster.kube.resource(o["apiVersion"], o["kind"]), name(o), namespace(o)) for o in objects
        ]
        return {each["kind"]: each["metadata"].get("generation", 0) for each in found}

    before = versions()
    cluster.apply(cluster.manifests(tmp_path))

    assert versions() == before
