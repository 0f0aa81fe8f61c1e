"""Who is behind a Service's load balancer as nodes and pods come and go, and what that costs, on mycloud's real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import InvalidConfiguration, Unavailable
from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.controller import NODES_CHANGED, POLL, RESYNC
from cloud_controller.controllers.service.timing import DEBOUNCE_CHANGED, NodeDebouncer
from cloud_controller.kube import EventType
from tests.cloud_controller.clouds.mycloud.service_world import (
    MAX_QPS,
    WEB,
    Cluster,
    controller,
    members,
    only,
    port,
    settle,
    web,
)

if TYPE_CHECKING:
    from cloud_controller.controllers.service.controller import ServiceController
    from cloud_controller.kube import Object
    from tests.cloud_controller.clouds.conftest import Json, MyCloudSite

REGISTER = "POST /v1/load_balancers/{id}/backend_sets/{name}/backends:batch_register"
DEREGISTER = "POST /v1/load_balancers/{id}/backend_sets/{name}/backends:batch_deregister"


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """Two workers, neither of them an ingress node."""
    cluster = Cluster()
    for name in ("worker-0", "worker-1"):
        cluster.put_node(site.machine(name))
    return cluster


def pods(cluster: Cluster, **ready: int) -> Object:
    """The Service's slice: how many ready pods each node has."""
    endpoints = [
        endpoint(f"10.244.{index}.{number + 5}", node)
        for index, (node, count) in enumerate(sorted(ready.items()))
        for number in range(count)
    ]
    made = {
        "metadata": {"namespace": "default", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "protocol": "TCP", "port": 8000}],
        "endpoints": endpoints,
    }
    cluster.objects["endpointslices"]["default/web-1"] = made
    return made


def endpoint(address: str, node: str, *, pod_of: str | None = "default") -> Object:
    """As the endpoint slice controller writes one; `pod_of` None: without any pod."""
    found: Object = {"addresses": [address], "conditions": {"ready": True}, "nodeName": node}
    return found | ({"targetRef": {"kind": "Pod", "namespace": pod_of, "name": "web-0"}} if pod_of else {})


def local() -> Object:
    service = web()
    service["spec"] |= {"externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}
    return service


def weights(lb: Json) -> dict[str, int]:
    return {backend["address"]: backend["weight"] for each in lb["backend_sets"] for backend in each["backends"]}


def address(cluster: Cluster, node: str) -> str:
    return str(cluster.objects["nodes"][node]["status"]["addresses"][0]["address"])


def running_with(site: MyCloudSite, cluster: Cluster, service: Object, **ready: int) -> ServiceController:
    """A controller that has seen to the Service, with so many ready pods on its nodes."""
    cluster.put(service)
    running = controller(site, cluster)
    follow(running, pods(cluster, **ready))
    settle(site, running)
    return running


def follow(running: ServiceController, changed: Object, old: Object | None = None) -> None:
    """What the informer of EndpointSlices would tell."""
    running._endpoints._slice_changed(EventType.MODIFIED if old else EventType.ADDED, old, changed)


# ------------------------------------------------------------------------------------------------------ following pods


def test_with_local_the_nodes_with_ready_pods_get_traffic_by_their_number(site: MyCloudSite, cluster: Cluster) -> None:
    running = running_with(site, cluster, local(), **{"worker-0": 3, "worker-1": 1})

    lb = only(site.load_balancers())
    assert weights(lb) == {address(cluster, "worker-0"): 3, address(cluster, "worker-1"): 1}
    check = lb["backend_sets"][0]["health_check"]
    assert (check["protocol"], check["port"], check["path"]) == ("HTTP", 31000, "/healthz")

    follow(running, pods(cluster, **{"worker-1": 2}), cluster.objects["endpointslices"]["default/web-1"])
    running.handle(WEB)

    assert weights(only(site.load_balancers())) == {address(cluster, "worker-1"): 2}


def test_a_service_whose_first_pods_come_with_its_address_is_told_as_ensured(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(local())
    running = controller(site, cluster)
    running.handle(WEB)
    assert ("UnAvailableLoadBalancer", "There are no ready pods for LoadBalancer") in cluster.events
    site.settle()
    running.handle(POLL)
    cluster.events.clear()

    follow(running, pods(cluster, **{"worker-0": 1}))
    running.handle(WEB)

    assert cluster.reasons[-1] == "EnsuredLoadBalancer"
    assert "UpdatedLoadBalancer" not in cluster.reasons


def test_a_change_of_pods_brings_a_visit_only_to_services_that_follow_them(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    while waiting := running._queue.get(timeout=0):
        running._queue.done(waiting)
    follow(running, pods(cluster, **{"worker-0": 1}))
    assert running._queue.get(timeout=2) is None

    cluster.put(local())
    follow(running, pods(cluster, **{"worker-0": 1}))
    follow(running, pods(cluster, **{"worker-0": 2}))

    assert running._queue.get(timeout=10) == WEB
    running._queue.done(WEB)
    assert running._queue.get(timeout=0) is None, "two changes at once are one visit"


def test_pods_are_members_themselves_where_the_service_asks_for_it(site: MyCloudSite, cluster: Cluster) -> None:
    give_pod_ranges(site, cluster)

    running_with(site, cluster, by_pod(), **{"worker-0": 1, "worker-1": 1})

    assert members(only(site.load_balancers())) == {"10.244.0.5:8000", "10.244.1.5:8000"}


def test_an_endpoint_slice_that_somebody_wrote_leads_to_no_kubelet_no_other_nodes_pod_and_no_foreign_network(
    site: MyCloudSite, cluster: Cluster
) -> None:
    give_pod_ranges(site, cluster)
    running = running_with(site, cluster, by_pod(), **{"worker-0": 1})
    made = pods(cluster, **{"worker-0": 1})
    forged = made | {
        "metadata": made["metadata"] | {"name": "web-forged"},
        "endpoints": [
            endpoint(address(cluster, "worker-0"), "worker-0"),
            endpoint("10.244.1.7", "worker-0"),
            endpoint("8.8.8.8", "worker-0"),
            endpoint("10.244.0.6", "worker-0", pod_of="payments"),
            endpoint("10.244.0.7", "worker-0", pod_of=None),
        ],
    }

    follow(running, forged)
    for _ in range(3):
        running.handle(WEB)

    assert members(only(site.load_balancers())) == {"10.244.0.5:8000"}
    ((_, message),) = [event for event in cluster.events if event[0] == "EndpointsLeftOut"]
    assert f"{address(cluster, 'worker-0')}: it is an address of node worker-0" in message
    assert "10.244.1.7: it is outside pod CIDR 10.244.0.0/24 of node worker-0" in message
    assert "10.244.0.6: its targetRef is not a Pod in namespace default" in message


def by_pod() -> Object:
    service = web(CATALOGUE.annotations({"backend_type": "pod-ip"}))
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
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    lb = only(site.load_balancers())
    old = members(lb)
    health = {("tcp-8080", *_split(member)): True for member in old}
    monkeypatch.setattr(running._load_balancers, "health", lambda _: health)
    cluster.service()["spec"]["ports"] = [port(8080, 31080)]

    running.handle(WEB)
    running.handle(WEB)

    both = members(only(site.load_balancers()))
    assert old < both and len(both) == 4
    assert cluster.reasons.count("HandingOver") == 1
    assert running._queue.get(timeout=10) == WEB, "it comes back by itself"
    running._queue.done(WEB)

    health |= {("tcp-8080", *_split(next(iter(both - old)))): True}
    running.handle(WEB)

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
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    old = members(only(site.load_balancers()))
    health = {("tcp-8080", *_split(member)): True for member in old}
    monkeypatch.setattr(running._load_balancers, "health", lambda _: health)
    monkeypatch.setattr(running._load_balancers, "put_listener", refused)
    cluster.service()["spec"]["ports"] = [port(8080, 30080), port(8081, 30081)]
    exclude("worker-0", excluded=True)
    exclude("worker-1", excluded=False)
    running.handle(NODES_CHANGED)

    for _ in range(2):
        with pytest.raises(InvalidConfiguration):
            running.handle(WEB)

    assert len(old) == 1 and old < members(only(site.load_balancers()))


def test_old_members_that_are_dead_themselves_do_not_wait(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    old = members(only(site.load_balancers()))
    cluster.service()["spec"]["ports"] = [port(8080, 31080)]

    running.handle(WEB)  # No data plane runs here, so nothing is healthy.

    assert not members(only(site.load_balancers())) & old


def _split(member: str) -> tuple[str, int]:
    found, _, number = member.partition(":")
    return found, int(number)


# -------------------------------------------------------------------------------------------------------------- costs


def test_a_node_more_costs_one_call_a_load_balancer_and_no_read(site: MyCloudSite, cluster: Cluster) -> None:
    names = [f"web-{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        service = web(uid=f"uid-{name}", ports=[port(8080, 30080 + number)])
        service["metadata"]["name"] = name
        cluster.put(service)
    running = controller(site, cluster)
    for _ in range(2):
        for name in names:
            running.handle(f"default/{name}")
        site.settle()
        running.handle(POLL)
    cluster.put_node(site.machine("worker-2"))
    before = site.context.calls.all()

    running.handle(NODES_CHANGED)
    for name in names:
        running.handle(f"default/{name}")

    after = site.context.calls.all()
    assert {op: after[op] - before.get(op, 0) for op in after if after[op] != before.get(op, 0)} == {REGISTER: 12}
    rounds = running._metrics.registry.get_sample_value("service_controller_nodesync_latency_seconds_count")
    assert rounds == 1, "all of it is one change of nodes"


def test_a_hundred_new_nodes_are_as_few_calls_as_the_api_takes(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    site.client.post(
        "admin/machines",
        {"cluster_id": site.cluster["id"], "subnet_ids": [site.subnet["id"]], "count": 100, "name_prefix": "new-"},
    )
    for machine in site.client.list("machines"):
        if machine["simulated"]:
            cluster.put_node(machine)
    before = site.calls(REGISTER)

    running.handle(NODES_CHANGED)
    running.handle(WEB)

    assert site.calls(REGISTER) - before == 3
    assert len(members(only(site.load_balancers()))) == 102


def test_what_of_a_node_concerns_no_load_balancer_brings_nothing(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    node = cluster.objects["nodes"]["worker-0"]
    heartbeat = {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "False"}]}}
    labelled = {**node, "metadata": {**node["metadata"], "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    cordoned = {**node, "spec": {**node["spec"], "unschedulable": True, "taints": [{"key": "x"}]}}

    for other in (heartbeat, labelled, cordoned):
        running._node_changed(EventType.MODIFIED, node, other)

    assert NODES_CHANGED not in running._queue._due


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
    running = controller(site, cluster)
    node = cluster.objects["nodes"]["worker-0"]
    changed = {part: {**node[part], **change.get(part, {})} for part in node}

    running._node_changed(EventType.MODIFIED, node, changed)

    assert NODES_CHANGED in running._queue._due


def test_nodes_that_still_come_put_the_change_of_members_off(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    cluster.put_node(site.machine("worker-2"))
    running._debouncer = NodeDebouncer(lambda: 0.0)
    running._debouncer.changed(DEBOUNCE_CHANGED)

    running.handle(NODES_CHANGED)
    running.handle(WEB)

    assert len(members(only(site.load_balancers()))) == 2
    assert NODES_CHANGED in running._queue._due


# ---------------------------------------------------------------------------------------------------- events, faults


def test_a_service_whose_annotation_became_wrong_still_follows_the_nodes(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web({MAX_QPS: "100"}))
    running = controller(site, cluster)
    settle(site, running)
    cluster.service()["metadata"]["annotations"] = {MAX_QPS: "many"}
    del cluster.objects["nodes"]["worker-0"]
    running.handle(NODES_CHANGED)

    with pytest.raises(InvalidConfiguration):
        running.handle(WEB)

    lb = only(site.load_balancers())
    assert members(lb) == {f"{address(cluster, 'worker-1')}:30080"}
    assert lb["listeners"][0]["max_qps"] == 100
    assert cluster.reasons[-1] == "SyncLoadBalancerFailed"


def test_members_that_cannot_be_changed_are_told_with_upstreams_reason(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    cluster.put_node(site.machine("worker-2"))
    running.handle(NODES_CHANGED)
    site.client.post(
        "admin/faults", {"operation": "POST *batch_register", "kind": "error", "status": 503, "count": None}
    )

    with pytest.raises(Unavailable):
        running.handle(WEB)

    assert cluster.reasons[-1] == "UpdateLoadBalancerFailed"


def test_without_any_node_left_there_is_the_warning_alone(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = controller(site, cluster)
    settle(site, running)
    cluster.events.clear()
    cluster.objects["nodes"].clear()
    running.handle(NODES_CHANGED)

    running.handle(WEB)

    assert cluster.reasons == ["UnAvailableLoadBalancer"]
    assert members(only(site.load_balancers())) == set()


def test_an_orphan_that_cannot_be_deleted_is_told_at_the_service_that_is_gone(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    settle(site, controller(site, cluster))
    cluster.objects["services"].clear()
    site.client.post(
        "admin/faults", {"operation": "DELETE /v1/load_balancers/*", "kind": "error", "status": 503, "count": None}
    )

    running = controller(site, cluster)
    running.handle(WEB)
    cluster.confirm_all(running)
    with pytest.raises(Unavailable):
        running.handle(WEB)

    assert cluster.reasons[-1] == "DeleteLoadBalancerFailed"


def test_drift_is_looked_for_again_and_again_unless_that_is_switched_off(site: MyCloudSite, cluster: Cluster) -> None:
    for resync, again in ((300.0, True), (0.0, False)):
        running = controller(site, cluster, resync=resync)
        running._queue.add(RESYNC)
        assert running._queue.get(timeout=10) == RESYNC

        running.handle(RESYNC)

        assert (RESYNC in running._queue._due) is again


def test_what_the_process_before_made_a_moment_ago_is_found_by_a_second_look(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    settle(site, controller(site, cluster))
    cluster.objects["services"].clear()
    site.client.put("admin/consistency", {"lag_seconds": 3600})
    running = controller(site, cluster, resync=0.0)
    assert WEB not in running._queue._queued
    assert RESYNC in running._queue._due

    site.client.put("admin/consistency", {"lag_seconds": 0})
    running.handle(RESYNC)
    running.handle(WEB)

    assert [action.target for action in running._safeguard.held()] == ["service/default/web"]


def test_a_creation_whose_answer_was_lost_is_looked_for_though_its_service_goes_meanwhile(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    running = controller(site, cluster, resync=0.0)
    del running._queue._due[RESYNC]  # As if it had come already.
    site.client.put("admin/consistency", {"lag_seconds": 3600})
    site.client.post("admin/faults", {"operation": "POST /v1/load_balancers", "kind": "drop_answer", "count": None})
    with pytest.raises(Unavailable):
        running.handle(WEB)

    cluster.delete_service()
    settle(site, running)
    assert WEB not in cluster.objects["services"], "nothing of it was to be seen"
    assert RESYNC in running._queue._due
    site.client.put("admin/consistency", {"lag_seconds": 0})
    running.handle(RESYNC)
    settle(site, running)

    assert site.load_balancers() == []


def test_a_service_that_is_visited_before_the_first_full_pass_keeps_its_members(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    settle(site, controller(site, cluster))
    before = members(only(site.load_balancers()))

    controller(site, cluster, started=False).handle(WEB)

    assert members(only(site.load_balancers())) == before != set()
