"""A real API server for the benchmarks, with Services, and nodes without kubelets."""

from __future__ import annotations

import base64
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.daemons import PATIENCE
from cloud_controller.kube import CONFIG_MAPS, NODES, SERVICES, Informer, Kube, Object, PatchType
from cloud_controller.rbac import CHECKPOINT_NAME, LEASE_NAMESPACE
from local import processes
from local.control_plane.binaries import ensure
from local.control_plane.components import ALL_PORTS, CONTROLLER_MANAGER, SCHEDULER
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address

POD_CIDR, SERVICE_CIDR = "10.1.0.0/16", "10.2.0.0/16"
_WRITERS = 16
_LIFETIME = timedelta(hours=4)
_UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "simulated",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


class Cluster:
    """The Kubernetes side of a benchmark. Watched copies cost the machine far less than repeated lists."""

    def __init__(self, kubeconfig: str) -> None:
        self.kube = Kube.from_kubeconfig(kubeconfig)
        self.nodes, self.services = Informer(self.kube, NODES), Informer(self.kube, SERVICES)
        for informer in (self.nodes, self.services):
            informer.start()
            informer.wait_synced(PATIENCE)

    def register(self, nodes: Sequence[Object]) -> None:
        """Add these nodes, as their kubelets would."""
        known = len(self.nodes.items())
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda node: self.kube.create(NODES, node), nodes))
        self.nodes.wait_until(lambda: len(self.nodes.items()) == known + len(nodes), PATIENCE)

    def add_services(self, services: Sequence[Object]) -> None:
        """Add these Services in namespace default."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda service: self.kube.create(SERVICES, service), services))

    def delete_services(self) -> None:
        """Delete all Services of type LoadBalancer."""
        names = [service["metadata"]["name"] for service in self._balanced()]
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda name: self.kube.delete(SERVICES, name, namespace="default"), names))

    def clear_addresses(self) -> None:
        """Empty the status of all Services, while no controller runs: the next one shows when it has processed each."""
        empty = {"status": {"loadBalancer": None}}

        def clear(name: str) -> None:
            self.kube.patch(SERVICES, name, empty, "default", type=PatchType.MERGE, subresource="status")

        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(clear, (service["metadata"]["name"] for service in self._balanced())))
        self.services.wait_until(lambda: not any(_addresses(each) for each in self._balanced()), PATIENCE)

    def checkpoint(self) -> int:
        """The size in bytes of what our controller has saved for its next start."""
        content = self.kube.get(CONFIG_MAPS, CHECKPOINT_NAME, LEASE_NAMESPACE)["binaryData"]
        return sum(len(base64.b64decode(each)) for each in content.values())

    def drop_checkpoint(self) -> None:
        """Delete what our controller has saved."""
        self.kube.delete(CONFIG_MAPS, CHECKPOINT_NAME, namespace=LEASE_NAMESPACE)

    def all_initialised(self) -> bool:
        """Whether no node has the taint any more."""
        taints = (taint for node in self.nodes.items() for taint in node["spec"].get("taints") or [])
        return not any(taint["key"] == _UNINITIALIZED["key"] for taint in taints)

    def served(self, count: int) -> bool:
        """Whether this many Services of type LoadBalancer exist, and all have their address."""
        wanting = self._balanced()
        return len(wanting) == count and all(map(_addresses, wanting))

    def close(self) -> None:
        """Stop the cached copies."""
        for informer in (self.nodes, self.services):
            informer.stop()

    def _balanced(self) -> list[Object]:
        return [service for service in self.services.items() if service["spec"]["type"] == "LoadBalancer"]


def node(name: str, address: str | None, spec: Mapping[str, Any], *, initialised: bool, **metadata: Any) -> Object:
    """A Ready node, with the taint or as it is once initialised."""
    addresses = [] if address is None else [{"type": "InternalIP", "address": address}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, **metadata},
        "spec": dict(spec) if initialised else {**spec, "taints": [_UNINITIALIZED]},
        "status": {
            "conditions": [_READY],
            "addresses": [*addresses, {"type": "Hostname", "address": name}],
        },
    }


@contextmanager
def control_plane() -> Iterator[tuple[Path, str]]:
    """A folder with a running control plane in it, and the kubeconfig of an administrator; gone at the end."""
    binaries = ensure(lambda line: print(line, file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        folder = Path(directory)
        address = unused_address(ALL_PORTS)
        made = ControlPlane(folder / "cluster", binaries, address, POD_CIDR, SERVICE_CIDR, "benchmark")
        made.start()
        try:
            still(made.directory)
            yield folder, made.kubeconfig("benchmark", ["system:masters"], _LIFETIME)
        finally:
            made.stop()


def still(directory: Path) -> None:
    """Stop the two components of a control plane that would report every node as silent."""
    for record in sorted(directory.rglob("*.json")):
        if record.stem in (CONTROLLER_MANAGER, SCHEDULER):
            process = processes.load(record)
            if process is None or not process.signal(signal.SIGSTOP):
                raise RuntimeError(f"{record.stem} is not running")


def _addresses(service: Object) -> list[Object]:
    return service["status"].get("loadBalancer", {}).get("ingress") or []
