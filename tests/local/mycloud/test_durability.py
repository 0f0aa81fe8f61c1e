"""The real server on a real socket, killed without warning: nothing answered is lost, nothing is duplicated."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import urllib3

from local.addresses import API_PORT
from local.blocks import BlockRegistry, NoBlockError, default_registry
from local.mycloud.folder import MyCloudFolder

pytestmark = pytest.mark.integration

DEADLINE = 90.0

# The real server without machinery: no control plane and no machine is started.
SERVER = """
import sys
from pathlib import Path
from local.mycloud import server
class NoLifecycle:
    def __init__(self, *_): pass
    def start(self): pass
    def stop(self, wait): pass
    is_alive = True
server.Lifecycle = NoLifecycle
server.serve(Path(sys.argv[1]))
"""

Json = dict[str, Any]


class Server:
    """The API of a state folder, in a process of its own."""

    def __init__(self, directory: Path, base: int) -> None:
        self.folder = MyCloudFolder(directory)
        self.folder.prepare()
        self.folder.site_file.write_text(json.dumps({"block": base, "endpoint": ""}))
        self.token = self.folder.ensure_token()
        self.url = f"http://127.{base}.0.1:{API_PORT}"
        self.http = urllib3.PoolManager(retries=False, timeout=DEADLINE, maxsize=8)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, str(self.folder.root)])
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.http.request("GET", f"{self.url}/healthz")
                return
            except urllib3.exceptions.HTTPError:
                time.sleep(0.02)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self.http.request(method, f"{self.url}/v1/{path}", json=body, headers=headers)
        assert answer.status < 300, answer.data
        return dict(json.loads(answer.data))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE)
        self.http.clear()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("state")
    registry = BlockRegistry(default_registry())
    try:
        with closing(Server(directory, reserve_a_block(registry, directory))) as server:
            yield server
    finally:
        registry.release(directory)


def reserve_a_block(registry: BlockRegistry, directory: Path) -> int:
    """A block of addresses as for a site, so that no other site is in the way."""
    for block in registry.free_blocks(directory):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((block.api_address, API_PORT))
            except OSError:
                continue
        try:
            registry.reserve(block, directory)
        except NoBlockError:
            continue  # another site was quicker
        return block.base
    pytest.skip("every block of addresses of this computer is in use")


def place(server: Server) -> Json:
    network = server.call("POST", "networks", {"name": "n"})["id"]
    subnet = server.call("POST", "subnets", {"name": "s", "network_id": network, "zone": "zone-a"})["id"]
    cluster = server.call("POST", "clusters", {"name": "c", "network_id": network})["id"]
    return {"subnet_id": subnet, "cluster_id": cluster, "type": "m1.small", "role": "worker"}


def test_a_killed_server_keeps_every_answered_creation_and_tokens_prevent_duplicates(server: Server) -> None:
    where = place(server)
    answered: dict[str, str] = {}

    def create(names: list[str]) -> None:
        for name in names:
            try:
                made = server.call("POST", "machines", {**where, "name": name, "client_token": name})
            except urllib3.exceptions.HTTPError:
                return
            answered[name] = made["id"]

    names = [[f"m-{worker}-{number}" for number in range(2000)] for worker in range(4)]
    threads = [threading.Thread(target=create, args=(some,)) for some in names]
    for thread in threads:
        thread.start()
    while len(answered) < 60:
        time.sleep(0.001)
    server.kill()
    for thread in threads:
        thread.join()
    assert len(answered) < 8000, "the server was killed too late to show anything"

    server.start()
    kept = {item["name"]: item["id"] for item in everything(server, "machines")}
    repeated = {}
    for some in names:
        for name in some[: len([each for each in some if each in answered]) + 1]:
            made = server.call("POST", "machines", {**where, "name": name, "client_token": name})
            repeated[name] = made["id"]

    assert answered.items() <= kept.items()
    assert answered.items() <= repeated.items()
    after = everything(server, "machines")
    assert len({item["name"] for item in after}) == len(after)
    assert len({item["private_ips"][0] for item in after}) == len(after)


def everything(server: Server, collection: str) -> list[Json]:
    items: list[Json] = []
    cursor = ""
    while True:
        page = server.call("GET", f"{collection}?limit=100{cursor and '&cursor=' + cursor}")
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = page["next_cursor"]


def test_a_dropped_answer_ends_the_connection_without_a_byte_and_the_work_is_done(server: Server) -> None:
    body = {"name": "dropped", "client_token": "t"}
    server.call("POST", "admin/faults", {"operation": "POST /v1/networks", "kind": "drop_answer"})

    with pytest.raises(urllib3.exceptions.ProtocolError):
        server.call("POST", "networks", body)

    (made,) = server.call("GET", "networks?name=dropped")["items"]
    assert server.call("POST", "networks", body)["id"] == made["id"]


def test_the_token_is_neither_in_the_command_line_nor_readable_by_others(server: Server) -> None:
    command_line = Path(f"/proc/{server.process.pid}/cmdline").read_text()

    assert server.token not in command_line
    assert server.folder.token_file.stat().st_mode & 0o777 == 0o600
    assert server.folder.cloud.stat().st_mode & 0o777 == 0o700
