"""Starts the control planes of EKS clusters and the kubelet stand-ins of instances: processes in the site's folder.

Every method may be called again after a crash in the middle of it. Raises MachineryError.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path

from cloud_controller.kube import ApiError, Kube
from local.addresses import AddressBlock
from local.aws.differences import ClusterFacts, SiteCluster
from local.aws.simulator import Machine
from local.aws.webhook import Webhook
from local.control_plane.binaries import Binaries, ensure
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.errors import BuildError
from local.ports import PortBusyError
from local.processes import ProcessError
from local.site_processes import SiteProcesses
from local.state_folder import StateFolder

ADMIN_TTL = timedelta(hours=1)
STOP_GRACE_SECONDS = 30.0
WEBHOOK_CONFIG = "webhook.json"
_NO_BINARIES = Binaries({})
"""Enough for everything except a start."""


class MachineryError(Exception):
    """A process could not be started or stopped; the message says which and why."""


class Machinery:
    """Calls block and come from several threads."""

    def __init__(
        self, folder: StateFolder, block: AddressBlock, webhook: Webhook, environment: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._block = block
        self._webhook = webhook
        self._processes = SiteProcesses(folder, environment)
        self._binaries_lock = threading.Lock()
        self._binaries: Binaries | None = None

    def start_cluster(self, cluster: SiteCluster) -> ClusterFacts:
        """Start the missing components of the control plane, and wait until it can be used."""
        with _as_machinery_error():
            self._processes.require_folder()
            control_plane = self._control_plane(cluster, self._ensure_binaries())
            self._webhook.write_client_config(self._webhook_config(cluster), cluster.name)
            control_plane.start()
            control_plane.wait_ready()
            kube = Kube.from_kubeconfig(control_plane.kubeconfig("site", ["system:masters"], ADMIN_TTL))
            with contextlib.closing(kube):
                version = kube.version()
        return ClusterFacts(
            f"{version['major']}.{version['minor']}", control_plane.endpoint, control_plane.certificate_authority
        )

    def cluster_is_running(self, cluster: SiteCluster) -> bool:
        with _as_machinery_error():
            self._processes.require_folder()
            return self._control_plane(cluster).is_running()

    def token_key(self, cluster: SiteCluster) -> str | None:
        """The public key (PEM) of the cluster's ServiceAccount tokens; None while it has none."""
        try:
            return self._control_plane(cluster).service_account_key
        except FileNotFoundError:
            return None

    def clusters_there(self) -> list[str]:
        """The uids of the clusters that have a folder."""
        clusters = self._folder.cluster("x").parent
        return [each.name for each in clusters.iterdir()] if clusters.is_dir() else []

    def remove_cluster(self, uid: str) -> None:
        """Stop the control plane gracefully and delete its data."""
        folder = self._folder.cluster(uid)
        nothing = IPv4Network("10.0.0.0/32")
        with _as_machinery_error():
            ControlPlane(folder, _NO_BINARIES, "10.0.0.1", nothing, nothing, uid).stop()
        shutil.rmtree(folder, ignore_errors=True)

    def boot(self, machine: Machine, cluster: SiteCluster) -> None:
        """Start the machine's process unless it runs."""
        with _as_machinery_error():
            self._processes.boot_machine(machine_json(machine), self._control_plane(cluster))
        self._boot_mark(machine.id).touch()

    def has_crashed(self, id: str) -> bool:
        """Whether the machine was booted and not halted since, and does not run."""
        return self._boot_mark(id).exists() and not self._runs(id)

    def booted(self) -> dict[str, bool]:
        """The machines that were booted and not halted since, and whether they still run.

        A running one without its mark was booted by a process that was then killed.
        """
        running = {each: self._runs(each) for each in self.machine_folders()}
        return {each: runs for each, runs in running.items() if runs or self._boot_mark(each).exists()}

    def forget_boots(self) -> None:
        """Reset after a stop of the whole site, so that the booted machines boot again."""
        for each in self.machine_folders():
            self._boot_mark(each).unlink(missing_ok=True)

    def _runs(self, id: str) -> bool:
        with _as_machinery_error():
            return self._processes.is_running(id)

    def _boot_mark(self, id: str) -> Path:
        return self._folder.machine(id) / "booted"

    def machine_folders(self) -> list[str]:
        """The ids of the machines that have a folder."""
        machines = self._folder.machine("x").parent
        return [each.name for each in machines.iterdir()] if machines.is_dir() else []

    def halt(self, id: str, grace_seconds: float) -> None:
        """End the machine's process if it runs, and what it left behind."""
        with _as_machinery_error():
            self._processes.halt_machine(id, grace_seconds)
        self._boot_mark(id).unlink(missing_ok=True)

    def remove_machine(self, id: str) -> None:
        """Delete the machine's folder."""
        shutil.rmtree(self._folder.machine(id), ignore_errors=True)

    def _control_plane(self, cluster: SiteCluster, binaries: Binaries = _NO_BINARIES) -> ControlPlane:
        return ControlPlane(
            self._folder.cluster(cluster.uid),
            binaries,
            self._block.control_plane_address(cluster.index),
            cluster.pod_range or self._block.network(cluster.index).pods,
            cluster.kubernetes_network_config["serviceIpv4Cidr"],
            cluster.name,
            issuer=cluster.identity["oidc"]["issuer"],
            token_webhook=self._webhook_config(cluster),
        )

    def _webhook_config(self, cluster: SiteCluster) -> Path:
        return self._folder.cluster(cluster.uid) / WEBHOOK_CONFIG

    def _ensure_binaries(self) -> Binaries:
        with self._binaries_lock:
            if self._binaries is None:
                self._binaries = ensure(lambda line: print(line, flush=True))
            return self._binaries


def machine_json(machine: Machine) -> dict[str, object]:
    """The machine's configuration at boot. Its role is always worker: EKS runs control planes elsewhere."""
    return {
        "id": machine.id,
        "node_name": machine.node_name,
        "address": machine.address,
        "size": {"cpus": machine.cpus, "memory": f"{machine.memory_mib}Mi"},
        "role": "worker",
        "provider_id": f"aws:///{machine.zone}/{machine.id}" if machine.flags.names_provider_id else None,
        "node_labels": machine.flags.labels,
        "taints": machine.flags.taints,
    }


@contextlib.contextmanager
def _as_machinery_error() -> Iterator[None]:
    try:
        yield
    except (ControlPlaneError, ProcessError, PortBusyError, BuildError, ApiError) as error:
        raise MachineryError(str(error)) from error
