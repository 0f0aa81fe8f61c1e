"""A site begins with a cluster that is there already: a network, machines, a real control plane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cloud_controller.kube import NODES, Kube
from local.addresses import AddressBlock
from local.alicloud import machines
from local.alicloud.cloud import AliCloud
from local.alicloud.cluster import CLUSTER_ID, NETWORK_ID, WORKERS, prepare, wanted_machines
from local.alicloud.contents import contents
from local.alicloud.server import side_of
from local.alicloud.site import AliCloudSite
from local.cluster_site import CONTENTS_PATH, HEALTH_PATH, TOKEN_HEADER
from local.http_messages import Request
from local.state_folder import StateFolder
from tests.local.alicloud.caller import call
from tests.waiting import eventually

SETTLE_SECONDS = 240.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AliCloudSite]:
    """A site that is up, for the module's tests."""
    site = AliCloudSite(tmp_path_factory.mktemp("alicloud"), "test")
    site.up()
    yield site
    site.down()


def prepared() -> AliCloud:
    cloud = AliCloud()
    with cloud.changing() as account:
        prepare(account, AddressBlock(16))
        prepare(account, AddressBlock(16))  # as every start does
    return cloud


def test_the_account_of_a_site_has_a_network_over_two_zones_and_the_clusters_machines() -> None:
    cloud = prepared()

    found = call(cloud, "ecs.DescribeInstances", Tag=[{"Key": "kubernetes.io/cluster", "Value": CLUSTER_ID}])

    instances = found["Instances"]["Instance"]
    assert [each["InstanceName"] for each in instances] == [*WORKERS]
    assert {each["ZoneId"] for each in instances} == {"cn-hangzhou-h", "cn-hangzhou-k"}
    assert call(cloud, "vpc.DescribeVpcs")["Vpcs"]["Vpc"][0]["VpcId"] == NETWORK_ID
    with cloud.changing() as account:
        assert contents(account)["left"] == []


def test_machines_that_run_are_booted_with_their_address() -> None:
    cloud = prepared()

    with cloud.changing() as account:
        machines.set_instance(account, "i-site0", status="Stopped")
        machines.add_instance(account, "vsw-h", "i-site3")
        wanted = wanted_machines(account)

    assert [*wanted] == ["i-site1", "i-site2", "i-site3"]
    # As kubelets register: ECS's default host name is iZsite3Z.
    assert [wanted[each]["node_name"] for each in ("i-site1", "i-site3")] == ["worker-1", "izsite3z"]
    assert str(wanted["i-site1"]["address"]).startswith("10.17.")


def test_what_stacks_make_is_listed_as_left() -> None:
    cloud = prepared()
    made = call(cloud, "slb.CreateLoadBalancer", InstanceChargeType="PayByCLCU", LoadBalancerName="shop")

    with cloud.changing() as account:
        found = contents(account)

    assert found["left"] == [f"CLB {made['LoadBalancerId']}"]
    (shown,) = found["load_balancers"]
    assert (shown["name"], shown["type"], shown["listeners"]) == ("shop", "clb", [])


def test_a_route_is_left_if_its_machine_is_gone() -> None:
    cloud = prepared()
    with cloud.changing() as account:
        table = account.store.all(machines.ROUTE_TABLE)[0]["id"]
    for number in (0, 1):
        wanted = {"DstCidrBlock": f"10.20.{number}.0/24", "NextHop": f"i-site{number}", "NextHopType": "Instance"}
        call(cloud, "vpc.CreateRouteEntries", RouteEntries=[{"RouteTableId": table, **wanted}])

    with cloud.changing() as account:
        machines.remove_instance(account, "i-site1")
        found = contents(account)

    assert [each["node_name"] for each in found["routes"]] == ["worker-0", None]
    assert found["left"] == ["route 10.20.1.0/24"]


def test_contents_are_for_the_site_alone_and_health_for_all(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.prepare()
    token = folder.ensure_token()
    side = side_of(prepared(), folder, lambda: True, lambda: True)

    def status(path: str, **headers: str) -> int:
        answer = side(Request("GET", path, "", {name.replace("_", "-"): value for name, value in headers.items()}))
        assert answer is not None
        return answer.status

    assert status(HEALTH_PATH) == 200
    assert status(CONTENTS_PATH) == 403
    assert status(CONTENTS_PATH, **{TOKEN_HEADER: token}) == 200
    assert status("/latest/meta-data/instance-id") == 403
    assert side(Request("POST", "/", "", {})) is None


@pytest.mark.control_plane
@pytest.mark.timeout(600)
def test_a_site_has_a_cluster_whose_nodes_join_and_come_back(running: AliCloudSite) -> None:
    running.wait_settled(SETTLE_SECONDS)
    config = running.stack_config()

    with closing(Kube.from_kubeconfig(config.secrets["cloud-controller:kubeconfig"])) as kube:

        def names() -> set[str]:
            return {each["metadata"]["name"] for each in kube.list(NODES).items}

        eventually(lambda: names() == {*WORKERS}, "the nodes join", 120)
        assert all(not each["spec"].get("providerID") for each in kube.list(NODES).items)
    assert running.left() == []
    assert "the account is empty" in str(running.nothing_left())

    running.down(keep_data=True)
    running.up()
    running.wait_settled(SETTLE_SECONDS)

    status = running.status()
    assert [each["node_name"] for each in status["machines"]] == [*WORKERS]
    assert "worker-1" in running.render(status, {})
