"""A real API server and a real mycloud with thousands of nodes without kubelets, and one daemon on both.

Only the daemon is measured: its cloud calls as mycloud counts them, its writes as the API server counts them, its
processor time and memory as the kernel does. kube-controller-manager and kube-scheduler are stopped meanwhile, because
they would find every node silent and write that.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.instances import provider_id
from cloud_controller.kube import NODES, SERVICES, Informer, Kube, Object
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local import processes
from local.control_plane.binaries import ensure
from local.control_plane.components import CONTROLLER_MANAGER, SCHEDULER
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.site import Site
from local.mycloud.store import Store
from local.state_folder import write_private

PROJECT = Path(__file__).resolve().parents[1]

PAGE = 100
"""The page size of mycloud's lists."""

PATIENCE = 900.0
_POLL_SECONDS = 0.2
_WRITERS = 16
_ZONES = ("zone-a", "zone-b", "zone-c")
_UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "simulated",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_NOT_COUNTED = frozenset({"leases", "events"})
"""Leases are renewed whatever happens, and events are for people."""

_WRITES = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Spent:
    """What a daemon spent on a workload. `memory`: MiB at its highest since its start."""

    calls: int
    writes: int
    seconds: float
    cpu_seconds: float
    memory: float


class BulkCluster:
    """One cluster of one site."""

    def __init__(self, site: Site, folder: Path) -> None:
        self._folder = folder
        self._database = site.folder.database
        self.cloud = Client(site.endpoint, site.token)
        network = self.cloud.create("networks", {"name": "bulk"})
        self._subnets = [
            self.cloud.create("subnets", {"name": zone, "network_id": network["id"], "zone": zone})["id"]
            for zone in _ZONES
        ]
        cluster = self.cloud.create("clusters", {"name": "bulk", "network_id": network["id"]})
        self.cloud.wait_for_state("clusters", cluster["id"], ["available"], 120)
        self._cluster = cluster["id"]
        self._still(site)
        kubeconfig = self.cloud.get_path(f"clusters/{self._cluster}/kubeconfig")["kubeconfig"]
        self._kubeconfig = _private(folder / "kubeconfig", kubeconfig)
        self._cloud_config = _private(
            folder / "cloud.conf",
            f"[Global]\nendpoint = {site.endpoint}\ntoken = {site.token}\ncluster-id = {self._cluster}\n",
        )
        self.kube = Kube.from_kubeconfig(kubeconfig)
        # Watched copies cost the machine far less than repeated lists of everything.
        self._nodes, self._services = Informer(self.kube, NODES), Informer(self.kube, SERVICES)
        for informer in (self._nodes, self._services):
            informer.start()
            informer.wait_synced(PATIENCE)

    def add_nodes(self, count: int, *, prefix: str = "node-", initialised: bool = False, ingress: bool = False) -> None:
        """Add running machines, and a node for each as its kubelet would register it, all of them Ready.

        `ingress`: load balancers send only to these. 5,000 members in each of 500 load balancers are unrealistic.
        """
        marks = {INGRESS_NODE: "true"} if ingress else {}
        body = {
            "cluster_id": self._cluster,
            "subnet_ids": self._subnets,
            "count": count,
            "name_prefix": prefix,
            "tags": {CLUSTER_TAG: self._cluster, **marks},
        }
        self.cloud.post("admin/machines", body)
        machines = self.cloud.list("machines", cluster_id=self._cluster)
        added = [machine for machine in machines if machine["name"].startswith(prefix)]
        known = len(self._nodes.items())
        if len(added) != count:
            raise RuntimeError(f"mycloud lists {len(added)} of {count} machines")
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda machine: self.kube.create(NODES, _node(machine, initialised, marks)), added))
        self._nodes.wait_until(lambda: len(self._nodes.items()) == known + count, PATIENCE)

    def add_services(self, count: int) -> None:
        """Services of type LoadBalancer with one port each."""

        def service(number: int) -> Object:
            return {
                "metadata": {"name": f"service-{number:05}", "namespace": "default"},
                "spec": {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": [{"port": 8080}]},
            }

        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(lambda number: self.kube.create(SERVICES, service(number)), range(count)))
        self._services.wait_until(lambda: len(self._services.items()) > count, PATIENCE)

    @contextmanager
    def daemon(self, *flags: str) -> Iterator[Daemon]:
        """`cloud-controller run`, until the block ends. It may send the API server 500 requests a second."""
        command = [sys.executable, "-P", "-m", "cloud_controller.cli", "run", "--cloud", "mycloud"]
        files = [f"--cloud-config={self._cloud_config}", f"--kubeconfig={self._kubeconfig}"]
        fixed = ["--kube-api-qps=500", "--kube-api-burst=1000", "--secure-port=0", "--log-level=warning"]
        with (self._folder / "daemon.log").open("ab") as log:
            process = subprocess.Popen([*command, *files, *fixed, *flags], cwd=PROJECT, stderr=log)
            try:
                yield Daemon(process, self)
            finally:
                process.send_signal(signal.SIGTERM)
                if process.wait() != 0:
                    print(f"the daemon ended with exit code {process.returncode}", file=sys.stderr)

    def close(self) -> None:
        """Stop the cached copies."""
        for informer in (self._nodes, self._services):
            informer.stop()

    def cloud_calls(self) -> int:
        """The calls that users of mycloud have made so far."""
        calls: dict[str, int] = self.cloud.get_path("admin/calls")["calls"]
        return sum(count for call, count in calls.items() if "/admin/" not in call and "/internal/" not in call)

    def kube_writes(self) -> int:
        """The changes of objects that the API server has answered so far, without leases and events.

        The daemon creates no other objects, so a benchmark's own creations do not count.
        """
        total = 0
        for sample in _WRITES.finditer(self.kube.raw("GET", "/metrics").decode()):
            labels = dict(_LABEL.findall(sample["labels"]))
            if labels["verb"] in ("PUT", "PATCH", "DELETE") and labels["resource"] not in _NOT_COUNTED:
                total += int(float(sample["count"]))
        return total

    def all_initialised(self) -> bool:
        """Whether no node has the taint any more."""
        taints = (taint for node in self._nodes.items() for taint in node["spec"].get("taints") or [])
        return not any(taint["key"] == _UNINITIALIZED["key"] for taint in taints)

    def all_served(self) -> bool:
        """Whether every Service of type LoadBalancer has its address."""
        wanting = [service for service in self._services.items() if service["spec"]["type"] == "LoadBalancer"]
        return all(service["status"]["loadBalancer"].get("ingress") for service in wanting)

    def memberships(self) -> int:
        """The number of backends of all load balancers; read from the database, because a call would be counted."""
        with closing(Store(self._database)) as store, store.read() as session:
            balancers = session.query(LoadBalancerRecord)
        return sum(len(each.backends) for balancer in balancers for each in balancer.backend_sets)

    def _still(self, site: Site) -> None:
        records = site.folder.cluster(self._cluster)
        for record in sorted(records.rglob("*.json")):
            if record.stem in (CONTROLLER_MANAGER, SCHEDULER):
                process = processes.load(record)
                if process is None or not process.signal(signal.SIGSTOP):
                    raise RuntimeError(f"{record.stem} is not running")


class Daemon:
    """A running daemon and its costs."""

    def __init__(self, process: subprocess.Popen[bytes], cluster: BulkCluster) -> None:
        self._process = process
        self._cluster = cluster

    def spent(self, until: Callable[[], bool], trigger: Callable[[], None] = lambda: None) -> Spent:
        """The cost from `trigger` on until the condition holds.

        Raises RuntimeError when it ends, or takes too long.
        """
        calls, writes, cpu = self._cluster.cloud_calls(), self._cluster.kube_writes(), self._cpu_seconds()
        started = time.monotonic()
        trigger()
        while not until():
            if self._process.poll() is not None:
                raise RuntimeError(f"the daemon ended with exit code {self._process.returncode}")
            if time.monotonic() > started + PATIENCE:
                raise RuntimeError(f"did not finish within {PATIENCE:g} s")
            time.sleep(_POLL_SECONDS)
        return Spent(
            seconds=time.monotonic() - started,
            calls=self._cluster.cloud_calls() - calls,
            writes=self._cluster.kube_writes() - writes,
            cpu_seconds=self._cpu_seconds() - cpu,
            memory=self._peak_memory(),
        )

    def _cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def _peak_memory(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024


@contextmanager
def bulk_cluster() -> Iterator[BulkCluster]:
    """An empty cluster on a site of its own; everything is deleted at the end."""
    ensure(lambda line: print(line, file=sys.stderr))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        site = Site(Path(directory) / "state")
        site.up()
        try:
            cluster = BulkCluster(site, Path(directory))
            try:
                yield cluster
            finally:
                cluster.close()
        finally:
            site.down()


def _node(machine: Object, initialised: bool, annotations: dict[str, str]) -> Object:
    spec: dict[str, Any] = {"taints": [_UNINITIALIZED]}
    addresses = [{"type": "Hostname", "address": machine["name"]}]
    if initialised:
        spec = {"providerID": provider_id(machine)}
        addresses = [{"type": "InternalIP", "address": ip} for ip in machine["private_ips"]] + addresses
    return {
        "metadata": {"name": machine["name"], "annotations": annotations},
        "spec": spec,
        "status": {"conditions": [_READY], "addresses": addresses},
    }


def _private(path: Path, text: str) -> Path:
    write_private(path, text)
    return path
