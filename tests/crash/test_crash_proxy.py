"""The proxy itself: what it counts, and that its blows fall where they are meant to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from cloud_controller.kube import NODES, Kube, ObjectList, UnreachableError
from cloud_controller.kube.config import Connection
from tests.cloud_controller.kube.scripted_server import Answer, ScriptedServer, serving
from tests.crash.daemon import PATIENCE, until
from tests.crash.proxy import Proxy, Recorder, Refusal

BODY = {"metadata": {"name": "n", "resourceVersion": "1"}}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving() as scripted:
        scripted.answer = lambda _: Answer(BODY | {"items": []})
        yield scripted


@pytest.fixture
def proxy(server: ScriptedServer) -> Iterator[Proxy]:
    with Proxy("kubernetes", "127.0.0.1", f"http://127.0.0.1:{server.port}", Recorder()) as made:
        yield made


@pytest.fixture
def kube(proxy: Proxy) -> Kube:
    port = int(proxy.url.rpartition(":")[2])
    return Kube(Connection("http", "127.0.0.1", port, None, None)).with_timeout(PATIENCE)


def read(kube: Kube) -> ObjectList:
    return kube.list(NODES)


def test_only_what_has_changed_something_is_counted(proxy: Proxy, kube: Kube) -> None:
    read(kube)
    kube.create(NODES, BODY)
    kube.raw("POST", "/api/v1/namespaces/default/events", body={})
    kube.raw("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", body={})
    proxy.refuse = lambda _, path: Refusal(409, b"{}") if "refused" in path else None
    with pytest.raises(Exception, match="HTTP 409"):
        kube.raw("DELETE", "/api/v1/nodes/refused")

    assert [str(call) for call in proxy.recorder.writes()] == ["kubernetes POST /api/v1/nodes -> 200"]
    assert proxy.recorder.counted == 1


def test_the_trap_shuts_at_its_call_after_the_server_has_done_it_and_no_other_is_lost(
    server: ScriptedServer, proxy: Proxy, kube: Kube
) -> None:
    struck: list[int] = []
    proxy.recorder.arm(2, lambda: struck.append(len(server.calls)))
    kube.create(NODES, BODY)
    with pytest.raises(UnreachableError):
        kube.delete(NODES, "n")
    kube.create(NODES, BODY)

    assert struck == [2]
    assert str(proxy.recorder.sprung) == "kubernetes DELETE /api/v1/nodes/n -> 200"


def test_a_call_that_was_cut_off_reaches_nobody(server: ScriptedServer, proxy: Proxy) -> None:
    address = urlsplit(proxy.url)
    with socket.create_connection((address.hostname, address.port or 0), timeout=PATIENCE) as client:
        client.sendall(b"POST /api/v1/nodes HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b"", "the proxy answers nothing"

    assert (server.calls, proxy.recorder.quiet_for(0.0)) == ([], True)


def test_through_a_partition_nothing_comes_until_it_is_healed(server: ScriptedServer, proxy: Proxy, kube: Kube) -> None:
    proxy.partition()
    with pytest.raises(UnreachableError):
        kube.with_timeout(0.2).create(NODES, BODY)
    until(lambda: proxy.caught, "the call has come to the proxy")
    assert not server.calls

    proxy.heal()
    kube.create(NODES, BODY)

    assert len(server.calls) == 1


def test_a_silenced_stream_says_nothing_and_a_new_one_does(server: ScriptedServer, proxy: Proxy, kube: Kube) -> None:
    end = threading.Event()
    server.answer = lambda _: Answer(lines=[{"type": "ADDED", "object": BODY}], hang=end)
    try:
        first = kube.watch(NODES, resource_version="1")
        next(first)
        assert proxy.silence_streams() == 1
        assert proxy.streams == 0

        second = kube.watch(NODES, resource_version="1")
        assert next(second).object["metadata"]["name"] == "n"
        assert proxy.streams == 1
    finally:
        end.set()
        proxy.cut()
