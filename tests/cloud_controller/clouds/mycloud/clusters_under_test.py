"""Kubernetes clusters whose etcd can be emptied or restored, in one account of mycloud, each with its daemon."""

from __future__ import annotations

import contextlib
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from cloud_controller import rbac
from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.clouds.mycloud.names import PROVISIONER
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controller_names import NAMES
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.kube import (
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SERVICES,
    STORAGE_CLASSES,
    AlreadyExistsError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    name,
)
from cloud_controller.load_balancers.model import CLUSTER_TAG, CLUSTER_UID_TAG
from cloud_controller.safeguard import cluster_uid
from cloud_controller.volumes import CLAIM_TAG, PV_TAG
from local.addresses import socket_address
from local.control_plane.components import ETCD
from local.control_plane.control_plane import ControlPlane
from local.ports import unused_address
from tests.cloud_controller.rights import roles
from tests.crash.control_plane import component
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

USER = "cloud-controller-test"
"""Whom the API server takes the daemons for: a client certificate outlives etcd's data, a ServiceAccount does not."""
SPACE = "default"
CLASS = "block"
PODS = "10.1.0.0/16"
"""That of the control planes: kube-controller-manager ends over a node outside of it. All clusters have the same."""
PATIENCE = 120.0

Json = dict[str, Any]


def until(condition: Callable[[], Any], what: str, daemon: Daemon | None = None) -> Any:
    """As `eventually`, with the patience that these tests have; the daemon's log tells why it did not come about."""
    try:
        return eventually(condition, what, PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{daemon.log if daemon else ''}") from None


class Daemon:
    """`cloud-controller run` as a process, started as often as one likes."""

    def __init__(self, arguments: list[str], log: Path, port: int, address: str) -> None:
        self._arguments = arguments
        self._log = log
        self._url = f"https://{address}:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once; what an earlier life logged is forgotten."""
        with self._log.open("wb") as log:
            run = [sys.executable, "-m", "cloud_controller.cli", "run", *self._arguments]
            self._process = subprocess.Popen(run, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        """What it has logged in this life."""
        return self._log.read_text()

    def ends_by_itself(self, within: float) -> int:
        """Its exit code; fails unless it ends in so many seconds."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(within)
        raise AssertionError(f"it still runs after {within:g} s:\n{self.log}")

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def get(self, path: str) -> str:
        """What it serves there (its certificate is its own)."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urlopen(f"{self._url}{path}", timeout=PATIENCE, context=context) as answer:
            return str(answer.read().decode())


@dataclass
class Cluster:
    """A Kubernetes cluster, its record in the cloud, and the objects that are served there."""

    plane: ControlPlane
    site: MyCloudSite
    directory: Path
    id: str
    network: Json
    subnet: Json
    kube: Kube = field(init=False)
    services: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.directory.mkdir()
        self.kube = Kube.from_kubeconfig(self._kubeconfig("admin", "system:masters"))
        self.kubeconfig.write_text(self._kubeconfig(USER))
        self.cloud_config.write_text(render(Config(self.site.endpoint, self.site.token, self.id)))
        self.clean()
        install(self.kube)

    @classmethod
    def create(cls, plane: ControlPlane, site: MyCloudSite, directory: Path) -> Cluster:
        """One with a network of its own."""
        network = site.client.create("networks", {"name": directory.name})
        subnet = site.client.create("subnets", {"name": "s", "network_id": network["id"], "zone": "zone-b"})
        record = site.client.create("clusters", {"name": directory.name, "network_id": network["id"]})
        return cls(plane, site, directory, record["id"], network, subnet)

    @property
    def uid(self) -> str:
        """The cluster's identity."""
        return cluster_uid(self.kube)

    @property
    def kubeconfig(self) -> Path:
        """With the daemon's rights."""
        return self.directory / "kubeconfig"

    @property
    def cloud_config(self) -> Path:
        """With all rights in the account."""
        return self.directory / "cloud.conf"

    def _kubeconfig(self, user: str, *groups: str) -> str:
        return self.plane.kubeconfig(user, groups, timedelta(hours=6))

    # ------------------------------------------------------------------------------------------------------- daemons

    def options(self, *, of: Cluster | None = None) -> list[str]:
        """Those that every command has; `of`: the cluster whose Kubernetes is used with this one's cloud config."""
        return [
            "--cloud=mycloud",
            f"--cloud-config={self.cloud_config}",
            f"--kubeconfig={(of or self).kubeconfig}",
            f"--cluster-cidr={PODS}",
        ]

    @contextmanager
    def daemon(self, *flags: str, of: Cluster | None = None) -> Iterator[Daemon]:
        """One that runs; killed at the end."""
        address, port = socket_address(unused_address({10258})), 10258
        serving = [f"--bind-address={address}", f"--secure-port={port}"]
        quick = ["--node-monitor-period=500ms", "--route-reconciliation-period=2s"]
        arguments = [*self.options(of=of), *serving, *quick, *flags]
        daemon = Daemon(arguments, self.directory / f"daemon-{next(self._numbers)}.log", port, address)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.kill()

    def serve(self) -> None:
        """Let a daemon do all that the objects ask for; it has ended afterwards."""
        with self.daemon() as daemon:
            until(lambda: self.served, "all is served", daemon)
            assert daemon.stop() == 0

    # ------------------------------------------------------------------------------------------------------- objects

    def populate(self) -> None:
        """Two Services, two nodes and a claim."""
        self.add_node("worker-0")
        self.add_node("worker-1")
        self.add_service("web")
        self.add_service("api")
        self.add_claim("data")

    def add_service(self, service: str) -> None:
        """One of type LoadBalancer."""
        spec = {"type": "LoadBalancer", "selector": {"app": service}, "ports": [{"port": 8080}]}
        self.kube.create(SERVICES, {"metadata": {"name": service, "namespace": SPACE}, "spec": spec})
        self.services.append(service)

    def add_claim(self, claim: str) -> None:
        """One whose volume is made at once."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self.kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": claim, "namespace": SPACE}, "spec": spec})
        self.claims.append(claim)

    def add_node(self, node: str) -> None:
        """A machine and the Node that its kubelet would have registered."""
        more = {"cluster_id": self.id, "subnet_id": self.subnet["id"], "tags": {CLUSTER_TAG: self.id}}
        machine = self.site.machine(f"{self.directory.name}-{node}", **more)
        pods = PODS.replace("0.0/16", f"{next(self._numbers)}.0/24")
        taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
        spec = {"podCIDR": pods, "podCIDRs": [pods], "providerID": provider_id(machine), "taints": [taint]}
        self.kube.create(NODES, {"metadata": {"name": machine["name"]}, "spec": spec})
        self.nodes.append(machine["name"])

    @property
    def served(self) -> bool:
        """Whether each object has in the cloud what it asks for."""
        services = [self.kube.get(SERVICES, each, SPACE) for each in self.services]
        claims = [self.kube.get(PERSISTENT_VOLUME_CLAIMS, each, SPACE) for each in self.claims]
        nodes = [self.kube.get(NODES, each) for each in self.nodes]
        return (
            all(each["status"]["loadBalancer"].get("ingress") for each in services)
            and all(each["status"].get("phase") == "Bound" for each in claims)
            and all(PV_TAG in volume["tags"] for volume in self.volumes if self._is_claimed(volume))
            and not any(has_taint(node, UNINITIALIZED_TAINT) for node in nodes)
            and len(self.routes) >= len(self.nodes)
        )

    @property
    def reached(self) -> bool:
        """Whether each load balancer sends to every node."""
        pools = [pool for lb in self.load_balancers for pool in lb["backend_sets"]]
        return bool(pools) and all(len(pool["backends"]) == len(self.nodes) for pool in pools)

    def _is_claimed(self, volume: Json) -> bool:
        return volume["tags"][CLAIM_TAG] in {f"{SPACE}/{claim}" for claim in self.claims}

    # --------------------------------------------------------------------------------------------- etcd and its loss

    def empty(self) -> None:
        """Lose etcd's data; the control plane runs again, and somebody has given the daemon its rights."""
        with self._stopped():
            shutil.rmtree(self._etcd)
        install(self.kube)

    def back_up(self, to: Path) -> None:
        """Copy etcd's data as a power failure now would leave them: etcd writes nothing meanwhile."""
        etcd = component(self.plane.directory, ETCD)
        etcd.signal(signal.SIGSTOP)
        try:
            until(lambda: _has_stopped(etcd.pid), "etcd has stopped")
            shutil.copytree(self._etcd, to)
        finally:
            etcd.signal(signal.SIGCONT)

    def restore(self, backup: Path) -> None:
        """Let etcd know what it knew at the backup, and nothing later."""
        with self._stopped():
            shutil.rmtree(self._etcd)
            shutil.copytree(backup, self._etcd)

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        self.plane.stop()
        yield
        self.plane.start()
        self.plane.wait_ready()

    @property
    def _etcd(self) -> Path:
        return self.plane.directory / "etcd"

    def clean(self) -> None:
        """Take away every object that a test before has left, without any controller."""
        for resource in (SERVICES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, NODES):
            for each in self.kube.list(resource).items:
                if name(each) != "kubernetes":
                    self._remove(resource, each)
        with contextlib.suppress(NotFoundError):
            self.kube.delete(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)

    def _remove(self, resource: Any, obj: Object) -> None:
        space = obj["metadata"].get("namespace")
        with contextlib.suppress(NotFoundError):
            self.kube.delete(resource, name(obj), space)
            self.kube.patch(resource, name(obj), {"metadata": {"finalizers": None}}, space, type=PatchType.MERGE)

    # --------------------------------------------------------------------------------------------------- in the cloud

    @property
    def load_balancers(self) -> list[Json]:
        """The cluster's."""
        return [lb for lb in self.site.client.list("load_balancers") if lb["tags"].get(CLUSTER_TAG) == self.id]

    @property
    def volumes(self) -> list[Json]:
        """The cluster's."""
        return [each for each in self.site.client.list("volumes") if each["tags"].get(CLUSTER_TAG) == self.id]

    @property
    def routes(self) -> list[Json]:
        """Of its network."""
        return self.site.client.list(f"route_tables/{self.network['route_table_id']}/routes")

    def mark(self, uid: str | None) -> None:
        """Let its load balancers and volumes carry this cluster's UID, or none, as an earlier version made them."""
        for kind, found in (("load_balancers", self.load_balancers), ("volumes", self.volumes)):
            for each in found:
                tags = {key: value for key, value in each["tags"].items() if key != CLUSTER_UID_TAG}
                tags |= {CLUSTER_UID_TAG: uid} if uid else {}
                self.site.client.update(kind, each["id"], {"tags": tags})
        until(lambda: all(lb["state"] == "available" for lb in self.load_balancers), "they are at rest")


def _has_stopped(pid: int) -> bool:
    """Whether each of its threads has: one may be at work for a while after the signal."""
    stats = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def install(kube: Kube) -> None:
    """The daemon's rights and the class of all claims; what stands already stays."""
    storage_class = {"metadata": {"name": CLASS}, "provisioner": PROVISIONER, "volumeBindingMode": "Immediate"}
    for resource, obj in (*roles(USER, rbac.rules(NAMES)), (STORAGE_CLASSES, storage_class)):
        with contextlib.suppress(AlreadyExistsError):
            kube.create(resource, obj)


def inventory(site: MyCloudSite) -> Json:
    """Everything that the account has."""
    kinds = ("networks", "subnets", "clusters", "machines", "load_balancers", "volumes")
    found: Json = {kind: site.client.list(kind) for kind in kinds}
    tables = {network["route_table_id"] for network in found["networks"]}
    return found | {table: site.client.list(f"route_tables/{table}/routes") for table in tables}
