"""Nothing without this cluster's mark is read as its own, changed or deleted."""

from __future__ import annotations

import re

from cloud_controller.cloud import TellsClusters
from cloud_controller.load_balancers.operations import DeleteLoadBalancer
from tests.contract.harness import Harness, differences, web
from tests.contract.process import Process

PART = "load_balancers"


def test_foreign_load_balancers_with_similar_names_and_tags_are_not_read_as_the_clusters_own(harness: Harness) -> None:
    node = harness.node("one")
    process = Process(harness)
    ours = process.served(web(harness), [node])
    harness.put_foreign()

    new = Process(harness)

    assert new.own() == [ours.id]
    assert new.only().id == ours.id


def test_foreign_resources_are_the_same_after_a_load_balancers_whole_life(harness: Harness) -> None:
    nodes = [harness.node("one"), harness.node("two")]
    foreign = harness.put_foreign()
    before = harness.snapshot()
    process = Process(harness)

    def untouched() -> bool:
        now = harness.snapshot()
        return {key: now.get(key) for key in foreign} == {key: before[key] for key in foreign}

    for service in (web(harness, 8080, 8443), web(harness, 8080, 9443, annotations=harness.changed_annotations)):
        process.bring(process.desired(service, nodes))
        assert untouched()
    process.bring(None)

    assert not differences(harness.snapshot(), before)


def test_the_clusters_of_load_balancers_are_told_whoever_has_made_them(harness: Harness) -> None:
    cloud = harness.new_cloud()
    harness.put_foreign()

    found = cloud.cluster_ids() if isinstance(cloud, TellsClusters) else {cloud.cluster_id, f"{cloud.cluster_id}0"}

    assert {cloud.cluster_id, f"{cloud.cluster_id}0"} <= {*found}


def test_every_part_of_a_load_balancer_is_created_with_the_owners_mark(harness: Harness) -> None:
    node = harness.node("one")
    before = harness.snapshot()
    process = Process(harness)
    wanted = process.desired(web(harness), [node])
    # A tag, or words: the ID alone may be in a part's name.
    mark = re.compile(rf"cluster\W+{process.cloud.cluster_id}\b")

    def unmarked() -> set[str]:
        made = {key: str(value) for key, value in harness.snapshot().items() if key not in before}
        assert made
        return {key for key, value in made.items() if not mark.search(value)}

    process.create(wanted)
    assert not unmarked(), "before anything else is done"
    process.bring(wanted)
    assert not unmarked()


def test_the_load_balancer_of_another_service_stays_when_one_is_deleted(harness: Harness) -> None:
    node = harness.node("one")
    process = Process(harness)
    process.served(web(harness), [node])
    kept = harness.snapshot()
    shop = process.served(web(harness, name="shop"), [node])

    new = Process(harness)
    assert shop.id in {lb.id for lb in new.load_balancers.read()}
    new.bring(None, "uid-shop")

    assert not differences(harness.snapshot(), kept)


def test_the_deletion_of_a_load_balancer_that_is_gone_succeeds(harness: Harness) -> None:
    node = harness.node("one")
    before = harness.snapshot()
    process = Process(harness)
    lb = process.served(web(harness), [node])
    process.bring(None)

    (result,) = process.change(lb, DeleteLoadBalancer(lb.id))

    assert result.error is None
    assert not differences(harness.snapshot(), before)
