"""Clients of a load balancer while nodes die and are added. The tests run in this order, on the shared stack."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloud_controller.kube import SERVICES, NotFoundError, Object
from tests.e2e.local_stack import LocalStack, eventually
from tests.e2e.traffic import Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EVERYWHERE = "everywhere"
"""A DaemonSet and its Service with `externalTrafficPolicy: Local`: each answer comes from the node that took it."""


@pytest.fixture
def stack(shared_stack: LocalStack) -> LocalStack:
    """The shared stack."""
    return shared_stack


def test_no_request_fails_once_a_dead_node_is_removed_from_the_load_balancer(stack: LocalStack) -> None:
    url = stack.outputs["webUrl"]
    balancer = _load_balancer(stack, url)
    victim = next(m for m in stack.cloud.list("machines") if m["role"] == "worker" and m["state"] == "running")
    with Traffic(url).flowing() as traffic:
        eventually(lambda: traffic.answers_since(0).total() > 100, "traffic flows")

        killed = time.monotonic()
        stack.kill_machine(victim["id"])
        eventually(lambda: _is_out(stack, balancer, victim), "the health check has taken the dead node out")
        out = time.monotonic()
        eventually(lambda: traffic.answers_since(out).total() > 500, "traffic flows on")

    lost = len(traffic.failures_since(0))
    print(f"the dead node was out {out - killed:.1f} s after its death; {lost} requests failed until then")
    assert traffic.failures_since(out) == []


def test_added_nodes_get_traffic(stack: LocalStack) -> None:
    stack.start_stopped_machines()
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
