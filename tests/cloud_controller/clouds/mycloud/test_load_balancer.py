"""The service controller's loop on mycloud's real API, with the Kubernetes side in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, Postponed, Throttled, Unavailable
from cloud_controller.controllers.service.controller import NODES_CHANGED, POLL, RESYNC
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import LoadBalancers, Operation, OperationResult
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, SCHEME, members, only, put_node, web
from tests.cloud_controller.cluster import WEB, Cluster, Copies
from tests.cloud_controller.load_balancing import Running, changed, port, served

if TYPE_CHECKING:
    from cloud_controller.clouds.mycloud.cloud import MyCloud
    from tests.cloud_controller.clouds.conftest import MyCloudSite


@pytest.fixture
def cluster(site: MyCloudSite) -> Cluster:
    """Two workers, the first of them an ingress node, and no Service."""
    cluster = Cluster()
    put_node(cluster, site.machine("worker-0"), ingress=True)
    put_node(cluster, site.machine("worker-1"))
    return cluster


# ---------------------------------------------------------------------------------------------------------- creation


def test_a_service_gets_a_load_balancer_with_its_ports_on_the_ingress_nodes(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web({MAX_QPS: "100"}, port(8080), port(5353, "UDP")))

    Running(site, cluster).settle()

    lb = only(site.load_balancers())
    address = cluster.objects["nodes"]["worker-0"]["status"]["addresses"][0]["address"]
    assert lb["name"] == f"{site.cluster['id']}-default-web"
    assert lb["tags"] == {
        "kubernetes.io/cluster": site.cluster["id"],
        "kubernetes.io/service-uid": "uid-web",
        "kubernetes.io/service": "default/web",
    }
    assert [(each["protocol"], each["port"], each["max_qps"]) for each in lb["listeners"]] == [
        ("TCP", 8080, 100),
        ("UDP", 5353, 100),
    ]
    assert members(lb) == {f"{address}:30080", f"{address}:30353"}
    assert [each["health_check"]["protocol"] for each in lb["backend_sets"]] == ["TCP", "NONE"]
    assert cluster.ingress == [{"ip": lb["address"], "ipMode": "Proxy"}]
    assert cluster.service()["metadata"]["finalizers"] == [FINALIZER]
    assert cluster.reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]


def test_a_load_balancer_that_is_still_created_holds_no_worker_and_gives_no_address_yet(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    running = Running(site, cluster)

    running.handle()
    running.handle()

    assert only(site.load_balancers())["state"] == "creating"
    assert cluster.ingress == []
    assert cluster.reasons == ["EnsuringLoadBalancer"]


def test_after_a_restart_with_nothing_changed_nothing_is_written(site: MyCloudSite, cluster: Cluster) -> None:
    served(site, cluster, web())
    before = (site.writes(), cluster.writes, len(cluster.events))

    Running(site, cluster).settle()

    assert (site.writes(), cluster.writes, len(cluster.events)) == before


def test_a_visit_to_a_service_in_order_costs_no_call_at_all(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    before = site.context.calls.all()

    running.handle()

    assert site.context.calls.all() == before


def test_services_of_other_classes_and_types_are_left_alone(site: MyCloudSite, cluster: Cluster) -> None:
    for number, spec in enumerate([{"type": "ClusterIP"}, {"loadBalancerClass": "example.com/other"}]):
        service = web(uid=f"uid-{number}")
        service["metadata"]["name"] = f"web-{number}"
        service["spec"] |= spec
        cluster.put(service)
    running = Running(site, cluster)

    running.handle("default/web-0")
    running.handle("default/web-1")

    assert (site.load_balancers(), cluster.writes) == ([], 0)


def test_no_ingress_node_at_all_means_every_eligible_node_and_a_warning(site: MyCloudSite) -> None:
    cluster = Cluster()
    for name in ("worker-0", "worker-1", "worker-2"):
        put_node(cluster, site.machine(name))
    cluster.objects["nodes"]["worker-2"]["metadata"]["labels"] = {
        "node.kubernetes.io/exclude-from-external-load-balancers": ""
    }
    cluster.put(web())

    Running(site, cluster).settle()

    assert len(members(only(site.load_balancers()))) == 2
    assert "NoIngressNodes" in cluster.reasons


# ----------------------------------------------------------------------------------------------------------- changes


def test_a_changed_annotation_changes_the_listener_in_place(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web({MAX_QPS: "100"}))
    before = only(site.load_balancers())
    writes = site.writes()

    cluster.service()["metadata"]["annotations"] = {MAX_QPS: "200"}
    running.settle()

    after = only(site.load_balancers())
    assert (after["id"], after["address"]) == (before["id"], before["address"])
    assert after["listeners"][0]["max_qps"] == 200
    assert site.writes() - writes == 1


def test_an_annotation_that_is_taken_away_brings_its_default_back(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web({MAX_QPS: "100"}))

    cluster.service()["metadata"]["annotations"] = {}
    running.settle()

    assert only(site.load_balancers())["listeners"][0]["max_qps"] is None


def test_another_port_is_opened_before_the_old_one_is_closed_and_others_are_not_touched(
    site: MyCloudSite, cluster: Cluster
) -> None:
    running = served(site, cluster, web({}, port(8080), port(8443)))

    changed(cluster, ports=[port(8080), port(9443, nodePort=30444)])
    running.settle()

    lb = only(site.load_balancers())
    assert [(each["port"], each["backend_set"]) for each in lb["listeners"]] == [(8080, "tcp-8080"), (9443, "tcp-9443")]
    assert {each["name"] for each in lb["backend_sets"]} == {"tcp-8080", "tcp-9443"}
    assert site.calls("PUT /v1/load_balancers/{id}/listeners/{protocol}/{port}") == 1


def test_a_changed_scheme_makes_a_new_load_balancer_and_then_deletes_the_old_one(
    site: MyCloudSite, cluster: Cluster
) -> None:
    running = served(site, cluster, web())
    old = only(site.load_balancers())

    cluster.service()["metadata"]["annotations"] = {SCHEME: "internal"}
    running.handle()
    assert [lb["state"] for lb in site.load_balancers()] == ["available", "creating"]
    assert cluster.ingress[0]["ip"] == old["address"]
    running.settle()

    new = only(site.load_balancers())
    assert (new["scheme"], new["id"] != old["id"]) == ("internal", True)
    assert cluster.ingress[0]["ip"] == new["address"]
    assert cluster.reasons[-1] == "EnsuredLoadBalancer"


def test_a_node_that_comes_or_goes_changes_members_only(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    writes, cluster.events = site.writes(), []

    put_node(cluster, site.machine("worker-2"), ingress=True)
    writes += 1  # the machine
    running.handle(NODES_CHANGED)
    running.settle()
    assert len(members(only(site.load_balancers()))) == 2
    del cluster.objects["nodes"]["worker-0"]
    running.handle(NODES_CHANGED)
    running.settle()

    assert len(members(only(site.load_balancers()))) == 1
    assert site.writes() - writes == 2
    assert set(cluster.reasons) == {"UpdatedLoadBalancer"}


def test_what_somebody_changed_in_the_cloud_is_mended_at_the_next_resync(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    lb = only(site.load_balancers())
    site.client.delete_path(f"load_balancers/{lb['id']}/listeners/TCP/8080")
    site.client.update("load_balancers", lb["id"], {"tags": {**lb["tags"], "team": "web"}, "name": "renamed"})

    running.resync()
    running.settle()

    mended = only(site.load_balancers())
    assert [each["port"] for each in mended["listeners"]] == [8080]
    assert mended["name"] == lb["name"]
    assert mended["tags"] == {**lb["tags"], "team": "web"}


@pytest.mark.parametrize("tag", [{"kubernetes.io/service": "shop/gone"}, {}])
def test_a_load_balancer_whose_tag_names_another_service_or_none_stays_its_owners(
    tag: dict[str, str], site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    lb = only(site.load_balancers())
    tags = {key: value for key, value in lb["tags"].items() if key != "kubernetes.io/service"}
    site.client.update("load_balancers", lb["id"], {"tags": tags | tag})

    running = Running(site, cluster)
    running.handle("shop/gone")
    running.settle()

    mended = only(site.load_balancers())
    assert (mended["id"], mended["state"], mended["tags"]) == (lb["id"], "available", lb["tags"])


def test_a_read_of_everything_that_failed_is_the_controllers_trouble(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(site, cluster)

    def fail(*_: object) -> None:
        raise Unavailable("the cloud is down")

    monkeypatch.setattr(running.cloud.load_balancers, "read", fail)
    with pytest.raises(Unavailable):
        running.resync()

    assert running.controller.trouble() == "the cloud is down"


def test_a_look_at_what_the_cloud_does_that_failed_is_an_error(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    running.handle()

    def fail(*_: object) -> None:
        raise Unavailable("the cloud is down")

    monkeypatch.setattr(running.cloud.load_balancers, "read", fail)
    with pytest.raises(Unavailable):
        running.handle(POLL)


@pytest.mark.parametrize("key", [RESYNC, POLL])
def test_a_failed_read_for_many_services_does_not_wait_for_minutes(
    site: MyCloudSite, cluster: Cluster, key: str
) -> None:
    queue = Running(site, cluster).controller._queue

    assert max(queue.add_after_error(key, Unavailable("the cloud is down")) for _ in range(9)) < 17


def test_a_load_balancer_deleted_by_hand_is_made_again(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    old = only(site.load_balancers())
    site.client.delete("load_balancers", old["id"])
    site.settle()

    running.resync()
    running.settle()

    new = only(site.load_balancers())
    assert new["id"] != old["id"]
    assert cluster.ingress[0]["ip"] == new["address"]


def corrections(running: Running) -> float | None:
    """What the daemon exports of drift that it corrected."""
    registry = running.controller._metrics.registry
    return registry.get_sample_value("cloud_controller_drift_corrections_total", {"controller": "service"})


def test_what_somebody_else_changed_counts_as_drift_once_it_is_corrected(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    running.resync()
    running.settle()
    before = corrections(running)
    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()

    running.resync()
    running.settle()
    running.resync()
    running.settle()

    assert (before, corrections(running)) == (0.0, 1.0)


def test_drift_counts_once_even_if_its_first_correction_fails(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    running.resync()
    running.settle()
    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()
    site.fault("POST /v1/load_balancers", "error", count=2, status=403, code="PermissionDenied")

    running.resync()
    counts = []
    for _ in range(2):
        with pytest.raises(AccessDenied):
            running.handle()
        counts.append(corrections(running))
    running.settle()

    assert len(site.load_balancers()) == 1
    assert [*counts, corrections(running)] == [1.0, 1.0, 1.0]


def test_drift_counts_once_if_its_correction_has_to_wait(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = served(site, cluster, web())
    running.resync()
    running.settle()
    load_balancers: LoadBalancers = running.cloud.load_balancers
    perform, refusals = load_balancers.perform, [Postponed("the cloud is busy")]

    def postpone(before: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        if refusals:
            raise refusals.pop()
        return perform(before, operations)

    monkeypatch.setattr(load_balancers, "perform", postpone)
    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()

    running.resync()
    running.handle()
    waiting = len(site.load_balancers())
    running.settle()

    assert (waiting, len(site.load_balancers())) == (0, 1)
    assert corrections(running) == 1.0


def test_what_follows_from_a_change_of_the_service_is_no_drift(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    running.settle()
    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()

    changed(cluster, ports=[port(8081)])
    running.resync()
    running.settle()

    assert [each["port"] for each in only(site.load_balancers())["listeners"]] == [8081]
    assert corrections(running) == 0.0


def test_what_an_own_attempt_left_half_done_is_no_drift(site: MyCloudSite, cluster: Cluster) -> None:
    before = web()["spec"]["ports"]
    running = served(site, cluster, web())
    running.settle()
    changed(cluster, ports=[*before, port(81)])
    with pytest.raises(InvalidConfiguration, match="port 81"):
        running.handle()
    half_done = len(only(site.load_balancers())["backend_sets"])

    changed(cluster, ports=before)
    running.settle()

    assert (half_done, len(only(site.load_balancers())["backend_sets"])) == (2, 1)
    assert corrections(running) == 0.0


# ---------------------------------------------------------------------------------------------------------- deletion


def test_a_service_that_is_deleted_while_its_load_balancer_is_made_is_told_as_deleted(
    site: MyCloudSite, cluster: Cluster
) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    cluster.after_write = cluster.delete_service

    running.handle()
    cluster.after_write = lambda: None
    running.settle()

    assert (site.load_balancers(), cluster.objects["services"]) == ([], {})
    assert cluster.reasons == ["EnsuringLoadBalancer", "DeletingLoadBalancer", "DeletedLoadBalancer"]


def test_the_finalizer_goes_only_when_the_load_balancer_is_gone(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    cluster.events = []

    cluster.delete_service()
    running.handle()
    running.handle()

    assert only(site.load_balancers())["state"] == "deleting"
    assert cluster.service()["metadata"]["finalizers"] == [FINALIZER]
    running.settle()
    assert (site.load_balancers(), cluster.objects["services"]) == ([], {})
    assert cluster.reasons == ["DeletingLoadBalancer", "DeletedLoadBalancer"]


def test_a_service_that_is_gone_while_the_copy_still_shows_its_finalizer_is_no_error(
    site: MyCloudSite, cluster: Cluster
) -> None:
    behind = web()
    behind["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    running = Running(site, cluster)
    running.controller._services = Copies({WEB: behind})  # type: ignore[assignment]

    running.handle()

    assert cluster.events == []


def test_a_type_changed_away_deletes_the_load_balancer_and_clears_status_and_finalizer(
    site: MyCloudSite, cluster: Cluster
) -> None:
    running = served(site, cluster, web())

    changed(cluster, type="ClusterIP")
    running.settle()

    assert site.load_balancers() == []
    assert (cluster.ingress, cluster.service()["metadata"]["finalizers"]) == ([], [])


def test_a_service_that_took_the_name_of_a_deleted_one_gets_its_own_load_balancer(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    old = only(site.load_balancers())

    running = served(site, cluster, web(uid="uid-2"))
    running.confirm_all()
    running.settle()

    new = only(site.load_balancers())
    assert new["id"] != old["id"]
    assert new["tags"]["kubernetes.io/service-uid"] == "uid-2"


def test_what_is_held_is_forgotten_once_a_person_has_deleted_it_in_the_cloud(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    running = Running(site, cluster)
    work_off(running)
    assert running.controller._safeguard.held()

    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()
    running.resync()
    work_off(running)

    assert not running.controller._safeguard.held()


def work_off(running: Running) -> None:
    """What the controller's workers would do now."""
    while (key := running.controller._queue.get(timeout=0)) is not None:
        running.handle(key)
        running.controller._queue.done(key)


def test_a_confirmed_deletion_that_has_to_wait_is_made_within_seconds_without_another_confirmation(
    site: MyCloudSite, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    running = Running(site, cluster)
    work_off(running)
    running.confirm_all()

    def postpone(_: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        return [OperationResult(each, Postponed("the cloud is busy")) for each in operations]

    with monkeypatch.context() as busy:
        busy.setattr(running.cloud.load_balancers, "perform", postpone)
        running.handle()
    assert running.controller._queue.get(timeout=5) == WEB
    running.settle()

    assert site.load_balancers() == []


def test_a_service_whose_finalizer_was_taken_off_while_it_was_deleted_leaves_nothing(
    site: MyCloudSite, cluster: Cluster
) -> None:
    running = served(site, cluster, web())
    cluster.delete_service()
    running.controller._reconciler.note_deletion(cluster.service())
    cluster.objects["services"].clear()

    running.settle()

    assert site.load_balancers() == []


def test_a_load_balancer_is_not_taken_for_an_orphan_while_the_copy_of_the_services_is_behind(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    running = Running(site, cluster)
    running.controller._services = Copies({})  # type: ignore[assignment]

    running.handle()

    assert only(site.load_balancers())["state"] == "available"


@pytest.mark.parametrize("finalizer", [True, False], ids=["deleted", "vanished"])
def test_one_that_somebody_gave_another_owner_since_it_was_read_is_not_deleted_with_its_service(
    site: MyCloudSite, cluster: Cluster, finalizer: bool
) -> None:
    running = served(site, cluster, web())
    site.client.update("load_balancers", only(site.load_balancers())["id"], {"tags": {"kubernetes.io/cluster": "c-9"}})

    if not finalizer:
        cluster.service()["metadata"]["finalizers"].clear()
        running.controller._reconciler._deletions.note(
            {"metadata": {"uid": "uid-web", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        )
    cluster.delete_service()
    running.settle()

    assert only(site.load_balancers())["state"] == "available"
    assert cluster.objects["services"] == {}


def test_load_balancers_of_others_are_never_touched(site: MyCloudSite, cluster: Cluster) -> None:
    tags = {"kubernetes.io/cluster": "c-other", "kubernetes.io/service-uid": "u", "kubernetes.io/service": WEB}
    for number, foreign in enumerate([{}, tags, {"kubernetes.io/cluster": site.cluster["id"]}]):
        site.client.create(
            "load_balancers", {"name": f"foreign-{number}", "network_id": site.network["id"], "tags": foreign}
        )
    before = site.load_balancers()

    running = Running(site, cluster)
    running.handle()

    assert site.load_balancers() == before


# ------------------------------------------------------------------------------------------------------------ faults


def test_a_bad_annotation_is_an_event_at_its_service_and_nothing_is_made(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web({MAX_QPS: "many"}))
    running = Running(site, cluster)

    with pytest.raises(InvalidConfiguration):
        running.handle()

    ((reason, message),) = cluster.events
    assert reason == "SyncLoadBalancerFailed"
    assert "dlb-listener-maxqps" in message and "'many'" in message and "1 to 10,000,000" in message
    assert (site.load_balancers(), cluster.writes) == ([], 0)


def test_an_annotation_that_becomes_bad_leaves_the_load_balancer_as_it_is_and_deletion_possible(
    site: MyCloudSite, cluster: Cluster
) -> None:
    running = served(site, cluster, web())

    cluster.service()["metadata"]["annotations"] = {MAX_QPS: "0"}
    with pytest.raises(InvalidConfiguration):
        running.handle()
    assert only(site.load_balancers())["state"] == "available"
    cluster.delete_service()
    running.settle()

    assert site.load_balancers() == []


def test_a_port_that_the_cloud_refuses_is_told_at_the_service(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web({}, port(80)))

    with pytest.raises(InvalidConfiguration):
        Running(site, cluster).handle()

    assert cluster.reasons == ["EnsuringLoadBalancer", "SyncLoadBalancerFailed"]
    assert "port 80 is below 1024" in cluster.events[-1][1]


def test_a_failed_load_balancer_is_told_and_kept(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    lb = only(site.load_balancers())
    site.set_load_balancer_state(lb["id"], "failed", "TCP 8080 cannot be bound")
    running.resync()

    with pytest.raises(CloudError):
        running.handle()

    assert "TCP 8080 cannot be bound" in cluster.events[-1][1]
    assert only(site.load_balancers())["id"] == lb["id"]
    site.set_load_balancer_state(lb["id"], "available")
    running.handle()


def test_a_throttled_cloud_is_no_fault_of_the_service(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    site.fault("POST /v1/load_balancers", "throttle", retry_after=90)

    with pytest.raises(Throttled) as throttled:
        running.handle()

    assert throttled.value.retry_after == 90
    assert "SyncLoadBalancerFailed" not in cluster.reasons
    running.settle()
    assert len(site.load_balancers()) == 1


def test_a_visit_that_broke_off_half_way_is_finished_by_the_next_of_the_same_process(
    site: MyCloudSite, cluster: Cluster
) -> None:
    answers = iter([True, False])

    def lose_the_second_answer() -> None:
        if not next(answers, True):
            raise Unavailable("the answer was lost")

    running = served(site, cluster, web(), wrap=crashing(lose_the_second_answer))
    changed(cluster, ports=[port(8080), port(9443, nodePort=30444)])

    with pytest.raises(Unavailable):
        running.handle()
    running.settle()

    assert [each["port"] for each in only(site.load_balancers())["listeners"]] == [8080, 9443]
    assert site.calls("PUT /v1/load_balancers/{id}/backend_sets/{name}") == 1, "what was done is not done again"


def test_what_was_made_is_known_also_when_the_look_at_it_failed(site: MyCloudSite, cluster: Cluster) -> None:
    cluster.put(web())
    running = Running(site, cluster)
    running.handle()
    site.fault("GET /v1/load_balancers*", "throttle", retry_after=90)
    with pytest.raises(Throttled):
        running.handle(POLL)

    changed(cluster, ports=[port(9443, nodePort=30444)])
    running.settle()

    assert [each["port"] for each in only(site.load_balancers())["listeners"]] == [9443]
    assert "SyncLoadBalancerFailed" not in cluster.reasons


# ------------------------------------------------------------------------------------------------------------ crashes


class Crash(BaseException):
    """The process died."""


def crashing(after: Callable[[], None]) -> Callable[[MyCloud], None]:
    """Call `after`, which may raise, once a write has taken effect: its answer is lost, or the process dies."""

    def wrap(cloud: MyCloud) -> None:
        call: Any = cloud._client._call

        def called(method: str, *rest: Any, **more: Any) -> Any:
            answer = call(method, *rest, **more)
            if method != "GET":
                after()
            return answer

        client: Any = cloud._client
        client._call = called

    return wrap


def test_a_service_gets_what_it_should_have_from_processes_that_each_die_after_one_write(
    site: MyCloudSite, cluster: Cluster
) -> None:
    """Of the cloud or of the Service. What a cloud is left with is in the contract suite."""
    deaths = 0

    def die() -> None:
        raise Crash

    def live() -> None:
        nonlocal deaths
        while True:
            try:
                Running(site, cluster, wrap=crashing(die)).settle()
                return
            except Crash:
                deaths += 1

    cluster.after_write = die
    cluster.put(web())
    live()
    assert cluster.service()["metadata"]["finalizers"] == [FINALIZER]
    assert [each["ip"] for each in cluster.ingress] == [only(site.load_balancers())["address"]]

    changed(cluster, {SCHEME: "internal"})
    live()
    assert [each["ip"] for each in cluster.ingress] == [only(site.load_balancers())["address"]]

    cluster.delete_service()
    live()
    assert (site.load_balancers(), cluster.objects["services"]) == ([], {})
    assert deaths >= 8
