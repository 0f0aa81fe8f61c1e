"""The proxy counts requests by operation, and makes chosen ones go wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import urllib3

from local.openstack.proxy import Fault, Proxy

pytestmark = pytest.mark.integration

ID = "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"


class Service(BaseHTTPRequestHandler):
    """Answers with its own address, as Keystone's catalog does, and remembers what came."""

    came: list[str] = []  # noqa: RUF012  # a class of the test's own

    def do_POST(self) -> None:  # as the base class calls it
        self.came.append(self.path)
        assert isinstance(self.server, HTTPServer)
        body = f"http://127.0.0.1:{self.server.server_port}/v2.0".encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Before a service that is every service."""
    Service.came.clear()
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Proxy({"identity": server.server_port, "network": server.server_port}) as made:
            yield made
        server.shutdown()


def post(proxy: Proxy, path: str) -> urllib3.BaseHTTPResponse:
    """A request through the proxy."""
    return urllib3.request("POST", proxy.url + path, retries=False, timeout=10.0)


def test_requests_are_counted_without_their_ids_and_queries(proxy: Proxy) -> None:
    post(proxy, f"/network/v2.0/ports/{ID}?x=1")
    post(proxy, f"/network/v2.0/ports/{ID.replace('6', '7')}")

    assert proxy.counts == {"POST network /v2.0/ports/ID": 2}


def test_a_catalog_leads_back_to_the_proxy(proxy: Proxy) -> None:
    assert post(proxy, "/identity/v3/auth/tokens").data.decode().startswith(f"{proxy.url}/")


def test_a_refused_request_never_reaches_the_service(proxy: Proxy) -> None:
    proxy.fault = lambda _: Fault(503, {"message": "later"}, {"Retry-After": "3"})

    answer = post(proxy, "/network/v2.0/ports")

    assert (answer.status, answer.headers["Retry-After"], answer.json()) == (503, "3", {"message": "later"})
    assert Service.came == []


def test_a_request_whose_answer_is_lost_reaches_the_service(proxy: Proxy) -> None:
    proxy.fault = lambda _: Fault(loses_answer=True)

    with pytest.raises(urllib3.exceptions.ProtocolError):
        post(proxy, "/network/v2.0/ports")

    assert Service.came == ["/v2.0/ports"]


def test_peace_ends_what_goes_wrong(proxy: Proxy) -> None:
    proxy.fault = lambda _: Fault(500)
    post(proxy, "/network/v2.0/ports")

    proxy.peace()

    assert post(proxy, "/network/v2.0/ports").status == 201
    assert proxy.counts.total() == 1
