"""Load balancers that are reused, shared, preserved and taken over, on mycloud's real API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, Postponed
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.kube import LEASES, ApiError
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import LoadBalancers, Operation, OperationResult
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG
from cloud_controller.plan import ActionKind
from tests.cloud_controller.clouds.mycloud.services import members, named, only, put_node, web
from tests.cloud_controller.cluster import WEB, Cluster
from tests.cloud_controller.load_balancing import (
    Running,
    changed,
    endpoint,
    endpoint_slice,
    planned_without_calls,
    port,
    served,
)

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import Json, MyCloudSite


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """One ingress node."""
    cluster = Cluster()
    put_node(cluster, site.machine("worker-0"), ingress=True)
    return cluster


@pytest.fixture
def shared(site: MyCloudSite) -> Json:
    """A load balancer that somebody made for no Service, and shares with everybody."""
    tags = {SHARED_WITH_TAG: "any"}
    made = site.client.create("load_balancers", {"name": "edge", "network_id": site.network["id"], "tags": tags})
    site.settle()
    return site.client.get("load_balancers", made["id"])


@pytest.fixture
def hidden(site: MyCloudSite) -> str:
    """The ID of a load balancer that the cloud refuses to show."""
    lb_id = "lb-0123456789ab"
    site.fault(f"GET /v1/load_balancers/{lb_id}", "error", count=None, status=403)
    return lb_id


def listeners(lb: Json) -> dict[int, str | None]:
    """Port to UID of the owner."""
    return {each["port"]: each["tags"].get("kubernetes.io/service-uid") for each in lb["listeners"]}


def test_a_plan_is_made_of_values_and_calls_nothing(site: MyCloudSite, cluster: Cluster, shared: Json) -> None:
    cluster.put(web(named(backend_type="pod-ip")))
    cluster.put_slice(endpoint_slice(endpoint("10.244.0.5", next(iter(cluster.objects["nodes"])))))
    cluster.put(web(named(id=shared["id"]), port(8443), name="second"))

    plan = planned_without_calls(site, cluster, ServiceOptions(pod_ranges=("10.244.0.0/16",)))

    assert {action.target.split("/")[2] for action in plan.changes} == {"web", "second"}


def test_a_port_that_becomes_free_goes_to_the_service_that_waits_for_it(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    cluster.put(web(named(id=shared["id"]), name="first"))
    cluster.put(web(named(id=shared["id"]), port(8080, nodePort=30081), name="second"))
    running = Running(site, cluster).settle("default/first")
    with pytest.raises(InvalidConfiguration):
        running.handle("default/second")
    while waiting := running.controller._queue.get(timeout=0):
        running.controller._queue.done(waiting)

    cluster.delete_service("default/first")
    running.settle("default/first")

    assert "default/second" in running.controller._queue._due
    running.settle("default/second")
    assert listeners(only(site.load_balancers())) == {8080: "uid-second"}


def test_who_waits_for_the_cloud_goes_on_when_another_services_visit_sees_that_it_has_ended(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    cluster.put(web(named(id=shared["id"]), name="first"))
    cluster.put(web(named(id=shared["id"]), port(8080, nodePort=30081), name="second"))
    running = Running(site, cluster)
    running.handle("default/first")
    with pytest.raises(InvalidConfiguration):
        running.handle("default/second")
    while waiting := running.controller._queue.get(timeout=0):
        running.controller._queue.done(waiting)

    site.settle()
    with pytest.raises(InvalidConfiguration):  # It reads what it shares at each visit, for the port may be free now.
        running.handle("default/second")

    assert running.controller._queue.get(timeout=0) == "default/first"


def test_an_id_that_is_given_while_the_service_is_handled_is_no_error(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    cluster.after_write = lambda: changed(cluster, named(id=shared["id"]))

    running.handle()
    running.settle()

    assert listeners(only(site.load_balancers())) == {8080: "uid-web"}
    assert "SyncLoadBalancerFailed" not in cluster.reasons


def test_what_makes_a_load_balancer_unfit_is_looked_at_again_at_each_visit(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    tags = {"kubernetes.io/cluster": "c-other", "kubernetes.io/service-uid": "u", "kubernetes.io/service": "a/b"}
    site.client.update("load_balancers", shared["id"], {"tags": tags})
    cluster.put(web(named(id=shared["id"])))
    running = Running(site, cluster)
    with pytest.raises(InvalidConfiguration, match="belongs to Service a/b"):
        running.handle()

    site.client.update("load_balancers", shared["id"], {"tags": {SHARED_WITH_TAG: "any"}})
    running.settle()

    assert listeners(only(site.load_balancers())) == {8080: "uid-web"}


def test_a_port_that_another_cluster_took_since_the_last_read_is_seen_before_it_is_overwritten(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    cluster.put(web(named(id=shared["id"])))
    running = Running(site, cluster)
    path = f"load_balancers/{shared['id']}"
    theirs = {"kubernetes.io/cluster": "c-other", "kubernetes.io/service-uid": "u", "kubernetes.io/service": "a/b"}
    site.client.put(f"{path}/backend_sets/theirs", {"tags": theirs})
    site.client.put(f"{path}/listeners/TCP/8080", {"backend_set": "theirs", "tags": theirs})

    with pytest.raises(InvalidConfiguration, match="in use by Service a/b of cluster c-other"):
        running.handle()

    assert listeners(only(site.load_balancers())) == {8080: "u"}


def test_a_namespace_that_would_exceed_its_share_is_refused_before_any_call_and_keeps_what_it_has(
    site: MyCloudSite, cluster: Cluster, shared: Json
) -> None:
    running = served(site, cluster, web(named(id=shared["id"])))
    cluster.put(web(named(id=shared["id"]), *(port(9000 + each) for each in range(10)), name="greedy"))

    plan = planned_without_calls(site, cluster, ServiceOptions())
    running.calls.clear()
    with pytest.raises(InvalidConfiguration, match=r"would have 11 listeners .*--shared-listeners-per-namespace"):
        running.handle("default/greedy")

    assert {action.kind for action in plan if action.target.endswith("/greedy")} == {ActionKind.IGNORE}
    assert not running.calls.writes
    assert listeners(only(site.load_balancers())) == {8080: "uid-web"}


def test_a_load_balancer_that_the_cloud_does_not_show_concerns_only_who_names_it(
    site: MyCloudSite, cluster: Cluster, hidden: str
) -> None:
    served(site, cluster, web())
    changed(cluster, named(id=hidden))
    cluster.put(web(name="other"))
    put_node(cluster, site.machine("worker-1"), ingress=True)

    running = Running(site, cluster)
    planned = running.plan()
    running.settle("default/other")
    with pytest.raises(InvalidConfiguration, match="does not exist, or the cloud does not show it"):
        running.handle()

    assert [action.target for action in planned if action.attention] == ["service/default/web"]
    assert cluster.reasons[-1] == "SyncLoadBalancerFailed"
    assert [len(members(lb)) for lb in site.load_balancers()] == [2, 2], "both have the new node"


def test_a_deleted_service_keeps_its_finalizer_while_the_cloud_does_not_show_what_it_names(
    site: MyCloudSite, cluster: Cluster, hidden: str
) -> None:
    served(site, cluster, web())
    changed(cluster, named(id=hidden))
    cluster.delete_service()

    with pytest.raises(AccessDenied):
        Running(site, cluster).handle()
    (action,) = Running(site, cluster).plan()

    assert cluster.service()["metadata"]["finalizers"]
    assert cluster.reasons[-1] == "DeleteLoadBalancerFailed"
    assert (action.kind, action.summary) == (ActionKind.IGNORE, "keep its finalizer")


def test_a_load_balancer_in_another_network_is_refused_with_both_networks(site: MyCloudSite, cluster: Cluster) -> None:
    network = site.client.create("networks", {"name": "n2"})
    body = {"name": "edge", "network_id": network["id"], "tags": {SHARED_WITH_TAG: "any"}}
    made = site.client.create("load_balancers", body)
    site.settle()
    cluster.put(web(named(id=made["id"])))

    with pytest.raises(InvalidConfiguration) as refused:
        Running(site, cluster).handle()

    assert network["id"] in refused.value.why and site.network["id"] in str(refused.value.allowed)
    assert only(site.load_balancers())["backend_sets"] == []


def test_two_services_of_one_namespace_use_one_load_balancer_and_the_last_one_takes_it_along(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web({}, port(8443), name="api"))
    running = Running(site, cluster).settle("default/api")
    lb = only(site.load_balancers())
    cluster.put(web(named(id=lb["id"]), name="redirect"))
    running.settle("default/redirect")
    assert listeners(only(site.load_balancers())) == {8443: None, 8080: "uid-redirect"}

    cluster.delete_service("default/api")
    running.settle("default/api")
    assert (listeners(only(site.load_balancers())), [*cluster.objects["services"]]) == (
        {8080: "uid-redirect"},
        ["default/redirect"],
    )
    cluster.delete_service("default/redirect")
    running.settle("default/redirect")

    assert "default/api" in {*running.controller._queue._due, *running.controller._queue._queued}, (
        "the load balancer was its Service's"
    )
    running.settle("default/api")
    assert (site.load_balancers(), cluster.objects["services"]) == ([], {})


def test_a_listener_changes_hands_once_a_member_of_its_new_owner_is_healthy(
    site: MyCloudSite, cluster: Cluster, shared: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"load_balancers/{shared['id']}"
    site.client.put(f"{path}/backend_sets/by-hand", {})
    site.client.put(f"{path}/listeners/TCP/8080", {"backend_set": "by-hand"})
    cluster.put(web(named(id=shared["id"], force_override_listeners=True)))
    running = Running(site, cluster)
    health = {("by-hand", "10.0.0.9", 80): True}
    monkeypatch.setattr(running.cloud.load_balancers, "health", lambda _: health)

    running.settle()
    assert listeners(only(site.load_balancers())) == {8080: None}
    assert cluster.reasons.count("HandingOver") == 1
    health[("tcp-8080-uid-web", "10.0.0.1", 30080)] = True
    running.settle()

    assert listeners(only(site.load_balancers())) == {8080: "uid-web"}
    assert cluster.ingress[0]["ip"] == shared["address"]


def test_a_service_that_leaves_gives_back_what_it_took_over(site: MyCloudSite, cluster: Cluster, shared: Json) -> None:
    machine = site.machine("legacy")
    site.settle()
    backend = {"machine_id": machine["id"], "address": machine["private_ips"][0], "port": 9999, "weight": 3}
    path = f"load_balancers/{shared['id']}"
    site.client.put(f"{path}/backend_sets/by-hand", {"backends": [backend], "scheduler": "least_connections"})
    listener = {"backend_set": "by-hand", "max_qps": 7, "tags": {"team": "edge"}}
    site.client.put(f"{path}/listeners/TCP/8080", listener)
    site.settle()
    before = only(site.load_balancers())
    served(site, cluster, web(named(id=shared["id"], force_override_listeners=True)))
    assert listeners(only(site.load_balancers())) == {8080: "uid-web"}

    cluster.delete_service()
    Running(site, cluster).settle(WEB)

    after = only(site.load_balancers())
    assert (after["listeners"], after["backend_sets"]) == (before["listeners"], before["backend_sets"])
    assert cluster.objects["services"] == {}


def test_parts_whose_removal_is_confirmed_go_one_by_one_in_a_cloud_that_is_busy_in_between(
    site: MyCloudSite, cluster: Cluster, shared: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(web(named(id=shared["id"]), port(8080), port(8443)))
    Running(site, cluster).settle()
    cluster.objects["services"].clear()
    running = Running(site, cluster).settle()
    load_balancers: LoadBalancers = running.cloud.load_balancers
    perform = load_balancers.perform

    def first_only(before: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        waiting = [OperationResult(each, Postponed("the cloud is busy")) for each in operations[1:]]
        return [*perform(before, operations[:1]), *waiting]

    monkeypatch.setattr(load_balancers, "perform", first_only)
    running.confirm_all()
    running.settle()

    lb = only(site.load_balancers())
    assert (lb["listeners"], lb["backend_sets"]) == ([], [])
    assert not cluster.get(LEASES, "cloud-controller-manager", "kube-system")["metadata"]["annotations"]


# -------------------------------------------------------------------------------------------------------- preserving


def test_a_preserved_load_balancer_is_not_told_as_deleted_if_the_finalizer_stays_at_first(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = served(site, cluster, web(named(preserve_on_delete=True)))
    cluster.delete_service()

    def refuse(*_: object, **__: object) -> None:
        raise ApiError(503, "ServiceUnavailable", "etcd has no leader")

    with monkeypatch.context() as failing, pytest.raises(ApiError):
        failing.setattr(cluster, "patch", refuse)
        running.handle()
    running.handle()

    assert cluster.objects["services"] == {}
    assert "PreservedOnDelete" in cluster.reasons
    assert "DeletedLoadBalancer" not in cluster.reasons


@pytest.mark.parametrize("value", ["true", "yes, please"])
def test_what_was_to_be_preserved_is_held_if_somebody_took_the_finalizer_off(
    site: MyCloudSite, cluster: Cluster, value: str
) -> None:
    running = served(site, cluster, web())
    changed(cluster, dict.fromkeys(named(preserve_on_delete=True), value))
    cluster.delete_service()
    running.controller._reconciler.note_deletion(cluster.service())
    cluster.objects["services"].clear()

    running.settle()

    assert only(site.load_balancers())["state"] == "available"
    assert running.controller._safeguard.held()


def test_what_is_to_be_preserved_by_a_word_after_the_deletion_is_held_too(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    cluster.delete_service()
    running.controller._reconciler.note_deletion(cluster.service())
    changed(cluster, named(preserve_on_delete=True))
    running.controller._reconciler.note_deletion(cluster.service())
    cluster.objects["services"].clear()

    running.settle()

    assert running.controller._safeguard.held()


def test_what_others_wrote_on_it_since_it_was_read_is_preserved_too(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web(named(preserve_on_delete=True)))
    lb = only(site.load_balancers())
    site.client.update("load_balancers", lb["id"], {"name": "edge", "tags": lb["tags"] | {"cost-centre": "7"}})

    cluster.delete_service()
    running.settle()

    after = only(site.load_balancers())
    assert (after["name"], after["tags"]["cost-centre"]) == ("edge", "7")


def test_who_waits_for_what_is_preserved_is_told_at_once(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web(named(preserve_on_delete=True)))
    cluster.put(web(named(id=only(site.load_balancers())["id"], force_override_listeners=True), name="heir"))
    with pytest.raises(InvalidConfiguration):
        running.handle("default/heir")
    assert "default/heir" not in running.controller._queue._due

    cluster.delete_service()
    running.handle()

    assert "default/heir" in running.controller._queue._due
