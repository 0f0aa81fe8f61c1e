"""No cluster is gone because the cloud did not answer, has nothing to say, or does not run it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cloud_controller.cleanup import require_dead
from cloud_controller.cloud import CloudError, TellsClusters, Untagged
from cloud_controller.converge import Refused
from tests.contract.harness import Harness

PART = "instances"

UNANSWERED: list[Callable[[Harness], None]] = [
    lambda harness: harness.wire.refuse(harness.denied),
    lambda harness: harness.wire.refuse(harness.throttled, retry_after=90),
    lambda harness: harness.wire.break_off(),
]


def test_a_cluster_that_the_cloud_does_not_run_or_still_has_is_not_gone(harness: Harness) -> None:
    cloud = harness.new_cloud()

    assert isinstance(cloud, TellsClusters)
    assert cloud.has_cluster() is not False


def test_a_cluster_is_not_gone_while_the_cloud_does_not_answer(harness: Harness) -> None:
    harness.node("one")
    for arrange in UNANSWERED:
        cloud = harness.new_cloud()
        assert isinstance(cloud, TellsClusters)
        arrange(harness)
        before = harness.wire.happened
        try:
            assert cloud.has_cluster() is None
        except CloudError:
            continue
        assert harness.wire.happened == before, "it took a question without an answer for one"


def test_machines_that_cannot_be_listed_are_not_none(harness: Harness) -> None:
    for arrange in UNANSWERED:
        cloud = harness.new_cloud()
        arrange(harness)
        with pytest.raises(CloudError):
            cloud.instances.list()


def test_a_machine_that_is_not_terminated_shows_that_the_cluster_lives(harness: Harness) -> None:
    """Unless machines carry no tag: then nothing of the cloud shows it, and nothing that it is gone."""
    node = harness.node("one")
    cloud = harness.new_cloud()

    if isinstance(cloud.instances, Untagged):
        assert not require_dead(cloud)
        return
    with pytest.raises(Refused, match="still exists"):
        require_dead(cloud)
    assert node["spec"]["providerID"] in {each.provider_id for each in cloud.instances.list()}


def test_the_clusters_of_all_machines_are_told_over_all_pages(harness: Harness) -> None:
    for name in ("one", "two"):
        harness.node(name)
    others = harness.foreign_nodes()
    harness.small_pages()
    cloud = harness.new_cloud()
    assert isinstance(cloud, TellsClusters)

    found = {*cloud.cluster_ids()}

    if isinstance(cloud.instances, Untagged):
        assert not found
    else:
        assert cloud.cluster_id in found
        assert len(found) == 2, others
