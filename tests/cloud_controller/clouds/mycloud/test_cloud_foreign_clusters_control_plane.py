"""A daemon with another cluster's kubeconfig, or beside an etcd that lost data, deletes nothing and says why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloud_controller import rbac
from cloud_controller.cli import commands as cli
from cloud_controller.kube import CLUSTER_ROLES, EVENTS, LEASES, NODES, SERVICES, name
from cloud_controller.load_balancers.model import CLUSTER_UID_TAG, SERVICE_TAG
from cloud_controller.safeguard import ANNOTATION, HELD, HELD_ANNOTATION
from cloud_controller.volumes import CLAIM_TAG, PV_TAG
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.clouds.mycloud.clusters_under_test import (
    SPACE,
    USER,
    Cluster,
    Daemon,
    Json,
    inventory,
    until,
)
from tests.control_planes import running_control_plane

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = [
    *(pytest.mark.control_plane, pytest.mark.timeout(600)),
    pytest.mark.usefixtures("data_plane"),
]

HELD_AFTER_A_RESTORE = 3
"""A load balancer, a volume and a route."""
SOON = 60.0
"""Seconds within which it is told that nothing is deleted, and why."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with running_control_plane(tmp_path_factory.mktemp("plane-a")) as running:
        yield running


@pytest.fixture(scope="module")
def other_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """It idles until the module's end, so the tests that need it are the last ones."""
    with running_control_plane(tmp_path_factory.mktemp("plane-b")) as running:
        yield running


@pytest.fixture
def cluster(plane: ControlPlane, site: MyCloudSite, tmp_path: Path) -> Cluster:
    return Cluster.create(plane, site, tmp_path / "a")


def last_line(daemon: Daemon) -> str:
    return daemon.log.splitlines()[-1]


def tells_of_another_api_server(daemon: Daemon) -> bool:
    line = last_line(daemon)
    return "serve another API server" in line and "kubectl get namespace kube-system" in line


def names(cluster: Cluster) -> set[str]:
    return {name(node) for node in cluster.kube.list(NODES).items}


# --------------------------------------------------------------------------------------------------- an emptied etcd


@pytest.mark.nightly
def test_a_daemon_that_starts_beside_an_emptied_etcd_ends_and_deletes_nothing(
    cluster: Cluster, site: MyCloudSite
) -> None:
    cluster.populate()
    cluster.serve()
    before, uid = inventory(site), cluster.uid

    cluster.empty()

    with cluster.daemon() as daemon:
        assert daemon.ends_by_itself(SOON) == 1
    assert tells_of_another_api_server(daemon)
    assert uid not in last_line(daemon), "whoever pastes it takes over what may be alive"
    assert inventory(site) == before


def test_a_daemon_whose_etcd_is_emptied_ends_and_deletes_nothing(cluster: Cluster, site: MyCloudSite) -> None:
    cluster.populate()
    with cluster.daemon("--leader-elect=false") as daemon:
        until(lambda: cluster.served and cluster.reached, "all is served", daemon)
        before, uid = inventory(site), cluster.uid

        cluster.empty()

        assert daemon.ends_by_itself(SOON) == 1
    why = f"the API server now belongs to another Kubernetes cluster: the UID was {uid} and is {cluster.uid}"
    assert why in daemon.log
    assert inventory(site) == before


@pytest.mark.nightly
def test_what_moved_here_on_purpose_gets_this_clusters_uid(cluster: Cluster) -> None:
    cluster.populate()
    cluster.serve()
    ids = {lb["id"] for lb in cluster.load_balancers}
    cluster.mark("the-cluster-before")
    with cluster.daemon() as daemon:
        assert daemon.ends_by_itself(SOON) == 1
    assert tells_of_another_api_server(daemon)

    with cluster.daemon("--moved-from-cluster=the-cluster-before"):
        until(lambda: uids(cluster) == {cluster.uid}, "everything carries the UID of this cluster")

    assert {lb["id"] for lb in cluster.load_balancers} == ids
    with cluster.daemon() as daemon:
        until(lambda: "start controller=service" in daemon.log, "it starts without the option")


def uids(cluster: Cluster) -> set[str | None]:
    return {each["tags"].get(CLUSTER_UID_TAG) for each in [*cluster.load_balancers, *cluster.volumes]}


# --------------------------------------------------------------------------------------------------- a restored etcd


@pytest.fixture
def restored(cluster: Cluster, tmp_path: Path) -> Cluster:
    """Its etcd knows nothing of Service `late`, of claims `late-data` and `half-made`, and of node `a-late`."""
    cluster.populate()
    cluster.serve()
    cluster.back_up(tmp_path / "backup")
    cluster.add_node("late")
    cluster.add_service("late")
    cluster.add_claim("late-data")
    cluster.add_claim("half-made")
    cluster.serve()
    [half_made] = [each for each in cluster.volumes if each["tags"][CLAIM_TAG] == f"{SPACE}/half-made"]
    # As it is before its PersistentVolume stands.
    tags = {key: value for key, value in half_made["tags"].items() if key != PV_TAG}
    cluster.site.client.update("volumes", half_made["id"], {"tags": tags})
    cluster.restore(tmp_path / "backup")
    cluster.nodes.remove("a-late")
    cluster.services.remove("late")
    cluster.claims.remove("late-data")
    cluster.claims.remove("half-made")
    return cluster


def digests(text: str) -> dict[str, str]:
    """By target, as log and plan show them."""
    found = re.findall(r"(\S+): [^\n]*\[held ([0-9a-f]{12})\]", text)
    return {target.lstrip("'\"- "): digest for target, digest in found}


@pytest.mark.nightly
def test_what_a_restored_etcd_does_not_know_is_held_and_told_everywhere(
    restored: Cluster, site: MyCloudSite, capsys: pytest.CaptureFixture[str]
) -> None:
    before = made(restored)
    [half_made] = [volume for volume in restored.volumes if PV_TAG not in volume["tags"]]
    late = [route for route in restored.routes if is_of(site, route, "a-late")]
    held = {"service/default/late", f"volume/{half_made['id']}", f"route/{late[0]['destination_cidr']}"}

    with restored.daemon() as daemon:
        until(lambda: held <= digests(daemon.log).keys(), f"all of {held} is held", daemon)
        found = digests(daemon.log)
        assert found.keys() == held
        assert f"[held {found['service/default/late']}]" in daemon.get("/readyz?verbose")
        assert "[+]actions-held 3 held" in daemon.get("/readyz?verbose")
        assert 'cloudcontroller_actions_held{controller="service"} 1.0' in daemon.get("/metrics")
        assert 'cloudcontroller_actions_held{controller="volume"} 1.0' in daemon.get("/metrics")
        assert 'cloudcontroller_actions_held{controller="route"} 1.0' in daemon.get("/metrics")
        until(lambda: held_events(restored) >= {*found.values()}, "each has its event")
        restored.add_service("new")
        until(lambda: restored.served, "a new Service is served all the same")
        assert cli.main(["plan", *restored.options()]) == 0
        assert digests(capsys.readouterr().out) == found

    assert made(restored) == {*before, "default/new"}


@pytest.mark.nightly
def test_a_confirmation_releases_one_held_action_once_though_the_daemon_dies_before(restored: Cluster) -> None:
    [half_made] = [volume["id"] for volume in restored.volumes if PV_TAG not in volume["tags"]]
    before = made(restored)
    with restored.daemon() as daemon:
        until(lambda: "service/default/late" in digests(daemon.log), "the load balancer is held")
        until(lambda: f"volume/{half_made}" in digests(daemon.log), "the volume is held")
        digest = digests(daemon.log)["service/default/late"]
        until(lambda: digest in annotated(restored, HELD_ANNOTATION), "the Lease says what is held")
        daemon.kill()

    assert cli.main(["confirm", f"--kubeconfig={restored.kubeconfig}", digest]) == 0
    with restored.daemon() as daemon:
        until(lambda: "default/late" not in made(restored), "what was confirmed is gone", daemon)
        until(lambda: not annotated(restored, ANNOTATION), "the confirmation is used up")
        until(lambda: f"volume/{half_made}" in digests(daemon.log), "the other is held still")

    assert made(restored) == before - {"default/late"}


@pytest.mark.nightly
def test_a_daemon_without_a_lease_carries_out_whatever_is_confirmed_while_it_runs(restored: Cluster) -> None:
    known = {f"{SPACE}/{service}" for service in restored.services}
    with restored.daemon("--leader-elect=false") as daemon:
        until(lambda: len(digests(daemon.log)) == HELD_AFTER_A_RESTORE, "all is held", daemon)
        restored.kube.delete(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)

        confirmed = {*digests(daemon.log).values()}
        until(lambda: confirmed <= annotated(restored, HELD_ANNOTATION), "it makes one that says what is held")
        assert cli.main(["confirm", f"--kubeconfig={restored.kubeconfig}", *confirmed]) == 0

        until(lambda: {lb["tags"][SERVICE_TAG] for lb in restored.load_balancers} == known, "no load balancer", daemon)
        until(lambda: all(PV_TAG in volume["tags"] for volume in restored.volumes), "no volume", daemon)
        until(lambda: len(restored.routes) == len(restored.nodes), "no route is left over", daemon)
        until(lambda: "actions-held" not in daemon.get("/readyz?verbose"), "nothing is held any more", daemon)
        until(lambda: not annotated(restored, ANNOTATION), "the confirmations are used up", daemon)


def is_of(site: MyCloudSite, route: Json, machine: str) -> bool:
    return bool(site.client.get("machines", route["next_hop_machine_id"])["name"] == machine)


def made(cluster: Cluster) -> set[str]:
    """What controllers have made for the cluster: the Services of load balancers, the ids of volumes, the routes."""
    routes = {f"{route['destination_cidr']} {route['next_hop_machine_id']}" for route in cluster.routes}
    return (
        {lb["tags"][SERVICE_TAG] for lb in cluster.load_balancers} | {each["id"] for each in cluster.volumes} | routes
    )


def held_events(cluster: Cluster) -> set[str]:
    """The digests that events tell."""
    events = [each for each in cluster.kube.list(EVENTS).items if each.get("reason") == HELD]
    return {str(each["message"]).rsplit(" ", 1)[-1] for each in events}


def annotated(cluster: Cluster, prefix: str) -> set[str]:
    """The digests in the Lease's annotations with this prefix; none without a Lease."""
    leases = cluster.kube.list(LEASES, rbac.LEASE_NAMESPACE).items
    [found] = [each["metadata"].get("annotations") or {} for each in leases if name(each) == rbac.LEASE_NAME] or [{}]
    return {each.removeprefix(prefix) for each in found if each.startswith(prefix)}


# ------------------------------------------------------------------------------------------------- ordinary deletion


@pytest.mark.nightly
def test_what_is_deleted_in_the_ordinary_way_is_held_by_nobody(cluster: Cluster, site: MyCloudSite) -> None:
    cluster.populate()
    with cluster.daemon() as daemon:
        until(lambda: cluster.served, "all is served")
        for service in cluster.services:
            cluster.kube.delete(SERVICES, service, SPACE)
        for node in cluster.nodes:
            cluster.kube.delete(NODES, node)
        until(lambda: not site.load_balancers() and not cluster.routes, "all is gone", daemon)
        assert " held " not in daemon.log


# --------------------------------------------------------------------------------------------------------- the right


@pytest.mark.nightly
def test_a_daemon_that_may_not_read_the_clusters_identity_ends_with_the_right_that_it_lacks(cluster: Cluster) -> None:
    role = cluster.kube.get(CLUSTER_ROLES, USER)
    rules = [rule for rule in role["rules"] if rule["resources"] != ["namespaces"]]
    cluster.kube.replace(CLUSTER_ROLES, {**role, "rules": rules})
    try:
        with cluster.daemon() as daemon:
            assert daemon.ends_by_itself(SOON) == 1
    finally:
        cluster.kube.replace(CLUSTER_ROLES, {**cluster.kube.get(CLUSTER_ROLES, USER), "rules": role["rules"]})

    [line] = [line for line in daemon.log.splitlines() if line.startswith("cloud-controller: ")]
    assert 'cannot get resource "namespaces"' in line
    assert '"kube-system"' in line


# -------------------------------------------------------------------------------------------- two clusters, swapped


@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "made by an earlier version"])
def test_one_clusters_cloud_config_with_anothers_kubeconfig_ends_the_start_and_deletes_nothing(
    cluster: Cluster, other_plane: ControlPlane, site: MyCloudSite, tmp_path: Path, tagged: bool
) -> None:
    other = Cluster.create(other_plane, site, tmp_path / "b")
    for each in (cluster, other):
        each.populate()
        each.serve()
        if not tagged:
            each.mark(None)
    before, nodes = inventory(site), names(other)

    with cluster.daemon(of=other) as daemon:
        assert daemon.ends_by_itself(SOON) == 1

    assert other.uid in last_line(daemon)
    if tagged:
        assert tells_of_another_api_server(daemon)
        assert cluster.uid not in last_line(daemon)
    else:
        assert "2 load balancers" in last_line(daemon)
        assert "--moved-from-cluster=none" in last_line(daemon)
    assert inventory(site) == before
    assert names(other) == nodes


@pytest.mark.nightly
def test_machines_alone_tell_that_the_kubeconfig_is_anothers(
    cluster: Cluster, other_plane: ControlPlane, site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Cluster.create(other_plane, site, tmp_path / "b")
    for each in (cluster, other):
        each.add_node("worker-0")
    other.add_service("web")
    before = inventory(site)
    options = [*cluster.options(of=other), "--controllers=service"]

    with cluster.daemon("--leader-elect=false", "--controllers=service", of=other) as daemon:
        assert daemon.ends_by_itself(SOON) == 1
    assert "1 machines of this cluster" in last_line(daemon)
    for command in (["plan"], ["apply", "--yes", "--leader-elect=false"]):
        assert cli.main([*command, *options]) == 1
        assert "1 machines of this cluster" in capsys.readouterr().err
    assert inventory(site) == before
    assert not other.kube.get(SERVICES, "web", SPACE)["metadata"].get("finalizers")


@pytest.mark.nightly
def test_another_clusters_routes_are_held_though_the_option_that_takes_over_is_given(
    cluster: Cluster, other_plane: ControlPlane, site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Cluster.create(other_plane, site, tmp_path / "b")
    for each in (cluster, other):
        each.populate()
        each.serve()
    capsys.readouterr()

    options = [*cluster.options(of=other), f"--moved-from-cluster={cluster.uid}", "--output=json"]
    assert cli.main(["plan", *options]) == 0

    routes = [each for each in json.loads(capsys.readouterr().out)["route"] if each["target"].startswith("route/")]
    ended = [each for each in routes if each["kind"] in ("delete", "replace")]
    assert len(ended) == len(cluster.routes)
    assert all(each.get("held") for each in ended)
