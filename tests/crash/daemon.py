"""The daemon as a process of its own, with a proxy before the API server and one before the cloud."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import yaml

from cloud_controller import clouds, rbac
from cloud_controller.kube import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Kube,
    Object,
)
from local import processes
from local.addresses import socket_address
from local.api_process import server_environment
from local.control_plane.pki import Authority, write_pair
from local.ports import unused_address
from tests.crash.proxy import Mending, Naming, Proxy, Recorder, as_it_is, path_of
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds that a condition may take; it is usually true within a few, but not where ten others want the processor."""

_IDENTITY = "crash-test"
_SPACE = rbac.LEASE_NAMESPACE

Json = dict[str, Any]
D = TypeVar("D", bound="Daemon")
T = TypeVar("T")


def until(condition: Callable[[], T], what: str, patience: float = PATIENCE) -> T:
    """As `eventually`, with the patience that these tests have."""
    return eventually(condition, what, patience)


@dataclass(kw_only=True)
class Daemon:
    """`cloud-controller run` as a process, started and killed as often as one likes, behind one pair of proxies."""

    cloud_name: str
    cluster_cidr: str
    name: str
    flags: Sequence[str]
    recorder: Recorder
    kubernetes: Proxy
    cloud: Proxy
    directory: Path
    prelude: str = ""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What its environment has besides."""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _started: float = field(default=0.0, repr=False)

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
        run = f"{self.prelude}\nimport sys\nfrom cloud_controller.cli.__main__ import main\nsys.exit(main())"
        arguments = [
            "run",
            f"--cloud={self.cloud_name}",
            f"--cloud-config={self.cloud_config}",
            f"--kubeconfig={self.directory / 'kubeconfig'}",
            f"--cluster-cidr={self.cluster_cidr}",
            "--secure-port=0",
            *self.flags,
        ]
        self._started = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", run, *arguments],
                cwd=ROOT,
                env={**server_environment(os.environ), **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def has_come_to_rest(self, seconds: float) -> bool:
        """Whether it has asked the cloud since it was started, and has asked nobody anything for so long."""
        calls = self.recorder.calls(self._started)
        has_looked = any(call.server == self.cloud.name for call in calls)
        return has_looked and calls[-1].at + seconds <= time.monotonic() and self.recorder.quiet_for(seconds)

    def kill(self) -> None:
        """SIGKILL; returns once it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self.kubernetes.cut()
            self.cloud.cut()

    def pause(self) -> None:
        """SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def log_tail(self, lines: int = 40) -> str:
        """The end of its log."""
        return processes.log_tail(self.log, lines)


class Daemons:
    """Makes daemons for one cluster, each with its own proxies, and with the rights that its controllers need.

    `kubeconfig` is an admin's; `cloud` the URL of the cloud's API.
    """

    def __init__(
        self,
        directory: Path,
        kubeconfig: str,
        *,
        cloud_name: str,
        cloud: str,
        cluster_cidr: str,
        controllers: Sequence[str],
        naming: Naming = path_of,
        mending: Mending = as_it_is,
    ) -> None:
        self._directory = directory
        self._kubeconfig: Json = yaml.safe_load(kubeconfig)
        self._cloud_name = cloud_name
        self._cloud = cloud
        self._cluster_cidr = cluster_cidr
        self._naming = naming
        self._mending = mending
        self._numbers = count(1)
        self._authority = Authority.create("crash-test")
        cloud_descriptor = clouds.descriptor(cloud_name)
        rules = rbac.rules(
            controllers,
            keeps_checkpoint=cloud_descriptor.keeps_checkpoint,
            readiness_gates=cloud_descriptor.readiness_gates.by_default,
        )
        self._token = _identity(Kube.from_kubeconfig(kubeconfig), rules)

    @contextlib.contextmanager
    def daemon(
        self,
        make: Callable[..., D],
        name: str,
        *flags: str,
        cloud_config: Callable[[str], str],
        prelude: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[D]:
        """One that is not started yet, and its proxies; killed at the end.

        `make`: from a daemon's fields. `cloud_config`: from the URL of the cloud's proxy, the text.
        """
        directory = self._directory / f"{name}-{next(self._numbers)}"
        directory.mkdir()
        recorder = Recorder()
        # An address of its own: what others have open on 127.0.0.1 can't be in the way.
        host = socket_address(unused_address(()))
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        write_pair(directory, "serving", self._authority.issue_server("proxy", [host]))
        serving.load_cert_chain(directory / "serving.crt", directory / "serving.key")
        cluster = self._kubeconfig["clusters"][0]["cluster"]
        trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with (
            Proxy("kubernetes", host, cluster["server"], recorder, serving=serving, trust=trust) as kubernetes,
            Proxy(self._cloud_name, host, self._cloud, recorder, naming=self._naming, mending=self._mending) as cloud,
        ):
            (directory / "kubeconfig").write_text(self._daemon_kubeconfig(kubernetes.url))
            made = make(
                cloud_name=self._cloud_name,
                cluster_cidr=self._cluster_cidr,
                name=name,
                flags=flags,
                recorder=recorder,
                kubernetes=kubernetes,
                cloud=cloud,
                directory=directory,
                prelude=prelude,
                variables=variables or {},
            )
            made.cloud_config.write_text(cloud_config(cloud.url))
            try:
                yield made
            finally:
                made.kill()

    def _daemon_kubeconfig(self, server: str) -> str:
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


def _identity(kube: Kube, rules: rbac.Rules) -> str:
    """The daemon's ServiceAccount with the rights that its controllers are said to need; a token of it."""
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
        kube.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
    seconds = int(timedelta(hours=6).total_seconds())
    request: Object = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    made = kube.create(SERVICE_ACCOUNTS, request, _SPACE, name=_IDENTITY, subresource="token")
    return str(made["status"]["token"])
