"""Reconciles processes with moto: a control plane for each cluster, a kubelet stand-in for each node's instance.

It is stateless: each pass compares moto's objects with the existing processes and gives each difference to a worker, at
most one at a time per object. Steps can be repeated, so a server killed at any moment finishes its work after a
restart.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from ipaddress import IPv4Network

from local.addresses import NETWORKS_PER_SITE, AddressBlock
from local.aws.differences import SiteCluster
from local.aws.machinery import STOP_GRACE_SECONDS, Machinery, MachineryError
from local.aws.simulator import Machine, Simulator
from local.workers import Workers

TICK_SECONDS = 0.5
"""The interval of passes when nothing else triggers one."""

RETRY_SECONDS = 2.0
TERMINATE_GRACE_SECONDS = 5.0
WORKERS = 8

log = logging.getLogger(__name__)


class Work(Enum):
    """The kinds of work on a machine."""

    BOOT = "boot"
    NOTE_CRASH = "mark it as stopped, because its process has ended"
    HALT = "end its process, but keep its data for the next boot"
    REMOVE = "end its process and delete its data"


@dataclass(frozen=True, slots=True)
class Step:
    """One machine's work."""

    machine_id: str
    work: Work


def machine_steps(
    machines: Collection[Machine], booted: Mapping[str, bool], active: Collection[str], folders: Collection[str]
) -> Iterator[Step]:
    """The steps that are due. Pure.

    `booted`: the machines that were booted and not halted, and whether they run. `active`: the clusters that can be
    joined. `folders`: the machines that have a folder.
    """
    wanted = {machine.id: machine for machine in machines}
    for machine in machines:
        if machine.state == "running" and machine.id not in booted and machine.cluster in active:
            yield Step(machine.id, Work.BOOT)
        elif machine.state == "running" and booted.get(machine.id) is False:
            yield Step(machine.id, Work.NOTE_CRASH)
        elif machine.state == "stopped" and machine.id in booted:
            yield Step(machine.id, Work.HALT)
    for gone in sorted({*booted, *folders} - wanted.keys()):
        yield Step(gone, Work.REMOVE)


class Lifecycle:
    """The reconciler of one site. `start` and `stop` are called once."""

    def __init__(self, simulator: Simulator, machinery: Machinery, block: AddressBlock) -> None:
        self._simulator = simulator
        self._machinery = machinery
        self._block = block
        self._thread = threading.Thread(target=self._run, name="lifecycle", daemon=True)
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._workers = Workers(WORKERS, expected=MachineryError, retry_seconds=RETRY_SECONDS, changed=self._bell.set)

    def start(self) -> None:
        """Start working, in threads of its own."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs; False is a defect."""
        return self._thread.is_alive()

    def notice_ended_clusters(self) -> None:
        """Log the control planes that do not run and will be restarted, after a crash or a stop of the site."""
        for cluster in self._simulator.clusters():
            if cluster.status == "ACTIVE" and not self._machinery.cluster_is_running(cluster):
                log.warning("the control plane of %s is not running; restarting it", cluster.name)
                with self._simulator.changing():
                    cluster.status = "UPDATING"

    def ring(self) -> None:
        """Start a pass at once: something changed."""
        self._bell.set()

    def stop(self) -> None:
        """Start no more steps; running ones end with the process."""
        self._stopping.set()
        self._bell.set()
        self._thread.join()
        self._workers.stop(wait=False)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._reconcile()
            except MachineryError as error:
                log.warning("%s; retrying", error)
            self._bell.wait(TICK_SECONDS)
            self._bell.clear()

    def _reconcile(self) -> None:
        self.notice_ended_clusters()
        clusters = self._simulator.clusters()
        uids = {cluster.uid for cluster in clusters}
        deleted = [uid for uid in self._machinery.clusters_there() if uid not in uids]
        for cluster in clusters:
            # Not before the deleted ones have ended: their addresses are reused.
            if cluster.status == "CREATING" and not deleted:
                self._workers.submit(cluster.uid, partial(self._create, cluster))
            elif cluster.status == "UPDATING":
                self._workers.submit(cluster.uid, partial(self._heal, cluster))
        for uid in deleted:
            self._workers.submit(uid, partial(self._machinery.remove_cluster, uid))
        booted = self._machinery.booted()
        self._simulator.replace_outdated({machine for machine, runs in booted.items() if runs})
        machines = self._simulator.machines()
        active = {cluster.name for cluster in clusters if cluster.status == "ACTIVE"}
        for step in machine_steps(machines, booted, active, self._machinery.machine_folders()):
            self._workers.submit(step.machine_id, partial(self._work_on, step))

    # -- clusters

    def _create(self, cluster: SiteCluster) -> None:
        try:
            with self._simulator.changing():
                self._give_addresses(cluster)
            facts = self._machinery.start_cluster(cluster)
        except MachineryError as error:
            log.error("cluster %s failed: %s", cluster.name, error)
            with self._simulator.changing():
                cluster.fail(str(error))
            return
        with self._simulator.changing():
            cluster.become_active(facts)

    def _give_addresses(self, cluster: SiteCluster) -> None:
        """Assign one of the site's networks to the cluster. Raises MachineryError if it requires another."""
        if cluster.index < 0:
            taken = {each.index for each in self._simulator.clusters()}
            free = [index for index in range(NETWORKS_PER_SITE) if index not in taken]
            if not free:
                raise MachineryError(f"no addresses left: a site has room for {NETWORKS_PER_SITE} clusters")
            cluster.index = free[0]
        ranges = self._block.network(cluster.index)
        network = dict(cluster.kubernetes_network_config or {})
        if not cluster.service_range_asked:
            network["serviceIpv4Cidr"] = str(ranges.services)
            cluster.kubernetes_network_config = network
        _require_inside(network["serviceIpv4Cidr"], ranges.services, "cluster IPs")
        _require_inside(cluster.pod_range or str(ranges.pods), ranges.pods, "pods")

    def _heal(self, cluster: SiteCluster) -> None:
        self._machinery.start_cluster(cluster)
        with self._simulator.changing():
            cluster.status = "ACTIVE"

    # -- machines

    def _work_on(self, step: Step) -> None:
        """Take the step, unless the due step has changed meanwhile."""
        machine_id = step.machine_id
        machine = next((each for each in self._simulator.machines() if each.id == machine_id), None)
        match step.work:
            case Work.BOOT if machine is not None and machine.state == "running":
                cluster = next((each for each in self._simulator.clusters() if each.name == machine.cluster), None)
                if cluster is not None:
                    self._machinery.boot(machine, cluster)
            case Work.NOTE_CRASH if self._machinery.has_crashed(machine_id):
                log.warning("machine %s is stopped because its process has ended", machine_id)
                with self._simulator.changing():
                    self._simulator.stop_crashed(machine_id)
                self._machinery.halt(machine_id, STOP_GRACE_SECONDS)
            case Work.HALT if machine is not None and machine.state == "stopped":
                self._machinery.halt(machine_id, STOP_GRACE_SECONDS)
            case Work.REMOVE if machine is None:
                self._machinery.halt(machine_id, TERMINATE_GRACE_SECONDS)
                self._machinery.remove_machine(machine_id)


def _require_inside(wanted: str, allowed: IPv4Network, what: str) -> None:
    """Raise MachineryError unless the range can be bound on this machine and is not another site's."""
    try:
        inside = IPv4Network(wanted).subnet_of(allowed)
    except ValueError as error:
        raise MachineryError(f"{what} cannot use {wanted}: {error}") from None
    if not inside:
        raise MachineryError(f"{what} cannot use {wanted} on this site (allowed: {allowed})")
