"""The reconciler does not act on outdated observations: others work at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from local.addresses import AddressBlock
from local.aws.differences import ClusterFacts
from local.aws.lifecycle import Lifecycle
from tests.local.aws.test_machine_steps import machine
from tests.waiting import eventually

SECONDS = 60
"""For what must happen."""


class Site:
    """A lifecycle's view of moto and of processes; `done` records its actions."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.clusters: list[Any] = []
        self.folders: list[str] = []
        self.machines: list[Any] = []
        self.booted: dict[str, bool] = {}
        self.asked_for_crashes = 0
        self.passes = 0
        self.may_remove = threading.Event()

    @property
    def simulator(self) -> Any:
        return SimpleNamespace(
            clusters=lambda: self.clusters,
            machines=lambda: self.machines,
            changing=nullcontext,
            replace_outdated=lambda _: None,
            stop_crashed=lambda gone: self.done.append(f"{gone} is stopped"),
        )

    @property
    def machinery(self) -> Any:
        return SimpleNamespace(
            cluster_is_running=lambda _: True,
            clusters_there=lambda: list(self.folders),
            start_cluster=self._start_cluster,
            remove_cluster=self._remove_cluster,
            booted=self._booted,
            has_crashed=self._has_crashed,
            machine_folders=lambda: list(self.booted),
        )

    def _start_cluster(self, cluster: Any) -> ClusterFacts:
        self.done.append(f"{cluster.uid} is started")
        return ClusterFacts("1.36", "https://127.16.1.1:6443", "pem")

    def _remove_cluster(self, uid: str) -> None:
        assert self.may_remove.wait(SECONDS)
        self.folders.remove(uid)
        self.done.append(f"{uid} is removed")

    def _booted(self) -> dict[str, bool]:
        self.passes += 1
        return self.booted

    def _has_crashed(self, _: str) -> bool:
        self.asked_for_crashes += 1
        return False


@contextmanager
def working(site: Site) -> Iterator[Lifecycle]:
    lifecycle = Lifecycle(site.simulator, site.machinery, AddressBlock(16))
    lifecycle.start()
    try:
        yield lifecycle
    finally:
        site.may_remove.set()
        lifecycle.stop()


def cluster(uid: str) -> Any:
    """A new cluster."""
    made = SimpleNamespace(
        uid=uid,
        name="c1",
        index=-1,
        status="CREATING",
        kubernetes_network_config={},
        service_range_asked=False,
        pod_range=None,
    )
    made.become_active = lambda _: setattr(made, "status", "ACTIVE")
    made.fail = lambda why: setattr(made, "status", f"FAILED: {why}")
    return made


def test_a_cluster_starts_after_the_deleted_one_has_released_its_addresses() -> None:
    site = Site()
    new = cluster("new")
    site.clusters, site.folders = [new], ["old"]

    with working(site) as lifecycle:
        eventually(lambda: site.passes, "a first look", SECONDS)
        lifecycle.ring()
        eventually(lambda: site.passes > 1, "a second look", SECONDS)
        site.may_remove.set()
        eventually(lambda: new.status != "CREATING", "the new one is started", SECONDS)

    assert new.status == "ACTIVE"
    assert site.done == ["old is removed", "new is started"]


def test_a_machine_started_since_it_was_seen_dead_is_not_stopped() -> None:
    site = Site()
    site.machines, site.booted = [machine("running")], {"i-1": False}  # as seen before it was halted, and started

    with working(site):
        eventually(lambda: site.asked_for_crashes > 1, "the first step, that asked, is over", SECONDS)

    assert site.done == []
