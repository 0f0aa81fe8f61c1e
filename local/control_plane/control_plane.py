"""One cluster's control plane: etcd, kube-apiserver and the others as processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import ssl
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import TypedDict, Unpack

from urllib3 import PoolManager

from local import ports, processes
from local.addresses import block_of
from local.control_plane.binaries import Binaries
from local.control_plane.components import (
    API_SERVER,
    API_SERVER_PORT,
    COMPONENTS,
    CONTROLLER_MANAGER,
    CONTROLLER_MANAGER_PORT,
    EGRESS_PROXY,
    EGRESS_SOCKET,
    ENVIRONMENT,
    ETCD,
    PORTS,
    SCHEDULER,
    SCHEDULER_PORT,
    Layout,
    arguments,
)
from local.control_plane.credentials import issue_kubeconfig, write_credentials, write_kubelet_credentials
from local.http_client import HttpError, pool

STOP_ORDER = (SCHEDULER, CONTROLLER_MANAGER, API_SERVER, EGRESS_PROXY, ETCD)
STOP_GRACE_SECONDS = 15.0
POLL_SECONDS = 0.05
PROBE_TIMEOUT_SECONDS = 2.0
DEFAULT_START_SECONDS = 120.0


class LayoutOptions(TypedDict, total=False):
    """The optional parts of a Layout."""

    issuer: str
    token_webhook: Path


class ControlPlaneError(Exception):
    """The control plane failed to start, run or stop; the message names the component and the reason."""


class ControlPlane:
    """A control plane with all files in `directory`, listening on the 127.x address of `address` (10.x).

    Objects of this class hold no state: any number of them, in any process, may represent one control plane.
    """

    def __init__(
        self,
        directory: Path,
        binaries: Binaries,
        address: str,
        pod_cidr: str | IPv4Network,
        service_cidr: str | IPv4Network,
        cluster_name: str,
        **more: Unpack[LayoutOptions],
    ) -> None:
        self._binaries = binaries
        self._layout = Layout(
            directory=directory.absolute(),
            address=address,
            pod_cidr=IPv4Network(pod_cidr),
            service_cidr=IPv4Network(service_cidr),
            cluster_name=cluster_name,
            **more,
        )

    @property
    def directory(self) -> Path:
        """The folder of its keys, etcd's data, process records and logs."""
        return self._layout.directory

    @property
    def endpoint(self) -> str:
        """The API server's URL: https://127.x.y.z:6443."""
        return self._layout.endpoint

    @property
    def certificate_authority(self) -> str:
        """The cluster's CA certificate (PEM); exists once `start` was called."""
        return self._layout.certificate("ca").read_text()

    @property
    def service_account_key(self) -> str:
        """The public key (PEM) that verifies ServiceAccount tokens; exists once `start` was called."""
        return self._layout.certificate("service-account").read_text()

    def kubeconfig(self, user: str, groups: Sequence[str], ttl: timedelta) -> str:
        """A kubeconfig (YAML text, a secret) whose client certificate is `user` in `groups` and expires after `ttl`."""
        return issue_kubeconfig(self._layout, user, groups, ttl)

    def write_kubelet_credentials(self, directory: Path, node_name: str, address: str, ttl: timedelta) -> None:
        """Write the credentials of the kubelet and proxier of the machine with this folder."""
        write_kubelet_credentials(self._layout, directory, node_name, address, ttl)

    def start(self, deadline_seconds: float = DEFAULT_START_SECONDS) -> None:
        """Start the missing components and return once all are started; `wait_ready` returns when they can be used.

        Nothing happens if all of them run. The rest of a half-dead run is kept if its command lines are the same, and
        stopped otherwise. Raises PortBusyError, ProcessError or ControlPlaneError.
        """
        deadline = time.monotonic() + deadline_seconds
        with self._lock():
            running = self._reusable()
            if len(running) == len(COMPONENTS):
                return
            missing = [component for component in COMPONENTS if component not in running]
            for component in missing:
                for port in PORTS[component]:
                    ports.require_free(self._layout.bind_address, port, component)
            try:
                if not running:
                    write_credentials(self._layout)
                self._start(ETCD, EGRESS_PROXY, API_SERVER)
                self._wait("the API server is ready", API_SERVER_PORT, "/readyz", deadline, (ETCD, API_SERVER))
                # These two exit if the API server is absent for ten seconds, or does not have their roles yet. So they
                # are started after it, also if they ran before and ended meanwhile.
                self._start(CONTROLLER_MANAGER, SCHEDULER)
            except BaseException:
                self._stop(missing)
                raise

    def wait_ready(self, deadline_seconds: float = DEFAULT_START_SECONDS) -> None:
        """Wait until pods can be created: all components healthy, the default ServiceAccount created.

        Raises ControlPlaneError, with the end of the log, when a component ends or `deadline_seconds` are over.
        """
        deadline = time.monotonic() + deadline_seconds
        self._wait("the API server is ready", API_SERVER_PORT, "/readyz", deadline)
        self._wait("kube-controller-manager is healthy", CONTROLLER_MANAGER_PORT, "/healthz", deadline)
        self._wait("kube-scheduler is healthy", SCHEDULER_PORT, "/healthz", deadline)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("ServiceAccount default/default exists", API_SERVER_PORT, account, deadline)

    def is_running(self) -> bool:
        """Whether all its processes run."""
        return all(processes.find(self._layout.record(component)) for component in COMPONENTS)

    def stop(self) -> None:
        """Stop the running components, the API server before etcd (otherwise it hangs); etcd's data stay."""
        with self._lock():
            self._stop()

    def _stop(self, components: Collection[str] = COMPONENTS) -> None:
        # An API server without its etcd only waits for it; it has nothing left to write.
        grace_seconds = STOP_GRACE_SECONDS if processes.find(self._layout.record(ETCD)) else 0
        for component in STOP_ORDER:
            process = processes.find(self._layout.record(component)) if component in components else None
            if process is not None:
                process.stop(grace_seconds)

    def _reusable(self) -> set[str]:
        """The components that run with the current command line; if one has another, all are stopped."""
        found = {component: processes.find(self._layout.record(component)) for component in COMPONENTS}
        running = {component: process for component, process in found.items() if process is not None}
        # Without its etcd an API server hangs, and a surviving one would serve an earlier start's certificates.
        orphaned = bool(running) and ETCD not in running
        if orphaned or any(list(process.argv) != self._argv(name) for name, process in running.items()):
            self._stop()
            return set()
        return set(running)

    def _start(self, *components: str) -> None:
        """Start those that do not run."""
        for component in components:
            if processes.find(self._layout.record(component)) is None:
                processes.start(
                    component,
                    self._argv(component),
                    record=self._layout.record(component),
                    log=self._layout.log(component),
                    env={
                        "PATH": os.environ.get("PATH", os.defpath),
                        "HOME": str(self._layout.directory),
                        **ENVIRONMENT.get(component, {}),
                    },
                    cwd=self._layout.directory,
                )

    def _argv(self, component: str) -> list[str]:
        if component == EGRESS_PROXY:
            block = block_of(self._layout.address)
            # -P: nothing in the working directory is ever imported.
            return [sys.executable, "-P", "-m", "local.control_plane.egress_proxy", EGRESS_SOCKET, str(block)]
        return [str(self._binaries.path(component)), *arguments(component, self._layout)]

    def _wait(self, what: str, port: int, path: str, deadline: float, needed: Sequence[str] = COMPONENTS) -> None:
        """Wait until a GET succeeds, but only while every started component that it needs lives."""
        context = ssl.create_default_context(cafile=self._layout.certificate("ca"))
        context.load_cert_chain(self._layout.certificate("admin"), self._layout.key("admin"))
        url = f"https://{self._layout.bind_address}:{port}{path}"
        # It keeps its connection: each new one takes milliseconds of processor time here and there.
        with pool(PROBE_TIMEOUT_SECONDS, context) as connections:
            while not _succeeds(connections, url):
                self._require_alive(needed, what)
                if time.monotonic() >= deadline:
                    logs = self._layout.log(ETCD).parent
                    raise ControlPlaneError(f"timed out while waiting until {what}; logs are in {logs}")
                time.sleep(POLL_SECONDS)

    def _require_alive(self, components: Sequence[str], what: str) -> None:
        for component in components:
            process = processes.load(self._layout.record(component))
            if process is not None and not process.is_running():
                raise ControlPlaneError(
                    f"{component} ended while waiting until {what}; the end of its log:\n{process.log_tail()}"
                )

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Only one process at a time may start or stop this control plane."""
        self._layout.directory.mkdir(parents=True, exist_ok=True)
        with (self._layout.directory / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _succeeds(connections: PoolManager, url: str) -> bool:
    try:
        return connections.request("GET", url).status == 200
    except HttpError:
        return False
