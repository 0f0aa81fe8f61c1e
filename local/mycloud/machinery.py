"""Starts and stops control planes and machines for the lifecycle.

Every method may be called again after a crash in the middle of it: what exists is kept, what is missing is made.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from cloud_controller.kube import NODES, ApiError, Kube, NotFoundError, PatchType
from local.addresses import AddressBlock
from local.control_plane.binaries import Binaries, ensure
from local.control_plane.control_plane import ControlPlane, ControlPlaneError
from local.errors import BuildError
from local.mycloud.folder import MyCloudFolder
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.models.networking import NetworkRecord
from local.ports import PortBusyError
from local.processes import ProcessError
from local.site_processes import SiteProcesses

LABELLING_TTL = timedelta(hours=1)
BALANCER = "balancer"
"""The key of the data plane's process."""

STOP_GRACE_SECONDS = 30.0
TERMINATE_GRACE_SECONDS = 5.0
CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"


_NO_BINARIES = Binaries({})
"""Enough for everything except a start."""


class MachineryError(Exception):
    """A process could not be started or stopped; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a started control plane reports."""

    version: str
    endpoint: str
    certificate_authority: str


class Machinery(Protocol):
    """The lifecycle's actions. Calls block, come from several threads and raise `MachineryError`."""

    def balancer_is_running(self) -> bool:
        """Whether the load balancers' data plane runs."""
        ...

    def start_balancer(self) -> None:
        """Start the load balancers' data plane."""
        ...

    def start_cluster(self, cluster: Cluster, network: NetworkRecord) -> ClusterFacts:
        """Start the missing components of the control plane, and wait until it can be used."""
        ...

    def cluster_is_running(self, cluster: Cluster, network: NetworkRecord) -> bool: ...

    def remove_cluster(self, cluster: Cluster, network: NetworkRecord) -> None:
        """Stop the control plane gracefully and delete its data."""
        ...

    def boot(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> None:
        """Start the machine's process unless it runs."""
        ...

    def machine_is_running(self, machine: MachineRecord) -> bool: ...

    def halt(self, machine: MachineRecord, grace_seconds: float) -> None:
        """End the machine's process if it runs (SIGTERM, after `grace_seconds` SIGKILL), and what it left behind."""
        ...

    def remove_machine(self, machine: MachineRecord) -> None:
        """Delete the machine's directory."""
        ...

    def make_volume(self, id: str) -> None:
        """Make an empty volume."""
        ...

    def remove_volume(self, id: str) -> None:
        """Delete a volume and its data."""
        ...

    def attach_volume(self, id: str, machine_id: str) -> None:
        """Make a volume visible to a machine."""
        ...

    def detach_volume(self, id: str, machine_id: str) -> None:
        """Hide a volume from a machine; processes that have it mounted keep it."""
        ...

    def label_control_plane(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> bool:
        """Set the control-plane label on the machine's node; False while the node has not registered."""
        ...


class LocalMachinery:
    """The real implementation: processes of this machine, in the site's state folder."""

    def __init__(self, folder: MyCloudFolder, block: AddressBlock, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._block = block
        self._processes = SiteProcesses(folder, environment)
        self._binaries_lock = threading.Lock()
        self._binaries: Binaries | None = None

    def balancer_is_running(self) -> bool:
        with _as_machinery_error():
            return self._processes.is_running(BALANCER)

    def start_balancer(self) -> None:
        folder = self._folder
        with _as_machinery_error():
            self._processes.start(BALANCER, "load balancers", "local.mycloud.balancer", folder.root, folder.cloud)

    def start_cluster(self, cluster: Cluster, network: NetworkRecord) -> ClusterFacts:
        self._require_folder()
        control_plane = self._control_plane(cluster, network, self._ensure_binaries())
        try:
            control_plane.start()
            control_plane.wait_ready()
            with_admin = Kube.from_kubeconfig(_admin_kubeconfig(control_plane, LABELLING_TTL))
            try:
                version = with_admin.version()["gitVersion"]
            finally:
                with_admin.close()
        except (ControlPlaneError, ProcessError, PortBusyError, ApiError) as error:
            raise MachineryError(str(error)) from error
        return ClusterFacts(version, control_plane.endpoint, control_plane.certificate_authority)

    def cluster_is_running(self, cluster: Cluster, network: NetworkRecord) -> bool:
        self._require_folder()
        try:
            return self._control_plane(cluster, network).is_running()
        except ProcessError as error:
            raise MachineryError(str(error)) from error

    def remove_cluster(self, cluster: Cluster, network: NetworkRecord) -> None:
        try:
            self._control_plane(cluster, network).stop()
        except (ControlPlaneError, ProcessError) as error:
            raise MachineryError(str(error)) from error
        shutil.rmtree(self._folder.cluster(cluster.id), ignore_errors=True)

    def kubeconfig(self, cluster: Cluster, network: NetworkRecord, ttl: timedelta) -> str:
        """A cluster-admin kubeconfig (YAML, a secret) that expires after `ttl`."""
        return _admin_kubeconfig(self._control_plane(cluster, network), ttl)

    def boot(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> None:
        with _as_machinery_error():
            self._processes.boot_machine(_machine_json(machine), self._control_plane(cluster, network))

    def machine_is_running(self, machine: MachineRecord) -> bool:
        with _as_machinery_error():
            return self._processes.is_running(machine.id)

    def halt(self, machine: MachineRecord, grace_seconds: float) -> None:
        with _as_machinery_error():
            self._processes.halt_machine(machine.id, grace_seconds)

    def remove_machine(self, machine: MachineRecord) -> None:
        shutil.rmtree(self._folder.machine(machine.id), ignore_errors=True)

    def make_volume(self, id: str) -> None:
        self._require_folder()
        with _disk(f"volume {id} could not be made"):
            self._folder.volume(id).mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove_volume(self, id: str) -> None:
        folder = self._folder.volume(id)
        with _disk(f"volume {id} could not be deleted"):
            if folder.exists():
                _make_deletable(folder)
                shutil.rmtree(folder)

    def attach_volume(self, id: str, machine_id: str) -> None:
        device = self._folder.device(machine_id, id)
        with _disk(f"volume {id} could not be attached to machine {machine_id}"):
            device.parent.mkdir(mode=0o700, exist_ok=True)
            if not device.is_symlink():
                device.symlink_to(self._folder.volume(id))

    def detach_volume(self, id: str, machine_id: str) -> None:
        with _disk(f"volume {id} could not be detached from machine {machine_id}"):
            self._folder.device(machine_id, id).unlink(missing_ok=True)

    def label_control_plane(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> bool:
        kube = Kube.from_kubeconfig(_admin_kubeconfig(self._control_plane(cluster, network), LABELLING_TTL))
        try:
            kube.patch(NODES, machine.name, {"metadata": {"labels": {CONTROL_PLANE_LABEL: ""}}}, type=PatchType.MERGE)
        except NotFoundError:
            return False
        except ApiError as error:
            raise MachineryError(f"node {machine.name} could not be labelled: {error}") from error
        finally:
            kube.close()
        return True

    def _require_folder(self) -> None:
        with _as_machinery_error():
            self._processes.require_folder()

    def _control_plane(
        self, cluster: Cluster, network: NetworkRecord, binaries: Binaries = _NO_BINARIES
    ) -> ControlPlane:
        return ControlPlane(
            self._folder.cluster(cluster.id),
            binaries,
            self._block.control_plane_address(network.index),
            network.pod_cidr,
            network.service_cidr,
            cluster.name,
        )

    def _ensure_binaries(self) -> Binaries:
        with self._binaries_lock:
            if self._binaries is None:
                try:
                    self._binaries = ensure(lambda line: print(line, flush=True))
                except BuildError as error:
                    raise MachineryError(str(error)) from error
            return self._binaries


@contextlib.contextmanager
def _as_machinery_error() -> Iterator[None]:
    """Turn a process's failure into the lifecycle's own error."""
    try:
        yield
    except ProcessError as error:
        raise MachineryError(str(error)) from error


@contextlib.contextmanager
def _disk(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineryError(f"{what}: {error}") from error


def _make_deletable(folder: Path) -> None:
    """A pod may have removed its own write permission from folders on its volume."""
    folder.chmod(0o700)
    for parent, names, _ in os.walk(folder):
        for directory in (Path(parent, name) for name in names):
            if not directory.is_symlink():
                directory.chmod(0o700)


def _admin_kubeconfig(control_plane: ControlPlane, ttl: timedelta) -> str:
    return control_plane.kubeconfig("mycloud-admin", ["system:masters"], ttl)


def _machine_json(machine: MachineRecord) -> dict[str, object]:
    provider_id = f"mycloud://{machine.region}/{machine.zone}/{machine.id}"
    return {
        "id": machine.id,
        "node_name": machine.name,
        "address": machine.private_ips[0],
        "provider_id": provider_id if machine.register_provider_id else None,
        "role": machine.role,
        "node_labels": machine.node_labels,
        "type": machine.type,
        "csi_driver": "mycloud.io",
    }
