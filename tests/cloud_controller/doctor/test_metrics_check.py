"""api-errors, api-latency and work-queues: two readings of the CCM's metrics, and how they are read."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.daemon.tls import ServerTls
from cloud_controller.doctor.checks.metrics import ERRORS, LATENCY, QUEUES, quantile
from cloud_controller.doctor.findings import Check, Result, Severity, examine
from cloud_controller.doctor.seen import Scrape
from cloud_controller.kube import DAEMON_SETS, UnauthorizedError
from cloud_controller.kube_errors import from_response
from tests.cloud_controller.doctor.manager import ARGUMENTS, PROXIED, cluster, daemon_set, look
from tests.fake_kubernetes import FakeKubernetes

PATH = f"{PROXIED}/metrics"
API = "cloudprovider_mycloud_api_request"


def calls(all_: float, failed: float, seconds: str = "0.5") -> str:
    return (
        f'{API}_duration_seconds_bucket{{request="GET machines",le="{seconds}"}} {all_}\n'
        f'{API}_duration_seconds_bucket{{request="GET machines",le="+Inf"}} {all_}\n'
        f'{API}_duration_seconds_count{{request="GET machines"}} {all_}\n'
        f'{API}_errors_total{{request="GET machines"}} {failed}\n'
    )


def queue(name: str, depth: float = 0, longest: float = 0, retries: float = 0) -> str:
    return (
        f'workqueue_depth{{name="{name}"}} {depth}\n'
        f'workqueue_longest_running_processor_seconds{{name="{name}"}} {longest}\n'
        f'workqueue_retries_total{{name="{name}"}} {retries}\n'
    )


def scraped(check: Check, before: str, after: str) -> Result:
    """What the check says of metrics that change like this while it waits 10 s."""
    api = cluster()
    api.raws[PATH] = before.encode()

    def wait(_: float) -> None:
        api.raws[PATH] = after.encode()

    return examine([check], look(api, scrape=Scrape(10.0, wait=wait)))[0]


def test_few_errors_are_no_finding() -> None:
    result = scraped(ERRORS, calls(1000, 50), calls(1200, 52))

    assert (result.findings, result.not_done) == ((), None)


@pytest.mark.parametrize(
    ("failed", "severity"), [(3, Severity.WARNING), (11, Severity.CRITICAL)], ids=["over 1 %", "over 10 %"]
)
def test_calls_that_fail_now_are_a_finding(failed: int, severity: Severity) -> None:
    [finding] = scraped(ERRORS, calls(1000, 0), calls(1100, failed)).findings

    assert finding.severity is severity
    assert finding.evidence == (f"{failed} of 100 calls GET machines failed within 10 s",)


def test_a_single_call_that_fails_may_be_chance() -> None:
    [finding] = scraped(ERRORS, calls(0, 0), calls(1, 1)).findings

    assert finding.severity is Severity.WARNING


def test_without_calls_there_are_no_errors() -> None:
    assert scraped(ERRORS, calls(1000, 900), calls(1000, 900)).findings == ()


def test_a_pod_that_began_anew_in_between_counts_from_zero() -> None:
    result = scraped(QUEUES, queue("service", retries=1000), queue("service", retries=50))

    assert "grew by 50 within 10 s" in result.findings[0].evidence[0]


def test_slow_answers_are_a_warning() -> None:
    [finding] = scraped(LATENCY, calls(0, 0, "60"), calls(100, 0, "60")).findings

    assert finding.severity is Severity.WARNING
    assert finding.evidence == ("P99 of GET machines: 59 s",)


def test_answers_that_were_slow_earlier_are_no_finding() -> None:
    assert scraped(LATENCY, calls(100, 0, "60"), calls(100, 0, "60") + calls(50, 0, "0.5")).findings == ()


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ({1.0: 50.0, 2.0: 100.0, float("inf"): 100.0}, 1.98),
        ({1.0: 50.0, float("inf"): 100.0}, 1.0),
        ({1.0: 0.0, float("inf"): 0.0}, 0.0),
        ({}, 0.0),
    ],
    ids=["between bounds", "beyond the last bound", "no growth", "nothing"],
)
def test_a_quantile_is_that_of_prometheus(buckets: dict[float, float], expected: float) -> None:
    assert quantile(0.99, buckets) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (queue("service"), queue("service", depth=100)),
        (queue("node"), queue("node", depth=50)),
        (queue("service", retries=100), queue("service", retries=110)),
        (queue("service"), queue("service", longest=300)),
    ],
)
def test_queues_within_their_bounds_are_no_finding(before: str, after: str) -> None:
    assert scraped(QUEUES, before, after).findings == ()


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (queue("service"), queue("service", depth=101), "101 keys wait in its queue service"),
        (queue("node"), queue("node", depth=51), "51 keys wait in its queue node"),
        (queue("service"), queue("service", longest=301), "in work for 301 s"),
        (queue("service", retries=100), queue("service", retries=111), "again and again"),
    ],
)
def test_queues_beyond_their_bounds_are_a_warning(before: str, after: str, what: str) -> None:
    [finding] = scraped(QUEUES, before, after).findings

    assert finding.severity is Severity.WARNING
    assert what in finding.what


@pytest.mark.parametrize("check", [ERRORS, LATENCY, QUEUES], ids=lambda check: str(check.name))
def test_without_the_option_numbers_are_not_checked(check: Check) -> None:
    [result] = examine([check], look(cluster()))

    assert result.not_done == "it needs numbers: pass --scrape"


def test_what_is_no_metrics_is_not_checked() -> None:
    assert "text format" in (scraped(ERRORS, "<html>", "<html>").not_done or "")


# --------------------------------------------------------------------------------------------- pods that want a token


class Pod:
    """Serves metrics over TLS to a bearer of the token `good`."""

    def __init__(self) -> None:
        self.text = calls(100, 0)
        tls, pod = ServerTls(None, "127.0.0.1"), self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = self.headers["Authorization"] == "Bearer good"
                self.send_response(200 if allowed else 401)
                self.end_headers()
                self.wfile.write(pod.text.encode() if allowed else b"a bearer token is required")

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def finish_request(self, request: Any, client_address: Any) -> None:
                request.settimeout(10)
                with tls.wrap(request) as secured:
                    super().finish_request(secured, client_address)

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that does not trust the certificate ends the connection."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


@pytest.fixture
def pod() -> Iterator[Pod]:
    made = Pod()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def protected(pod: Pod, token: str | None) -> FakeKubernetes:
    """A cluster whose API server does not pass the token on."""
    api = cluster()
    api.bearer = token
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, f"--secure-port={pod.port}"))
    api.raws[PATH.replace("10258", str(pod.port))] = UnauthorizedError(401, "Unknown", "401")
    return api


def read(api: FakeKubernetes, wait: Callable[[float], object] = lambda _: None, ca: str | None = None) -> Result:
    return examine([ERRORS], look(api, scrape=Scrape(10.0, ca, wait)))[0]


def test_a_protected_pod_is_read_with_the_token(pod: Pod) -> None:
    def wait(_: float) -> None:
        pod.text = calls(200, 50)

    [finding] = read(protected(pod, "good"), wait).findings

    assert finding.what == "50% of the CCM's calls to the cloud fail"


@pytest.mark.parametrize(("token", "said"), [(None, "the kubeconfig has none"), ("wrong", "HTTP 401")])
def test_a_protected_pod_without_a_good_token_is_not_checked(pod: Pod, token: str | None, said: str) -> None:
    assert said in (read(protected(pod, token)).not_done or "")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, b'{"kind":"Status","message":"no right","reason":"Forbidden","details":{"kind":"pods","name":"x"}}'),
        (503, b'{"kind":"Status","message":"error trying to reach service: refused","reason":"ServiceUnavailable"}'),
        (500, b"oops"),
    ],
    ids=["no right to the proxy", "out of the API server's reach", "an error of the pod"],
)
def test_a_pod_that_did_not_ask_for_a_token_gets_none(pod: Pod, status: int, body: bytes) -> None:
    api = protected(pod, "good")
    path = PATH.replace("10258", str(pod.port))
    api.raws[path] = from_response(status, body, f"GET {path}")

    assert f"HTTP {status}" in (read(api).not_done or "")


def test_a_pod_with_a_certificate_of_the_given_ca_is_read(pod: Pod, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(ssl.get_server_certificate(("127.0.0.1", pod.port)))

    assert read(protected(pod, "good"), ca=str(ca)).not_done is None


def test_a_pod_with_a_certificate_of_another_ca_is_not_read(pod: Pod, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=_serve_one, args=(server, ServerTls(None, "127.0.0.1")))
        accepting.start()
        ca.write_text(ssl.get_server_certificate(server.getsockname()))
        accepting.join()

    assert "certificate verify failed" in (read(protected(pod, "good"), ca=str(ca)).not_done or "")


def test_a_ca_that_cannot_be_read_is_named(pod: Pod) -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere/ca"):
        read(protected(pod, "good"), ca="/nowhere/ca.pem")


def _serve_one(server: socket.socket, tls: ServerTls) -> None:
    connection, _ = server.accept()
    connection.settimeout(10)
    tls.wrap(connection).close()
