"""Keeps what runs like what moto says: a control plane for each cluster, a kubelet stand-in for each node's instance.

It remembers nothing: each pass compares moto's objects with the processes that there are and gives each difference to
a worker, at most one at a time an object. Steps can be repeated, so a server killed at any moment finishes after its
restart what it had begun.
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
"""How often processes are looked after when nothing else happens."""

RETRY_SECONDS = 2.0
TERMINATE_GRACE_SECONDS = 5.0
WORKERS = 8

log = logging.getLogger(__name__)


class Work(Enum):
    """What there is to do for a machine."""

    BOOT = "boot"
    NOTE_CRASH = "say that it is stopped, for its process has ended"
    HALT = "end its process; it boots again another time"
    REMOVE = "end its process and delete what it had"


@dataclass(frozen=True, slots=True)
class Step:
    """One machine's work."""

    machine_id: str
    work: Work


def machine_steps(
    machines: Collection[Machine], booted: Mapping[str, bool], active: Collection[str], folders: Collection[str]
) -> Iterator[Step]:
    """What is to be done. Pure.

    `booted`: the machines that were and have not been halted, and whether they run. `active`: the clusters that can be
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
        """Begin to work, in threads of its own."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it still looks after things; False is a defect."""
        return self._thread.is_alive()

    def notice_ended_clusters(self) -> None:
        """A managed control plane heals, whether its processes were killed or the site was stopped; it says so."""
        for cluster in self._simulator.clusters():
            if cluster.status == "ACTIVE" and not self._machinery.cluster_is_running(cluster):
                log.warning("the control plane of %s does not run; starting it again", cluster.name)
                with self._simulator.changing():
                    cluster.status = "UPDATING"

    def ring(self) -> None:
        """Something changed: look at once."""
        self._bell.set()

    def stop(self) -> None:
        """Begin no more steps; those under way end with the process."""
        self._stopping.set()
        self._bell.set()
        self._thread.join()
        self._workers.stop(wait=False)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._reconcile()
            except MachineryError as error:
                log.warning("%s; looking again", error)
            self._bell.wait(TICK_SECONDS)
            self._bell.clear()

    def _reconcile(self) -> None:
        self.notice_ended_clusters()
        clusters = self._simulator.clusters()
        uids = {cluster.uid for cluster in clusters}
        deleted = [uid for uid in self._machinery.clusters_there() if uid not in uids]
        for cluster in clusters:
            # Not before those that were deleted have ended: their addresses are given again.
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
        """Give the cluster a network of the site's. Raises MachineryError if it asked for another."""
        if cluster.index < 0:
            taken = {each.index for each in self._simulator.clusters()}
            free = [index for index in range(NETWORKS_PER_SITE) if index not in taken]
            if not free:
                raise MachineryError(f"a site has addresses for {NETWORKS_PER_SITE} clusters")
            cluster.index = free[0]
        ranges = self._block.network(cluster.index)
        asked = dict(cluster.kubernetes_network_config or {})
        if not cluster.service_range_asked:
            asked["serviceIpv4Cidr"] = str(ranges.services)
            cluster.kubernetes_network_config = asked
        _require_inside(asked["serviceIpv4Cidr"], ranges.services, "cluster IPs")
        _require_inside(cluster.pod_range or str(ranges.pods), ranges.pods, "pods")

    def _heal(self, cluster: SiteCluster) -> None:
        self._machinery.start_cluster(cluster)
        with self._simulator.changing():
            cluster.status = "ACTIVE"

    # -- machines

    def _work_on(self, step: Step) -> None:
        """Take the step, unless it has become another meanwhile."""
        machine_id = step.machine_id
        machine = next((each for each in self._simulator.machines() if each.id == machine_id), None)
        match step.work:
            case Work.BOOT if machine is not None and machine.state == "running":
                cluster = next((each for each in self._simulator.clusters() if each.name == machine.cluster), None)
                if cluster is not None:
                    self._machinery.boot(machine, cluster)
            case Work.NOTE_CRASH if self._machinery.has_crashed(machine_id):
                log.warning("machine %s is stopped, for its process has ended", machine_id)
                with self._simulator.changing():
                    self._simulator.stop_crashed(machine_id)
                self._machinery.halt(machine_id, STOP_GRACE_SECONDS)
            case Work.HALT if machine is not None and machine.state == "stopped":
                self._machinery.halt(machine_id, STOP_GRACE_SECONDS)
            case Work.REMOVE if machine is None:
                self._machinery.halt(machine_id, TERMINATE_GRACE_SECONDS)
                self._machinery.remove_machine(machine_id)


def _require_inside(asked: str, there_is: IPv4Network, what: str) -> None:
    """Raise MachineryError unless the range is one that this machine can bind and no other site has."""
    try:
        inside = IPv4Network(asked).subnet_of(there_is)
    except ValueError as error:
        raise MachineryError(f"{what} can't have addresses of {asked}: {error}") from None
    if not inside:
        raise MachineryError(f"{what} can't have addresses of {asked} here, but of {there_is}")
