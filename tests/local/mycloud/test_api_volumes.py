"""Volumes: what the API refuses and shows, and what is on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from local.addresses import AddressBlock
from local.mycloud.context import Context
from local.mycloud.folder import MyCloudFolder
from local.mycloud.machinery import LocalMachinery
from local.mycloud.models.common import State
from local.mycloud.models.volumes import Volume
from local.mycloud.status import site_objects
from tests.local.mycloud.api_calls import Json, get, machine_body, place, post, refused, set_state

pytestmark = pytest.mark.integration

# ------------------------------------------------------------------------------------------------------------ the API


class Cloud:
    """The API with a network of two zones and a cluster; requests are carried out by hand."""

    def __init__(self, http: TestClient, context: Context) -> None:
        self.http, self.context = http, context
        self.where = place(http)
        subnet = {"name": "t", "network_id": self.where["network_id"], "zone": "zone-a"}
        self.far = {**self.where, "subnet": post(http, "subnets", subnet)}

    def machine(self, name: str = "m", where: Json | None = None, state: State = State.RUNNING) -> str:
        made = str(post(self.http, "machines", machine_body(where or self.where, name))["id"])
        set_state(self.context, made, state)
        return made

    def volume(self, name: str = "v", zone: str = "zone-b", **more: Any) -> str:
        made = str(post(self.http, "volumes", {"name": name, "zone": zone, "size_gib": 10, **more})["id"])
        with self.context.store.write() as session:
            session.save(session.get(Volume, made).model_copy(update={"state": State.AVAILABLE}))
        return made

    def attach(self, volume: str, machine: str) -> Any:
        return self.http.post(f"/v1/volumes/{volume}:attach", json={"machine_id": machine})

    def attached(self, name: str = "v", **more: Any) -> tuple[str, str]:
        """A volume and the machine to which it is attached."""
        volume, machine = self.volume(name, **more), self.machine()
        assert self.attach(volume, machine).status_code == 200
        return volume, machine

    def resize(self, volume: str, size: int) -> Any:
        return self.http.post(f"/v1/volumes/{volume}:resize", json={"size_gib": size})

    def names(self, **query: str) -> list[str]:
        return [each["name"] for each in get(self.http, "volumes", **query)["items"]]


@pytest.fixture
def cloud(api: TestClient, context: Context) -> Cloud:
    return Cloud(api, context)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"size_gib": 0}, "size_gib"), ({"size_gib": 1025}, "size_gib"), ({"zone": "zone-z"}, "zone"), ({"x": 1}, "x")],
)
def test_an_invalid_volume_is_refused_by_field(api: TestClient, wrong: Json, field: str) -> None:
    body = {"name": "v", "zone": "zone-a", "size_gib": 10, **wrong}

    assert refused(api.post("/v1/volumes", json=body), 400, "InvalidParameter")["field"] == field


def test_volumes_are_listed_by_zone_tag_and_machine(cloud: Cloud) -> None:
    _, machine = cloud.attached("attached", tags={"k": "v"})
    cloud.volume("elsewhere", zone="zone-c")

    assert cloud.names(machine_id=machine) == ["attached"]
    assert cloud.names(tag="k=v") == ["attached"]
    assert cloud.names(zone="zone-c") == ["elsewhere"]
    assert cloud.names(machine_id="i-none") == []


def test_a_volume_only_grows_and_may_do_so_while_it_is_attached(cloud: Cloud) -> None:
    volume, _ = cloud.attached()

    assert [cloud.resize(volume, 20).json()["size_gib"] for _ in range(2)] == [20, 20]
    error = refused(cloud.resize(volume, 19), 400, "InvalidParameter")
    assert (error["field"], error["allowed"]) == ("size_gib", "20 to 1024")


def test_a_volume_is_attached_in_its_own_zone_and_to_running_machines_only(cloud: Cloud) -> None:
    volume = cloud.volume()
    far, stopped = cloud.machine("far", cloud.far), cloud.machine("stopped", state=State.STOPPED)

    assert "zone-a" in refused(cloud.attach(volume, far), 409, "Conflict")["message"]
    assert "stopped" in refused(cloud.attach(volume, stopped), 409, "Conflict")["message"]
    refused(cloud.attach(volume, "i-none"), 400, "InvalidParameter")


def test_a_volume_is_detached_from_the_named_machine_alone(cloud: Cloud) -> None:
    volume, machine = cloud.attached()

    answer = post(cloud.http, f"volumes/{volume}:detach", {"machine_id": "i-another"})

    assert answer["attachment"] == {"machine_id": machine, "state": "attaching"}


def test_an_attached_volume_is_not_deleted(cloud: Cloud) -> None:
    volume, machine = cloud.attached()

    error = refused(cloud.http.delete(f"/v1/volumes/{volume}"), 409, "Conflict")

    assert machine in error["message"]


def test_the_sites_status_names_its_volumes(cloud: Cloud, tmp_path: Path) -> None:
    _, machine = cloud.attached("data")

    (shown,) = site_objects(tmp_path / "mycloud.db")["volumes"]

    assert (shown["name"], shown["size_gib"], shown["attachment"]["machine_id"]) == ("data", 10, machine)


# ------------------------------------------------------------------------------------------------------------ on disk


@pytest.fixture
def folder(tmp_path: Path) -> MyCloudFolder:
    """A site's folder with those of two machines."""
    folder = MyCloudFolder(tmp_path)
    folder.prepare()
    folder.write_site(AddressBlock(32))
    folder.ensure_token()
    for machine in ("i-1", "i-2"):
        folder.machine(machine).mkdir(parents=True)
    return folder


@pytest.fixture
def disks(folder: MyCloudFolder) -> LocalMachinery:
    return LocalMachinery(folder, AddressBlock(32), {})


def test_a_machine_sees_attached_volumes_and_not_detached_ones(disks: LocalMachinery, folder: MyCloudFolder) -> None:
    disks.make_volume("vol-1")
    assert list(folder.volume("vol-1").iterdir()) == []

    disks.attach_volume("vol-1", "i-1")
    (folder.device("i-1", "vol-1") / "file").write_text("kept")
    disks.detach_volume("vol-1", "i-1")
    disks.attach_volume("vol-1", "i-2")

    assert not folder.device("i-1", "vol-1").is_symlink()
    assert (folder.device("i-2", "vol-1") / "file").read_text() == "kept"


def test_deleting_a_volume_deletes_its_data_and_nothing_else(
    disks: LocalMachinery, folder: MyCloudFolder, tmp_path: Path
) -> None:
    disks.make_volume("vol-1")
    outside = tmp_path / "outside"
    outside.mkdir()
    outside.chmod(0o755)
    locked = folder.volume("vol-1") / "locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    (locked / "link").symlink_to(outside)
    locked.chmod(0o500)

    disks.remove_volume("vol-1")

    assert not folder.volume("vol-1").exists()
    assert outside.stat().st_mode & 0o777 == 0o755
