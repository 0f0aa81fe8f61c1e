"""Compares the official `kubernetes` package with `cloud_controller.kube` on 5,000 nodes: list, watch and patch.

Not part of `make bench`: it needs a package that this project does not depend on. To repeat docs/decisions/0001:

    python -m venv /tmp/v && /tmp/v/bin/pip install -r requirements.txt 'kubernetes>=37,<38'
    /tmp/v/bin/pip install --no-deps -e . && /tmp/v/bin/python -m benchmarks.kubernetes_clients

Prints one JSON object per line: the client, the operation, the number of objects, seconds of the clock and of this
process.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import kubernetes
import orjson
import yaml

from cloud_controller.kube import NODES, Kube, PatchType
from local.control_plane.binaries import ensure
from local.control_plane.components import ALL_PORTS
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address

NODE_COUNT = 5000
THREADS = 16
PAGE = 500


class Client(Protocol):
    """The operations of both clients, each as its documentation recommends."""

    def list_nodes(self) -> tuple[int, str]:
        """All nodes, decoded; their number and the list's resource version."""

    def watch_nodes(self, resource_version: str, count: int) -> None:
        """Read and decode this many events."""

    def patch_node(self, name: str, annotation: str) -> None:
        """One merge patch."""


class Official:
    """Package `kubernetes`, typed models."""

    def __init__(self, kubeconfig: str) -> None:
        api_client = kubernetes.config.new_client_from_config_dict(yaml.safe_load(kubeconfig))
        api_client.configuration.connection_pool_maxsize = THREADS
        self._api = kubernetes.client.CoreV1Api(api_client)

    def list_nodes(self) -> tuple[int, str]:
        count, token = 0, None
        while True:
            page = self._api.list_node(limit=PAGE, _continue=token)
            count += len(page.items)
            token = page.metadata._continue
            if not token:
                return count, page.metadata.resource_version

    def watch_nodes(self, resource_version: str, count: int) -> None:
        watch = kubernetes.watch.Watch()
        for event in watch.stream(self._api.list_node, resource_version=resource_version):
            assert event["object"].metadata.name
            count -= 1
            if count == 0:
                watch.stop()

    def patch_node(self, name: str, annotation: str) -> None:
        self._api.patch_node(name, {"metadata": {"annotations": {"benchmark": annotation}}})


class Raw:
    """`cloud_controller.kube`: urllib3 and orjson, plain dicts."""

    def __init__(self, kubeconfig: str) -> None:
        self._kube = Kube.from_kubeconfig(kubeconfig)

    def list_nodes(self) -> tuple[int, str]:
        nodes = self._kube.list(NODES)
        return len(nodes.items), nodes.resource_version

    def watch_nodes(self, resource_version: str, count: int) -> None:
        watch = self._kube.watch(NODES, resource_version=resource_version)
        for event in watch:
            assert event.object["metadata"]["name"]
            count -= 1
            if count == 0:
                watch.close()
                return

    def patch_node(self, name: str, annotation: str) -> None:
        self._kube.patch(NODES, name, {"metadata": {"annotations": {"benchmark": annotation}}}, type=PatchType.MERGE)


def main() -> None:
    binaries = ensure(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="kubernetes-clients-") as directory:
        control_plane = ControlPlane(
            Path(directory), binaries, unused_address(ALL_PORTS), "10.0.0.0/11", "10.32.0.0/24", "benchmark"
        )
        try:
            control_plane.start()
            control_plane.wait_ready()
            kubeconfig = control_plane.kubeconfig("benchmark", ["system:masters"], timedelta(hours=1))
            _create_nodes(Kube.from_kubeconfig(kubeconfig))
            for client in (Raw(kubeconfig), Official(kubeconfig), Raw(kubeconfig), Official(kubeconfig)):
                _measure(client)
        finally:
            control_plane.stop()


def _measure(client: Client) -> None:
    name = type(client).__name__.lower()
    count, resource_version = client.list_nodes()  # connections, discovery and imports are not measured
    assert count == NODE_COUNT
    _report(name, "list", count, client.list_nodes)
    names = [_node_name(index) for index in range(NODE_COUNT)]

    def patch_all() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda node: client.patch_node(node, f"{name} {time.time()}"), names))

    _report(name, f"patch ({THREADS} threads)", count, patch_all)
    # The API server replays the patches as fast as they are read.
    _report(name, "watch", count, lambda: client.watch_nodes(resource_version, count))


def _report(client: str, what: str, count: int, action: Callable[[], Any]) -> None:
    wall, cpu = time.monotonic(), time.process_time()
    action()
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    figures = {"seconds": round(wall, 2), "cpu_seconds": round(cpu, 2), "per_second": round(count / wall)}
    print(json.dumps({"client": client, "what": what, "objects": count, **figures}), flush=True)


def _create_nodes(kube: Kube) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda index: kube.create(NODES, _node(index)), range(NODE_COUNT)))
    print(f"a node has {len(orjson.dumps(kube.get(NODES, _node_name(0))))} bytes", file=sys.stderr)


def _node_name(index: int) -> str:
    return f"worker-{index:05}.cluster.example"


def _node(index: int) -> dict[str, Any]:
    """A node of about the size that a kubelet on a cloud makes it."""
    now = "2026-01-01T00:00:00Z"
    labels = {f"topology.cloud.example/attribute-{number}": f"value-{index % 7}" for number in range(15)}
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": "-" * 60,
        }
        | {"lastHeartbeatTime": now, "lastTransitionTime": now}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready")
    ]
    images = [
        {"names": [f"registry.example/team/image-{number}@sha256:{number:064x}"], "sizeBytes": 10**8}
        for number in range(25)
    ]
    addresses = [
        {"type": "InternalIP", "address": f"10.0.{index // 250}.{index % 250}"},
        {"type": "Hostname", "address": _node_name(index)},
    ]
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _node_name(index), "labels": labels},
        "spec": {"providerID": f"example://zone-{index % 3}/i-{index:012x}"},
        "status": {"conditions": conditions, "images": images, "addresses": addresses}
        | {"capacity": resources, "allocatable": resources},
    }


if __name__ == "__main__":
    main()
