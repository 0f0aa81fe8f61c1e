"""The reconciler over a real database and fake machinery: states, crashes, repetitions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.addresses import AddressBlock
from local.mycloud import compute, networking, volumes
from local.mycloud.lifecycle import Lifecycle
from local.mycloud.machinery import ClusterFacts, MachineryError
from local.mycloud.models.common import State
from local.mycloud.models.compute import Cluster, CreateCluster, CreateMachine, MachineRecord, SimulateMachines
from local.mycloud.models.networking import CreateNetwork, CreateSubnet, NetworkRecord, SubnetRecord
from local.mycloud.models.volumes import Attachment, CreateVolume, Volume
from local.mycloud.store import Store

DEADLINE = 60.0
_ON_THE_WAY = ("attaching", "detaching")


class FakeMachinery:
    """Processes are names in a set; `journal` records what was started and ended."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.journal: list[str] = []
        self.registered: set[str] = set()
        self.labelled: set[str] = set()
        self.broken: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()

    def _start(self, id: str) -> None:
        self.gate.wait(DEADLINE)
        if id in self.broken:
            raise MachineryError(f"{id} does not start")
        if id not in self.running:
            self.running.add(id)
            self.journal.append(f"start {id}")

    def _end(self, id: str) -> None:
        if id in self.running:
            self.running.discard(id)
            self.journal.append(f"end {id}")

    def balancer_is_running(self) -> bool:
        return "balancer" in self.running

    def start_balancer(self) -> None:
        self.running.add("balancer")

    def start_cluster(self, cluster: Cluster, network: NetworkRecord) -> ClusterFacts:
        self._start(cluster.id)
        return ClusterFacts("v1", f"https://{network.index}", "PEM")

    def cluster_is_running(self, cluster: Cluster, network: NetworkRecord) -> bool:  # noqa: ARG002
        return cluster.id in self.running

    def remove_cluster(self, cluster: Cluster, network: NetworkRecord) -> None:  # noqa: ARG002
        self._end(cluster.id)

    def boot(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> None:  # noqa: ARG002
        assert cluster.id in self.running
        self._start(machine.id)

    def machine_is_running(self, machine: MachineRecord) -> bool:
        return machine.id in self.running

    def halt(self, machine: MachineRecord, grace_seconds: float) -> None:  # noqa: ARG002
        self.gate.wait(DEADLINE)
        self._end(machine.id)

    def remove_machine(self, machine: MachineRecord) -> None:
        self.journal.append(f"remove {machine.id}")

    def make_volume(self, id: str) -> None:
        self._start(id)

    def remove_volume(self, id: str) -> None:
        self._end(id)

    def attach_volume(self, id: str, machine_id: str) -> None:
        self._start(f"{id} on {machine_id}")

    def detach_volume(self, id: str, machine_id: str) -> None:
        self._end(f"{id} on {machine_id}")

    def label_control_plane(self, machine: MachineRecord, cluster: Cluster, network: NetworkRecord) -> bool:  # noqa: ARG002
        if machine.id not in self.registered:
            return False
        self.labelled.add(machine.id)
        return True


class World:
    """A store, the machinery, and the objects that a machine needs."""

    def __init__(self, directory: Path) -> None:
        self.store = Store(directory / "mycloud.db")
        self.machinery = FakeMachinery()
        with self.store.write() as session:
            self.network = networking.create_network(session, AddressBlock(32), CreateNetwork(name="n")).id
            request = CreateSubnet(name="s", network_id=self.network, zone="zone-a")
            self.subnet = networking.create_subnet(session, request).id
            self.cluster = compute.create_cluster(session, CreateCluster(name="c", network_id=self.network)).id

    @contextmanager
    def lifecycle(self) -> Iterator[None]:
        lifecycle = Lifecycle(self.store, self.machinery, tick_seconds=0.02, retry_seconds=0.02)
        lifecycle.start()
        try:
            yield
        finally:
            self.machinery.gate.set()
            lifecycle.stop()

    def machine(self, name: str = "m", role: str = "worker") -> str:
        request = CreateMachine.model_validate(
            {"name": name, "subnet_id": self.subnet, "cluster_id": self.cluster, "type": "m1.small", "role": role}
        )
        with self.store.write() as session:
            return compute.create_machine(session, request).id

    def volume(self, **changes: object) -> str:
        """A volume in the given state, without any action on it yet."""
        with self.store.write() as session:
            made = volumes.create_volume(session, CreateVolume(name="v", zone="zone-a", size_gib=1))
            session.save(made.model_copy(update=changes))
        return made.id

    def found_volume(self, id: str) -> Volume:
        with self.store.read() as session:
            return session.get(Volume, id)

    def volumes(self) -> list[str]:
        with self.store.read() as session:
            return [each.id for each in session.query(Volume)]

    def attach(self, volume: str, machine: str) -> None:
        with self.store.write() as session:
            volumes.attach_volume(session, volume, machine)

    def do(self, operation: Callable[..., object], id: str) -> None:
        with self.store.write() as session:
            operation(session, id)

    def state(self, id: str) -> State | None:
        with self.store.read() as session:
            machine = session.find(MachineRecord, id)
            found = machine or session.find(Cluster, id) or session.find(SubnetRecord, id)
            network = session.find(NetworkRecord, id)
        if found is not None:
            return found.state
        return None if network is None else network.state

    def becomes(self, id: str, state: State | None) -> bool:
        return until(lambda: self.state(id) == state)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def test_a_cluster_that_does_not_start_is_failed_with_the_reason_and_so_are_its_machines(world: World) -> None:
    world.machinery.broken.add(world.cluster)
    machine = world.machine()

    with world.lifecycle():
        assert world.becomes(machine, State.FAILED)

    with world.store.read() as session:
        assert session.get(Cluster, world.cluster).state_reason == f"{world.cluster} does not start"
        assert session.get(MachineRecord, machine).state_reason == f"cluster {world.cluster} failed"


def test_a_failed_machine_can_be_terminated_or_started(world: World) -> None:
    bad, mended = world.machine("bad"), world.machine("mended")
    world.machinery.broken |= {bad, mended}

    with world.lifecycle():
        assert world.becomes(bad, State.FAILED)
        assert world.becomes(mended, State.FAILED)
        world.machinery.broken.clear()
        world.do(compute.terminate_machine, bad)
        world.do(compute.start_machine, mended)

        assert world.becomes(bad, State.TERMINATED)
        assert world.becomes(mended, State.RUNNING)


def test_stop_reboot_and_terminate_end_the_process_as_they_should(world: World) -> None:
    machine = world.machine()
    starts_and_ends = [f"start {machine}", f"end {machine}"]

    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        world.do(compute.reboot_machine, machine)
        assert until(lambda: world.machinery.journal[1:] == [*starts_and_ends, f"start {machine}"])
        world.do(compute.stop_machine, machine)
        assert world.becomes(machine, State.STOPPED)
        world.do(compute.start_machine, machine)
        assert world.becomes(machine, State.RUNNING)
        world.do(compute.terminate_machine, machine)
        assert world.becomes(machine, State.TERMINATED)

    assert world.machinery.journal[1:] == [*starts_and_ends * 3, f"remove {machine}"]


def test_a_machine_terminated_while_it_boots_does_not_stay_running(world: World) -> None:
    machine = world.machine()

    with world.lifecycle():
        assert world.becomes(world.cluster, State.AVAILABLE)
        world.machinery.gate.clear()
        assert world.state(machine) in (State.CREATING, State.RUNNING)
        world.do(compute.terminate_machine, machine)
        world.machinery.gate.set()

        assert world.becomes(machine, State.TERMINATED)

    assert machine not in world.machinery.running


def test_the_control_plane_label_is_set_once_the_node_has_registered_and_again_after_a_boot(world: World) -> None:
    machine = world.machine(role="control-plane")

    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        assert machine not in world.machinery.labelled
        world.machinery.registered.add(machine)
        assert until(lambda: machine in world.machinery.labelled)

        world.machinery.labelled.clear()
        world.do(compute.stop_machine, machine)
        assert world.becomes(machine, State.STOPPED)
        world.do(compute.start_machine, machine)

        assert until(lambda: machine in world.machinery.labelled)


def test_a_control_plane_that_fails_to_restart_has_a_reason_and_is_retried(world: World) -> None:
    with world.lifecycle():
        assert world.becomes(world.cluster, State.AVAILABLE)
        world.machinery.broken.add(world.cluster)
        world.machinery.running.discard(world.cluster)

        assert until(lambda: reason(world) == f"{world.cluster} does not start")
        assert world.state(world.cluster) == State.UPDATING
        world.machinery.broken.clear()

        assert world.becomes(world.cluster, State.AVAILABLE)
        assert reason(world) is None


def reason(world: World) -> str | None:
    with world.store.read() as session:
        return session.get(Cluster, world.cluster).state_reason


def test_work_interrupted_by_a_kill_of_the_server_is_finished_without_a_second_start(world: World) -> None:
    """A kill between a step and the record of its result: the process runs, the database says `creating`."""
    machine, stopping = world.machine("one"), world.machine("two")
    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        assert world.becomes(stopping, State.RUNNING)
    with world.store.write() as session:
        for each in (machine, stopping):
            session.save(session.get(MachineRecord, each).model_copy(update={"state": State.CREATING}))
        session.save(session.get(Cluster, world.cluster).model_copy(update={"state": State.CREATING}))
        compute.terminate_machine(session, stopping)

    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        assert world.becomes(stopping, State.TERMINATED)

    assert sorted(world.machinery.journal) == sorted(
        [
            *(f"start {each}" for each in (world.cluster, machine, stopping)),
            *(f"end {stopping}", f"remove {stopping}"),
        ]
    )


def test_volume_steps_interrupted_by_a_kill_of_the_server_are_finished(world: World) -> None:
    machine = world.machine()
    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
    attaching, detaching = (Attachment.model_validate({"machine_id": machine, "state": s}) for s in _ON_THE_WAY)
    made = world.volume()
    attached = world.volume(state=State.AVAILABLE, attachment=attaching)
    detached = world.volume(state=State.AVAILABLE, attachment=detaching)
    deleted = world.volume(state=State.DELETING)
    world.machinery.running |= {deleted, f"{detached} on {machine}"}

    with world.lifecycle():
        assert until(lambda: world.found_volume(made).state == State.AVAILABLE)
        assert until(
            lambda: world.found_volume(attached).attachment == Attachment(machine_id=machine, state="attached")
        )
        assert until(lambda: world.found_volume(detached).attachment is None)
        assert until(lambda: deleted not in world.volumes())

    assert {made, f"{attached} on {machine}"} <= world.machinery.running
    assert not {deleted, f"{detached} on {machine}"} & world.machinery.running


def test_a_stopped_machine_keeps_its_volumes_until_they_are_detached(world: World) -> None:
    machine, volume = world.machine(), world.volume(state=State.AVAILABLE)

    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        world.attach(volume, machine)
        attached = Attachment(machine_id=machine, state="attached")
        assert until(lambda: world.found_volume(volume).attachment == attached)
        world.do(compute.stop_machine, machine)
        assert world.becomes(machine, State.STOPPED)

        assert world.found_volume(volume).attachment == attached
        with world.store.write() as session:
            volumes.detach_volume(session, volume, machine)
        assert until(lambda: world.found_volume(volume).attachment is None)


def test_a_volume_released_by_a_dying_machine_is_not_attached_to_it_afterwards(world: World) -> None:
    machine = world.machine()
    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        volume = world.volume(state=State.AVAILABLE)
        world.machinery.gate.clear()
        world.attach(volume, machine)
        world.do(compute.terminate_machine, machine)
        world.machinery.gate.set()

        assert world.becomes(machine, State.TERMINATED)
        assert until(lambda: world.found_volume(volume).attachment is None)


def test_a_terminated_machine_is_listed_for_an_hour(world: World) -> None:
    old, recent = world.machine("old"), world.machine("recent")
    with world.store.write() as session:
        for each, age in ((old, timedelta(minutes=61)), (recent, timedelta(minutes=59))):
            at = (datetime.now(UTC) - age).isoformat()
            update = {"state": State.TERMINATED, "intent": "terminated", "terminated_at": at}
            session.save(session.get(MachineRecord, each).model_copy(update=update))

    with world.lifecycle():
        assert world.becomes(old, None)
        assert world.becomes(world.cluster, State.AVAILABLE)

    assert world.state(recent) == State.TERMINATED


def test_the_lifecycle_ignores_simulated_machines(world: World) -> None:
    with world.store.write() as session:
        wanted = SimulateMachines(cluster_id=world.cluster, subnet_ids=[world.subnet], count=1)
        compute.simulate_machines(session, wanted)
        (simulated,) = session.query(MachineRecord)

    with world.lifecycle():
        real = world.machine("real")
        assert world.becomes(real, State.RUNNING)
        world.machinery.running.discard(real)
        assert world.becomes(real, State.STOPPED)

    assert world.state(simulated.id) == State.RUNNING
    assert not any(simulated.id in entry for entry in world.machinery.journal)


def test_deletions_leave_nothing_behind(world: World) -> None:
    with world.lifecycle():
        assert world.becomes(world.cluster, State.AVAILABLE)
        world.do(compute.delete_cluster, world.cluster)
        assert world.becomes(world.cluster, None)
        world.do(networking.delete_subnet, world.subnet)
        assert world.becomes(world.subnet, None)
        world.do(networking.delete_network, world.network)
        assert world.becomes(world.network, None)

    assert world.cluster not in world.machinery.running


def test_a_failed_deletion_step_is_retried(world: World) -> None:
    machine = world.machine()

    class Stubborn(FakeMachinery):
        refusals = 1

        def halt(self, machine: MachineRecord, grace_seconds: float) -> None:
            if self.refusals:
                self.refusals -= 1
                raise MachineryError("it hangs")
            super().halt(machine, grace_seconds)

    world.machinery = Stubborn()

    with world.lifecycle():
        assert world.becomes(machine, State.RUNNING)
        world.do(compute.terminate_machine, machine)

        assert world.becomes(machine, State.TERMINATED)
