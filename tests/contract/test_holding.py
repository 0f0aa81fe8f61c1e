"""What nobody is known to have deleted is held: all of it stays until somebody confirms, and then all of it goes."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.binding import Binding
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, served
from tests.contract.harness import Harness, Snapshot, differences, web
from tests.contract.wire import Died

PART = "load_balancers"
BINDING = Binding("uid-of-the-cluster")


def with_lost_service(harness: Harness) -> tuple[Cluster, Snapshot]:
    """A cluster whose Service has got a load balancer and then vanished; and what was in the account before."""
    node, cluster, account = harness.node("one"), Cluster(), as_account(harness)
    before = harness.snapshot()
    cluster.objects["namespaces"] = {"kube-system": {"metadata": {"uid": BINDING.uid}}}
    address = node["status"]["addresses"][0]["address"]
    cluster.put_node(node["metadata"]["name"], node["spec"]["providerID"], address)
    served(account, cluster, web(harness), binding=BINDING)
    cluster.objects["services"].clear()
    return cluster, before


def started(harness: Harness, cluster: Cluster) -> Running:
    """A controller in a new process that has done what it may."""
    return Running(as_account(harness), cluster, binding=BINDING).settle()


def as_account(harness: Harness) -> Any:
    """As the tests of controllers have it, where `new_cloud` takes a config."""
    return harness


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
