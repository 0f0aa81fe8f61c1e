"""Load balancers that cannot be changed, made or claimed as a whole, on the real Octavia: what a Service is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import pytest

from cloud_controller.cloud import Conflict, InvalidConfiguration
from cloud_controller.controllers.service.controller import POLL
from cloud_controller.controllers.service.waits import LONG_WAIT, Waits
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount
from tests.cloud_controller.clouds.openstack.octavia.services import named, nodes
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, changed, port, served, service

pytestmark = pytest.mark.integration


@contextmanager
def paused(account: OctaviaAccount) -> Iterator[None]:
    """Octavia's worker does nothing in this project while the block runs."""
    where = f"workers/{account.site.project.id}"
    account.site.peer.admin.put("load-balancer-peer", where, {"paused": True})
    yield
    account.site.peer.admin.put("load-balancer-peer", where, {"paused": False})


def is_told_once_that_nothing_ends(cluster: Cluster, running: Running, change: str) -> None:
    """A Service whose cloud takes longer than ten minutes gets one warning, and Octavia no further calls for it."""
    reconciler, clock, visits = running.controller._reconciler, Mock(), []
    reconciler._waits = Waits(clock)
    reconciler._requeue = lambda _, seconds: visits.append(seconds)
    running.handle(POLL)
    running.calls.clear()
    for clock.return_value in (0.0, 1.0, LONG_WAIT, LONG_WAIT + 60):
        running.handle()

    assert visits == [LONG_WAIT, LONG_WAIT - 1], "after that, only polls"
    assert not running.calls.made
    (told,) = [message for reason, message in cluster.events if reason == "StillWaiting"]
    assert told.endswith(f"is still being {change}")


def test_a_creation_that_does_not_end_is_told(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    cluster.put(service({}, port(80)))
    running = Running(account, cluster)
    with paused(account):
        running.handle()

        is_told_once_that_nothing_ends(cluster, running, "created")

    running.settle()
    assert cluster.ingress


def test_a_deletion_that_does_not_end_is_told(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    with paused(account):
        cluster.delete_service()
        running.handle()

        is_told_once_that_nothing_ends(cluster, running, "deleted")

    running.settle()
    assert "default/web" not in cluster.objects["services"]


def test_a_last_change_that_does_not_end_is_told(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    with paused(account):
        nodes("node2", cluster=cluster)
        running.take_nodes()
        running.handle()

        is_told_once_that_nothing_ends(cluster, running, "changed")

    running.settle()
    assert not running.plan().changes


def test_a_load_balancer_in_error_is_left_as_it_is_and_the_service_is_told_what_helps(account: OctaviaAccount) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service({}, port(80)))
    (lb,) = account.load_balancers()
    account.site.peer.admin.put("load-balancer-peer", f"loadbalancers/{lb['id']}", {"provisioning_status": "ERROR"})
    running.resync()
    running.calls.clear()

    changed(cluster, named(connection_limit=2000))
    with pytest.raises(Conflict, match=f"openstack loadbalancer failover {lb['id']}"):
        running.settle()

    assert not running.calls.writes
    assert any(f"failover {lb['id']}" in message for _, message in cluster.events)

    cluster.delete_service()
    running.settle()
    assert (account.load_balancers(), account.floating_ips()) == ([], [])


def test_a_service_on_the_load_balancer_of_somebody_else_leaves_the_rest_of_it_alone(account: OctaviaAccount) -> None:
    theirs = {"name": "theirs", "protocol": "TCP", "protocol_port": 9000}
    body = {
        "name": "shared",
        "vip_subnet_id": account.networks.subnet["id"],
        "tags": [f"{SHARED_WITH_TAG}=c-1/default"],
    }
    lb = account.api.post("load-balancer", "lbaas/loadbalancers", {"loadbalancer": {**body, "listeners": [theirs]}})
    account.settle()
    cluster = nodes("node1")

    running = served(account, cluster, service(named(id=lb["loadbalancer"]["id"]), port(80)))

    assert {each["protocol_port"] for each in account.parts("listeners")} == {80, 9000}
    assert [m["address"] for pool in account.parts("pools") for m in account.members(pool)] == ["10.1.0.1"]

    cluster.delete_service()
    running.settle(rounds=8)

    assert [each["name"] for each in account.load_balancers()] == ["shared"]
    assert [each["name"] for each in account.parts("listeners")] == ["theirs"]
    assert account.parts("pools") == []


def test_two_services_share_an_internal_load_balancer_and_the_guest_is_told_when_it_becomes_public(
    account: OctaviaAccount,
) -> None:
    cluster = nodes("node1")
    running = served(account, cluster, service(named(internal=True), port(80)))
    (lb,) = account.load_balancers()
    cluster.put(service(named(id=lb["id"], internal=True), port(443), name="api"))
    running.settle()

    assert {each["protocol_port"] for each in account.parts("listeners")} == {80, 443}
    assert cluster.service("default/api")["status"]["loadBalancer"]["ingress"] == cluster.ingress

    changed(cluster, named(internal=False))
    running.settle("default/web")
    with pytest.raises(InvalidConfiguration, match=f"internal of load balancer {lb['id']} is false"):
        running.handle("default/api")

    assert {each["protocol_port"] for each in account.parts("listeners")} == {80, 443}, "what serves goes on"
