"""The site starts, is found again after any kill, and stops; blocks of addresses are reserved."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cloud_controller.clouds.mycloud.client import Client
from local import processes
from local.addresses import API_PORT, BLOCK_BASES, AddressBlock
from local.api_process import API, server_environment
from local.blocks import BlockRegistry, NoBlockError
from local.errors import SiteError
from local.http_client import request
from local.machine.processes import MARK
from local.mycloud import compute, networking
from local.mycloud.models.common import State
from local.mycloud.models.compute import PROCESS_ENDED, CreateCluster, CreateMachine
from local.mycloud.models.networking import CreateNetwork, CreateSubnet
from local.mycloud.site import Site
from local.mycloud.store import Store
from local.ports import require_free
from local.state_folder import StateFolder
from local.waiting import wait_until
from tests.strangers import listening_on_a_free_block

BALANCER = "balancer"
VOLUME = {"name": "data", "zone": "zone-a", "size_gib": 1}
PATIENCE = 60
"""Seconds for the actions of other processes."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site of a test's own, not up. Its block is reserved like any site's."""
    site = Site(tmp_path / "state")
    yield site
    site.down()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site for tests that bring it up, whatever the previous test did to it."""
    site = Site(tmp_path_factory.mktemp("shared") / "state")
    yield site
    site.down()


def pid(site: Site, name: str) -> int | None:
    process = processes.find(site.folder.process_record(name))
    return None if process is None else process.pid


def kill(site: Site, name: str) -> None:
    process = processes.find(site.folder.process_record(name))
    assert process is not None
    process.signal(signal.SIGKILL)
    assert process.wait(PATIENCE)


def comes_true(condition: Callable[[], bool]) -> bool:
    return wait_until(condition, PATIENCE)


def balancer_runs(site: Site) -> bool:
    return comes_true(lambda: pid(site, BALANCER) is not None)


def delete_folder(site: Site) -> None:
    """At once: file by file, the site's processes might clean up in the middle of it."""
    deleted = site.folder.root.rename(site.folder.root.with_name("deleted"))
    shutil.rmtree(deleted, ignore_errors=True)


def call(site: Site, method: str, path: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token or site.token}"}
    return request(method, f"{site.endpoint}{path}", headers=headers, seconds=30).status


@pytest.mark.integration
def test_a_site_is_up_when_up_returns_and_up_again_changes_nothing(shared: Site) -> None:
    shared.up()
    api, endpoint, token = pid(shared, API), shared.endpoint, shared.token

    shared.up()

    assert call(shared, "GET", "/v1/zones") == 200
    assert (pid(shared, API), shared.endpoint, shared.token) == (api, endpoint, token)
    assert shared.status()["up"] is True


@pytest.mark.integration
def test_stacks_get_a_stable_controllers_token_with_only_the_controllers_rights(shared: Site) -> None:
    shared.up()

    token = shared.stack_config().secrets["cloud-controller:mycloudControllerToken"]

    client = Client(shared.endpoint, token)
    asked = ["POST /v1/load_balancers", "POST /v1/machines", "POST /v1/clusters/c-1/credentials"]
    assert client.post("access:check", {"operations": asked})["denied"] == asked[1:]
    assert shared.stack_config().secrets["cloud-controller:mycloudControllerToken"] == token
    expires = shared.stack_config().values["cloud-controller:mycloud"]["tokenExpires"]
    assert date.fromisoformat(expires) == (datetime.now(UTC) + timedelta(days=90)).date()
    assert shared.folder.controllers_token_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.integration
def test_an_invalid_controllers_token_is_replaced(shared: Site) -> None:
    shared.up()
    file = shared.folder.controllers_token_file
    shared.stack_config()
    file.write_text(json.dumps({**json.loads(file.read_text()), "token": "over"}))

    token = shared.stack_config().secrets["cloud-controller:mycloudControllerToken"]

    assert token != "over"
    assert Client(shared.endpoint, token).list("machines") == []


@pytest.mark.integration
def test_a_killed_balancer_is_restarted(shared: Site) -> None:
    shared.up()
    assert balancer_runs(shared)
    before = pid(shared, BALANCER)

    kill(shared, BALANCER)

    assert comes_true(lambda: pid(shared, BALANCER) not in (None, before))


@pytest.mark.integration
def test_after_a_kill_of_the_api_up_finds_the_rest_and_nothing_runs_twice(shared: Site) -> None:
    shared.up()
    assert balancer_runs(shared)
    balancer, token = pid(shared, BALANCER), shared.token
    kill(shared, API)
    assert shared.status()["up"] is False

    shared.up()

    assert call(shared, "GET", "/v1/zones") == 200
    assert shared.token == token
    assert pid(shared, BALANCER) == balancer


@pytest.mark.integration
def test_a_hanging_api_is_replaced_and_reported(shared: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.api_process.STOP_GRACE_SECONDS", 0.5)
    monkeypatch.setattr("local.api_process.PROBE_SECONDS", 0.5)
    shared.up()
    hanging = processes.find(shared.folder.process_record(API))
    assert hanging is not None
    hanging.signal(signal.SIGSTOP)
    told: list[str] = []

    shared.up(told.append)

    assert not hanging.is_running()
    assert call(shared, "GET", "/v1/zones") == 200
    assert told == [
        f"mycloud's API (process {hanging.pid}) has not answered for 0.5 s: replacing it; what it started keeps running"
    ]


@pytest.mark.integration
def test_an_api_that_runs_old_code_is_replaced_and_nothing_else(shared: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.up()
    assert balancer_runs(shared)
    api, balancer = pid(shared, API), pid(shared, BALANCER)
    monkeypatch.setattr("local.mycloud.site.revision", lambda: "of an update")

    shared.up()

    assert call(shared, "GET", "/v1/zones") == 200
    assert pid(shared, API) != api
    assert pid(shared, BALANCER) == balancer


@pytest.mark.integration
def test_two_sites_run_side_by_side_skip_ports_in_use_and_go_down_separately(shared: Site, tmp_path: Path) -> None:
    shared.up()
    other = Site(tmp_path / "state")
    stranger, strangers = listening_on_a_free_block(other, API_PORT)
    with stranger:
        other.up()
    try:
        assert other.block not in (strangers, shared.block)
        assert balancer_runs(other)
        assert shared.block != other.block
        assert call(other, "GET", "/v1/networks") == 200
        assert call(other, "GET", "/v1/networks", shared.token) == 401
        records = list(other.folder.process_record(API).parent.glob("*.json"))
        running = [process for process in map(processes.load, records) if process is not None]
        block = other.block
    finally:
        other.down()

    assert len(running) == 2
    assert not any(process.is_running() for process in running)
    assert not other.folder.cloud.exists()
    assert shared.registry.owner(block) != other.folder.root  # perhaps another's by now
    assert other.status()["up"] is False
    assert call(shared, "GET", "/v1/networks") == 200


@pytest.mark.integration
def test_another_users_api_at_our_address_is_not_mistaken_for_ours(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    busy_after_the_start = iter([None])

    def nothing_seen_at_first(address: str, port: int, purpose: str) -> None:
        if next(busy_after_the_start, "checked") == "checked":
            require_free(address, port, purpose)

    monkeypatch.setattr("local.api_process.require_free", nothing_seen_at_first)
    with stranger_that_says_it_is_healthy(site) as strangers:
        site.up()

        assert site.block != strangers
        assert call(site, "GET", "/v1/networks") == 200


@contextmanager
def stranger_that_says_it_is_healthy(site: Site) -> Iterator[AddressBlock]:
    """Another site's API on the first free block; returns the block."""

    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok", "site": "of another user"}')

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    stranger, block = listening_on_a_free_block(site, API_PORT)
    with stranger:
        server = ThreadingHTTPServer(stranger.getsockname(), Healthy, bind_and_activate=False)
        server.socket.close()
        server.socket = stranger
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield block
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.integration
def test_a_stopped_site_keeps_its_data_and_its_addresses_even_if_a_port_is_in_use(shared: Site) -> None:
    shared.up()
    endpoint, token = shared.endpoint, shared.token

    shared.down(keep_data=True)
    assert pid(shared, API) is None
    with (
        socket.create_server((shared.block.api_address, API_PORT)),
        pytest.raises(SiteError, match=f"pid {os.getpid()}"),
    ):
        shared.up()
    shared.up()

    assert (shared.endpoint, shared.token) == (endpoint, token)


@pytest.mark.integration
def test_a_site_whose_state_folder_is_deleted_ends_by_itself(site: Site) -> None:
    site.up()
    assert balancer_runs(site)
    records = list(site.folder.process_record(API).parent.glob("*.json"))
    running = [process for process in map(processes.load, records) if process is not None]
    # The guard has to have seen the balancer's record once.
    assert comes_true(lambda: "folder guard knows 1" in site.folder.log(API).read_text())

    delete_folder(site)

    assert len(running) == 2
    assert comes_true(lambda: not any(process.is_running() for process in running))
    assert not site.folder.root.exists()


@pytest.mark.integration
def test_an_unrecorded_data_plane_ends_with_its_state_folder(site: Site) -> None:
    site.up()
    assert balancer_runs(site)
    balancer = processes.find(site.folder.process_record(BALANCER))
    assert balancer is not None
    kill(site, API)

    delete_folder(site)

    assert balancer.wait(PATIENCE)


@pytest.mark.parametrize(
    ("healthy", "checked", "serves"),
    [(True, True, True), (None, False, True), (None, True, False), (False, True, False)],
)
def test_a_load_balancer_serves_with_a_healthy_or_unchecked_backend(
    site: Site, monkeypatch: pytest.MonkeyPatch, healthy: bool | None, checked: bool, serves: bool
) -> None:
    backend = {"backend_set": "udp-53", "healthy": healthy, "checked": checked}
    status = {"load_balancers": [{"state": "available", "backends": [backend]}]}
    monkeypatch.setattr(site, "status", lambda: status)

    assert site.wait_answering(0) is serves


@pytest.mark.integration
@pytest.mark.parametrize("answers", [True, False])
def test_leftovers_are_reported_whether_or_not_the_api_answers(site: Site, answers: bool) -> None:
    site.up()
    headers = {"Authorization": f"Bearer {site.token}"}
    made = request("POST", f"{site.endpoint}/v1/volumes", headers=headers, json=VOLUME, seconds=30).json()
    api = processes.find(site.folder.process_record(API))
    assert api is not None
    if not answers:
        api.signal(signal.SIGSTOP)

    assert site.left() == [f"volume {made['id']} (data)"]


@pytest.mark.integration
def test_a_stopped_site_reports_no_leftovers(site: Site) -> None:
    site.up()
    site.down(keep_data=True)

    assert site.left() == []


def test_a_request_to_a_site_that_is_not_up_is_a_clear_error(tmp_path: Path) -> None:
    site = Site(tmp_path / "state", registry=tmp_path / "blocks")

    with pytest.raises(SiteError, match="create one with `up` first"):
        _ = site.endpoint
    assert site.status() == {"state_folder": str(tmp_path / "state"), "up": False}
    site.down()
    assert not (tmp_path / "state").exists()


def test_on_other_systems_the_error_names_what_is_missing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.api_site.sys.platform", "darwin")

    with pytest.raises(SiteError, match="needs Linux"):
        site.up()


@pytest.mark.integration
def test_down_ends_the_leftover_processes_of_a_killed_machine(tmp_path: Path) -> None:
    site = Site(tmp_path / "state")
    machine = site.folder.machine("i-1")
    machine.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"], env={MARK: str(machine)}, start_new_session=True) as left:
        site.down()

        assert left.wait(PATIENCE) == -signal.SIGKILL


def test_unwritable_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    for site in (
        Site(tmp_path / "file" / "state", registry=tmp_path / "blocks"),
        Site(tmp_path / "state", registry=tmp_path / "file" / "blocks"),
    ):
        with pytest.raises(SiteError, match=str(tmp_path / "file")):
            site.up()


def test_a_malformed_record_is_named(site: Site) -> None:
    site.folder.process_record(API).parent.mkdir(parents=True)
    site.folder.process_record(API).write_text("")

    with pytest.raises(SiteError, match=r"api\.json is not a process record"):
        site.up()
    site.folder.process_record(API).unlink()


def test_only_machines_that_stopped_by_themselves_are_reported_as_crashed(site: Site) -> None:
    site.folder.prepare()
    with closing(Store(site.folder.database)) as store, store.write() as session:
        network = networking.create_network(session, AddressBlock(32), CreateNetwork(name="n"))
        subnet = networking.create_subnet(session, CreateSubnet(name="s", network_id=network.id, zone="zone-a"))
        cluster = compute.create_cluster(session, CreateCluster(name="c", network_id=network.id))
        for name, why in (("stopped", None), ("died", PROCESS_ENDED)):
            request = CreateMachine(
                name=name, subnet_id=subnet.id, cluster_id=cluster.id, type="m1.small", role="worker"
            )
            machine = compute.create_machine(session, request)
            session.save(machine.model_copy(update={"state": State.STOPPED, "state_reason": why}))

    assert site.crashed_machines() == ["died"]


def test_up_waits_for_a_machine_and_a_control_plane_that_were_killed(site: Site) -> None:
    site.folder.prepare()
    with closing(Store(site.folder.database)) as store, store.write() as session:
        network = networking.create_network(session, AddressBlock(32), CreateNetwork(name="n"))
        subnet = networking.create_subnet(session, CreateSubnet(name="s", network_id=network.id, zone="zone-a"))
        cluster = compute.create_cluster(session, CreateCluster(name="c", network_id=network.id))
        session.save(cluster.model_copy(update={"state": State.AVAILABLE}))
        request = CreateMachine(name="m", subnet_id=subnet.id, cluster_id=cluster.id, type="m1.small", role="worker")
        machine = compute.create_machine(session, request)
        session.save(machine.model_copy(update={"state": State.RUNNING}))
    site.folder.cluster(cluster.id).mkdir(parents=True)

    with pytest.raises(SiteError) as waited:
        site.wait_settled(0)

    assert f"{cluster.id} (available, but its process has ended)" in str(waited.value)
    assert f"{machine.id} (running, but its process has ended)" in str(waited.value)


def test_a_wait_for_another_run_names_that_run(site: Site) -> None:
    site.folder.prepare()
    told: list[str] = []

    def hear(line: str) -> None:
        told.append(line)
        os.close(held)  # the other run has ended

    held = os.open(site.folder.root / "site.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    holder = "process 4711: `down` since 2026-11-22 18:00:00"
    os.pwrite(held, holder.encode(), 0)

    site.down(tell=hear)

    assert told == [f"waiting for another run ({holder}) that starts or stops this site"]


def test_servers_get_no_secrets_from_the_environment() -> None:
    environment = {"PATH": "/bin", "PULUMI_CONFIG_PASSPHRASE": "s", "AWS_SECRET_ACCESS_KEY": "s", "HOME": "/h"}

    assert server_environment(environment) == {"PATH": "/bin", "HOME": "/h"}


# -------------------------------------------------------------------------------------------------------- reservations


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_reserved_block_is_exclusive_until_it_is_released(tmp_path: Path) -> None:
    registry = BlockRegistry(tmp_path / "blocks")
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    block = AddressBlock(32)
    registry.reserve(block, one)
    registry.reserve(block, one)

    with pytest.raises(NoBlockError, match=str(one)):
        registry.reserve(block, two)
    registry.release(two)
    assert registry.owner(block) == one
    registry.release(one)
    registry.reserve(block, two)


def test_a_reservation_ends_with_its_state_folder(tmp_path: Path) -> None:
    registry = BlockRegistry(tmp_path / "blocks")
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    registry.reserve(AddressBlock(48), one)

    shutil.rmtree(one)

    registry.reserve(AddressBlock(48), two)
    assert registry.owner(AddressBlock(48)) == two


def test_an_unfinished_reservation_is_free(tmp_path: Path) -> None:
    registry = BlockRegistry(tmp_path / "blocks")
    one = folder(tmp_path / "one")
    registry.prepare()
    (tmp_path / "blocks" / "80").write_text("")

    assert registry.owner(AddressBlock(80)) is None
    registry.reserve(AddressBlock(80), one)
    assert registry.owner(AddressBlock(80)) == one


def test_a_site_tries_the_block_that_it_has_first(tmp_path: Path) -> None:
    registry = BlockRegistry(tmp_path / "blocks")
    one, two = folder(tmp_path / "one"), folder(tmp_path / "two")
    registry.reserve(AddressBlock(16), two)
    registry.reserve(AddressBlock(64), one)

    tried = [block.base for block in registry.free_blocks(one)]

    assert tried == [64, *(base for base in BLOCK_BASES if base not in (16, 64))]


def test_without_a_free_block_the_error_names_the_owners_and_the_remedy(tmp_path: Path) -> None:
    registry = BlockRegistry(tmp_path / "blocks")
    others = {base: folder(tmp_path / f"site-{base}") for base in BLOCK_BASES}
    for base, other in others.items():
        registry.reserve(AddressBlock(base), other)

    with pytest.raises(SiteError) as refused:
        Site(tmp_path / "one", registry=registry.directory).up()

    told = str(refused.value)
    assert all(f"127.{base}.x: {other};" in told for base, other in others.items())
    assert told.endswith("`down`, or deleting its folder, releases a site's block")


# -------------------------------------------------------------------------------------------------------- state folder


def test_a_recreated_state_folder_belongs_to_another_site(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    state.prepare()
    state.ensure_token()
    before = state.fingerprint()
    state.write_site(AddressBlock(32))
    assert state.still_holds(before)

    shutil.rmtree(state.root)
    assert not state.still_holds(before)
    state.prepare()
    state.write_site(AddressBlock(32))
    assert not state.still_holds(before)
    state.ensure_token()

    assert not state.still_holds(before)


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    state.prepare()

    token = state.ensure_token()

    assert state.ensure_token() == token
    assert len(token) >= 32
    assert state.token_file.stat().st_mode & 0o777 == 0o600
