"""What the daemon answers over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import urllib3

from cloud_controller.health import HealthServer

ADDRESS = "127.0.0.1"


class Daemon:
    trouble: str | None = None


@pytest.fixture(scope="module")
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[HealthServer]:
    found = HealthServer(
        ADDRESS, 0, {"ping": lambda: None}, {"controller-node": lambda: daemon.trouble}, lambda: b"up 1\n"
    )
    found.start()
    yield found
    found.stop()


def get(server: HealthServer, path: str) -> tuple[int, str]:
    answer = urllib3.request("GET", f"http://{ADDRESS}:{server.port}{path}", retries=False, timeout=10)
    return answer.status, answer.data.decode()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_all_is_well(server: HealthServer, path: str) -> None:
    assert get(server, path) == (200, "ok")


def test_a_controller_in_trouble_makes_the_daemon_not_ready_but_not_unhealthy(
    server: HealthServer, daemon: Daemon
) -> None:
    daemon.trouble = "Unavailable: the cloud does not answer"

    assert get(server, "/readyz") == (503, "[-]controller-node Unavailable: the cloud does not answer\n")
    assert get(server, "/healthz") == (200, "ok")

    daemon.trouble = None
    assert get(server, "/readyz") == (200, "ok")


def test_verbose_tells_each_check(server: HealthServer) -> None:
    assert get(server, "/readyz?verbose") == (200, "[+]controller-node ok\n")


def test_metrics_are_served_and_other_paths_are_not(server: HealthServer) -> None:
    assert get(server, "/metrics") == (200, "up 1\n")
    assert get(server, "/secrets")[0] == 404


def test_a_port_that_is_taken_is_an_error_at_once(server: HealthServer) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        HealthServer(ADDRESS, server.port, {}, {}, bytes)


def test_it_can_be_bound_to_an_ipv6_address() -> None:
    try:
        found = HealthServer("::1", 0, {"ping": lambda: None}, {}, lambda: b"")
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    found.start()
    try:
        answer = urllib3.request("GET", f"http://[::1]:{found.port}/livez", retries=False, timeout=10)
    finally:
        found.stop()

    assert answer.data == b"ok"
