"""How a machine and the attach-detach controller agree on a volume before it is mounted and after. A fake API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cloud_controller.kube import UnreachableError
from local.machine.api import NodeApi
from local.machine.devices import Devices
from local.machine.sources import NotYetError

VOLUME_ID = "vol-0123456789ab"
UNIQUE_NAME = f"kubernetes.io/csi/mycloud.io^{VOLUME_ID}"
CLAIM = {"claimName": "data"}


class FakeCluster:
    """A node's view of its volume, and its reports; `journal` is the order of both."""

    def __init__(self) -> None:
        self.bound = True
        self.attached = True
        self.volumes_attached = [{"name": UNIQUE_NAME}]
        self.unreachable = False
        self.in_use: list[str] = []
        self.journal: list[str] = []

    async def get_claim(self, _namespace: str, name: str) -> dict[str, Any]:
        spec = {"volumeName": "pv-1"} if self.bound else {}
        return {"metadata": {"name": name, "uid": "claim-uid"}, "spec": spec, "status": {"phase": "Bound"}}

    async def get_volume(self, name: str) -> dict[str, Any]:
        csi = {"driver": "mycloud.io", "volumeHandle": VOLUME_ID}
        return {"metadata": {"name": name}, "spec": {"claimRef": {"uid": "claim-uid"}, "csi": csi}}

    async def get_node(self, _name: str) -> dict[str, Any]:
        self.journal.append("look")
        return {"status": {"volumesAttached": self.volumes_attached}}

    async def get_volume_attachment(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "status": {"attached": self.attached}}

    async def report(self, names: Sequence[str]) -> None:
        if self.unreachable:
            raise UnreachableError("connection refused")
        self.journal.append("report")
        self.in_use = list(names)


class Machine:
    """The devices of a machine that sees the volume."""

    def __init__(self, directory: Path) -> None:
        self.cluster = FakeCluster()
        self.device = directory / "devices" / VOLUME_ID
        self.device.mkdir(parents=True)
        self.devices = Devices(directory, "node-1", "mycloud.io", cast(NodeApi, self.cluster), self.cluster.report)

    def open(self, pod: str = "a", **claim: Any) -> tuple[Path, bool]:
        metadata = {"name": pod, "namespace": "n", "uid": pod}
        opened = asyncio.run(self.devices.open({"metadata": metadata}, {**CLAIM, **claim}))
        return opened.path, opened.read_only

    def close(self, pod: str = "a") -> None:
        asyncio.run(self.devices.close(pod))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_volume_is_reported_in_use_before_the_machine_checks_its_attachment(machine: Machine) -> None:
    assert machine.open() == (machine.device, False)

    assert machine.cluster.journal == ["report", "look"]
    assert machine.cluster.in_use == [UNIQUE_NAME]


def test_a_claim_may_use_its_volume_read_only(machine: Machine) -> None:
    assert machine.open(readOnly=True) == (machine.device, True)


def test_a_volume_without_a_confirmed_attachment_is_not_ready_yet(machine: Machine) -> None:
    machine.cluster.volumes_attached = []
    with pytest.raises(NotYetError, match="not attached"):
        machine.open()

    machine.cluster.volumes_attached = [{"name": UNIQUE_NAME}]
    machine.cluster.attached = False
    with pytest.raises(NotYetError, match="not attached"):
        machine.open()

    machine.cluster.attached = True
    machine.device.rmdir()
    with pytest.raises(NotYetError, match="not attached"):
        machine.open()

    machine.device.mkdir()
    assert machine.open() == (machine.device, False)
    assert machine.cluster.journal.count("report") == 1


def test_an_unbound_claim_uses_no_volume(machine: Machine) -> None:
    machine.cluster.bound = False

    with pytest.raises(NotYetError, match="not bound"):
        machine.open()

    assert machine.cluster.journal == []


def test_a_volume_is_in_use_until_its_last_pod_has_ended(machine: Machine) -> None:
    machine.open("a")
    machine.open("b")

    machine.close("a")
    assert machine.cluster.in_use == [UNIQUE_NAME]

    machine.close("b")
    assert machine.cluster.in_use == []


def test_nothing_is_mounted_after_a_failed_report(machine: Machine) -> None:
    machine.cluster.unreachable = True

    with pytest.raises(UnreachableError):
        machine.open()

    assert machine.cluster.journal == []


def test_after_a_failed_release_the_next_use_is_reported_again(machine: Machine) -> None:
    """The node's status may still report the release later."""
    machine.open("a")
    machine.cluster.unreachable = True
    machine.close("a")
    machine.cluster.unreachable = False
    machine.cluster.in_use = []

    machine.open("b")

    assert machine.cluster.in_use == [UNIQUE_NAME]
