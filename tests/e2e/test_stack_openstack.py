"""A whole stack on OpenStack's own services: nodes, routes and load balancers by the CCM; nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import NODES, SERVICES, Kube
from local.openstack.cluster import WORKERS
from local.openstack.site import OpenstackSite
from tests.e2e.local_stack import LocalStack, eventually
from tests.e2e.patient import Patient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NAME = "openstack-local"


@pytest.fixture(scope="module")
def site(state_folder: Path) -> Iterator[OpenstackSite]:
    """The site of the stack; what a failed test leaves is stopped."""
    site = OpenstackSite(state_folder, NAME)
    yield site
    site.down()


@pytest.fixture(scope="module")
def stack(state_folder: Path, site: OpenstackSite) -> LocalStack:
    """The stack, up; the last test takes it down."""
    del site  # It ends the site whatever happens.
    stack = LocalStack.copied(state_folder, NAME)
    stack.run("up")
    return stack


def nodes(kube: Kube) -> dict[str, Any]:
    return {each["metadata"]["name"]: each for each in kube.list(NODES).items}


def internal_ip(node: Any) -> str:
    return next(str(each["address"]) for each in node["status"]["addresses"] if each["type"] == "InternalIP")


def routed(site: OpenstackSite) -> set[str]:
    return {each["node_name"] for each in site.status()["routes"]}


def balancer(site: OpenstackSite, address: str) -> dict[str, Any]:
    (found,) = (each for each in site.status()["load_balancers"] if each["address"] == address)
    return dict(found)


def test_the_controllers_serve_the_cluster_that_the_site_has(
    stack: LocalStack, site: OpenstackSite, tmp_path: Path
) -> None:
    servers = {each["node_name"]: each["id"] for each in site.status()["machines"]}
    assert set(servers) == set(WORKERS)
    kubeconfig = site.stack_config().secrets["cloud-controller:kubeconfig"]
    with closing(Kube.from_kubeconfig(kubeconfig)) as kube:
        found = nodes(kube)
        assert {name: each["spec"].get("providerID") for name, each in found.items()} == {
            name: f"openstack:///{server}" for name, server in servers.items()
        }
        assert not any(has_taint(each, UNINITIALIZED_TAINT) for each in found.values())
        (web,) = (each for each in kube.list(SERVICES).items if each["metadata"]["name"] == "web")
        (ingress,) = web["status"]["loadBalancer"]["ingress"]
        eventually(lambda: routed(site) == {*WORKERS}, "each node has a route")
        Patient("openstack", kube, kubeconfig, tmp_path).recovered()
    node_port = web["spec"]["ports"][0]["nodePort"]
    members = sorted(f"{internal_ip(each)}:{node_port}" for each in found.values())
    eventually(lambda: balancer(site, ingress["ip"])["members"] == members, "each node is a member")
    assert balancer(site, ingress["ip"])["listeners"] == ["TCP 8080"]
    assert {each["state"] for each in site.status()["load_balancers"]} == {"ACTIVE"}
    assert json.dumps(stack.changes("preview")) == "{}"


def test_a_stopped_site_goes_on_with_the_same_servers_and_load_balancers(
    stack: LocalStack, site: OpenstackSite
) -> None:
    before = site.status()

    stack.run("stop")
    stack.run("up")

    after = site.status()
    for kind in ("machines", "load_balancers"):
        assert sorted(each["id"] for each in after[kind]) == sorted(each["id"] for each in before[kind])


def test_down_leaves_the_project_as_it_was(stack: LocalStack, site: OpenstackSite) -> None:
    stack.run("down")

    # It would have kept the data of a project in which something is left.
    assert not site.folder.site_file.exists()
