"""Logs and exec through a real API server: its egress proxy, the kubelet stand-in's certificate, the protocols."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest
import urllib3
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.typing import Subprotocol

from cloud_controller.kube import NODES, PODS, Kube, name
from local import processes
from local.addresses import socket_address
from local.control_plane.components import EGRESS_PROXY
from local.control_plane.control_plane import ControlPlane
from local.machine.kubelet_api import PORT
from local.ports import unused_address
from tests.control_planes import running_control_plane
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

TTL = timedelta(hours=1)
Answer = tuple[bytes, bytes, Mapping[str, Any]]


@dataclass(frozen=True)
class Exec:
    """A command's connection, for code that is not asynchronous.

    Not websockets' client with threads: it reads and writes a TLS connection at the same time, and Python 3.11 does
    not lock those (cpython issue 124984): one run of all tests ended in "[SSL] internal error".
    """

    runner: asyncio.Runner
    connection: ClientConnection

    def send(self, message: bytes) -> None:
        self.runner.run(self.connection.send(message))

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                message = self.runner.run(self.connection.recv())
            except ConnectionClosedOK:
                return
            assert isinstance(message, bytes)
            yield message


@dataclass(frozen=True)
class Cluster:
    """A control plane with one machine and without a cloud controller."""

    control_plane: ControlPlane
    kube: Kube
    machine: int
    """The process."""
    address: str

    def pod(self, name: str, script: str) -> None:
        """Make a pod that runs a script, and wait until it has started."""
        container = {"name": "c", "image": "registry.local/web:1", "command": ["sh", "-c", script]}
        spec = {"nodeName": "n", "hostNetwork": True, "terminationGracePeriodSeconds": 1, "restartPolicy": "Never"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {**spec, "containers": [container]},
        }
        self.kube.create(PODS, pod, "default")
        eventually(lambda: self.phase(name) != "Pending", f"{name} has started")

    def phase(self, name: str) -> str:
        return str(self.kube.get(PODS, name, "default")["status"]["phase"])

    def log(self, pod: str, **query: Any) -> tuple[int, str]:
        """Status and body of the API server's answer."""
        with self.pool() as pool:
            answer = pool.request("GET", f"{self.pod_url(pod)}/log?{urlencode(query)}")
            return answer.status, answer.data.decode()

    def pool(self) -> urllib3.PoolManager:
        return urllib3.PoolManager(ssl_context=self.tls(), retries=False, timeout=30)

    def pod_url(self, pod: str) -> str:
        return f"{self.control_plane.endpoint}/api/v1/namespaces/default/pods/{pod}"

    def tls(self, client: str | None = "admin", authority: str = "ca") -> ssl.SSLContext:
        """A client's side of TLS, with a certificate of the control plane's folder."""
        pki = self.control_plane.directory / "pki"
        context = ssl.create_default_context(cafile=pki / f"{authority}.crt")
        if client is not None:
            context.load_cert_chain(pki / f"{client}.crt", pki / f"{client}.key")
        return context

    @contextmanager
    def exec(self, pod: str, *command: str, **streams: int) -> Iterator[Exec]:
        query = urlencode([*(("command", word) for word in command), *({"stdout": 1, "stderr": 1} | streams).items()])
        url = f"{self.pod_url(pod)}/exec?{query}".replace("https:", "wss:")

        async def connected() -> ClientConnection:
            return await connect(url, ssl=self.tls(), subprotocols=[Subprotocol("v5.channel.k8s.io")], proxy=None)

        with asyncio.Runner() as runner:
            connection = runner.run(connected())
            try:
                yield Exec(runner, connection)
            finally:
                runner.run(connection.close())

    def run(self, pod: str, *command: str) -> Answer:
        with self.exec(pod, *command) as connection:
            return answer_of(connection)


def answer_of(connection: Exec) -> Answer:
    """What a command wrote to its two streams, and the kubelet's final status."""
    channels = dict.fromkeys((1, 2, 3), b"")
    for message in connection:
        channels[message[0]] += message[1:]
    return channels[1], channels[2], json.loads(channels[3])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for all tests here; each makes pods of its own."""
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as control_plane:
        machine, address = tmp_path_factory.mktemp("machine"), unused_address([PORT])
        config = {"id": "i-1", "node_name": "n", "address": address, "role": "worker", "type": "m1.small"}
        (machine / "machine.json").write_text(json.dumps(config))
        control_plane.write_kubelet_credentials(machine, "n", address, TTL)
        kube = Kube.from_file(control_plane.directory / "admin.kubeconfig")
        with (machine / "machine.log").open("ab") as log:
            argv = [sys.executable, "-m", "local.machine", str(machine)]
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually(lambda: [name(node) for node in kube.list(NODES).items] == ["n"], "the node is registered")
            yield Cluster(control_plane, kube, process.pid, address)
        finally:
            process.terminate()
            assert process.wait(30) == 0


# ------------------------------------------------------------------------------------------------------------- logs


def test_logs_come_through_the_api_server(cluster: Cluster) -> None:
    cluster.pod("talker", "echo one; echo two >&2; printf three; sleep 300")

    eventually(lambda: cluster.log("talker") == (200, "one\ntwo\nthree"), "all is logged")
    assert cluster.log("talker", tailLines=2) == (200, "two\nthree")
    assert cluster.log("talker", tailLines=0) == (200, "")
    assert cluster.log("talker", limitBytes=5) == (200, "one\nt")


def test_followed_logs_show_each_line_as_it_is_written_and_end_with_the_container(
    cluster: Cluster, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    cluster.pod("counter", f"echo first; until [ -e {go_on} ]; do sleep 0.05; done; echo last")

    with cluster.pool() as pool:
        answer = pool.request("GET", f"{cluster.pod_url('counter')}/log?follow=true", preload_content=False)
        lines = iter(answer)
        assert next(lines) == b"first\n"
        go_on.touch()
        assert list(lines) == [b"last\n"]


def test_the_logs_of_a_pod_that_has_ended_can_be_read(cluster: Cluster) -> None:
    cluster.pod("ended", "echo done")

    eventually(lambda: cluster.log("ended", follow="true") == (200, "done\n"), "it is logged")


@pytest.mark.parametrize("parameter", ["previous=true", "sinceSeconds=5", "timestamps=true"])
def test_an_unsupported_log_option_is_refused_with_a_reason(cluster: Cluster, parameter: str) -> None:
    key, _, value = parameter.partition("=")
    cluster.pod(f"refused-{key.lower()}", "sleep 300")

    status, body = cluster.log(f"refused-{key.lower()}", **{key: value})

    assert status == 400
    assert f"{key} is not supported by this machine: " in body


# ------------------------------------------------------------------------------------------------------------- exec


@pytest.fixture(scope="module")
def sleeper(cluster: Cluster) -> str:
    cluster.pod("sleeper", "sleep 3000")
    return "sleeper"


def test_a_command_gets_its_two_streams_and_ends_in_success(cluster: Cluster, sleeper: str) -> None:
    out, err, status = cluster.run(sleeper, "sh", "-c", "echo $((40 + 2)); echo no >&2; echo $HOSTNAME")

    assert (out, err) == (b"42\nn\n", b"no\n")
    assert status["status"] == "Success"


def test_the_exit_code_of_a_command_is_returned(cluster: Cluster, sleeper: str) -> None:
    *_, status = cluster.run(sleeper, "sh", "-c", "exit 7")

    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


def test_a_command_that_does_not_exist_is_an_error_that_names_it(cluster: Cluster, sleeper: str) -> None:
    *_, status = cluster.run(sleeper, "no-such-command")

    assert status["status"] == "Failure"
    assert status["message"].startswith("no-such-command: ")


def test_input_reaches_the_command_until_it_is_closed(cluster: Cluster, sleeper: str) -> None:
    with cluster.exec(sleeper, "wc", "-c", stdin=1) as connection:
        for _ in range(8):
            connection.send(b"\x00" + b"x" * 100_000)  # more than a pipe holds
        connection.send(b"\xff\x00")
        out, _, status = answer_of(connection)

    assert out.strip() == b"800000"
    assert status["status"] == "Success"


def test_much_output_arrives_whole(cluster: Cluster, sleeper: str) -> None:
    out, *_ = cluster.run(sleeper, "sh", "-c", "yes | head -c 3000000")

    assert out == b"y\n" * 1_500_000


def test_a_terminal_has_a_size_and_job_control(cluster: Cluster, sleeper: str) -> None:
    with cluster.exec(sleeper, "sh", stdin=1, tty=1, stderr=0) as connection:
        connection.send(b"\x04" + json.dumps({"Width": 101, "Height": 33}).encode())
        connection.send(b"\x00stty size; tty; echo $TERM; exit 3\n")
        out, _, status = answer_of(connection)

    assert b"33 101\r\n/dev/pts/" in out
    assert b"\r\nxterm\r\n" in out
    assert status["details"]["causes"][0]["message"] == "3"


def test_a_command_ends_when_its_client_disconnects(cluster: Cluster, sleeper: str) -> None:
    with cluster.exec(sleeper, "sh", "-c", "echo $$; exec sleep 3000") as connection:
        pid = int(next(message for message in connection if len(message) > 1)[1:])

    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the command has ended")


def test_a_command_ends_with_the_container_that_it_runs_in(cluster: Cluster) -> None:
    cluster.pod("leaving", "sleep 3000")
    with cluster.exec("leaving", "sh", "-c", "echo $$; exec sleep 3000") as connection:
        pid = int(next(message for message in connection if len(message) > 1)[1:])
        cluster.kube.delete(PODS, "leaving", "default")
        *_, status = answer_of(connection)

    assert status["reason"] == "NonZeroExitCode"
    assert not Path(f"/proc/{pid}").exists()


def test_exec_in_an_ended_container_is_refused(cluster: Cluster) -> None:
    cluster.pod("over", "true")
    eventually(lambda: cluster.phase("over") == "Succeeded", "it has ended")

    with pytest.raises(InvalidStatus) as refused:
        cluster.run("over", "true")
    assert refused.value.response.status_code == 400
    assert b"container c is not running" in refused.value.response.body


@pytest.mark.parametrize("call", ["attach", "portforward", "exec"])
def test_exec_over_spdy_is_refused_with_the_supported_protocol(cluster: Cluster, sleeper: str, call: str) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
    with cluster.pool() as pool:
        answer = pool.request(
            "POST", f"{cluster.pod_url(sleeper)}/{call}?ports=80&stdout=1&command=true", headers=headers
        )

    assert answer.status == 501
    assert " is not supported by this machine; " in answer.data.decode()


# --------------------------------------------------------------------------------------------------------- access


def kubelet_get(cluster: Cluster, pod: str, client: str | None) -> int:
    """The status of a direct request to the machine."""
    with urllib3.PoolManager(ssl_context=cluster.tls(client), retries=False, server_hostname=cluster.address) as pool:
        url = f"https://{socket_address(cluster.address)}:{PORT}/containerLogs/default/{pod}/c"
        return pool.request("GET", url).status


def test_the_machine_answers_the_api_servers_certificate(cluster: Cluster, sleeper: str) -> None:
    assert kubelet_get(cluster, sleeper, "kubelet-client") == 200


@pytest.mark.parametrize("client", [None, "admin", "kube-controller-manager", "kube-apiserver"])
def test_the_machine_refuses_every_other_client(cluster: Cluster, sleeper: str, client: str | None) -> None:
    """An admin's certificate, or a node's, is of another CA: its holder has to use the API server."""
    with pytest.raises(urllib3.exceptions.HTTPError):
        kubelet_get(cluster, sleeper, client)


def test_the_kubelet_api_listens_on_the_machines_loopback_address_alone(cluster: Cluster) -> None:
    connections = psutil.Process(cluster.machine).net_connections("tcp")

    listening = [each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN and each.laddr.port == PORT]
    assert listening == [socket_address(cluster.address)]


def test_a_killed_egress_proxy_is_restarted(cluster: Cluster, sleeper: str) -> None:
    record = cluster.control_plane.directory / "processes" / f"{EGRESS_PROXY}.json"
    proxy = processes.find(record)
    assert proxy is not None
    proxy.signal(signal.SIGKILL)
    assert proxy.wait(10)
    assert not cluster.control_plane.is_running()

    cluster.control_plane.start()

    eventually(lambda: cluster.log(sleeper)[0] == 200, "logs are there again")


# ------------------------------------------------------------------------------------------------------------ kubectl


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_kubectl_shows_logs_and_runs_commands(cluster: Cluster) -> None:
    def kubectl(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        config = f"--kubeconfig={cluster.control_plane.directory / 'admin.kubeconfig'}"
        return subprocess.run(["kubectl", config, *words], input=text, capture_output=True, text=True, timeout=60)

    cluster.pod("greeter", "echo hello; sleep 300")
    eventually(lambda: kubectl("logs", "greeter").stdout == "hello\n", "kubectl logs shows it")
    assert kubectl("exec", "-i", "greeter", "--", "tr", "a-z", "A-Z", text="shout").stdout == "SHOUT"
    assert kubectl("exec", "greeter", "--", "sh", "-c", "exit 5").returncode == 5
    assert "is not supported by this machine" in kubectl("logs", "greeter", "--since=1h").stderr
    assert "is not supported by this machine" in kubectl("port-forward", "greeter", "8080").stderr
