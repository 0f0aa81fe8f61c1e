"""What a Service's controller does on every cloud: nothing at rest, and what others deleted is made again."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Throttled
from cloud_controller.load_balancers.operations import DeleteListener, RemoveMembers
from tests.contract.controller import put_node, serving, started
from tests.contract.harness import Harness, differences, web
from tests.contract.process import Process

PART = "load_balancers"


def test_a_service_at_rest_costs_no_call_and_its_next_process_changes_nothing(harness: Harness) -> None:
    cluster, running = serving(harness, harness.node("one"))
    before = (cluster.writes, len(cluster.events))

    running.settle()
    assert running.calls.made == []
    harness.wire.writes.clear()
    started(harness, cluster)

    assert harness.wire.writes == []
    assert (cluster.writes, len(cluster.events)) == before


def test_a_node_that_comes_or_goes_changes_members_only(harness: Harness) -> None:
    cluster, running = serving(harness, harness.node("one"))
    (one,) = cluster.objects["nodes"]
    lb, parts = Process(harness).only().id, {*harness.snapshot()}
    cluster.events.clear()

    def members() -> list[int]:
        running.take_nodes()
        running.settle()
        found = Process(harness).only()
        assert found.id == lb
        return [len(pool.members) for pool in found.model.pools]

    put_node(cluster, harness.node("two"))
    assert members() == [2]
    del cluster.objects["nodes"][one]
    assert members() == [1]

    assert parts <= {*harness.snapshot()}
    assert "UpdatedLoadBalancer" in cluster.reasons
    assert "EnsuringLoadBalancer" not in cluster.reasons


def test_what_somebody_deleted_of_a_load_balancer_is_made_again_at_the_next_look(harness: Harness) -> None:
    cluster, _ = serving(harness, harness.node("one"))
    whole = harness.snapshot()
    somebody = Process(harness)
    lb = somebody.only()
    somebody.change(lb, *(DeleteListener(lb.id, each.protocol, each.port) for each in lb.model.listeners))
    harness.settle()
    members = [RemoveMembers(lb.id, each.name, each.members, ()) for each in Process(harness).only().model.pools]
    somebody.change(lb, *members)
    harness.settle()
    assert differences(harness.snapshot(), whole)

    started(harness, cluster)

    assert not differences(harness.snapshot(), whole)


def test_while_the_cloud_throttles_a_service_has_not_failed_and_it_is_served_afterwards(harness: Harness) -> None:
    cluster, running = serving(harness, harness.node("one"))
    cluster.put(web(harness, 8443, name="new"))
    harness.wire.refuse(harness.throttled, retry_after=90, writes_only=True)

    with pytest.raises(Throttled) as throttled:
        running.handle("default/new")
    assert throttled.value.retry_after > 0
    assert "SyncLoadBalancerFailed" not in cluster.reasons
    harness.wire.peace()
    started(harness, cluster)

    assert len(Process(harness).own()) == 2
    assert cluster.service("default/new")["status"]["loadBalancer"]["ingress"]
