"""A whole stack on the stand-in of Alibaba Cloud: nodes, routes and load balancers by the CCM; nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import NODES, SERVICES, Kube
from local.alicloud.cluster import WORKERS
from local.alicloud.site import AliCloudSite
from tests.e2e.local_stack import LocalStack, eventually
from tests.e2e.patient import Patient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NAME = "alicloud-local"


@pytest.fixture(scope="module")
def site(state_folder: Path) -> Iterator[AliCloudSite]:
    """The site of the stack; what a failed test leaves is stopped."""
    site = AliCloudSite(state_folder, NAME)
    yield site
    site.down()


def nodes(kube: Kube) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in kube.list(NODES).items}


def routed(site: AliCloudSite) -> set[str]:
    return {each["node_name"] for each in site.status()["routes"]}


def test_a_stack_runs_in_the_sites_cluster_and_leaves_it_as_it_was(
    state_folder: Path, site: AliCloudSite, tmp_path: Path
) -> None:
    stack = LocalStack.copied(state_folder, NAME)

    stack.run("up")

    kubeconfig = site.stack_config().secrets["cloud-controller:kubeconfig"]
    with closing(Kube.from_kubeconfig(kubeconfig)) as kube:
        found = nodes(kube)
        assert {name: each["spec"].get("providerID") for name, each in found.items()} == {
            name: f"cn-hangzhou.i-site{number}" for number, name in enumerate(WORKERS)
        }
        assert not any(has_taint(each, UNINITIALIZED_TAINT) for each in found.values())
        (web,) = (each for each in kube.list(SERVICES).items if each["metadata"]["name"] == "web")
        assert web["status"]["loadBalancer"]["ingress"]
        eventually(lambda: routed(site) == {*WORKERS}, "each node has a route")
        Patient("alicloud", kube, kubeconfig, tmp_path).recovered()
    status = site.status()
    assert [each["listeners"] for each in status["load_balancers"] if each["listeners"]]
    assert json.dumps(stack.changes("preview")) == "{}"

    stack.run("down")

    # It would have kept the data of an account in which something is left.
    assert not site.folder.site_file.exists()
