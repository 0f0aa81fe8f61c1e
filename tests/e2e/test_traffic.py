"""What the clients of a load balancer notice while nodes die and come. The tests share one stack, in this order."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloud_controller.kube import SERVICES, NotFoundError, Object
from tests.e2e.local_stack import LocalStack, eventually, http_get

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CLIENTS = 4
EVERYWHERE = "everywhere"
"""A DaemonSet and its Service with `externalTrafficPolicy: Local`: each answer comes from the node that took it."""


@pytest.fixture(scope="module")
def stack(empty_stack: LocalStack) -> Iterator[LocalStack]:
    """The stack, brought up once for the module."""
    empty_stack.run("up")
    yield empty_stack


class Traffic:
    """Clients that ask one URL without a pause, each time over a new connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answers: list[tuple[float, str]] = []
        self._failures: list[tuple[float, str]] = []
        self._threads = [threading.Thread(target=self._ask, daemon=True) for _ in range(CLIENTS)]

    @contextmanager
    def flowing(self) -> Iterator[Traffic]:
        """Clients ask until the block ends."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def answers_since(self, moment: float) -> Counter[str]:
        """How many requests that began after `moment` (monotonic) each node has answered."""
        with self._lock:
            return Counter(node for began, node in self._answers if began >= moment)

    def failures_since(self, moment: float) -> list[str]:
        """What went wrong with the requests that began after `moment`."""
        with self._lock:
            return [error for began, error in self._failures if began >= moment]

    def _ask(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                node = str(http_get(self._url)["node"])
                with self._lock:
                    self._answers.append((began, node))
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self._lock:
                    self._failures.append((began, repr(error)))


def test_no_request_fails_once_a_dead_node_is_out(stack: LocalStack) -> None:
    url = stack.outputs["webUrl"]
    balancer = _load_balancer(stack, url)
    victim = next(m for m in stack.cloud.list("machines") if m["role"] == "worker" and m["state"] == "running")
    with Traffic(url).flowing() as traffic:
        eventually(lambda: traffic.answers_since(0).total() > 100, "traffic flows")

        killed = time.monotonic()
        _kill_machine(stack, victim["id"])
        eventually(lambda: _is_out(stack, balancer, victim), "the health check has taken the dead node out")
        out = time.monotonic()
        eventually(lambda: traffic.answers_since(out).total() > 500, "traffic flows on")

    lost = len(traffic.failures_since(0))
    print(f"the dead node was out {out - killed:.1f} s after its death; {lost} requests failed until then")
    assert traffic.failures_since(out) == []


def test_nodes_that_are_added_take_traffic(stack: LocalStack) -> None:
    _start_stopped_machines(stack)
    _create_everywhere(stack)
    url = eventually(lambda: _url_of(stack, EVERYWHERE), "the Service has an address")
    workers = {m["name"] for m in stack.cloud.list("machines") if m["role"] == "worker" and m["state"] == "running"}
    with Traffic(url).flowing() as traffic:
        eventually(lambda: traffic.answers_since(0).keys() >= workers, "every worker answers")
        before = time.monotonic()

        stack.scale_workers(len(workers) + 2)
        stack.run("up")

        eventually(lambda: len(traffic.answers_since(before).keys() - workers) == 2, "both new nodes take traffic")
        failures = traffic.failures_since(before)
    stack.kube.delete(SERVICES, EVERYWHERE, "default")

    assert failures == []
    eventually(lambda: not _exists(stack, EVERYWHERE), "the Service goes with its load balancer")


# --------------------------------------------------------------------------------------------------------- helpers


def _load_balancer(stack: LocalStack, url: str) -> str:
    (found,) = [lb for lb in stack.cloud.list("load_balancers") if lb["address"] == urlsplit(url).hostname]
    return str(found["id"])


def _kill_machine(stack: LocalStack, id: str) -> None:
    (process,) = [p for p in stack.processes() if p.name.endswith(f"({id})")]
    process.signal(signal.SIGKILL)


def _start_stopped_machines(stack: LocalStack) -> None:
    for machine in stack.cloud.list("machines", state="stopped"):
        stack.cloud.post(f"machines/{machine['id']}/start", {})
        stack.cloud.wait_for_state("machines", machine["id"], ["running"], 60)


def _is_out(stack: LocalStack, balancer: str, machine: dict[str, Any]) -> bool:
    health = stack.cloud.get_path(f"load_balancers/{balancer}/health")["items"]
    return not [h for h in health if h["address"] in machine["private_ips"] and h["healthy"] is not False]


def _create_everywhere(stack: LocalStack) -> None:
    kube = stack.kube
    field: Callable[[str, str], Object] = lambda name, path: {  # noqa: E731
        "name": name,
        "valueFrom": {"fieldRef": {"fieldPath": path}},
    }
    container = {
        "name": "web",
        "image": "registry.local/web",
        "env": [
            {"name": "PORT", "value": "8080"},
            field("POD_IP", "status.podIP"),
            field("POD_NAME", "metadata.name"),
            field("NODE_NAME", "spec.nodeName"),
        ],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    labels = {"app": EVERYWHERE}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": EVERYWHERE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": EVERYWHERE},
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "selector": labels,
            "ports": [{"port": 8088, "targetPort": 8080}],
        },
    }
    kube.create(kube.resource("apps/v1", "DaemonSet"), daemon_set, "default")
    kube.create(SERVICES, service, "default")


def _url_of(stack: LocalStack, name: str) -> str | None:
    service = stack.kube.get(SERVICES, name, "default")
    ingress = service["status"]["loadBalancer"].get("ingress") or []
    return f"http://{ingress[0]['ip']}:{service['spec']['ports'][0]['port']}" if ingress else None


def _exists(stack: LocalStack, name: str) -> bool:
    try:
        stack.kube.get(SERVICES, name, "default")
    except NotFoundError:
        return False
    return True
