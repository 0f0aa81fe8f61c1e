"""Resumes a site after a stop or a restart of the computer.

A machine whose process died is `stopped`, as in any cloud. But when everything ended at once (a restart, a container or
a session of the user's that ended), no one stopped the machines: they and the control planes are marked to start again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from local.mycloud.filters import Filter
from local.mycloud.models.common import State
from local.mycloud.models.compute import PROCESS_ENDED, Cluster, MachineRecord
from local.mycloud.store import Store
from local.state_folder import write_private

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def suspend(store: Store, reason: str) -> None:
    """Mark everything that runs to start again, with the reason why it does not run now.

    Machines whose process died before also boot again: no one stopped them.
    """
    with store.write() as session:
        for cluster in session.query(Cluster, Filter(states=[State.AVAILABLE.value])):
            cluster.state, cluster.state_reason = State.UPDATING, reason
            session.save(cluster)
        for machine in session.query(MachineRecord, Filter(states=[State.RUNNING.value], simulated=False)):
            machine.state, machine.state_reason = State.CREATING, reason
            session.save(machine)
        for machine in session.query(MachineRecord, Filter(states=[State.STOPPED.value])):
            if machine.state_reason == PROCESS_ENDED:
                machine.intent, machine.state, machine.state_reason = "running", State.CREATING, reason
                session.save(machine)


def notice_restart(store: Store, note: Path, *, something_runs: Callable[[], bool], boot_id: Path = BOOT_ID) -> None:
    """Called when the API starts: suspend everything if all ended since the last call; `note` records the boot.

    `something_runs`: whether any other process of the site still does.
    """
    present = boot_id.read_text()
    if note.exists() and note.read_text() != present:
        suspend(store, "the computer was restarted")
    elif note.exists() and not something_runs():
        suspend(store, "every process of the site had ended")
    write_private(note, present)
