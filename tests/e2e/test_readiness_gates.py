"""A rolling update of pods that the load balancer takes long to find healthy, under traffic, without and with gates."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.kube import DEPLOYMENTS, PODS, SERVICES, PatchType
from cloud_controller.load_balancers.readiness_gates import ANNOTATION, ReadinessGates
from tests.e2e.local_stack import LocalStack, eventually
from tests.e2e.traffic import CLIENTS, RATE, Traffic

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SLOW = "slow"
LABELS = {"app": SLOW}
WARM_SECONDS = 20
LINGER_SECONDS = 6
"""Old pods serve on for longer than it takes to remove them from the load balancer, and much shorter than new ones
take to become healthy there."""
REPLICAS = 2


@pytest.fixture(scope="module")
def stack(shared_stack: LocalStack) -> Iterator[LocalStack]:
    """The shared stack, whose daemon serves readiness gates, with a Service of slow pods."""
    kube = shared_stack.kube
    kube.create(DEPLOYMENTS, _deployment(), "default")
    kube.create(SERVICES, _service(), "default")
    yield shared_stack
    kube.delete(SERVICES, SLOW, "default")
    kube.delete(DEPLOYMENTS, SLOW, "default")
    eventually(lambda: not _pods(shared_stack), "the slow pods are gone")


def test_without_gates_a_rolling_update_loses_requests(stack: LocalStack) -> None:
    with Traffic(_url(stack)).flowing() as traffic:
        _wait_healthy(stack)
        began = time.monotonic()

        _roll_out(stack, "without-gates")

        rolled_out = time.monotonic() - began
        _wait_healthy(stack)
    lost, answered = len(traffic.failures_since(began)), traffic.answers_since(began).total()
    print(f"without gates: {lost} requests failed, {answered} were answered; rolled out in {rolled_out:.0f} s")
    assert lost > 0


def test_with_gates_a_rolling_update_loses_no_request(stack: LocalStack) -> None:
    kube = stack.kube
    kube.patch(SERVICES, SLOW, {"metadata": {"annotations": {ANNOTATION: "true"}}}, "default", type=PatchType.MERGE)
    eventually(lambda: _gates_of_a_new_pod(stack), "new pods get the gate")
    with Traffic(_url(stack)).flowing() as traffic:
        _wait_healthy(stack)
        began = time.monotonic()

        _roll_out(stack, "with-gates")

        ended = time.monotonic()
        eventually(lambda: traffic.answers_since(ended).keys() == _pods(stack), "traffic reaches the new pods alone")
    answered = traffic.answers_since(began).total()
    print(f"with gates: {answered} requests were answered in {ended - began:.0f} s")
    assert traffic.failures_since(began) == []
    assert 100 < answered <= RATE * (time.monotonic() - began) + CLIENTS
    for pod in kube.list(PODS, "default", label_selector=f"app={SLOW}").items:
        (gate,) = pod["spec"]["readinessGates"]
        assert gate["conditionType"] == ReadinessGates().condition
        reasons = {each["type"]: each["reason"] for each in pod["status"]["conditions"] if "reason" in each}
        assert reasons[gate["conditionType"]] == "Healthy"


# --------------------------------------------------------------------------------------------------------- helpers


def _roll_out(stack: LocalStack, version: str) -> None:
    """Replace every pod, and wait until the old ones are gone."""
    kube = stack.kube
    patch = {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}}
    kube.patch(DEPLOYMENTS, SLOW, patch, "default", type=PatchType.MERGE)

    def done() -> bool:
        found = kube.list(PODS, "default", label_selector=f"app={SLOW}").items
        new = [each for each in found if each["metadata"]["annotations"].get("version") == version]
        ready = [each for each in new if _is_ready(each)]
        return len(found) == len(ready) == REPLICAS

    eventually(done, f"the pods of version {version} are ready and the others gone", 300)


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _wait_healthy(stack: LocalStack) -> None:
    """Wait until the load balancer has all pods as members and finds them healthy."""
    url = _url(stack)

    def healthy() -> bool:
        (lb,) = [each for each in stack.cloud.list("load_balancers") if each["address"] == urlsplit(url).hostname]
        items = stack.cloud.get_path(f"load_balancers/{lb['id']}/health")["items"]
        return len(items) == REPLICAS and all(each["healthy"] for each in items)

    eventually(healthy, "all pods are healthy in the load balancer")


def _pods(stack: LocalStack) -> set[str]:
    found = stack.kube.list(PODS, "default", label_selector=f"app={SLOW}").items
    return {str(each["metadata"]["name"]) for each in found}


def _gates_of_a_new_pod(stack: LocalStack) -> list[Any]:
    pod = {"metadata": {"name": "x", "labels": LABELS}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    made = stack.kube.create(PODS, pod, "default", dry_run=True)
    return list(made["spec"].get("readinessGates") or [])


def _url(stack: LocalStack) -> str:
    def ingress() -> list[dict[str, str]]:
        return list(stack.kube.get(SERVICES, SLOW, "default")["status"]["loadBalancer"].get("ingress") or [])

    return f"http://{eventually(ingress, 'the Service has an address')[0]['ip']}:8090"


def _deployment() -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "registry.local/web",
        "command": [sys.executable, "-c", (Path(__file__).parent / "warming_server.py").read_text()],
        "env": [
            {"name": "WARM_SECONDS", "value": str(WARM_SECONDS)},
            {"name": "LINGER_SECONDS", "value": str(LINGER_SECONDS)},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    pod = {"containers": [container], "terminationGracePeriodSeconds": 60}
    return {
        "metadata": {"name": SLOW},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": LABELS},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": LABELS, "annotations": {"version": "first"}}, "spec": pod},
        },
    }


def _service() -> dict[str, Any]:
    checks: dict[str, Any] = {"health_check_protocol": "HTTP", "health_check_path": "/warm", "health_check_interval": 1}
    annotations = CATALOGUE.annotations({"backend_type": "pod-ip", **checks})
    ports = [{"port": 8090, "targetPort": 8080}]
    return {
        "metadata": {"name": SLOW, "annotations": annotations},
        "spec": {
            "type": "LoadBalancer",
            "allocateLoadBalancerNodePorts": False,
            "selector": LABELS,
            "ports": ports,
        },
    }
