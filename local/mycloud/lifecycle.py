"""Carries out the API's requests: a reconciler that moves every object to the state in its record.

It is stateless: each pass reads the database for objects in transition and gives each to a worker, at most one at a
time per object. Steps can be repeated, and a step's result is written only after it is done, so a server killed at any
moment finishes its work after the restart, without doing anything twice.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from functools import partial
from time import monotonic, time

from local.mycloud.filters import Filter
from local.mycloud.machinery import STOP_GRACE_SECONDS, TERMINATE_GRACE_SECONDS, Machinery, MachineryError
from local.mycloud.models.common import State, now, rfc3339
from local.mycloud.models.compute import PROCESS_ENDED, Cluster, MachineRecord
from local.mycloud.models.networking import NetworkRecord, SubnetRecord
from local.mycloud.models.volumes import Attachment, Volume
from local.mycloud.store import Session, Store
from local.mycloud.volumes import release_volumes
from local.workers import Workers

log = logging.getLogger(__name__)

TERMINATED_STAYS = timedelta(hours=1)
"""How long a terminated machine stays listed."""

TICK_SECONDS = 0.5
"""How often processes are checked when nothing else happens."""

RETRY_SECONDS = 2.0
"""The delay before a failed step that must succeed in the end is retried."""

WORKERS = 16

PAUSE_SECONDS = 0.02
"""Between two passes, so that many quick writes share one."""

_ON_THE_WAY = (State.CREATING.value, State.DELETING.value)
_MACHINES_ON_THE_WAY = (State.CREATING.value, State.STOPPING.value)
_ATTACHMENTS_ON_THE_WAY = ("attaching", "detaching")


class Lifecycle:
    """The reconciler of one site. `start` and `stop` are called once."""

    def __init__(
        self,
        store: Store,
        machinery: Machinery,
        *,
        tick_seconds: float = TICK_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._store = store
        self._machinery = machinery
        self._tick_seconds = tick_seconds
        self._thread = threading.Thread(target=self._run, name="lifecycle", daemon=True)
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._workers = Workers(WORKERS, expected=MachineryError, retry_seconds=retry_seconds, changed=self._bell.set)
        store.observe(self._bell.set)

    def start(self) -> None:
        """Start working, in threads of its own."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs; False is a defect."""
        return self._thread.is_alive()

    def stop(self, *, wait: bool = True) -> None:
        """Start no more steps; unfinished work continues at the next start. `wait` for the running steps."""
        self._stopping.set()
        self._bell.set()
        self._thread.join()
        self._workers.stop(wait=wait)

    def _run(self) -> None:
        looked = -self._tick_seconds
        self._bell.set()
        while not self._stopping.is_set():
            self._bell.wait(self._tick_seconds)
            self._bell.clear()
            if not self._stopping.wait(PAUSE_SECONDS):
                due = monotonic() - looked >= self._tick_seconds
                looked = monotonic() if due else looked
                try:
                    self._reconcile(look_after_processes=due)
                except MachineryError as error:
                    log.warning("%s; retrying", error)

    def _reconcile(self, *, look_after_processes: bool) -> None:
        """Process all objects in transition, and perhaps check every process that should run."""
        states = _MACHINES_ON_THE_WAY + ((State.RUNNING.value,) if look_after_processes else ())
        with self._store.read() as session:
            settling = session.exists(NetworkRecord, Filter(states=_ON_THE_WAY)) or session.exists(
                SubnetRecord, Filter(states=_ON_THE_WAY)
            )
            clusters = session.query(Cluster)
            machines = session.query(MachineRecord, Filter(states=states, simulated=False))
            networks = {network.id: network for network in session.query(NetworkRecord)}
            to_forget = session.query(MachineRecord, _to_forget()) if look_after_processes else []
            volumes = session.query(Volume, Filter(states=_ON_THE_WAY))
            volumes += session.query(Volume, Filter(attachment_states=_ATTACHMENTS_ON_THE_WAY))
        if settling:
            self._settle_networks()
        if to_forget:
            with self._store.write() as session:
                for machine in to_forget:
                    session.remove(machine.id)
        if look_after_processes and not self._machinery.balancer_is_running():
            self._workers.submit("the load balancers' data plane", self._machinery.start_balancer)
        by_id = {cluster.id: cluster for cluster in clusters}
        for cluster in clusters:
            if cluster.state == State.AVAILABLE and not look_after_processes:
                continue
            if self._cluster_needs_work(cluster, networks[cluster.network_id]):
                self._workers.submit(cluster.id, partial(self._work_on_cluster, cluster.id))
        for machine in machines:
            if self._machine_needs_work(machine, by_id.get(machine.cluster_id)):
                self._workers.submit(machine.id, partial(self._work_on_machine, machine.id))
        for volume in volumes:
            self._workers.submit(volume.id, partial(self._work_on_volume, volume.id))

    # -- networks and subnets: nothing in the world belongs to them

    def _settle_networks(self) -> None:
        with self._store.write() as session:
            for subnet in session.query(SubnetRecord, Filter(states=_ON_THE_WAY)):
                _settle(session, subnet)
            for network in session.query(NetworkRecord, Filter(states=_ON_THE_WAY)):
                if network.state == State.DELETING:
                    session.remove(network.route_table_id)
                _settle(session, network)

    # -- clusters

    def _cluster_needs_work(self, cluster: Cluster, network: NetworkRecord) -> bool:
        if cluster.state == State.AVAILABLE:
            return not self._machinery.cluster_is_running(cluster, network)
        return cluster.state in (*_ON_THE_WAY, State.UPDATING)

    def _work_on_cluster(self, id: str) -> bool:
        with self._store.read() as session:
            cluster = session.find(Cluster, id)
            if cluster is None:
                return False
            network = session.get(NetworkRecord, cluster.network_id)
        if cluster.state == State.DELETING:
            self._machinery.remove_cluster(cluster, network)
            with self._store.write() as session:
                session.remove(id)
        elif cluster.state == State.CREATING:
            self._write_cluster(cluster, self._started(cluster, network))
        elif cluster.state == State.AVAILABLE:
            # A managed control plane heals: its processes were killed, or the computer was restarted.
            log.warning("the control plane of %s is not running; restarting it", id)
            self._write_cluster(cluster, {"state": State.UPDATING, "state_reason": "its control plane ended"})
        elif cluster.state == State.UPDATING:
            try:
                self._machinery.start_cluster(cluster, network)
            except MachineryError as error:
                self._write_cluster(cluster, {"state_reason": str(error)})
                raise  # retried: a cluster in use is never given up
            self._write_cluster(cluster, {"state": State.AVAILABLE, "state_reason": None})
        return True

    def _started(self, cluster: Cluster, network: NetworkRecord) -> dict[str, object]:
        """Start the control plane; returns the record's new fields."""
        try:
            facts = self._machinery.start_cluster(cluster, network)
        except MachineryError as error:
            return {"state": State.FAILED, "state_reason": str(error)}
        return {
            "state": State.AVAILABLE,
            "version": facts.version,
            "endpoint": facts.endpoint,
            "certificate_authority": facts.certificate_authority,
        }

    def _write_cluster(self, before: Cluster, changes: dict[str, object]) -> None:
        """Write a step's result, unless the API has meanwhile changed the cluster's intended state."""
        with self._store.write() as session:
            present = session.find(Cluster, before.id)
            if present is not None and present.state == before.state:
                session.save(present.model_copy(update=changes))

    # -- machines

    def _machine_needs_work(self, machine: MachineRecord, cluster: Cluster | None) -> bool:
        if machine.state == State.CREATING:
            return cluster is None or cluster.state in (State.AVAILABLE, State.FAILED)
        if machine.state == State.RUNNING:
            unlabelled = machine.role == "control-plane" and not machine.labelled
            return machine.reboot or unlabelled or not self._machinery.machine_is_running(machine)
        return machine.state == State.STOPPING

    def _work_on_machine(self, id: str) -> bool:
        """Take the machine one step further; False if it has to wait for something."""
        with self._store.read() as session:
            machine = session.find(MachineRecord, id)
            if machine is None:
                return False
            cluster = session.find(Cluster, machine.cluster_id)
            network = session.find(NetworkRecord, machine.network_id)
        match machine.state:
            case State.STOPPING if machine.intent == "terminated":
                self._machinery.halt(machine, TERMINATE_GRACE_SECONDS)
                self._machinery.remove_machine(machine)
                self._write_machine(machine, state=State.TERMINATED, state_reason=None, terminated_at=now())
            case State.STOPPING:
                self._machinery.halt(machine, STOP_GRACE_SECONDS)
                self._finish_stop(machine)
            case State.CREATING if cluster is None or network is None or cluster.state == State.FAILED:
                why = f"cluster {machine.cluster_id} {'failed' if cluster else 'is gone'}"
                self._write_machine(machine, state=State.FAILED, state_reason=why)
            case State.CREATING if cluster and network and cluster.state == State.AVAILABLE:
                self._boot(machine, cluster, network)
            case State.RUNNING if cluster is not None and network is not None:
                return self._work_on_running(machine, cluster, network)
            case _:
                return False
        return True

    def _boot(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> None:
        try:
            self._machinery.boot(machine, cluster, network)
        except MachineryError as error:
            self._write_machine(machine, state=State.FAILED, state_reason=str(error))
        else:
            self._write_machine(machine, state=State.RUNNING, state_reason=None, labelled=False)

    def _work_on_running(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> bool:
        if machine.reboot:
            self._machinery.halt(machine, STOP_GRACE_SECONDS)
            self._machinery.boot(machine, cluster, network)
            self._write_machine(machine, reboot=False)
        elif not self._machinery.machine_is_running(machine):
            self._write_machine(machine, state=State.STOPPED, state_reason=PROCESS_ENDED, intent="stopped")
        elif machine.role == "control-plane" and not machine.labelled:
            labelled = self._machinery.label_control_plane(machine, cluster, network)
            if labelled:
                self._write_machine(machine, labelled=True)
            return labelled
        return True

    def _finish_stop(self, machine: MachineRecord) -> None:
        with self._store.write() as session:
            present = session.find(MachineRecord, machine.id)
            if present is None or present.state != State.STOPPING or present.intent == "terminated":
                return
            if present.intent == "running":  # started again meanwhile
                session.save(present.model_copy(update={"state": State.CREATING, "state_reason": None}))
            else:
                session.save(present.model_copy(update={"state": State.STOPPED, "reboot": False}))

    def _write_machine(self, before: MachineRecord, **changes: object) -> None:
        """Write a step's result, unless the API has meanwhile changed the machine's intended state."""
        with self._store.write() as session:
            present = session.find(MachineRecord, before.id)
            if present is not None and (present.state, present.intent) == (before.state, before.intent):
                changed = present.model_copy(update=changes)
                session.save(changed)
                if changed.state == State.TERMINATED:
                    release_volumes(session, changed.id)

    # -- volumes

    def _work_on_volume(self, id: str) -> bool:
        with self._store.read() as session:
            volume = session.find(Volume, id)
        if volume is None:
            return False
        if volume.state == State.DELETING:
            self._machinery.remove_volume(id)
            with self._store.write() as session:
                session.remove(id)
        elif volume.state == State.CREATING:
            self._machinery.make_volume(id)
            self._write_volume(volume, state=State.AVAILABLE)
        elif volume.attachment is not None and volume.attachment.state == "attaching":
            machine_id = volume.attachment.machine_id
            self._machinery.attach_volume(id, machine_id)
            self._write_volume(volume, attachment=Attachment(machine_id=machine_id, state="attached"))
        elif volume.attachment is not None and volume.attachment.state == "detaching":
            self._machinery.detach_volume(id, volume.attachment.machine_id)
            self._write_volume(volume, attachment=None)
        return True

    def _write_volume(self, before: Volume, **changes: object) -> None:
        """Write a step's result, unless the API has meanwhile changed the volume's intended state."""
        with self._store.write() as session:
            present = session.find(Volume, before.id)
            if present is not None and (present.state, present.attachment) == (before.state, before.attachment):
                session.save(present.model_copy(update=changes))


def _settle(session: Session, record: NetworkRecord | SubnetRecord) -> None:
    if record.state == State.DELETING:
        session.remove(record.id)
    else:
        record.state = State.AVAILABLE
        session.save(record)


def _to_forget() -> Filter:
    end = time() - TERMINATED_STAYS.total_seconds()
    return Filter(states=[State.TERMINATED.value], terminated_before=rfc3339(end))
