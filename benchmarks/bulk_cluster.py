"""A real API server and a real mycloud with thousands of nodes without kubelets, and one daemon on both.

Only the daemon is measured: its cloud calls as mycloud counts them, its writes as the API server counts them, its
processor time and memory as the kernel does. kube-controller-manager and kube-scheduler are stopped meanwhile, because
they would find every node silent and write that.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import Cluster, node, still
from benchmarks.daemons import PATIENCE, PROJECT, cpu_seconds, peak_memory
from cloud_controller.clouds.mycloud.annotations import INGRESS_NODE
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.control_plane.binaries import ensure
from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.site import Site
from local.mycloud.store import Store
from local.state_folder import write_private

PAGE = 100
"""The page size of mycloud's lists."""

_POLL_SECONDS = 0.2
_ZONES = ("zone-a", "zone-b", "zone-c")
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


class BulkCluster(Cluster):
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
        still(site.folder.cluster(self._cluster))
        kubeconfig = self.cloud.get_path(f"clusters/{self._cluster}/kubeconfig")["kubeconfig"]
        self._kubeconfig = _private(folder / "kubeconfig", kubeconfig)
        self._cloud_config = _private(
            folder / "cloud.conf",
            f"[Global]\nendpoint = {site.endpoint}\ntoken = {site.token}\ncluster-id = {self._cluster}\n",
        )
        super().__init__(kubeconfig)

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
        if len(added) != count:
            raise RuntimeError(f"mycloud lists {len(added)} of {count} machines")
        self.register([_node(machine, initialised, marks) for machine in added])

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

    def plan(self, services: Sequence[Object], summary: str) -> Spent:
        """`cloud-controller plan -f` of manifests with these Services. Raises RuntimeError for another summary."""
        (self._folder / "services.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": services}))
        command = [
            sys.executable,
            "-P",
            "-m",
            "cloud_controller.cli",
            "plan",
            "--cloud",
            "mycloud",
            "--log-level=error",
        ]
        files = [f"--cloud-config={self._cloud_config}", f"--kubeconfig={self._kubeconfig}"]
        calls, writes, started = self.cloud_calls(), self.kube_writes(), time.monotonic()
        with (self._folder / "plan.txt").open("w") as out:
            process = subprocess.Popen(
                [*command, *files, f"--filename={self._folder}/services.json"], cwd=PROJECT, stdout=out
            )
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        last = (self._folder / "plan.txt").read_text().splitlines()[-1:]
        if process.returncode != 0 or last != [summary]:
            raise RuntimeError(f"the plan ended with exit code {process.returncode} and {last}")
        return Spent(
            seconds=seconds,
            calls=self.cloud_calls() - calls,
            writes=self.kube_writes() - writes,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            memory=usage.ru_maxrss / 1024,
        )

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

    def memberships(self) -> int:
        """The number of backends of all load balancers; read from the database, because a call would be counted."""
        with closing(Store(self._database)) as store, store.read() as session:
            balancers = session.query(LoadBalancerRecord)
        return sum(len(each.backends) for balancer in balancers for each in balancer.backend_sets)


class Daemon:
    """A running daemon and its costs."""

    def __init__(self, process: subprocess.Popen[bytes], cluster: BulkCluster) -> None:
        self._process = process
        self._cluster = cluster

    def spent(self, until: Callable[[], bool], trigger: Callable[[], None] = lambda: None) -> Spent:
        """The cost from `trigger` on until the condition holds.

        Raises RuntimeError when it ends, or takes too long.
        """
        calls, writes, cpu = self._cluster.cloud_calls(), self._cluster.kube_writes(), cpu_seconds(self._process.pid)
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
            cpu_seconds=cpu_seconds(self._process.pid) - cpu,
            memory=peak_memory(self._process.pid),
        )


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


def load_balanced(count: int) -> list[Object]:
    """Services of type LoadBalancer with one port each."""
    spec = {"type": "LoadBalancer", "selector": {"app": "none"}, "ports": [{"port": 8080}]}
    return [
        {"metadata": {"name": f"service-{number:05}", "namespace": "default"}, "spec": spec} for number in range(count)
    ]


def _node(machine: Object, initialised: bool, annotations: dict[str, str]) -> Object:
    spec = {"providerID": provider_id(machine)} if initialised else {}
    address = machine["private_ips"][0] if initialised else None
    return node(machine["name"], address, spec, initialised=initialised, annotations=annotations)


def _private(path: Path, text: str) -> Path:
    write_private(path, text)
    return path
