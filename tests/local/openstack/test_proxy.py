"""The proxy counts requests by operation, and makes chosen ones go wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import ProtocolError

from local.http_client import request
from local.http_messages import Answer, Request
from local.http_server import Application, config, serving
from local.openstack.proxy import Fault, Proxy

pytestmark = pytest.mark.integration

ID = "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"


class Service:
    """Is every service: answers with its own address, as Keystone's catalog does, and remembers what came."""

    url: str

    def __init__(self) -> None:
        self.came: list[str] = []

    async def answer(self, request: Request) -> Answer:
        self.came.append(request.path)
        return Answer(201, f"{self.url}/v2.0".encode())


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    with serving(config(Application(made.answer), "127.0.0.1")) as made.url:
        yield made


@pytest.fixture
def proxy(service: Service) -> Iterator[Proxy]:
    port = int(service.url.rpartition(":")[2])
    with Proxy({"identity": port, "network": port}).serving() as made:
        yield made


def post(proxy: Proxy, path: str) -> BaseHTTPResponse:
    """A request through the proxy."""
    return request("POST", proxy.url + path, seconds=10.0)


def test_requests_are_counted_without_their_ids_and_queries(proxy: Proxy) -> None:
    post(proxy, f"/network/v2.0/ports/{ID}?x=1")
    post(proxy, f"/network/v2.0/ports/{ID.replace('6', '7')}")

    assert proxy.counts == {"POST network /v2.0/ports/ID": 2}


def test_a_catalog_leads_back_to_the_proxy(proxy: Proxy) -> None:
    assert post(proxy, "/identity/v3/auth/tokens").data.decode().startswith(f"{proxy.url}/")


def test_a_refused_request_never_reaches_the_service(proxy: Proxy, service: Service) -> None:
    proxy.fault = lambda _: Fault(503, {"message": "later"}, {"Retry-After": "3"})

    answer = post(proxy, "/network/v2.0/ports")

    assert (answer.status, answer.headers["Retry-After"], answer.json()) == (503, "3", {"message": "later"})
    assert service.came == []


def test_a_request_whose_answer_is_lost_reaches_the_service(proxy: Proxy, service: Service) -> None:
    proxy.fault = lambda _: Fault(loses_answer=True)

    with pytest.raises(ProtocolError):
        post(proxy, "/network/v2.0/ports")

    assert service.came == ["/v2.0/ports"]


def test_peace_ends_what_goes_wrong(proxy: Proxy) -> None:
    proxy.fault = lambda _: Fault(500)
    post(proxy, "/network/v2.0/ports")

    proxy.peace()

    assert post(proxy, "/network/v2.0/ports").status == 201
    assert proxy.counts.total() == 1
