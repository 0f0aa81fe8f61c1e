"""The verdicts of probes, the delays of restarts, and the assignment of pod addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.control_plane.pki import Authority, write_pair
from local.http_messages import Answer, Request
from local.http_server import Application, config, serving
from local.machine.backoff import Backoff
from local.machine.pod_addresses import OutOfAddressesError, PodAddresses
from local.machine.prober import attempt
from local.machine.probes import HttpCheck, Probe, ProbeState, TcpCheck, UnsupportedProbeError, parse_probe

HOST = "127.2.200.2"
CONTAINER: dict[str, Any] = {"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}


def verdicts(state: ProbeState, results: str) -> str:
    """The verdict after each of the results, + and -."""
    out = ""
    for result in results:
        state.observe(result == "+")
        out += "+" if state.healthy else "-"
    return out


def test_a_probes_verdict_changes_after_threshold_many_equal_results() -> None:
    assert verdicts(ProbeState(2, 3, healthy=False), "+-++--+---+") == "---++++++--"


def test_a_failure_between_successes_resets_the_count() -> None:
    assert verdicts(ProbeState(3, 1, healthy=False), "++-+++") == "-----+"


def test_a_probe_that_never_succeeded_fails_for_good_at_its_threshold() -> None:
    state = ProbeState(1, 2, healthy=False)
    state.observe(False)
    assert not state.failed_for_good
    state.observe(False)
    assert state.failed_for_good


def test_a_probe_resolves_a_named_port_and_maps_the_pods_address() -> None:
    probe = parse_probe({"httpGet": {"path": "healthz", "port": "http"}, "periodSeconds": 3}, CONTAINER, "10.20.0.2")
    assert probe.check == HttpCheck("127.20.0.2", 8080, "/healthz", (), tls=False)
    assert (probe.period, probe.timeout, probe.failure_threshold) == (3, 1, 3)


@pytest.mark.parametrize(
    "spec",
    [
        {"httpGet": {"port": "none"}},
        {"httpGet": {"port": 80, "host": "192.0.2.1"}},
        {"grpc": {"port": 80}},
    ],
)
def test_an_unsupported_probe_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedProbeError):
        parse_probe(spec, CONTAINER, "10.20.0.2")


async def no_command(_: tuple[str, ...]) -> int:
    raise AssertionError("no command is to be run")


def probe_server(answer: bytes, check: Callable[[str, int], HttpCheck | TcpCheck], timeout: float = 60.0) -> str | None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer:
            writer.write(answer)
            await writer.drain()
        await reader.read()
        writer.close()

    async def scenario() -> str | None:
        server = await asyncio.start_server(serve, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await attempt(Probe(check(HOST, port), 0, 1, timeout, 1, 1), no_command)
        finally:
            server.close()

    return asyncio.run(scenario())


def http(host: str, port: int) -> HttpCheck:
    return HttpCheck(host, port, "/", (), tls=False)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", None),
        (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", None),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "HTTP probe failed with statuscode: 503"),
        (b"SSH-2.0\r\n", r"('Connection aborted.', BadStatusLine('SSH-2.0\r\n'))"),
    ],
)
def test_an_http_probe_judges_by_the_status(answer: bytes, problem: str | None) -> None:
    assert probe_server(answer, http) == problem


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_an_https_probe_accepts_any_certificate(tmp_path: Path) -> None:
    async def answer(request: Request) -> Answer:
        return Answer(200 if request.path == "/ready" else 404)

    elsewhere = Authority.load_or_create(tmp_path, "ca", "unknown").issue_server("server", ["127.0.0.1"])
    write_pair(tmp_path, "server", elsewhere)
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    with serving(config(Application(answer), HOST, ssl_certfile=certificate, ssl_keyfile=key)) as url:
        check = HttpCheck(HOST, int(url.rpartition(":")[2]), "/ready", (), tls=True)
        assert asyncio.run(attempt(Probe(check, 0, 1, 60, 1, 1), no_command)) is None


def test_a_server_that_does_not_answer_fails_the_probe_at_its_timeout() -> None:
    assert probe_server(b"", http, timeout=0.1) == "no answer within 0.1 s"


def test_a_tcp_probe_needs_only_a_connection() -> None:
    assert probe_server(b"", TcpCheck) is None


def test_a_closed_port_fails_the_probe() -> None:
    probe = Probe(TcpCheck(HOST, 1), 0, 1, 1, 1, 1)
    assert asyncio.run(attempt(probe, no_command)) is not None


def test_delays_double_up_to_the_limit_and_reset_after_a_good_run() -> None:
    backoff = Backoff(first=1, limit=5, forgotten_after=60)
    assert [backoff.next() for _ in range(4)] == [1, 2, 4, 5]
    assert backoff.next(ran_for=59) == 5
    assert backoff.next(ran_for=60) == 1


def test_pod_addresses_are_assigned_in_turn_without_the_reserved_ones() -> None:
    addresses = PodAddresses("10.20.3.0/24")
    given = [addresses.allocate() for _ in range(253)]

    assert (given[0], given[-1], len(set(given))) == ("10.20.3.2", "10.20.3.254", 253)
    with pytest.raises(OutOfAddressesError):
        addresses.allocate()


def test_a_freed_pod_address_is_reused_last() -> None:
    addresses = PodAddresses("10.20.3.0/24")
    first, second = addresses.allocate(), addresses.allocate()
    addresses.free(first)

    assert addresses.allocate() not in (first, second)


def test_a_pod_keeps_its_address_over_a_reboot_if_that_is_free_and_in_range() -> None:
    addresses = PodAddresses("10.20.3.0/24")
    assert addresses.allocate("10.20.3.9") == "10.20.3.9"
    assert addresses.allocate("10.20.3.9") != "10.20.3.9"
    assert addresses.allocate("10.99.0.9") != "10.99.0.9"
