"""What is asked once more before a volume is deleted: data can't be had back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cloud_controller import apply
from cloud_controller.controllers.volume import apply as volume_apply
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.operations import DeleteVolume, DiscardVolume
from cloud_controller.kube import PERSISTENT_VOLUMES, Object
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.volumes import ClaimOwner, Volume, VolumeState
from tests.fake_kubernetes import FakeKubernetes

OWNER = ClaimOwner("c-1", "uid-data", "default", "data")
VOLUME = Volume("vol-1", "n", "zone-a", "local", 1, VolumeState.AVAILABLE, tags=OWNER.tags)
CLAIM = {"metadata": {"name": "data", "namespace": "default", "uid": "uid-data"}, "spec": {}}


def pv(handle: str = "vol-1", policy: str = "Delete") -> Object:
    metadata = {"name": view.pv_name("uid-data"), "uid": "uid-pv", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"csi": {"volumeHandle": handle}, "persistentVolumeReclaimPolicy": policy}}


def carry_out(operation: DeleteVolume | DiscardVolume, *present: Object) -> tuple[list[str], str]:
    """What is deleted in the cloud, and the error, once these PersistentVolumes were written."""
    assert volume_apply  # its performers
    deleted: list[str] = []

    api = FakeKubernetes()
    api.put(PERSISTENT_VOLUMES, *present)
    cloud: Any = SimpleNamespace(volumes=SimpleNamespace(delete=deleted.append))
    events: Any = SimpleNamespace()
    plan = Plan.of([Action(ActionKind.DELETE, "pv/pvc", "delete", operation=operation)])
    (result,) = apply.run(plan, api, cloud, events=events, controller="volume")
    return deleted, str(result.error or "")


def test_a_volume_is_deleted_if_its_persistent_volume_has_not_changed_since_planning() -> None:
    assert carry_out(DeleteVolume(VOLUME, pv()), pv()) == (["vol-1"], "")


def test_a_persistent_volume_that_was_set_to_retain_behind_a_cache_keeps_its_volume() -> None:
    deleted, error = carry_out(DeleteVolume(VOLUME, pv()), pv(), pv(policy="Retain"))

    assert deleted == []
    assert "has changed; volume vol-1 is not deleted" in error


def test_a_persistent_volume_that_is_gone_behind_a_cache_keeps_its_volume() -> None:
    assert carry_out(DeleteVolume(VOLUME, pv()))[0] == []


def test_a_volume_that_no_persistent_volume_stands_for_is_deleted() -> None:
    assert carry_out(DiscardVolume(VOLUME, CLAIM)) == (["vol-1"], "")


def test_a_volume_whose_persistent_volume_the_cache_did_not_show_yet_stays() -> None:
    deleted, error = carry_out(DiscardVolume(VOLUME, CLAIM), pv())

    assert deleted == []
    assert "now uses volume vol-1" in error


def test_a_second_volume_of_a_claim_is_deleted_even_if_the_first_has_a_persistent_volume() -> None:
    assert carry_out(DiscardVolume(VOLUME), pv(handle="vol-2"))[0] == ["vol-1"]
