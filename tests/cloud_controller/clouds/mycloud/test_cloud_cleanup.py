"""`cloud-controller cleanup` on mycloud's real API: all of a gone cluster goes, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller import cleanup, converge
from cloud_controller.cli import commands as cli
from cloud_controller.cloud import AccessDenied, CloudError, Throttled, Unavailable
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.instances import MyCloudInstances
from cloud_controller.load_balancers.model import CLUSTER_TAG
from cloud_controller.volumes import PV_TAG, ClaimOwner
from local.mycloud.models.common import State
from local.mycloud.models.volumes import Attachment
from local.mycloud.models.volumes import Volume as CloudVolume
from tests.cloud_controller.clouds.mycloud.services import named, web
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import Json, MyCloudSite

NOBODY_ANSWERS = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converge, "round_pause", lambda _: 0.01)


def served(site: MyCloudSite, name: str = "web", cluster_id: str | None = None, **settings: Any) -> Json:
    """The load balancer that a Service was given before its cluster went."""
    cluster = Cluster()
    cluster.put(web(named(**settings), name=name, uid=f"uid-{name}-{cluster_id}"))
    before = {each["id"] for each in site.load_balancers()}
    Running(site, cluster, cluster_id=cluster_id or site.cluster["id"]).settle(f"default/{name}")
    return next((each for each in site.load_balancers() if each["id"] not in before), {})


def volume(site: MyCloudSite, *, machine: str | None = None) -> str:
    owner = ClaimOwner(site.cluster["id"], "uid-data", "default", "data")
    body = {"name": "pvc", "zone": "zone-b", "size_gib": 5, "tags": {**owner.tags, PV_TAG: "pvc"}}
    made = str(site.client.create("volumes", body)["id"])
    with site.context.store.write() as session:
        found = session.get(CloudVolume, made)
        attachment = Attachment(machine_id=machine, state="attached") if machine else None
        session.save(found.model_copy(update={"state": State.AVAILABLE, "attachment": attachment}))
    return made


def clean(site: MyCloudSite, directory: Path, *more: str, cluster_id: str | None = None) -> int:
    """Call it once the cluster itself is gone."""
    with site.context.store.write() as session:
        session.remove(site.cluster["id"])
    for each in site.cloud.instances.list():
        site.set_machine_state(each.id, State.TERMINATED)
    return command(site, directory, *more, cluster_id=cluster_id)


def command(site: MyCloudSite, directory: Path, *more: str, cluster_id: str | None = None) -> int:
    config = directory / "cloud.conf"
    lines = [f"endpoint = {site.endpoint}", f"token = {site.token}", f"cluster-id = {site.cluster['id']}"]
    config.write_text("\n".join(["[Global]", *lines, f"network-id = {site.network['id']}", ""]))
    where = ["--cloud=mycloud", f"--cloud-config={config}", f"--cluster-id={cluster_id or site.cluster['id']}"]
    return cli.main(["cleanup", *where, "--log-level=error", *more])


def test_without_consent_the_plan_is_shown_and_nothing_is_changed(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    lb, data = served(site), volume(site)

    assert clean(site, tmp_path) == 1

    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == [
        f"cluster {site.cluster['id']} is gone: mycloud answers that there is no such cluster",
        "at stake: 1 load balancer, 1 volume with its data",
    ]
    assert f"-  service/default/web: delete load balancer {lb['id']}" in out
    assert f"-  volume/{data}: delete the volume of claim default/data (5 GiB) (its cluster is gone)" in out
    assert "pass --yes" in err
    assert [each["state"] for each in (*site.load_balancers(), *site.client.list("volumes"))] == 2 * ["available"]


@pytest.mark.usefixtures("data_plane")
def test_load_balancers_and_volumes_go_and_machines_and_networks_stay(site: MyCloudSite, tmp_path: Path) -> None:
    machine = site.machine("worker-0")
    served(site)
    served(site, "second")
    volume(site, machine=machine["id"])

    assert clean(site, tmp_path, "--yes") == 0

    assert site.load_balancers() == []
    assert site.client.list("volumes") == []
    assert [each["id"] for each in site.client.list("machines")] == [machine["id"]]
    assert [each["id"] for each in site.client.list("networks")] == [site.network["id"]]


@pytest.mark.usefixtures("data_plane")
def test_what_is_not_the_clusters_stays_and_so_does_what_was_preserved(site: MyCloudSite, tmp_path: Path) -> None:
    other = site.client.create(
        "clusters", {"name": "c2", "network_id": site.client.create("networks", {"name": "n2"})["id"]}
    )
    theirs = served(site, "theirs", cluster_id=other["id"])
    own = {"name": "by-hand", "network_id": site.network["id"]}
    by_hand = site.client.create("load_balancers", own)
    preserved = site.client.create(
        "load_balancers", {**own, "name": "kept", "tags": {"cloud-controller/preserved-from": "c/default/web"}}
    )
    foreign = site.client.create("volumes", {"name": "x", "zone": "zone-b", "size_gib": 1})
    served(site)

    assert clean(site, tmp_path, "--yes") == 0

    assert {each["id"] for each in site.load_balancers()} == {theirs["id"], by_hand["id"], preserved["id"]}
    assert [each["id"] for each in site.client.list("volumes")] == [foreign["id"]]


@pytest.mark.usefixtures("data_plane")
def test_of_a_shared_load_balancer_the_clusters_parts_go(site: MyCloudSite, tmp_path: Path) -> None:
    tags = {"cloud-controller/shared-with": "any"}
    shared = site.client.create("load_balancers", {"name": "edge", "network_id": site.network["id"], "tags": tags})
    site.settle()
    served(site, id=shared["id"])
    assert site.client.get("load_balancers", shared["id"])["listeners"]

    assert clean(site, tmp_path, "--yes") == 0

    left = site.client.get("load_balancers", shared["id"])
    assert (left["listeners"], left["backend_sets"]) == ([], [])


@pytest.mark.usefixtures("data_plane")
def test_routes_go_where_their_range_is_given_and_others_stay(site: MyCloudSite, tmp_path: Path) -> None:
    machine = site.machine("worker-0")
    stranger = site.machine("stranger", tags={})
    table = f"route_tables/{site.network['route_table_id']}/routes"
    routes = [{"destination_cidr": "10.90.1.0/24", "next_hop_machine_id": machine["id"]}]
    routes += [{"destination_cidr": "10.90.2.0/24", "next_hop_machine_id": stranger["id"]}]
    site.client.post(f"{table}:batch_create", {"routes": routes})

    assert clean(site, tmp_path, "--yes") == 0
    assert len(site.client.list(table)) == 2
    assert clean(site, tmp_path, "--yes", "--cluster-cidr=10.90.0.0/16") == 0

    assert [each["destination_cidr"] for each in site.client.list(table)] == ["10.90.2.0/24"]


def test_an_id_that_is_not_the_cloud_configs_is_refused(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served(site)

    assert clean(site, tmp_path, "--yes", cluster_id="c-other") == 1

    told = f"cluster-id: 'c-other' does not match the cloud config, which is for cluster '{site.cluster['id']}'"
    assert told in capsys.readouterr().err
    assert len(site.load_balancers()) == 1


ALL_SAID = ("--yes", "--cluster-is-gone")


def test_a_cluster_that_the_cloud_shows_is_left_alone_though_its_api_server_does_not_answer(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The site's cluster has no API server at all."""
    served(site)

    assert command(site, tmp_path, *ALL_SAID) == 1

    told = f"cluster {site.cluster['id']} still exists: mycloud shows it, whether its API server answers or not"
    assert told in capsys.readouterr().err
    assert len(site.load_balancers()) == 1


@pytest.mark.parametrize("error", [Unavailable("busy"), AccessDenied("no right to ask"), Throttled("slowly", 1.0)])
@pytest.mark.parametrize("unanswered", ["MyCloud.has_cluster", "MyCloudInstances.list"])
def test_nothing_is_deleted_while_the_cloud_does_not_tell_whether_the_cluster_is_gone(
    site: MyCloudSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: CloudError, unanswered: str
) -> None:
    def fails(_: object) -> bool:
        raise error

    served(site)
    of = {"MyCloud": MyCloud, "MyCloudInstances": MyCloudInstances}[unanswered.partition(".")[0]]
    with site.context.store.write() as session:
        session.remove(site.cluster["id"])
    monkeypatch.setattr(of, unanswered.partition(".")[2], fails)

    assert command(site, tmp_path, *ALL_SAID) == 1

    assert len(site.load_balancers()) == 1


@pytest.mark.usefixtures("data_plane")
@pytest.mark.parametrize("given", ["", "--kubeconfig"])
def test_where_the_cloud_cannot_tell_the_users_word_is_needed(
    site: MyCloudSite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    given: str,
) -> None:
    served(site)
    monkeypatch.setattr(MyCloud, "has_cluster", lambda _: None)
    (tmp_path / "kubeconfig").write_text(NOBODY_ANSWERS)
    more = [f"--kubeconfig={tmp_path / 'kubeconfig'}"] if given else []

    assert clean(site, tmp_path, "--yes", *more) == 1
    told = capsys.readouterr().err
    assert ("the API server does not tell which cluster it is" if given else "mycloud cannot tell") in told
    assert "At stake: 1 load balancer. Pass --kubeconfig" in told
    assert len(site.load_balancers()) == 1
    assert clean(site, tmp_path, "--yes", *more, "--cluster-is-gone") == 0

    assert f"cluster {site.cluster['id']} is gone: --cluster-is-gone says so" in capsys.readouterr().out
    assert site.load_balancers() == []


def test_an_id_that_nothing_carries_is_told_with_those_that_were_found(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.machine("theirs", tags={CLUSTER_TAG: "c-other"})

    assert clean(site, tmp_path, "--yes") == 2

    out, err = capsys.readouterr()
    told = f"nothing in the cloud carries cluster id {site.cluster['id']}; ids that were found: c-other"
    assert (out, err) == ("", f"cloud-controller: {told}\n")


def test_an_id_that_only_a_terminated_machine_carries_has_left_nothing_to_do(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.machine("worker-0")

    assert clean(site, tmp_path, "--yes") == 0

    assert capsys.readouterr().out.splitlines()[-1] == "nothing to do"


@pytest.mark.usefixtures("data_plane")
def test_what_was_done_is_told_to_programs_too(
    site: MyCloudSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lb = served(site)

    assert clean(site, tmp_path, "--output=json") == 1
    assert "json with --yes" in capsys.readouterr().err
    assert clean(site, tmp_path, "--yes", "--output=json") == 0

    told = json.loads(capsys.readouterr().out)
    assert told["evidence"] == "mycloud answers that there is no such cluster"
    assert told["at_stake"] == {"load_balancers": 1, "shared_load_balancers": 0, "volumes": 0, "pod_routes": 0}
    [action] = told["actions"]
    assert (action["controller"], action["kind"], action["target"]) == ("service", "delete", "service/default/web")
    assert lb["id"] in action["summary"]


def test_a_load_balancer_whose_service_no_tag_names_goes_too(site: MyCloudSite) -> None:
    tags = {"kubernetes.io/cluster": site.cluster["id"], "kubernetes.io/service-uid": "uid-1"}
    made = site.client.create("load_balancers", {"name": "x", "network_id": site.network["id"], "tags": tags})
    site.settle()

    [action] = cleanup.finders(site.cloud, None)["service"]().plan.changes

    assert (action.target, made["id"] in action.summary) == ("service/unknown/uid-1", True)
