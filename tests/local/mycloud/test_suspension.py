"""The database after a stop of the site and a restart of the computer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.addresses import AddressBlock
from local.mycloud import compute, networking
from local.mycloud.models.common import State
from local.mycloud.models.compute import PROCESS_ENDED, Cluster, CreateCluster, CreateMachine, MachineRecord
from local.mycloud.models.networking import CreateNetwork, CreateSubnet
from local.mycloud.store import Session, Store
from local.mycloud.suspension import notice_restart, suspend


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "mycloud.db")
    yield store
    store.close()


def populate(session: Session) -> dict[str, str]:
    """A running cluster with a running and a stopped machine: their ids by name."""
    network = networking.create_network(session, AddressBlock(32), CreateNetwork(name="n"))
    subnet = networking.create_subnet(session, CreateSubnet(name="s", network_id=network.id, zone="zone-a"))
    cluster = compute.create_cluster(session, CreateCluster(name="c", network_id=network.id))
    session.save(cluster.model_copy(update={"state": State.AVAILABLE}))
    ids = {"cluster": cluster.id}
    for name, state in (("running", State.RUNNING), ("stopped", State.STOPPED)):
        request = CreateMachine(name=name, subnet_id=subnet.id, cluster_id=cluster.id, type="m1.small", role="worker")
        machine = compute.create_machine(session, request)
        session.save(machine.model_copy(update={"state": state}))
        ids[name] = machine.id
    return ids


def states(store: Store, ids: dict[str, str]) -> dict[str, State]:
    with store.read() as session:
        machines = {name: session.get(MachineRecord, ids[name]).state for name in ("running", "stopped")}
        return {"cluster": session.get(Cluster, ids["cluster"]).state, **machines}


def test_after_a_suspension_running_machines_restart_and_stopped_ones_stay_stopped(store: Store) -> None:
    with store.write() as session:
        ids = populate(session)

    suspend(store, "the site was stopped")

    assert states(store, ids) == {
        "cluster": State.UPDATING,
        "running": State.CREATING,
        "stopped": State.STOPPED,
    }


def test_only_a_restart_of_the_computer_between_two_starts_counts_as_one(store: Store, tmp_path: Path) -> None:
    with store.write() as session:
        ids = populate(session)
    before = states(store, ids)
    boot_id, note = tmp_path / "kernel", tmp_path / "note"
    boot_id.write_text("first boot")

    notice_restart(store, note, something_runs=lambda: True, boot_id=boot_id)
    notice_restart(store, note, something_runs=lambda: True, boot_id=boot_id)
    assert states(store, ids) == before

    boot_id.write_text("second boot")
    notice_restart(store, note, something_runs=lambda: True, boot_id=boot_id)
    assert states(store, ids)["running"] == State.CREATING


def test_a_site_whose_processes_all_ended_without_a_reboot_is_resumed(store: Store, tmp_path: Path) -> None:
    with store.write() as session:
        ids = populate(session)
    notice_restart(store, tmp_path / "note", something_runs=lambda: True)

    notice_restart(store, tmp_path / "note", something_runs=lambda: False)

    assert states(store, ids) == {"cluster": State.UPDATING, "running": State.CREATING, "stopped": State.STOPPED}


def test_a_machine_whose_process_died_before_the_suspension_boots_with_the_rest(store: Store) -> None:
    with store.write() as session:
        ids = populate(session)
        died = session.get(MachineRecord, ids["stopped"])
        session.save(died.model_copy(update={"intent": "stopped", "state_reason": PROCESS_ENDED}))

    suspend(store, "the site was stopped")

    with store.read() as session:
        machine = session.get(MachineRecord, ids["stopped"])
    assert (machine.state, machine.intent) == (State.CREATING, "running")
