"""Volumes are created once, found though lists lag, and never gone by a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from cloud_controller.cloud import (
    Cloud,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.fence import WriteRefused
from cloud_controller.volumes import ClaimOwner, VolumeRequest, Volumes
from tests.contract.harness import Harness, VolumeHarness, differences

PART = "volumes"


def volumes_of(cloud: Cloud) -> Volumes:
    """The cloud's volumes."""
    assert cloud.volumes is not None
    return cloud.volumes


def request(harness: Harness, uid: str = "uid-1") -> VolumeRequest:
    """A small volume for a claim, in the zone of the nodes."""
    cloud = harness.new_cloud()
    owner = ClaimOwner(cloud.cluster_id, uid, "default", "data")
    parameters = {key: next(iter(values)) for key, values in volumes_of(cloud).parameters.items()}
    zone = cast("VolumeHarness", harness).zone
    return VolumeRequest(f"pvc-{uid}", zone, 1, parameters, owner.tags, owner.client_token)


def test_a_volume_is_created_once_a_token(harness: Harness) -> None:
    wanted = request(harness)

    first, second = volumes_of(harness.new_cloud()).create(wanted), volumes_of(harness.new_cloud()).create(wanted)

    assert first == second
    assert (first.zone, first.size_gib) == (wanted.zone, wanted.size_gib)
    assert first.belongs_to(harness.new_cloud().cluster_id)
    assert [each.id for each in volumes_of(harness.new_cloud()).list()] == [first.id]


def test_a_volume_whose_answer_is_lost_is_created_once(harness: Harness) -> None:
    wanted, volumes = request(harness), volumes_of(harness.new_cloud())
    harness.wire.lose_answer(of_write=1)

    made = volumes.create(wanted)

    assert harness.wire.happened
    assert [each.id for each in volumes_of(harness.new_cloud()).list()] == [made.id]


def test_only_the_clusters_volumes_are_listed_over_all_pages(harness: Harness) -> None:
    volumes = volumes_of(harness.new_cloud())
    made = {volumes.create(request(harness, f"uid-{number}")).id for number in range(5)}
    foreign = cast("VolumeHarness", harness).put_foreign_volumes()
    before = harness.snapshot()
    harness.small_pages()

    new = volumes_of(harness.new_cloud())

    assert {each.id for each in new.list()} == made
    assert {each.id for each in new.list(made)} == made
    assert {each.id for each in new.list(foreign)} == {*foreign}, "whoever created them"
    assert not differences(harness.snapshot(), before)


def test_a_volume_that_lists_do_not_show_yet_is_not_gone(harness: Harness) -> None:
    wanted = request(harness)
    harness.lists_lag()
    made = volumes_of(harness.new_cloud()).create(wanted)

    assert [each.id for each in volumes_of(harness.new_cloud()).list([made.id])] == [made.id]


def test_no_volume_is_gone_while_the_cloud_throttles_or_does_not_answer(harness: Harness) -> None:
    made = volumes_of(harness.new_cloud()).create(request(harness))
    volumes = volumes_of(harness.new_cloud())

    for ids in (None, [made.id]):
        harness.wire.refuse(harness.throttled, retry_after=90)
        with pytest.raises(Throttled):
            volumes.list(ids)
        harness.wire.break_off()
        with pytest.raises(Unavailable):
            volumes.list(ids)


def test_a_volume_is_attached_to_one_machine_at_a_time_and_each_write_may_be_repeated(harness: Harness) -> None:
    one, two = (harness.node(name)["spec"]["providerID"] for name in ("one", "two"))
    made = volumes_of(harness.new_cloud()).create(request(harness))
    harness.settle()

    for _ in range(2):
        attached = volumes_of(harness.new_cloud()).attach(made.id, one)
        assert attached.attachment(one) is not None
    with pytest.raises(Conflict, match=one.rpartition("/")[2]):
        volumes_of(harness.new_cloud()).attach(made.id, two)
    for _ in range(2):
        assert volumes_of(harness.new_cloud()).detach(made.id, one) is not None


def test_tags_and_size_are_set_and_each_write_may_be_repeated(harness: Harness) -> None:
    made = volumes_of(harness.new_cloud()).create(request(harness))
    harness.settle()
    tags = {**made.tags, "team": "web"}

    for _ in range(2):
        assert volumes_of(harness.new_cloud()).tag(made.id, tags).tags == tags
        assert volumes_of(harness.new_cloud()).resize(made.id, 2).size_gib == 2


def test_a_volume_that_is_gone_is_deleted_and_detached_but_not_attached(harness: Harness) -> None:
    machine = harness.node("one")["spec"]["providerID"]
    made = volumes_of(harness.new_cloud()).create(request(harness))
    harness.settle()

    for _ in range(2):
        volumes_of(harness.new_cloud()).delete(made.id)
        harness.settle()
    volumes = volumes_of(harness.new_cloud())
    assert list(volumes.list([made.id])) == []
    assert volumes.detach(made.id, machine) is None
    with pytest.raises(NotFound):
        volumes.attach(made.id, machine)


def test_another_clouds_machine_is_an_error(harness: Harness) -> None:
    made = volumes_of(harness.new_cloud()).create(request(harness))
    harness.settle()

    with pytest.raises(InvalidConfiguration, match="elsewhere://zone/i-1"):
        volumes_of(harness.new_cloud()).attach(made.id, "elsewhere://zone/i-1")


def test_a_volume_beyond_the_quota_is_refused_as_such(harness: Harness) -> None:
    wanted = request(harness)
    harness.full()

    with pytest.raises(QuotaExceeded):
        volumes_of(harness.new_cloud()).create(wanted)


def test_no_change_of_a_volume_reaches_the_cloud_when_the_fence_refuses_it(harness: Harness) -> None:
    def refuse() -> None:
        raise WriteRefused("not now")

    machine = harness.node("one")["spec"]["providerID"]
    made = volumes_of(harness.new_cloud()).create(request(harness))
    other = request(harness, "uid-2")
    harness.settle()
    before = harness.snapshot()
    cloud = harness.new_cloud()
    cloud.fence_writes(refuse)
    volumes = volumes_of(cloud)

    writes: Sequence[Callable[[], object]] = (
        lambda: volumes.create(other),
        lambda: volumes.attach(made.id, machine),
        lambda: volumes.detach(made.id, machine),
        lambda: volumes.resize(made.id, 2),
        lambda: volumes.tag(made.id, {}),
        lambda: volumes.delete(made.id),
    )
    for write in writes:
        with pytest.raises(WriteRefused):
            write()

    assert not differences(harness.snapshot(), before)
