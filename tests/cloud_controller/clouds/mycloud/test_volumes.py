"""mycloud's volumes as the controllers see them, on the real API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import Conflict, InvalidConfiguration
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.volumes import (
    Attachment,
    AttachmentState,
    ClaimOwner,
    Volume,
    VolumeRequest,
)
from local.mycloud.models.common import State
from local.mycloud.models.volumes import Volume as CloudVolume

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


def request(site: MyCloudSite, uid: str = "uid-1", *, zone: str = "zone-b", size: int = 5) -> VolumeRequest:
    owner = ClaimOwner(site.cluster["id"], uid, "default", "data")
    return VolumeRequest(f"pvc-{uid}", zone, size, {"type": "standard"}, owner.tags, owner.client_token)


def available(site: MyCloudSite, made: Volume) -> str:
    """What mycloud does soon after a volume was asked for."""
    with site.context.store.write() as session:
        volume = session.get(CloudVolume, made.id)
        volume.state = State.AVAILABLE
        session.save(volume)
    return made.id


def test_the_largest_volume_is_as_large_as_the_cloud_says(site: MyCloudSite) -> None:
    largest = site.cloud.volumes.largest_gib

    assert site.cloud.volumes.create(request(site, size=largest)).size_gib == largest
    with pytest.raises(InvalidConfiguration, match="size_gib"):
        site.cloud.volumes.create(request(site, "uid-2", size=largest + 1))


def test_a_claims_second_wish_for_another_volume_is_a_conflict(site: MyCloudSite) -> None:
    site.cloud.volumes.create(request(site))

    with pytest.raises(Conflict):
        site.cloud.volumes.create(request(site, zone="zone-a"))


def test_a_list_by_ids_is_one_call_where_all_are_there(site: MyCloudSite) -> None:
    ids = [site.cloud.volumes.create(request(site, f"uid-{number}")).id for number in range(20)]

    site.cloud.volumes.list(ids)

    assert (site.calls("GET /v1/volumes"), site.calls("GET /v1/volumes/{id}")) == (1, 0)


@pytest.mark.parametrize("handle", ["..", "vol-" + 5000 * "0", "vol-1?x", "disk"])
def test_a_handle_that_no_volume_can_have_keeps_no_other_from_being_read(site: MyCloudSite, handle: str) -> None:
    made = site.cloud.volumes.create(request(site))

    assert [each.id for each in site.cloud.volumes.list([handle, made.id])] == [made.id]


def test_attaching_and_detaching_is_told_by_the_machines_provider_id(site: MyCloudSite) -> None:
    machine = provider_id(site.machine("worker-0"))
    volumes = site.cloud.volumes
    made = available(site, volumes.create(request(site)))

    attaching = volumes.attach(made, machine)
    detaching = volumes.detach(made, machine)

    assert attaching.attachments == (Attachment(machine, AttachmentState.ATTACHING),)
    assert detaching is not None
    assert detaching.attachment(machine) == Attachment(machine, AttachmentState.DETACHING)


def test_volumes_only_grow(site: MyCloudSite) -> None:
    volumes = site.cloud.volumes
    made = available(site, volumes.create(request(site)))

    assert volumes.resize(made, 7).size_gib == 7
    with pytest.raises(InvalidConfiguration, match="7 to 1024"):
        volumes.resize(made, 5)
