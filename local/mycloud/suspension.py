"""What makes a stopped site, or one whose computer was restarted, go on where it was.

A machine whose process died is `stopped`, as in any cloud. But when everything ended at once, nobody wanted the
machines stopped: they are noted to start again, and the control planes too.
"""

from __future__ import annotations

from pathlib import Path

from local.mycloud.models import Cluster, MachineRecord, State
from local.mycloud.state_folder import write_private
from local.mycloud.store import Filter, Store

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def suspend(store: Store, reason: str) -> None:
    """Note for all that runs that it shall start again, and why it does not run now."""
    with store.write() as session:
        for cluster in session.query(Cluster, Filter(states=[State.AVAILABLE.value])):
            cluster.state, cluster.state_reason = State.UPDATING, reason
            session.save(cluster)
        for machine in session.query(MachineRecord, Filter(states=[State.RUNNING.value])):
            machine.state, machine.state_reason = State.CREATING, reason
            session.save(machine)


def notice_restart(store: Store, note: Path, boot_id: Path = BOOT_ID) -> None:
    """Suspend everything if the computer was restarted since the last call; `note` remembers its boot."""
    present = boot_id.read_text()
    if note.exists() and note.read_text() != present:
        suspend(store, "the computer was restarted")
    write_private(note, present)
