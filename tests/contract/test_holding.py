"""What nobody is known to have deleted is held: all of it stays until somebody confirms, and then all of it goes.

Nor is anything believed to be gone while the account may be another cluster's.
"""

from __future__ import annotations

import pytest

from cloud_controller.safeguard import HELD
from tests.cloud_controller.cluster import WEB, Cluster
from tests.contract.controller import serving, started
from tests.contract.harness import Harness, Snapshot, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died

PART = "load_balancers"


def with_lost_service(harness: Harness) -> tuple[Cluster, Snapshot]:
    """A cluster whose Service has got a load balancer and then vanished; and what was in the account before."""
    node = harness.node("one")
    before = harness.snapshot()
    cluster, _ = serving(harness, node)
    cluster.objects["services"].clear()
    return cluster, before


def with_lost_load_balancer(harness: Harness) -> Cluster:
    """A cluster whose Service has got a load balancer, of which the account shows nothing any more."""
    cluster, _ = serving(harness, harness.node("one"))
    Process(harness).bring(None)
    harness.wire.writes.clear()
    return cluster


def move(cluster: Cluster, harness: Harness) -> None:
    """The cluster's only node is one of no machine of the cluster in the account."""
    (node,) = cluster.objects["nodes"].values()
    node["spec"]["providerID"] = harness.foreign_nodes()[0]["spec"]["providerID"]


def test_the_load_balancer_of_a_service_that_vanished_stays_whole_until_its_deletion_is_confirmed(
    harness: Harness,
) -> None:
    cluster, before = with_lost_service(harness)
    whole = harness.snapshot()
    harness.wire.writes.clear()

    running = started(harness, cluster)
    assert harness.wire.writes == []
    assert not differences(harness.snapshot(), whole)

    running.confirm_all()
    running.settle()
    assert not differences(harness.snapshot(), before)


def test_a_confirmed_deletion_that_breaks_off_is_finished_without_another_confirmation(harness: Harness) -> None:
    cluster, before = with_lost_service(harness)
    running = started(harness, cluster)
    running.confirm_all()
    harness.wire.die(after_write=1)
    with pytest.raises(Died):
        running.settle()
    harness.wire.peace()

    started(harness, cluster)

    assert not differences(harness.snapshot(), before)


def test_without_a_machine_of_the_cluster_nothing_is_made_and_no_finalizer_released_until_it_is_confirmed(
    harness: Harness,
) -> None:
    cluster = with_lost_load_balancer(harness)
    move(cluster, harness)
    cluster.put(web(harness, 8443, name="new"))
    cluster.events.clear()

    running = started(harness, cluster)
    assert {*cluster.reasons} == {HELD}
    assert not cluster.service("default/new")["metadata"]["finalizers"]
    assert not running.plan().changes
    assert {action.held for action in running.plan().held} == {action.held for action in running.held}

    cluster.delete_service()
    running.settle()
    assert WEB in cluster.objects["services"]
    assert {*cluster.reasons} == {HELD}
    assert harness.wire.writes == []

    cluster.delete_service("default/new")
    running.confirm_all()
    running.settle()
    assert not cluster.objects["services"]


def test_nor_does_a_process_that_has_changed_a_service_believe_that_its_load_balancer_is_gone(
    harness: Harness,
) -> None:
    cluster, _ = serving(harness, harness.node("one"))
    cluster.service()["status"] = {}
    running = started(harness, cluster)
    assert cluster.ingress
    Process(harness).bring(None)
    harness.wire.writes.clear()
    move(cluster, harness)
    cluster.events.clear()

    running.resync()
    running.settle()
    cluster.delete_service()
    running.settle()

    assert WEB in cluster.objects["services"]
    assert {*cluster.reasons} == {HELD}
    assert harness.wire.writes == []


def test_with_a_machine_of_the_cluster_a_lost_load_balancer_is_made_again(harness: Harness) -> None:
    cluster, _ = serving(harness, harness.node("one"))
    whole = harness.snapshot()
    Process(harness).bring(None)

    started(harness, cluster)

    assert not differences(harness.snapshot(), whole)
    assert cluster.ingress == [each.to_json() for each in Process(harness).only().ingress]
    assert HELD not in cluster.reasons
