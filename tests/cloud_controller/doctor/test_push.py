"""The findings of a run as metrics of a Pushgateway."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from prometheus_client import generate_latest

from cloud_controller.doctor.findings import Check, Finding, Result, Severity
from cloud_controller.doctor.push import push, registry

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


def test_a_push_replaces_those_of_the_last_run(gateway: tuple[str, list[tuple[str, str, str]]]) -> None:
    url, got = gateway

    push(url, [Result(check("nodes"), (LATE,))], 1.0)

    [(method, path, body)] = got
    assert (method, path) == ("PUT", "/metrics/job/cloud-controller-doctor")
    assert 'cloud_controller_doctor_findings{check="nodes",severity="warning"} 1.0' in body


def test_a_gateway_that_does_not_answer_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(ConnectionError, match="cannot push the findings to the gateway"):
        push(f"http://127.0.0.1:{port}", [], 1.0)
