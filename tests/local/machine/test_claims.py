"""The volume of a claim, and Kubernetes' names for it."""

from __future__ import annotations

from typing import Any

import pytest

from local.machine.claims import ClaimedVolume, bound_volume_name, claimed_volume, is_attached, is_done
from local.machine.sources import MissingSourceError, NotYetError

DRIVER = "mycloud.io"
CLAIM: dict[str, Any] = {
    "metadata": {"name": "data", "uid": "claim-uid"},
    "spec": {"volumeName": "pv-1"},
    "status": {"phase": "Bound"},
}
VOLUME: dict[str, Any] = {
    "metadata": {"name": "pv-1"},
    "spec": {
        "claimRef": {"uid": "claim-uid"},
        "csi": {"driver": "mycloud.io", "volumeHandle": "vol-0123456789ab"},
    },
}


def volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": VOLUME["metadata"], "spec": {**VOLUME["spec"], **spec}}


def test_a_bound_claim_means_the_volume_of_its_persistent_volume() -> None:
    assert bound_volume_name(CLAIM) == "pv-1"
    assert claimed_volume(CLAIM, VOLUME, DRIVER) == ClaimedVolume(DRIVER, "vol-0123456789ab", read_only=False)


def test_a_persistent_volume_may_be_read_only() -> None:
    assert claimed_volume(CLAIM, volume(csi={**VOLUME["spec"]["csi"], "readOnly": True}), DRIVER).read_only


@pytest.mark.parametrize("claim", [{**CLAIM, "spec": {}}, {**CLAIM, "status": {"phase": "Pending"}}])
def test_an_unbound_claim_is_not_ready_yet(claim: dict[str, Any]) -> None:
    with pytest.raises(NotYetError, match="data is not bound"):
        bound_volume_name(claim)


@pytest.mark.parametrize(
    ("persistent_volume", "why"),
    [
        (volume(csi=None, nfs={"server": "s"}), "only volumes of CSI driver mycloud.io"),
        (
            volume(csi={"driver": "other.io", "volumeHandle": "vol-0123456789ab"}),
            "only volumes of CSI driver mycloud.io",
        ),
        (volume(csi={"driver": "mycloud.io", "volumeHandle": "../../secret"}), "is not a volume id"),
        (volume(volumeMode="Block"), "Block"),
        (volume(claimRef={"uid": "another"}), "not bound to claim data"),
    ],
)
def test_an_unsupported_persistent_volume_is_refused(persistent_volume: dict[str, Any], why: str) -> None:
    with pytest.raises(MissingSourceError, match=why) as refusal:
        claimed_volume(CLAIM, persistent_volume, DRIVER)
    assert not isinstance(refusal.value, NotYetError)


def test_volume_names_are_those_of_the_attach_detach_controller() -> None:
    claimed = ClaimedVolume(DRIVER, "vol-0123456789ab", read_only=False)

    assert claimed.unique_name == "kubernetes.io/csi/mycloud.io^vol-0123456789ab"
    assert claimed.attachment_name("node-1") == "csi-517789b90c8f2921ed7dd38cd603c071c0df1061b88695f67e5562b83831b3b9"


def test_a_machine_of_a_cloud_without_volumes_has_none() -> None:
    with pytest.raises(MissingSourceError, match="can have no volumes"):
        claimed_volume(CLAIM, volume(csi=None), None)


def test_a_volume_is_attached_once_the_node_names_it_and_its_attachment_is_done() -> None:
    claimed = ClaimedVolume(DRIVER, "vol-0123456789ab", read_only=False)

    assert not is_attached({"status": {}}, claimed)
    assert is_attached({"status": {"volumesAttached": [{"name": claimed.unique_name}]}}, claimed)
    assert is_done({"metadata": {}, "status": {"attached": True}})
    assert not is_done({"metadata": {}, "status": {"attached": False}})
    assert not is_done({"metadata": {"deletionTimestamp": "now"}, "status": {"attached": True}})
    assert not is_done(None)
