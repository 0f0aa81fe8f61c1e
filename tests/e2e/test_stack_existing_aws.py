"""A stack on an EKS cluster that AWS's API made: the role that it adds, and what a destroy leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import DEPLOYMENTS, NODES, Kube, NotFoundError
from local.aws.site import AwsSite
from local.cluster_access import admin_kubeconfigs
from tests.e2e.aws_cluster import REGION, AwsCluster
from tests.e2e.local_stack import LocalStack, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

STACK = "shop"


def stack_file(cluster: AwsCluster) -> dict[str, Any]:
    """As a user writes it, but for the kubeconfig."""
    config = {
        "cloud": "aws",
        "cluster": "existing",
        "clusterName": "shop",
        "existing": {
            "clusterId": cluster.name,
            "networkId": cluster.vpc_id,
            "podCidr": cluster.pods,
            "machines": sorted(cluster.instances()),
        },
        "aws": {
            "simulated": True,
            "region": REGION,
            "kubernetesVersion": "1.36",
            "existing": {"oidcProvider": cluster.oidc_provider},
        },
        # As in aws-local: the stand-in for EKS's control plane has no controllers of its own.
        "executors": {"node": "daemon", "route": "daemon", "node-lifecycle": "daemon"},
        "workloads": True,
        "sourceRanges": ["127.0.0.0/8"],
    }
    return {"config": {f"cloud-controller:{key}": value for key, value in config.items()}}


@pytest.fixture(scope="module")
def cluster(state_folder: Path) -> Iterator[AwsCluster]:
    """The cluster on a site of its own, whose data are deleted at the end."""
    site = AwsSite(state_folder, STACK, REGION)
    try:
        yield AwsCluster(site)
    finally:
        site.down()


@pytest.fixture(scope="module")
def before(cluster: AwsCluster) -> set[str]:
    """What the account holds without the stack."""
    eventually(lambda: len(nodes(cluster)) == 2, "both machines have registered")
    return cluster.left()


@pytest.fixture(scope="module")
def stack(cluster: AwsCluster, before: set[str], state_folder: Path) -> LocalStack:
    """The stack, up."""
    assert before
    file = state_folder / "input" / f"Pulumi.{STACK}.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(stack_file(cluster)))
    stack = LocalStack(state_folder, file, STACK)
    stack.pulumi("config", "set", "--secret", "kubeconfig", given=cluster.kubeconfig)
    stack.run("up")
    return stack


def nodes(cluster: AwsCluster) -> list[dict[str, Any]]:
    """The nodes, of which the site's administrator asks."""
    [kubeconfig] = admin_kubeconfigs(cluster.site.folder).values()
    return Kube.from_file(kubeconfig).list(NODES).items


@pytest.mark.usefixtures("stack")
def test_the_stack_adds_a_role_load_balancers_and_nothing_else(cluster: AwsCluster, before: set[str]) -> None:
    assert not [each["metadata"]["name"] for each in nodes(cluster) if has_taint(each, UNINITIALIZED_TAINT)]
    assert len(cluster.routes()) == 2
    kinds = {each.partition(" ")[0] for each in cluster.left() - before}
    assert kinds <= {"load", "target", "security", "role", "policy"}
    assert len(cluster.load_balancers()) == 2
    assert [name for name in cluster.roles() if name.startswith("shop-cloud-controller-manager")]


def test_neither_preview_nor_refresh_changes_anything(stack: LocalStack) -> None:
    assert stack.changes("preview") == {}
    assert stack.changes("refresh") == {}


def test_down_removes_what_the_stack_made_and_leaves_the_cluster_as_it_was(
    cluster: AwsCluster, stack: LocalStack, before: set[str]
) -> None:
    instances, routes = cluster.instances(), cluster.routes()

    stack.run("down")
    cluster.site.up()

    assert cluster.left() == before
    assert cluster.instances() == instances
    assert cluster.routes() == routes
    assert cluster.aws("eks").describe_cluster(name=cluster.name)["cluster"]["status"] in ("ACTIVE", "UPDATING")
    eventually(lambda: not cluster.site.pending(), "control plane and machines run again")
    [kubeconfig] = admin_kubeconfigs(cluster.site.folder).values()
    with pytest.raises(NotFoundError):
        Kube.from_file(kubeconfig).get(DEPLOYMENTS, "cloud-controller-manager", "kube-system")
    assert {each["metadata"]["name"] for each in nodes(cluster)} == set(instances)
