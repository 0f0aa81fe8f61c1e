"""What mycloud does after it has accepted a call: it opens load balancers and makes, attaches and removes volumes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from local.mycloud.models.common import State
from local.mycloud.models.volumes import Attachment, Volume

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


def settle_volumes(site: MyCloudSite) -> None:
    """Finish what is under way of every volume, without disks."""
    with site.context.store.write() as session:
        for volume in session.query(Volume):
            if volume.state == State.DELETING:
                session.remove(volume.id)
                continue
            before = volume.model_copy(deep=True)
            if volume.state == State.CREATING:
                volume.state = State.AVAILABLE
            if volume.attachment is not None:
                machine, leaves = volume.attachment.machine_id, volume.attachment.state == "detaching"
                volume.attachment = None if leaves else Attachment(machine_id=machine, state="attached")
            if volume != before:
                session.save(volume)


@contextmanager
def at_work(site: MyCloudSite) -> Iterator[None]:
    """All of it goes on meanwhile."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            site.settle()
            settle_volumes(site)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
