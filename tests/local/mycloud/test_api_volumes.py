"""Volumes for users and on disk: the API, the lifecycle and its real machinery."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from local.addresses import AddressBlock
from local.mycloud.api import create_app
from local.mycloud.context import Context
from local.mycloud.folder import MyCloudFolder
from local.mycloud.lifecycle import Lifecycle
from local.mycloud.machinery import ClusterFacts, LocalMachinery
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.models.networking import NetworkRecord
from local.mycloud.status import site_objects
from local.mycloud.store import Store

pytestmark = pytest.mark.integration

DEADLINE = 60.0

Json = dict[str, Any]


class NoKubeconfigs:
    def kubeconfig(self, cluster: Cluster, ttl: timedelta) -> str:
        raise AssertionError(f"nobody asks for {cluster.id} ({ttl})")


class NoProcesses(LocalMachinery):
    """Machinery without processes: machines have their directories, volumes their disks."""

    folder: MyCloudFolder

    def balancer_is_running(self) -> bool:
        return True

    def start_cluster(self, cluster: Cluster, network: NetworkRecord) -> ClusterFacts:
        return ClusterFacts("v1", f"https://{network.index}", cluster.id)

    def cluster_is_running(self, cluster: Cluster, network: NetworkRecord) -> bool:  # noqa: ARG002
        return True

    def boot(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> None:  # noqa: ARG002
        self.folder.machine(machine.id).mkdir(parents=True, exist_ok=True)

    def machine_is_running(self, machine: MachineRecord) -> bool:
        return self.folder.machine(machine.id).exists()

    def halt(self, machine: MachineRecord, grace_seconds: float) -> None:
        """No process, nothing to end."""


class Cloud:
    """A site with a network of two zones and a cluster, whose lifecycle carries out requests."""

    def __init__(self, http: TestClient, folder: MyCloudFolder) -> None:
        self.http = http
        self.folder = folder
        self.network = self.post("networks", {"name": "n"})["id"]
        self.subnets = {
            zone: self.post("subnets", {"name": zone, "network_id": self.network, "zone": zone})["id"]
            for zone in ("zone-a", "zone-b")
        }
        self.cluster = self.post("clusters", {"name": "c", "network_id": self.network})["id"]

    def post(self, path: str, body: Json) -> Json:
        answer = self.http.post(f"/v1/{path}", json=body)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    def get(self, path: str, **query: str) -> Json:
        answer = self.http.get(f"/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def machine(self, name: str = "m", zone: str = "zone-a") -> str:
        body = {"name": name, "subnet_id": self.subnets[zone], "cluster_id": self.cluster}
        made = self.post("machines", {**body, "type": "m1.small", "role": "worker"})["id"]
        self.until(lambda: self.get(f"machines/{made}")["state"] == "running")
        return str(made)

    def volume(self, name: str = "v", zone: str = "zone-a", **more: Any) -> str:
        made = self.post("volumes", {"name": name, "zone": zone, "size_gib": 10, **more})
        self.until(lambda: self.get(f"volumes/{made['id']}")["state"] == "available")
        return str(made["id"])

    def attach(self, volume: str, machine: str) -> None:
        self.post(f"volumes/{volume}:attach", {"machine_id": machine})
        attached = {"machine_id": machine, "state": "attached"}
        self.until(lambda: self.attachment(volume) == attached)

    def attachment(self, volume: str) -> Json | None:
        found: Json | None = self.get(f"volumes/{volume}")["attachment"]
        return found

    def names(self, **query: str) -> list[str]:
        return [each["name"] for each in self.get("volumes", **query)["items"]]

    def is_gone(self, volume: str) -> bool:
        return self.http.get(f"/v1/volumes/{volume}").status_code == 404

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.01)


def refused(answer: Any, status: int, code: str) -> Json:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    return dict(answer.json()["error"])


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    folder = MyCloudFolder(tmp_path)
    folder.prepare()
    block = AddressBlock(32)
    folder.write_site(block)
    token = folder.ensure_token()
    store = Store(folder.database)
    machinery = NoProcesses(folder, block, {})
    machinery.folder = folder
    lifecycle = Lifecycle(store, machinery, tick_seconds=0.02, retry_seconds=0.02)
    lifecycle.start()
    with TestClient(
        create_app(Context(block, store, token, NoKubeconfigs())), headers={"Authorization": f"Bearer {token}"}
    ) as http:
        yield Cloud(http, folder)
    lifecycle.stop()
    store.close()


# ------------------------------------------------------------------------------------------------------- the objects


def test_a_volume_is_made_empty_and_attached_to_nothing(cloud: Cloud) -> None:
    made = cloud.post("volumes", {"name": "v", "zone": "zone-a", "size_gib": 10, "tags": {"a": "b"}})

    assert made["id"].startswith("vol-")
    assert made["state"] == "creating"
    cloud.until(lambda: cloud.get(f"volumes/{made['id']}")["state"] == "available")
    found = cloud.get(f"volumes/{made['id']}")
    expected = {"zone": "zone-a", "size_gib": 10, "type": "standard", "attachment": None, "tags": {"a": "b"}}
    assert {key: found[key] for key in expected} == expected
    assert list(cloud.folder.volume(made["id"]).iterdir()) == []


def test_the_same_client_token_makes_one_volume(cloud: Cloud) -> None:
    body = {"name": "v", "zone": "zone-a", "size_gib": 10, "client_token": "t"}

    assert cloud.post("volumes", body)["id"] == cloud.post("volumes", body)["id"]
    refused(cloud.http.post("/v1/volumes", json={**body, "size_gib": 11}), 409, "IdempotencyConflict")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"size_gib": 0}, "size_gib"), ({"size_gib": 1025}, "size_gib"), ({"zone": "zone-z"}, "zone"), ({"x": 1}, "x")],
)
def test_an_invalid_volume_is_refused_by_field(cloud: Cloud, wrong: Json, field: str) -> None:
    body = {"name": "v", "zone": "zone-a", "size_gib": 10, **wrong}

    assert refused(cloud.http.post("/v1/volumes", json=body), 400, "InvalidParameter")["field"] == field


def test_lists_are_filtered_by_zone_tag_and_machine(cloud: Cloud) -> None:
    machine = cloud.machine()
    attached = cloud.volume("attached", tags={"k": "v"})
    cloud.volume("elsewhere", zone="zone-b")
    cloud.attach(attached, machine)

    assert cloud.names(machine_id=machine) == ["attached"]
    assert cloud.names(tag="k=v") == ["attached"]
    assert cloud.names(zone="zone-b") == ["elsewhere"]
    assert cloud.names(machine_id="i-none") == []


def test_a_volume_only_grows_and_may_do_so_while_it_is_attached(cloud: Cloud) -> None:
    volume = cloud.volume()
    cloud.attach(volume, cloud.machine())

    assert cloud.post(f"volumes/{volume}:resize", {"size_gib": 20})["size_gib"] == 20
    assert cloud.post(f"volumes/{volume}:resize", {"size_gib": 20})["size_gib"] == 20
    error = refused(cloud.http.post(f"/v1/volumes/{volume}:resize", json={"size_gib": 19}), 400, "InvalidParameter")
    assert (error["field"], error["allowed"]) == ("size_gib", "20 to 1024")


def test_the_sites_status_names_its_volumes(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume("data")
    cloud.attach(volume, machine)

    (shown,) = site_objects(cloud.folder.database)["volumes"]

    assert (shown["name"], shown["size_gib"], shown["attachment"]["machine_id"]) == ("data", 10, machine)


# -------------------------------------------------------------------------------------------------------- attachments


def test_a_machine_sees_attached_volumes_and_not_detached_ones(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume()
    device = cloud.folder.device(machine, volume)

    cloud.attach(volume, machine)
    (device / "file").write_text("kept")
    assert cloud.post(f"volumes/{volume}:detach", {"machine_id": machine})["attachment"]["state"] == "detaching"
    cloud.until(lambda: cloud.attachment(volume) is None)

    assert not device.is_symlink()
    other = cloud.machine("other")
    cloud.attach(volume, other)
    assert (cloud.folder.device(other, volume) / "file").read_text() == "kept"


def test_attach_and_detach_can_be_repeated(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume()
    cloud.attach(volume, machine)

    assert cloud.post(f"volumes/{volume}:attach", {"machine_id": machine})["attachment"]["state"] == "attached"
    assert cloud.post(f"volumes/{volume}:detach", {"machine_id": "i-another"})["attachment"]["state"] == "attached"
    cloud.post(f"volumes/{volume}:detach", {"machine_id": machine})
    cloud.until(lambda: cloud.attachment(volume) is None)
    assert cloud.post(f"volumes/{volume}:detach", {"machine_id": machine})["attachment"] is None


def test_attaching_a_volume_elsewhere_is_refused_with_its_present_machine(cloud: Cloud) -> None:
    holder, other, volume = cloud.machine("holder"), cloud.machine("other"), cloud.volume()
    cloud.attach(volume, holder)

    error = refused(cloud.http.post(f"/v1/volumes/{volume}:attach", json={"machine_id": other}), 409, "Conflict")

    assert holder in error["message"]
    assert cloud.attachment(volume) == {"machine_id": holder, "state": "attached"}


def test_a_volume_is_attached_in_its_own_zone_and_to_running_machines_only(cloud: Cloud) -> None:
    far, stopped, volume = cloud.machine("far", "zone-b"), cloud.machine("stopped"), cloud.volume()
    cloud.post(f"machines/{stopped}/stop", {})
    cloud.until(lambda: cloud.get(f"machines/{stopped}")["state"] == "stopped")

    for machine, why in ((far, "zone-b"), (stopped, "stopped")):
        error = refused(cloud.http.post(f"/v1/volumes/{volume}:attach", json={"machine_id": machine}), 409, "Conflict")
        assert why in error["message"]
    refused(cloud.http.post(f"/v1/volumes/{volume}:attach", json={"machine_id": "i-none"}), 400, "InvalidParameter")


def test_a_stopped_machine_keeps_its_volumes_until_they_are_detached(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume()
    cloud.attach(volume, machine)
    cloud.post(f"machines/{machine}/stop", {})
    cloud.until(lambda: cloud.get(f"machines/{machine}")["state"] == "stopped")

    assert cloud.attachment(volume) == {"machine_id": machine, "state": "attached"}
    cloud.post(f"volumes/{volume}:detach", {"machine_id": machine})
    cloud.until(lambda: cloud.attachment(volume) is None)


def test_a_terminated_machine_releases_its_volumes_with_their_data(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume()
    cloud.attach(volume, machine)
    (cloud.folder.device(machine, volume) / "file").write_text("kept")

    assert cloud.http.delete(f"/v1/machines/{machine}").status_code == 202
    cloud.until(lambda: cloud.get(f"machines/{machine}")["state"] == "terminated")

    assert cloud.attachment(volume) is None
    assert (cloud.folder.volume(volume) / "file").read_text() == "kept"


# ------------------------------------------------------------------------------------------------------------ the end


def test_an_attached_volume_is_not_deleted(cloud: Cloud) -> None:
    machine, volume = cloud.machine(), cloud.volume()
    cloud.attach(volume, machine)

    error = refused(cloud.http.delete(f"/v1/volumes/{volume}"), 409, "Conflict")

    assert machine in error["message"]
    assert cloud.folder.volume(volume).exists()


def test_deleting_a_volume_deletes_its_data_and_nothing_else(cloud: Cloud, tmp_path: Path) -> None:
    volume = cloud.volume()
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    locked = cloud.folder.volume(volume) / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    (locked / "link").symlink_to(outside)
    locked.chmod(0o500)

    assert cloud.http.delete(f"/v1/volumes/{volume}").status_code == 202
    cloud.until(lambda: cloud.is_gone(volume))

    assert not cloud.folder.volume(volume).exists()
    assert outside.stat().st_mode & 0o777 == 0o755
