"""A real cluster on a real site, and managers that are processes of their own with proxies in front of everything."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from cloud_controller import rbac
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.config import Config, render
from cloud_controller.controllers import NAMES
from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NODES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Kube,
    Object,
    PatchType,
)
from cloud_controller.load_balancer import CLUSTER_TAG
from cloud_controller.nodes import UNINITIALIZED_TAINT
from local import processes
from local.addresses import socket_address
from local.api_site import server_environment
from local.control_plane.pki import Authority, write_pair
from local.ports import unused_address
from local.processes import Process
from local.site import Site
from tests.crash.proxy import Proxy, Recorder

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
"""Seconds that a condition may take; it is usually true within a few."""

_POLL = 0.05
_IDENTITY = "crash-test"
_SPACE = rbac.LEASE_NAMESPACE

Json = dict[str, Any]


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait until the condition holds; fails with `what` when it does not in time."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}"
        time.sleep(_POLL)


@dataclass
class Manager:
    """`cloud-controller run` as a process, started and killed as often as one likes, behind one pair of proxies."""

    environment: Environment
    name: str
    flags: Sequence[str]
    recorder: Recorder
    kubernetes: Proxy
    mycloud: Proxy
    directory: Path
    prelude: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def cloud_config(self) -> Path:
        """The file that `--cloud-config` names."""
        return self.directory / "cloud.conf"

    @property
    def log(self) -> Path:
        """What it prints, of all its lives."""
        return self.directory / "manager.log"

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of its last life; None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it; returns at once."""
        assert self.pid is None, f"{self.name} runs already"
        run = f"{self.prelude}\nimport sys\nfrom cloud_controller.cli import main\nsys.exit(main())"
        arguments = [
            "run",
            "--cloud=mycloud",
            f"--cloud-config={self.cloud_config}",
            f"--kubeconfig={self.directory / 'kubeconfig'}",
            f"--cluster-cidr={self.environment.network['pod_cidr']}",
            "--secure-port=0",
            *self.flags,
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", run, *arguments],
                cwd=ROOT,
                env=server_environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """SIGKILL; returns once it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.kubernetes.cut()
            self.mycloud.cut()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def log_tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return processes.log_tail(self.log, lines)


class Environment:
    """One site with one cluster; etcd and the API server run, the other two components only when they are wanted.

    Nobody but the managers and the tests writes to the cluster then, so that the order of calls is theirs alone.
    """

    def __init__(self, state: Path) -> None:
        self.directory = state
        self.site = Site(state / "site")
        self.site.up()
        self.cloud = Client(self.site.endpoint, self.site.token)
        self.network = self._ready("networks", {"name": "n"})
        self.subnet = self._ready("subnets", {"name": "s", "network_id": self.network["id"], "zone": "zone-b"})
        self.cluster = self._ready("clusters", {"name": "c", "network_id": self.network["id"]})
        answer = self.cloud.get_path(f"clusters/{self.cluster['id']}/kubeconfig")
        self._kubeconfig: Json = yaml.safe_load(answer["kubeconfig"])
        self.kube = Kube.from_kubeconfig(answer["kubeconfig"])
        self.names = count(1)
        self._pod_cidrs = IPv4Network(self.network["pod_cidr"]).subnets(new_prefix=24)
        self._authority = Authority.create("crash-test")
        self._token = self._identity()
        self.pause("kube-controller-manager", "kube-scheduler")

    def down(self) -> None:
        """End everything."""
        self.resume("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        self.site.down()

    # ---------------------------------------------------------------------------------------------------- processes

    def component(self, name: str) -> Process:
        """A process of the control plane."""
        process = processes.find(self.site.folder.cluster(self.cluster["id"]) / "processes" / f"{name}.json")
        assert process is not None, f"{name} does not run"
        return process

    def pause(self, *components: str) -> None:
        """SIGSTOP."""
        for name in components:
            self.component(name).signal(signal.SIGSTOP)

    def resume(self, *components: str) -> None:
        """SIGCONT."""
        for name in components:
            self.component(name).signal(signal.SIGCONT)

    def kill_api_server(self) -> None:
        """SIGKILL; the site starts it again."""
        self.component("kube-apiserver").signal(signal.SIGKILL)

    def wait_healed(self) -> None:
        """Wait until the site calls its cluster healthy, which it asks all four components about."""
        if self.cloud.get("clusters", self.cluster["id"])["state"] == "available":
            return
        self.resume("kube-controller-manager", "kube-scheduler")
        self.cloud.wait_for_state("clusters", self.cluster["id"], ["available"], 2 * PATIENCE)
        self.pause("kube-controller-manager", "kube-scheduler")

    @contextlib.contextmanager
    def manager(self, name: str, *flags: str, prelude: str = "", token: str | None = None) -> Iterator[Manager]:
        """A manager that is not started yet, and its proxies; killed at the end."""
        directory = self.directory / f"{name}-{next(self.names)}"
        directory.mkdir()
        recorder = Recorder()
        # An address of its own: what others have open on 127.0.0.1 can't be in the way.
        host = socket_address(unused_address(()))
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        write_pair(directory, "serving", self._authority.issue_server("proxy", [host]))
        serving.load_cert_chain(directory / "serving.crt", directory / "serving.key")
        ca = base64.b64decode(self._kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=ca)
        with (
            Proxy("kubernetes", host, self.cluster["endpoint"], recorder, serving=serving, trust=trust) as kubernetes,
            Proxy("mycloud", host, self.site.endpoint, recorder) as mycloud,
        ):
            (directory / "kubeconfig").write_text(self._manager_kubeconfig(kubernetes.url))
            config = Config(mycloud.url, token or self.site.token, self.cluster["id"])
            manager = Manager(self, name, flags, recorder, kubernetes, mycloud, directory, prelude)
            manager.cloud_config.write_text(render(config))
            try:
                yield manager
            finally:
                manager.kill()

    # ------------------------------------------------------------------------------------------------------ objects

    def machine(self) -> Json:
        """A running machine of the cluster without a process of its own."""
        prefix = f"m{next(self.names)}-"
        body = {
            "cluster_id": self.cluster["id"],
            "subnet_ids": [self.subnet["id"]],
            "count": 1,
            "name_prefix": prefix,
            "tags": {CLUSTER_TAG: self.cluster["id"]},
        }
        self.cloud.post("admin/machines", body)
        name = f"{prefix}00000"
        until(lambda: self.cloud.list("machines", name=name), "the machine is listed")
        return self.cloud.list("machines", name=name)[0]

    def register(self, machine: Json, *, pod_cidr: bool = True) -> None:
        """What a kubelet with an external cloud does first, and the pod range that the cluster gives the node."""
        name = machine["name"]
        taint = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
        node: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"taints": [taint]},
        }
        self.kube.create(NODES, node)
        self.report(machine, "True")
        if pod_cidr:
            self.give_pod_cidr(machine)

    def give_pod_cidr(self, machine: Json) -> None:
        """What kube-controller-manager does for a new node."""
        cidr = str(next(self._pod_cidrs))
        patch = {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}
        self.kube.patch(NODES, machine["name"], patch, type=PatchType.STRATEGIC)

    def report(self, machine: Json, ready: str) -> None:
        """What the node's `Ready` condition says from now on."""
        patch = {"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": "test"}]}}
        self.kube.patch(NODES, machine["name"], patch, type=PatchType.STRATEGIC, subresource="status")

    def terminate(self, machine: Json) -> None:
        """End the machine; its node is not ready afterwards."""
        self.cloud.delete("machines", machine["id"])
        self.report(machine, "Unknown")

    def load_balancers(self) -> list[Json]:
        """All of the account."""
        return self.cloud.list("load_balancers")

    def routes(self) -> list[Json]:
        """The whole table."""
        return self.cloud.list(f"route_tables/{self.network['route_table_id']}/routes")

    # ------------------------------------------------------------------------------------------------------ helpers

    def _ready(self, collection: str, body: Json) -> Json:
        made = self.cloud.create(collection, body)
        return self.cloud.wait_for_state(collection, made["id"], ["available"], 2 * PATIENCE)

    def _identity(self) -> str:
        """The daemon's ServiceAccount with the rights that its controllers are said to need; a token of it."""
        rules = rbac.rules(NAMES)
        where = {"name": _IDENTITY, "namespace": _SPACE}
        subjects = [{"kind": "ServiceAccount", **where}]
        role = {"apiGroup": "rbac.authorization.k8s.io", "name": _IDENTITY}
        for resource, obj in (
            (SERVICE_ACCOUNTS, {"metadata": where}),
            (CLUSTER_ROLES, {"metadata": {"name": _IDENTITY}, "rules": [rule.to_json() for rule in rules.cluster]}),
            (
                CLUSTER_ROLE_BINDINGS,
                {"metadata": {"name": _IDENTITY}, "roleRef": role | {"kind": "ClusterRole"}, "subjects": subjects},
            ),
            (ROLES, {"metadata": where, "rules": [rule.to_json() for rule in rules.namespaced]}),
            (ROLE_BINDINGS, {"metadata": where, "roleRef": role | {"kind": "Role"}, "subjects": subjects}),
        ):
            self.kube.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        seconds = int(timedelta(hours=6).total_seconds())
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        made = self.kube.create(SERVICE_ACCOUNTS, request, _SPACE, name=_IDENTITY, subresource="token")
        return str(made["status"]["token"])

    def _manager_kubeconfig(self, server: str) -> str:
        ca = base64.b64encode(self._authority.pem.encode()).decode()
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
                "users": [{"name": "u", "user": {"token": self._token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
