"""Before a cluster goes: the volumes of claims that are gone are waited for, no other is left behind unsaid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.cloud import Cloud, Unavailable
from cloud_controller.kube import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, Kube
from cloud_controller.volumes import PV_TAG, Attachment, AttachmentState, ClaimOwner, Volume, VolumeState
from components.cluster_plan import NotConverged, Target, await_volumes
from tests.fake_kubernetes import FakeKubernetes

BY_DAEMON = Target("10.20.0.0/16", (), {"volume": "daemon"})
OWNER = ClaimOwner("c-1", "uid-data", "default", "data")
VOLUME = Volume("vol-1", "n", "zone-a", "local", 1, VolumeState.AVAILABLE, tags={**OWNER.tags, PV_TAG: "pv"})
CLAIM = {"metadata": {"name": "data", "namespace": "default", "uid": "uid-data"}, "spec": {}}


def pv(policy: str = "Delete") -> dict[str, Any]:
    spec = {"csi": {"volumeHandle": "vol-1"}, "persistentVolumeReclaimPolicy": policy}
    return {"metadata": {"name": "pv"}, "spec": spec}


def cloud(*lists: Iterable[Volume], access: Callable[[], str] = lambda: "kubeconfig") -> Cloud:
    """A cloud that answers these lists of volumes one after another, and the last for ever."""
    answers = [[*each] for each in lists]
    volumes = SimpleNamespace(list=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    made: Any = SimpleNamespace(volumes=volumes, cluster_id="c-1", cluster_access=access)
    typed: Cloud = made
    return typed


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the cluster have these PersistentVolumes and claims: `cluster(pvs, claims)`."""

    def have(pvs: list[Any], claims: list[Any]) -> None:
        api = FakeKubernetes()
        api.put(PERSISTENT_VOLUMES, *pvs)
        api.put(PERSISTENT_VOLUME_CLAIMS, *claims)
        monkeypatch.setattr(Kube, "from_kubeconfig", lambda _: api)

    return have


def unreachable() -> str:
    raise Unavailable("the cluster is broken")


def test_a_cluster_without_volumes_is_not_contacted() -> None:
    await_volumes(cloud([], access=unreachable), BY_DAEMON, 0)


def test_a_destroy_waits_for_no_volumes_without_a_volume_controller() -> None:
    await_volumes(cloud([VOLUME], access=unreachable), Target("10.20.0.0/16", (), {}), 0)


def test_volumes_of_other_clusters_do_not_block_a_destroy() -> None:
    await_volumes(cloud([Volume("vol-2", "n", "z", "r", 1, VolumeState.AVAILABLE)], access=unreachable), BY_DAEMON, 0)


def test_a_destroy_waits_until_the_daemon_has_deleted_the_volume_of_a_deleted_claim(
    cluster: Callable[..., None],
) -> None:
    cluster([pv()], [])

    await_volumes(cloud([VOLUME], []), BY_DAEMON, 60)


def test_the_wait_for_volumes_ends_at_the_deadline(cluster: Callable[..., None]) -> None:
    cluster([pv()], [])

    with pytest.raises(NotConverged, match="volume vol-1 of default/data"):
        await_volumes(cloud([VOLUME]), BY_DAEMON, -1)


def test_a_claim_that_holds_a_volume_stops_a_destroy(cluster: Callable[..., None]) -> None:
    cluster([pv()], [CLAIM])

    with pytest.raises(NotConverged, match=r"default/data; delete the claims and the pods that use them, or .* Retain"):
        await_volumes(cloud([VOLUME]), BY_DAEMON, 60)


def test_a_volume_attached_to_a_lost_machine_is_named_as_attached(cluster: Callable[..., None]) -> None:
    cluster([pv()], [])
    attached = replace(VOLUME, attachments=(Attachment("cloud://i-1", AttachmentState.ATTACHED),))

    with pytest.raises(NotConverged, match=r"volume vol-1 of default/data \(still attached\)"):
        await_volumes(cloud([attached]), BY_DAEMON, -1)


def test_a_volume_of_a_deleted_claim_in_use_is_named_as_in_use(cluster: Callable[..., None]) -> None:
    used = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    deleted = {**CLAIM["metadata"], **used}
    cluster([pv()], [{**CLAIM, "metadata": deleted}])

    with pytest.raises(NotConverged, match=r"volume vol-1 of default/data \(pods still use it\)"):
        await_volumes(cloud([VOLUME]), BY_DAEMON, -1)


@pytest.mark.parametrize("left", [[pv("Retain")], []], ids=["retained", "its PersistentVolume is gone"])
def test_a_volume_to_be_kept_does_not_stop_a_destroy(cluster: Callable[..., None], left: list[Any]) -> None:
    cluster(left, [CLAIM])

    await_volumes(cloud([VOLUME]), BY_DAEMON, 60)


def test_an_unreachable_cluster_stops_a_destroy_with_advice() -> None:
    with pytest.raises(NotConverged, match=r"broken.*vol-1.*remove the tag kubernetes.io/cluster from"):
        await_volumes(cloud([VOLUME], access=unreachable), BY_DAEMON, 60)


def test_volumes_that_claims_of_an_existing_cluster_hold_are_left(cluster: Callable[..., None]) -> None:
    cluster([pv()], [CLAIM])

    await_volumes(cloud([VOLUME], access=unreachable), replace(BY_DAEMON, existing=True), 60, kubeconfig="theirs")


def test_the_daemon_finishes_deleting_volumes_in_an_existing_cluster_too(cluster: Callable[..., None]) -> None:
    cluster([pv()], [])

    with pytest.raises(NotConverged, match="the daemon did not delete volume vol-1"):
        await_volumes(cloud([VOLUME], access=unreachable), replace(BY_DAEMON, existing=True), -1, kubeconfig="theirs")
