"""A real API server for the benchmarks on AWS, with Services, and nodes without kubelets."""

from __future__ import annotations

import base64
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.aws import peer
from benchmarks.aws.account import CLUSTER_ID, REGION, ZONES, Account, Machine
from benchmarks.aws.daemons import PATIENCE, Daemon, Files, Who, command, running
from benchmarks.aws.moto import Simulator, simulator
from cloud_controller.kube import CONFIG_MAPS, NODES, SERVICES, Informer, Kube, Object, PatchType
from cloud_controller.rbac import CHECKPOINT_NAME, LEASE_NAMESPACE
from local import processes
from local.control_plane.binaries import ensure
from local.control_plane.components import ALL_PORTS, CONTROLLER_MANAGER, SCHEDULER
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address

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
_OVERRIDES = {"ec2": "EC2", "elb": "Elastic Load Balancing", "elbv2": "Elastic Load Balancing v2", "sts": "STS"}
"""The Go SDK's names of the services whose endpoints are set."""


class Cluster:
    """One cluster on one simulated account."""

    def __init__(self, control_plane: ControlPlane, simulated: Simulator, folder: Path, config: Mapping[str, str]):
        self._folder = folder
        self.simulator = simulated
        self.account = Account(simulated.direct)
        kubeconfig = control_plane.kubeconfig("benchmark", ["system:masters"], _LIFETIME)
        self._files = Files(folder / "cloud.conf", folder / "kubeconfig", folder / "daemon.log")
        self._files.cloud_config.write_text(cloud_config(simulated.endpoint, self.account, config))
        self._files.kubeconfig.write_text(kubeconfig)
        self.kube = Kube.from_kubeconfig(kubeconfig)
        self.nodes, self.services = Informer(self.kube, NODES), Informer(self.kube, SERVICES)
        for informer in (self.nodes, self.services):
            informer.start()
            informer.wait_synced(PATIENCE)

    def add_nodes(self, count: int, *, initialised: bool, public: bool = False) -> list[Machine]:
        """Add running machines, and a node for each, Ready, with its provider ID, as its kubelet would register it."""
        known = len(self.nodes.items())
        machines = self.account.add_machines(count, public=public)
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda machine: self.kube.create(NODES, node(machine, initialised)), machines))
        self.nodes.wait_until(lambda: len(self.nodes.items()) == known + count, PATIENCE)
        return machines

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

    @contextmanager
    def daemon(self, who: Who, controllers: Sequence[str], *flags: str, haste: int = 1) -> Iterator[Daemon]:
        """One of the controllers, until the block ends. `haste`: how many times as fast the clock of our caches is."""
        binary = peer.binary(lambda line: print(line, flush=True)) if who == "peer" else Path()
        arguments = command(who, binary, self._files, controllers, flags, haste)
        with running(arguments, self.simulator, self._files.log) as daemon:
            yield daemon

    def close(self) -> None:
        """Stop the cached copies."""
        for informer in (self.nodes, self.services):
            informer.stop()

    def _balanced(self) -> list[Object]:
        return [service for service in self.services.items() if service["spec"]["type"] == "LoadBalancer"]


def _addresses(service: Object) -> list[Object]:
    return service["status"].get("loadBalancer", {}).get("ingress") or []


def cloud_config(endpoint: str, account: Account, config: Mapping[str, str]) -> str:
    """The cloud.conf, the same file for both: complete, so that no metadata service is needed."""
    settings = {
        "Region": REGION,
        "Zone": ZONES[0],
        "VPC": account.vpc,
        # The peer assumes that it runs outside AWS only if a subnet is named, too.
        "SubnetID": account.public[0],
        "KubernetesClusterID": CLUSTER_ID,
        **config,
    }
    lines = ["[Global]", *(f"{key} = {value}" for key, value in settings.items())]
    for name, service in _OVERRIDES.items():
        lines += [
            f'[ServiceOverride "{name}"]',
            f"Service = {service}",
            f"Region = {REGION}",
            f"URL = {endpoint}",
            f"SigningRegion = {REGION}",
            f"SigningName = {'elasticloadbalancing' if name.startswith('elb') else name}",
        ]
    return "\n".join(lines) + "\n"


def node(machine: Machine, initialised: bool) -> Object:
    """A node as a kubelet with `--cloud-provider=external` and `--provider-id` registers it, or once initialised."""
    addresses = [{"type": "InternalIP", "address": machine.address}, {"type": "Hostname", "address": machine.name}]
    spec: dict[str, Any] = {"providerID": machine.provider_id}
    labels = {"kubernetes.io/hostname": machine.name}
    if not initialised:
        spec["taints"] = [_UNINITIALIZED]
    return {
        "metadata": {"name": machine.name, "labels": labels},
        "spec": spec,
        "status": {"conditions": [_READY], "addresses": addresses},
    }


@contextmanager
def cluster(latency: float = 0.0, config: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """An empty cluster on an empty account; everything is deleted at the end. `config`: more of [Global]."""
    binaries = ensure(lambda line: print(line, flush=True))
    with tempfile.TemporaryDirectory(prefix="benchmark-aws-") as directory:
        folder = Path(directory)
        address = unused_address(ALL_PORTS)
        control_plane = ControlPlane(folder / "cluster", binaries, address, "10.1.0.0/16", "10.2.0.0/16", "benchmark")
        with simulator(folder, latency) as simulated:
            control_plane.start()
            try:
                _still(control_plane)
                made = Cluster(control_plane, simulated, folder, config or {})
                try:
                    yield made
                finally:
                    made.close()
            finally:
                control_plane.stop()


def _still(control_plane: ControlPlane) -> None:
    """Stop the two components that would report every node as silent."""
    for record in sorted(control_plane.directory.rglob("*.json")):
        if record.stem in (CONTROLLER_MANAGER, SCHEDULER):
            process = processes.load(record)
            if process is None or not process.signal(signal.SIGSTOP):
                raise RuntimeError(f"{record.stem} is not running")
