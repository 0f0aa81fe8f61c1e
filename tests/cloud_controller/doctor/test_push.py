"""The findings of a run as metrics of a Pushgateway."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client import generate_latest

from cloud_controller.cli import doctor
from cloud_controller.cli.commands import main
from cloud_controller.doctor.findings import Check, Finding, Result, Severity
from cloud_controller.doctor.push import push, registry
from cloud_controller.kube import NAMESPACES
from tests.cloud_controller.doctor.looks import World

LATE = Finding(what="late", remedy="wait", severity=Severity.WARNING)


def check(name: str) -> Check:
    return Check(name=name, holds="", why="", lines=(), page="", run=lambda _: ())


def series(*results: Result) -> list[str]:
    text = generate_latest(registry(results, 1_800_000_000.0)).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_check_that_passes_has_no_findings_of_either_severity() -> None:
    assert series(Result(check("nodes")))[:2] == [
        'cloud_controller_doctor_findings{check="nodes",severity="critical"} 0.0',
        'cloud_controller_doctor_findings{check="nodes",severity="warning"} 0.0',
    ]


def test_findings_are_counted_by_severity() -> None:
    assert 'cloud_controller_doctor_findings{check="nodes",severity="warning"} 2.0' in series(
        Result(check("nodes"), (LATE, LATE))
    )


def test_a_check_that_could_not_be_done_has_no_zero() -> None:
    assert series(Result(check("nodes"), (), "forbidden"))[:1] == [
        'cloud_controller_doctor_not_checked{check="nodes"} 1.0'
    ]


def test_what_an_unfinished_check_found_counts() -> None:
    assert 'cloud_controller_doctor_findings{check="nodes",severity="warning"} 1.0' in series(
        Result(check("nodes"), (LATE,), "forbidden")
    )


def test_the_end_of_the_run_is_a_series() -> None:
    assert series()[-1] == "cloud_controller_doctor_last_run_timestamp_seconds 1.8e+09"


@pytest.fixture
def gateway() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """A server that takes metrics, and what it got: method, path and body."""
    got: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            got.append((self.command, self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_error_does_not_quote_the_password_in_a_gateways_url() -> None:
    with pytest.raises(ConnectionError, match="not a valid URL") as error:
        push("http://me:a-password@127.0.0.1", [], 0.0, "c")

    assert "a-password" not in str(error.value)


def test_a_push_replaces_those_of_the_clusters_last_run(gateway: tuple[str, list[tuple[str, str, str]]]) -> None:
    url, got = gateway

    push(url, [Result(check("nodes"), (LATE,))], 1.0, "uid-1")

    [(method, path, body)] = got
    assert (method, path) == ("PUT", "/metrics/job/cloud-controller-doctor/cluster/uid-1")
    assert 'cloud_controller_doctor_findings{check="nodes",severity="warning"} 1.0' in body


def test_a_gateway_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ConnectionError, match="cannot push the findings to the gateway"):
        push(nobody(), [], 1.0, "uid-1")


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


# -------------------------------------------------------------------------------------------------------- the command


def test_a_cluster_is_known_by_the_uid_of_its_namespace_kube_system() -> None:
    world = World()
    world.api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "uid-1"}})

    assert doctor.cluster(world.look()) == "uid-1"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """`doctor` for a cluster whose API server does not answer, which is a critical finding."""
    (tmp_path / "kubeconfig").write_text(
        f"current-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{nobody()}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
    )
    return ["doctor", "--cloud=mycloud", f"--kubeconfig={tmp_path / 'kubeconfig'}", "--only=api-server"]


def test_findings_of_a_cluster_that_cannot_be_read_are_pushed_as_of_an_unknown_one(
    gateway: tuple[str, list[tuple[str, str, str]]], command: list[str]
) -> None:
    url, got = gateway

    assert main([*command, f"--push-gateway={url}"]) == 4
    assert [path for _, path, _ in got] == ["/metrics/job/cloud-controller-doctor/cluster/unknown"]


def test_a_single_run_whose_push_fails_is_an_error(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, f"--push-gateway={nobody()}"]) == 1
    assert "cannot push the findings to the gateway" in capsys.readouterr().err


def test_a_watch_goes_on_after_a_push_that_failed(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = iter([None])

    def sleep(_: float) -> None:
        if next(pauses, KeyboardInterrupt) is KeyboardInterrupt:
            raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "time", SimpleNamespace(sleep=sleep, time=lambda: 1.0))

    assert main([*command, "--watch", f"--push-gateway={nobody()}"]) == 4
    assert capsys.readouterr().err.count("cannot push the findings to the gateway") == 2
