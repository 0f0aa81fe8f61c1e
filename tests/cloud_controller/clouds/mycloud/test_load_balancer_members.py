"""Who is behind a Service's load balancer as nodes and pods come and go, and what that costs, on mycloud's real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import InvalidConfiguration, Throttled, Unavailable
from cloud_controller.controllers.service.controller import NODES_CHANGED, POLL, RESYNC, ServiceOptions
from cloud_controller.controllers.service.timing import DEBOUNCE_CHANGED, NodeDebouncer
from cloud_controller.kube import EventType
from local.mycloud.models.common import State
from tests.cloud_controller.clouds.mycloud.services import members, named, only, put_node, web
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import (
    Running,
    changed,
    endpoint,
    endpoint_slice,
    port,
    served,
)

if TYPE_CHECKING:
    from cloud_controller.kube import Object
    from tests.cloud_controller.clouds.conftest import MyCloudSite

REGISTER = "POST /v1/load_balancers/{id}/backend_sets/{name}/backends:batch_register"


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """Two workers, neither of them an ingress node."""
    cluster = Cluster()
    for name in ("worker-0", "worker-1"):
        put_node(cluster, site.machine(name))
    return cluster


def pods(cluster: Cluster, **ready: int) -> Object:
    """The Service's slice: how many ready pods each node has."""
    endpoints = [
        endpoint(f"10.244.{index}.{number + 5}", node)
        for index, (node, count) in enumerate(sorted(ready.items()))
        for number in range(count)
    ]
    made = endpoint_slice(*endpoints)
    cluster.put_slice(made)
    return made


def local() -> Object:
    return web(externalTrafficPolicy="Local", healthCheckNodePort=31000)


def running_with(site: MyCloudSite, cluster: Cluster, service: Object, **ready: int) -> Running:
    """A controller that has seen to the Service, with so many ready pods on its nodes."""
    cluster.put(service)
    running = Running(site, cluster)
    running.take_slice(pods(cluster, **ready))
    return running.settle()


# ------------------------------------------------------------------------------------------------------ following pods


def test_a_service_whose_first_pods_come_with_its_address_is_told_as_ensured(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(local())
    running = Running(site, cluster)
    running.handle()
    assert ("UnAvailableLoadBalancer", "There are no ready pods for LoadBalancer") in cluster.events
    site.settle()
    running.handle(POLL)
    cluster.events.clear()

    running.take_slice(pods(cluster, **{"worker-0": 1}))
    running.handle()

    assert cluster.reasons[-1] == "EnsuredLoadBalancer"
    assert "UpdatedLoadBalancer" not in cluster.reasons


def test_a_change_of_pods_brings_a_visit_only_to_services_that_follow_them(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    while waiting := running.controller._queue.get(timeout=0):
        running.controller._queue.done(waiting)
    running.take_slice(pods(cluster, **{"worker-0": 1}))
    assert running.controller._queue.get(timeout=2) is None

    cluster.put(local())
    running.take_slice(pods(cluster, **{"worker-0": 1}))
    running.take_slice(pods(cluster, **{"worker-0": 2}))

    assert running.controller._queue.get(timeout=10) == WEB
    running.controller._queue.done(WEB)
    assert running.controller._queue.get(timeout=0) is None, "two changes at once are one visit"


def test_members_stay_while_the_service_has_no_endpoint_slice(site: MyCloudSite, cluster: Cluster) -> None:
    give_pod_ranges(site, cluster)
    service = by_pod()
    service["spec"]["selector"] = {"app": "web"}
    running_with(site, cluster, service, **{"worker-0": 1})
    cluster.objects["endpointslices"].clear()

    planned = Running(site, cluster).plan()

    assert planned.changes == ()
    assert "keep members" in [action.summary for action in planned]


def test_an_endpoint_slice_that_somebody_wrote_leads_to_no_kubelet_no_other_nodes_pod_and_no_foreign_network(
    site: MyCloudSite, cluster: Cluster
) -> None:
    give_pod_ranges(site, cluster)
    running = running_with(site, cluster, by_pod(), **{"worker-0": 1})
    forged = endpoint_slice(
        endpoint(cluster.address("worker-0"), "worker-0"),
        endpoint("10.244.1.7", "worker-0"),
        endpoint("8.8.8.8", "worker-0"),
        endpoint("10.244.0.6", "worker-0", pod_of="payments"),
        endpoint("10.244.0.7", "worker-0", pod_of=None),
        name="web-forged",
    )

    running.take_slice(forged)
    for _ in range(3):
        running.handle()

    assert members(only(site.load_balancers())) == {"10.244.0.5:8000"}
    ((_, message),) = [event for event in cluster.events if event[0] == "EndpointsLeftOut"]
    assert f"{cluster.address('worker-0')}: it is an address of node worker-0" in message
    assert "10.244.1.7: it is outside pod CIDR 10.244.0.0/24 of node worker-0" in message
    assert "10.244.0.6: its targetRef is not a Pod in namespace default" in message


def by_pod() -> Object:
    service = web(named(backend_type="pod-ip"))
    del service["spec"]["ports"][0]["nodePort"]
    return service


def give_pod_ranges(site: MyCloudSite, cluster: Cluster) -> None:
    for index, name in enumerate(("worker-0", "worker-1")):
        cluster.objects["nodes"][name]["spec"]["podCIDRs"] = [f"10.244.{index}.0/24"]
        route(site, cluster, name, f"10.244.{index}.0/24")


def route(site: MyCloudSite, cluster: Cluster, node: str, cidr: str) -> None:
    machine = cluster.objects["nodes"][node]["spec"]["providerID"].rpartition("/")[2]
    body = {"routes": [{"destination_cidr": cidr, "next_hop_machine_id": machine}]}
    table = site.network["route_table_id"]
    (result,) = site.client.post(f"route_tables/{table}/routes:batch_create", body)["results"]
    assert result["error"] is None


# --------------------------------------------------------------------------------- all members change at once


def test_old_members_serve_until_a_new_one_is_known_to_be_healthy(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = served(site, cluster, web())
    lb = only(site.load_balancers())
    old = members(lb)
    health = {("tcp-8080", *_split(member)): True for member in old}
    monkeypatch.setattr(running.cloud.load_balancers, "health", lambda _: health)
    changed(cluster, ports=[port(8080, nodePort=31080)])

    running.handle()
    running.handle()

    both = members(only(site.load_balancers()))
    assert old < both and len(both) == 4
    assert cluster.reasons.count("HandingOver") == 1
    assert running.controller._queue.get(timeout=10) == WEB, "it comes back by itself"
    running.controller._queue.done(WEB)

    health |= {("tcp-8080", *_split(next(iter(both - old)))): True}
    running.handle()

    assert members(only(site.load_balancers())) == both - old
    assert "SyncLoadBalancerFailed" not in cluster.reasons


def test_old_members_serve_on_although_another_part_of_the_change_fails(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise InvalidConfiguration("listener", "refused")

    def exclude(node: str, *, excluded: bool) -> None:
        labels = {"node.kubernetes.io/exclude-from-external-load-balancers": ""} if excluded else {}
        cluster.objects["nodes"][node]["metadata"]["labels"] = labels

    exclude("worker-1", excluded=True)
    running = served(site, cluster, web())
    old = members(only(site.load_balancers()))
    health = {("tcp-8080", *_split(member)): True for member in old}
    monkeypatch.setattr(running.cloud.load_balancers, "health", lambda _: health)
    monkeypatch.setattr(running.cloud.load_balancers, "_put_listener", refused)
    changed(cluster, ports=[port(8080), port(8081)])
    exclude("worker-0", excluded=True)
    exclude("worker-1", excluded=False)
    running.handle(NODES_CHANGED)

    for _ in range(2):
        with pytest.raises(InvalidConfiguration):
            running.handle()

    assert len(old) == 1 and old < members(only(site.load_balancers()))


def test_old_members_that_are_dead_themselves_do_not_wait(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    old = members(only(site.load_balancers()))
    changed(cluster, ports=[port(8080, nodePort=31080)])

    running.handle()  # No data plane runs here, so nothing is healthy.

    assert not members(only(site.load_balancers())) & old


def _split(member: str) -> tuple[str, int]:
    found, _, number = member.partition(":")
    return found, int(number)


# -------------------------------------------------------------------------------------------------------------- costs


def test_a_node_more_costs_one_call_a_load_balancer_and_no_read(site: MyCloudSite, cluster: Cluster) -> None:
    names = [f"web-{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        cluster.put(web({}, port(8080, nodePort=30080 + number), name=name))
    running = Running(site, cluster)
    for _ in range(2):
        for name in names:
            running.handle(f"default/{name}")
        site.settle()
        running.handle(POLL)
    put_node(cluster, site.machine("worker-2"))
    before = site.context.calls.all()

    running.handle(NODES_CHANGED)
    for name in names:
        running.handle(f"default/{name}")

    after = site.context.calls.all()
    assert {op: after[op] - before.get(op, 0) for op in after if after[op] != before.get(op, 0)} == {REGISTER: 12}
    rounds = running.controller._metrics.registry.get_sample_value("service_controller_nodesync_latency_seconds_count")
    assert rounds == 1, "all of it is one change of nodes"


def test_a_hundred_new_nodes_are_as_few_calls_as_the_api_takes(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    site.client.post(
        "admin/machines",
        {"cluster_id": site.cluster["id"], "subnet_ids": [site.subnet["id"]], "count": 100, "name_prefix": "new-"},
    )
    for machine in site.client.list("machines"):
        if machine["simulated"]:
            put_node(cluster, machine)
    before = site.calls(REGISTER)

    running.handle(NODES_CHANGED)
    running.handle()

    assert site.calls(REGISTER) - before == 3
    assert len(members(only(site.load_balancers()))) == 102


def test_what_of_a_node_concerns_no_load_balancer_brings_nothing(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    node = cluster.objects["nodes"]["worker-0"]
    heartbeat = {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "False"}]}}
    labelled = {**node, "metadata": {**node["metadata"], "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    cordoned = {**node, "spec": {**node["spec"], "unschedulable": True, "taints": [{"key": "x"}]}}

    for other in (heartbeat, labelled, cordoned):
        running.controller._node_changed(EventType.MODIFIED, node, other)

    assert NODES_CHANGED not in running.controller._queue._due


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}}},
        {"metadata": {"annotations": {"mycloud.io/ingress-node": "true"}}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {"providerID": "mycloud://local/zone-a/i-0123456789ab"}},
        {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}},
        {"spec": {"podCIDRs": ["10.244.9.0/24"]}},
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}},
    ],
)
def test_what_members_depend_on_brings_a_change_of_members(
    site: MyCloudSite, cluster: Cluster, change: dict[str, Any]
) -> None:
    running = Running(site, cluster)
    node = cluster.objects["nodes"]["worker-0"]
    changed = {part: {**node[part], **change.get(part, {})} for part in node}

    running.controller._node_changed(EventType.MODIFIED, node, changed)

    assert NODES_CHANGED in running.controller._queue._due


def test_nodes_that_still_come_put_the_change_of_members_off(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    put_node(cluster, site.machine("worker-2"))
    running.controller._debouncer = NodeDebouncer(lambda: 0.0)
    running.controller._debouncer.changed(DEBOUNCE_CHANGED)

    running.handle(NODES_CHANGED)
    running.handle()

    assert len(members(only(site.load_balancers()))) == 2
    assert NODES_CHANGED in running.controller._queue._due


# ---------------------------------------------------------------------------------------------------- events, faults


def test_members_that_cannot_be_changed_are_told_with_upstreams_reason(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    put_node(cluster, site.machine("worker-2"))
    running.handle(NODES_CHANGED)
    site.fault("POST *batch_register", "error", count=None, status=503)

    with pytest.raises(Unavailable):
        running.handle()

    assert cluster.reasons[-1] == "UpdateLoadBalancerFailed"


def test_without_any_node_left_there_is_the_warning_alone(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    cluster.events.clear()
    cluster.objects["nodes"].clear()
    running.handle(NODES_CHANGED)

    running.handle()

    assert cluster.reasons == ["UnAvailableLoadBalancer"]
    assert members(only(site.load_balancers())) == set()


def test_labels_leave_the_last_members_until_their_nodes_go(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    before = members(only(site.load_balancers()))
    cluster.events.clear()
    for node in cluster.objects["nodes"].values():
        node["metadata"]["labels"] = {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}
    for _ in range(2):
        running.take_nodes()
        running.handle()

    assert members(only(site.load_balancers())) == before
    assert cluster.reasons == ["MembersKept"]

    del cluster.objects["nodes"]["worker-0"]
    running.take_nodes()
    running.handle()

    assert members(only(site.load_balancers())) == {f"{cluster.address('worker-1')}:30080"}


def test_an_orphan_that_cannot_be_deleted_is_told_at_the_service_that_is_gone(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    site.fault("DELETE /v1/load_balancers/*", "error", count=None, status=503)

    running = Running(site, cluster)
    running.handle()
    running.confirm_all()
    with pytest.raises(Unavailable):
        running.handle()

    assert cluster.reasons[-1] == "DeleteLoadBalancerFailed"


def test_an_orphan_whose_deletion_is_throttled_is_not_told_as_an_error(site: MyCloudSite, cluster: Cluster) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    running = Running(site, cluster)
    running.handle()
    running.confirm_all()
    site.fault("DELETE /v1/load_balancers/*", "throttle", retry_after=90)

    with pytest.raises(Throttled):
        running.handle()

    assert "DeleteLoadBalancerFailed" not in cluster.reasons


def test_drift_is_looked_for_again_and_again_unless_that_is_switched_off(site: MyCloudSite, cluster: Cluster) -> None:
    for resync, again in ((300.0, True), (0.0, False)):
        running = Running(site, cluster, options=ServiceOptions(resync=resync))
        running.controller._queue.add(RESYNC)
        assert running.controller._queue.get(timeout=10) == RESYNC

        running.resync()

        assert (RESYNC in running.controller._queue._due) is again


def test_what_the_process_before_made_a_moment_ago_is_found_by_a_second_look(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    site.set_lag(3600)
    running = Running(site, cluster, options=ServiceOptions(resync=0.0))
    assert WEB not in running.controller._queue._queued
    assert RESYNC in running.controller._queue._due

    site.set_lag(0)
    running.resync()
    running.handle()

    assert [action.target for action in running.controller._safeguard.held()] == ["service/default/web"]


def test_a_creation_whose_answer_was_lost_is_looked_for_though_its_service_goes_meanwhile(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    running = Running(site, cluster, options=ServiceOptions(resync=0.0))
    del running.controller._queue._due[RESYNC]  # As if it had come already.
    site.age_machines()
    site.set_lag(3600)
    site.fault("POST /v1/load_balancers", "drop_answer", count=None)
    with pytest.raises(Unavailable):
        running.handle()

    cluster.delete_service()
    running.settle()
    assert WEB not in cluster.objects["services"], "nothing of it was to be seen"
    assert RESYNC in running.controller._queue._due
    site.set_lag(0)
    running.resync()
    running.settle()

    assert site.load_balancers() == []


def test_a_service_that_is_visited_before_the_first_full_pass_keeps_its_members(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    before = members(only(site.load_balancers()))

    Running(site, cluster, started=False).handle(WEB)

    assert members(only(site.load_balancers())) == before != set()


# ------------------------------------------------------------------------------------- a node whose machine is gone


def test_a_node_whose_machine_is_gone_costs_no_call_until_the_next_look_at_everything_and_is_told_once(
    site: MyCloudSite, cluster: Cluster
) -> None:
    put_node(cluster, site.machine("dead", state=State.TERMINATED))
    cluster.make_ready("dead")
    running = served(site, cluster, web())

    running.take_nodes()
    running.settle()
    assert not running.calls.made
    events = [*cluster.events]

    running.resync()
    running.settle()

    assert running.calls.writes == {"POST load_balancers/ID/backend_sets/ID/backends:batch_register": 1}
    assert cluster.events == events
