"""Traffic while a Service changes, shares or is deleted. Each test has own Services in the shared stack."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.address_changes import ANNOTATION, CONDITION
from cloud_controller.kube import EVENTS, SERVICES, NotFoundError, Object, PatchType
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from tests.e2e.local_stack import LocalStack, answers, eventually, http_get

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PODS = {"app.kubernetes.io/name": "web"}


@pytest.fixture
def stack(shared_stack: LocalStack) -> LocalStack:
    """The shared stack, where changes of addresses wait for an acknowledgement."""
    return shared_stack


@contextmanager
def asked_without_failure(url: str) -> Iterator[None]:
    """Requests over new connections, one after the other, until the block ends; none may fail."""
    stop, failures, good = threading.Event(), list[str](), list[str]()

    def ask() -> None:
        while not stop.wait(0.005):
            try:
                good.append(http_get(url)["pod"])
            except (OSError, ValueError) as error:
                failures.append(repr(error))

    client = threading.Thread(target=ask, daemon=True)
    client.start()
    try:
        yield
    finally:
        stop.set()
        client.join()
    assert not failures and good


def make(stack: LocalStack, name: str, *ports: int, **settings: Any) -> Object:
    """A Service of the web pods."""
    spec = {
        "type": "LoadBalancer",
        "selector": PODS,
        "ports": [{"name": f"p{port}", "port": port, "targetPort": "main"} for port in ports],
    }
    metadata = {"name": name, "namespace": "default", "annotations": CATALOGUE.annotations(settings)}
    return stack.kube.create(SERVICES, {"metadata": metadata, "spec": spec})


def change(stack: LocalStack, name: str, spec: Object | None = None, **settings: Any) -> None:
    patch = {"spec": spec or {}, "metadata": {"annotations": CATALOGUE.annotations(settings)}}
    stack.kube.patch(SERVICES, name, patch, "default", type=PatchType.MERGE)


def delete(stack: LocalStack, name: str) -> None:
    stack.kube.delete(SERVICES, name, "default")

    def gone() -> bool:
        try:
            stack.kube.get(SERVICES, name, "default")
        except NotFoundError:
            return True
        return False

    eventually(gone, f"Service {name} is gone")


def address(stack: LocalStack, name: str) -> str:
    """The Service's address, once it has one."""

    def ingress() -> Any:
        status = stack.kube.get(SERVICES, name, "default").get("status", {})
        return (status.get("loadBalancer") or {}).get("ingress")

    return str(eventually(ingress, f"Service {name} has an address")[0]["ip"])


def messages(stack: LocalStack, name: str) -> list[str]:
    """The messages of the Service's events."""
    return [e["message"] for e in stack.kube.list(EVENTS, "default").items if e["involvedObject"]["name"] == name]


def at(stack: LocalStack, ip: str) -> Any:
    """The load balancer that has this address."""
    (found,) = [lb for lb in stack.cloud.list("load_balancers") if lb["address"] == ip]
    return found


def backends(stack: LocalStack, ip: str) -> list[Any]:
    return [backend for each in at(stack, ip)["backend_sets"] for backend in each["backends"]]


def test_traffic_continues_while_a_service_changes_its_backends(stack: LocalStack) -> None:
    make(stack, "changing", 8090)
    ip = address(stack, "changing")
    url = f"http://{ip}:8090/"
    eventually(lambda: answers(url), "it answers")
    every_node = len(backends(stack, ip))

    with asked_without_failure(url):
        change(stack, "changing", {"externalTrafficPolicy": "Local"})
        eventually(
            lambda: sum(backend["weight"] for backend in backends(stack, ip)) == 2, "only nodes with pods, two in all"
        )
        eventually(
            lambda: at(stack, ip)["backend_sets"][0]["health_check"]["protocol"] == "HTTP", "nodes are asked for pods"
        )
        change(stack, "changing", {"externalTrafficPolicy": "Cluster", "sessionAffinity": "ClientIP"})
        eventually(lambda: len(backends(stack, ip)) == every_node, "every node again")
        change(stack, "changing", {"sessionAffinity": "None"}, backend_type="pod-ip")
        eventually(lambda: {b["port"] for b in backends(stack, ip)} == {8080}, "the pods themselves")
        ports = stack.kube.get(SERVICES, "changing", "default")["spec"]["ports"]
        more = [
            {"name": protocol.lower(), "port": 8091, "targetPort": "main", "protocol": protocol}
            for protocol in ("TCP", "UDP")
        ]
        change(stack, "changing", {"ports": [*ports, *more]})
        eventually(lambda: answers(f"http://{ip}:8091/"), "another port answers")
        change(stack, "changing", {"ports": ports}, backend_type="node-port")
        eventually(lambda: len(at(stack, ip)["listeners"]) == 1, "the other ports are closed")
        eventually(lambda: 8080 not in {b["port"] for b in backends(stack, ip)}, "node ports again")

    delete(stack, "changing")


def test_services_share_a_load_balancer_until_each_goes(stack: LocalStack) -> None:
    (network,) = stack.cloud.list("networks")
    body = {"name": "edge", "network_id": network["id"], "tags": {SHARED_WITH_TAG: "any"}}
    edge = stack.cloud.create("load_balancers", body)
    make(stack, "first", 8092, id=edge["id"])
    make(stack, "second", 8093, id=edge["id"])
    assert {address(stack, name) for name in ("first", "second")} == {edge["address"]}
    for url in (f"http://{edge['address']}:{port}/" for port in (8092, 8093)):
        eventually(partial(answers, url), f"{url} answers")

    make(stack, "late", 8092, id=edge["id"])
    taken = "in use by Service default/first"
    eventually(
        lambda: [reported for reported in messages(stack, "late") if taken in reported],
        "an event tells who has the port",
    )

    with asked_without_failure(f"http://{edge['address']}:8093/"):
        delete(stack, "late")
        delete(stack, "first")
    delete(stack, "second")
    assert at(stack, edge["address"])["listeners"] == []
    stack.cloud.delete("load_balancers", edge["id"])


def test_a_preserved_load_balancer_keeps_serving_and_a_new_service_can_adopt_it(stack: LocalStack) -> None:
    make(stack, "testator", 8094, backend_type="pod-ip", preserve_on_delete=True)
    ip = address(stack, "testator")
    url = f"http://{ip}:8094/"
    eventually(lambda: answers(url), "it answers")

    with asked_without_failure(url), socket.create_connection((ip, 8094), timeout=60) as connection:
        delete(stack, "testator")
        assert at(stack, ip)["tags"].keys() == {"cloud-controller/preserved-from"}
        tags = at(stack, ip)["tags"] | {SHARED_WITH_TAG: "any"}
        stack.cloud.update("load_balancers", at(stack, ip)["id"], {"tags": tags})
        make(stack, "heir", 8094, backend_type="pod-ip", id=at(stack, ip)["id"], force_override_listeners=True)
        assert address(stack, "heir") == ip
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"200" in connection.recv(4096), "the connection that was open before is served"

    delete(stack, "heir")
    (listener,) = at(stack, ip)["listeners"]
    assert listener["backend_set"] == "tcp-8094", "it is given back as it was preserved"
    stack.cloud.delete("load_balancers", at(stack, ip)["id"])


def test_a_service_keeps_its_address_until_the_change_is_acknowledged(stack: LocalStack) -> None:
    make(stack, "guarded", 8095, backend_type="pod-ip")
    ip = address(stack, "guarded")
    url = f"http://{ip}:8095/"
    eventually(lambda: answers(url), "it answers")

    def condition() -> Object | None:
        conditions = stack.kube.get(SERVICES, "guarded", "default")["status"].get("conditions") or []
        return next((each for each in conditions if each["type"] == CONDITION), None)

    def held() -> tuple[str, str]:
        """The condition's message, and the digest in it."""
        message = str(eventually(condition, "a condition says that the change is held")["message"])
        return message, message.partition(f'{ANNOTATION}: "')[2].partition('"')[0]

    def acknowledge(digest: str) -> None:
        patch = {"metadata": {"annotations": {ANNOTATION: digest}}}
        stack.kube.patch(SERVICES, "guarded", patch, "default", type=PatchType.MERGE)

    with asked_without_failure(url):
        change(stack, "guarded", scheme="internal", listener_max_qps=9000)
        message, first = held()
        assert ip in message and "scheme: internet-facing -> internal" in message
        eventually(lambda: at(stack, ip)["listeners"][0]["max_qps"] == 9000, "other changes are made")
        assert address(stack, "guarded") == ip
        acknowledge("0123456789ab")
        eventually(lambda: message in messages(stack, "guarded"), "an event says it too")
    acknowledge(first)
    eventually(lambda: address(stack, "guarded") != ip, "the acknowledged change is made")
    moved = address(stack, "guarded")
    eventually(lambda: answers(f"http://{moved}:8095/"), "it answers at the new address")
    eventually(lambda: condition() is None, "the condition goes")
    told = f"address changed {ip} -> {moved}"
    eventually(lambda: [each for each in messages(stack, "guarded") if told in each], "an event tells both addresses")

    with asked_without_failure(f"http://{moved}:8095/"):
        change(stack, "guarded", scheme="internet-facing")
        assert held()[1] != first, "the old acknowledgement does not cover it"
        assert address(stack, "guarded") == moved
    delete(stack, "guarded")
