"""mycloud's volumes as the controllers see them, on the real API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import Conflict, InvalidConfiguration, NotFound, QuotaExceeded
from cloud_controller.clouds.mycloud.instances import provider_id
from cloud_controller.volumes import (
    PV_TAG,
    Attachment,
    AttachmentState,
    ClaimOwner,
    Volume,
    VolumeRequest,
    VolumeState,
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


def test_a_volume_is_made_once_a_token(site: MyCloudSite) -> None:
    first, second = site.cloud.volumes.create(request(site)), site.cloud.volumes.create(request(site))

    assert first == second
    assert (first.zone, first.region, first.size_gib, first.state) == ("zone-b", "local", 5, VolumeState.CREATING)
    assert first.belongs_to(site.cluster["id"])


def test_a_volume_whose_answer_was_lost_is_found_by_the_same_call(site: MyCloudSite) -> None:
    site.fault("POST /v1/volumes", "drop_answer")

    made = site.cloud.volumes.create(request(site))

    assert [made.id] == [each["id"] for each in site.client.list("volumes")]


def test_the_largest_volume_is_as_large_as_the_cloud_says(site: MyCloudSite) -> None:
    largest = site.cloud.volumes.largest_gib

    assert site.cloud.volumes.create(request(site, size=largest)).size_gib == largest
    with pytest.raises(InvalidConfiguration, match="size_gib"):
        site.cloud.volumes.create(request(site, "uid-2", size=largest + 1))


def test_a_claims_second_wish_for_another_volume_is_a_conflict(site: MyCloudSite) -> None:
    site.cloud.volumes.create(request(site))

    with pytest.raises(Conflict):
        site.cloud.volumes.create(request(site, zone="zone-a"))


def test_only_this_clusters_volumes_are_listed_and_any_other_by_its_id(site: MyCloudSite) -> None:
    own = site.cloud.volumes.create(request(site))
    other = site.client.create("volumes", {"name": "x", "zone": "zone-a", "size_gib": 1})

    assert [each.id for each in site.cloud.volumes.list()] == [own.id]
    assert [each.id for each in site.cloud.volumes.list([other["id"]])] == [other["id"]]


def test_a_volume_that_lists_do_not_show_yet_is_not_gone(site: MyCloudSite) -> None:
    site.set_lag(60)
    made = site.cloud.volumes.create(request(site))
    volumes = site.cloud.volumes

    assert volumes.list() == []
    assert [each.id for each in volumes.list([made.id, "vol-000000000000"])] == [made.id]


def test_a_list_by_ids_is_one_call_where_all_are_there(site: MyCloudSite) -> None:
    ids = [site.cloud.volumes.create(request(site, f"uid-{number}")).id for number in range(20)]

    site.cloud.volumes.list(ids)

    assert (site.calls("GET /v1/volumes"), site.calls("GET /v1/volumes/{id}")) == (1, 0)


def test_attaching_and_detaching_is_told_by_the_machines_provider_id(site: MyCloudSite) -> None:
    machine = provider_id(site.machine("worker-0"))
    volumes = site.cloud.volumes
    made = available(site, volumes.create(request(site)))

    attaching = volumes.attach(made, machine)
    detaching = volumes.detach(made, machine)

    assert attaching.attachments == (Attachment(machine, AttachmentState.ATTACHING),)
    assert detaching is not None
    assert detaching.attachment(machine) == Attachment(machine, AttachmentState.DETACHING)


def test_a_volume_that_is_attached_elsewhere_says_where(site: MyCloudSite) -> None:
    first, second = site.machine("worker-0"), site.machine("worker-1")
    volumes = site.cloud.volumes
    made = available(site, volumes.create(request(site)))
    volumes.attach(made, provider_id(first))

    with pytest.raises(Conflict, match=first["id"]):
        volumes.attach(made, provider_id(second))


def test_what_is_gone_is_detached_and_deleted_already_but_not_attached(site: MyCloudSite) -> None:
    machine, gone = provider_id(site.machine("worker-0")), "vol-000000000000"
    volumes = site.cloud.volumes

    assert volumes.detach(gone, machine) is None
    volumes.delete(gone)
    with pytest.raises(NotFound):
        volumes.attach(gone, machine)


def test_a_node_of_another_cloud_is_refused_by_name(site: MyCloudSite) -> None:
    made = available(site, site.cloud.volumes.create(request(site)))

    with pytest.raises(InvalidConfiguration, match="aws:///x/i-1"):
        site.cloud.volumes.attach(made, "aws:///x/i-1")


def test_volumes_only_grow(site: MyCloudSite) -> None:
    volumes = site.cloud.volumes
    made = available(site, volumes.create(request(site)))

    assert volumes.resize(made, 7).size_gib == 7
    with pytest.raises(InvalidConfiguration, match="7 to 1024"):
        volumes.resize(made, 5)


def test_tags_are_set_all_at_once(site: MyCloudSite) -> None:
    made = site.cloud.volumes.create(request(site))

    tagged = site.cloud.volumes.tag(made.id, {**made.tags, PV_TAG: "pvc-uid-1"})

    assert tagged.tags == {**made.tags, PV_TAG: "pvc-uid-1"}


def test_a_full_account_says_which_limit(site: MyCloudSite) -> None:
    site.set_quotas(volumes=1)
    site.cloud.volumes.create(request(site))

    with pytest.raises(QuotaExceeded, match="volumes"):
        site.cloud.volumes.create(request(site, "uid-2"))
