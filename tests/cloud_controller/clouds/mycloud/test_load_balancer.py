"""The service controller's loop on mycloud's real API, with the Kubernetes side in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, Postponed, Unavailable
from cloud_controller.controllers.service.controller import POLL, RESYNC
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import LoadBalancers, Operation, OperationResult
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, members, only, put_node, web
from tests.cloud_controller.cluster import WEB, Cluster, Copies
from tests.cloud_controller.load_balancing import Running, changed, port, served

if TYPE_CHECKING:
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


# ----------------------------------------------------------------------------------------------------------- changes


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


def at_rest(site: MyCloudSite, cluster: Cluster) -> Running:
    """A controller that has read everything again since it served the Service."""
    running = served(site, cluster, web())
    running.resync()
    return running.settle()


def lose_load_balancer(site: MyCloudSite) -> None:
    """Somebody deletes the only one."""
    site.client.delete("load_balancers", only(site.load_balancers())["id"])
    site.settle()


def corrections(running: Running) -> float | None:
    """What the daemon exports of drift that it corrected."""
    registry = running.controller._metrics.registry
    return registry.get_sample_value("cloud_controller_drift_corrections_total", {"controller": "service"})


def test_what_somebody_else_changed_counts_as_drift_once_it_is_corrected(site: MyCloudSite, cluster: Cluster) -> None:
    running = at_rest(site, cluster)
    before = corrections(running)
    lose_load_balancer(site)

    running.resync()
    running.settle()
    running.resync()
    running.settle()

    assert (before, corrections(running)) == (0.0, 1.0)


def test_drift_counts_once_even_if_its_first_correction_fails(site: MyCloudSite, cluster: Cluster) -> None:
    running = at_rest(site, cluster)
    lose_load_balancer(site)
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
    running = at_rest(site, cluster)
    load_balancers: LoadBalancers = running.cloud.load_balancers
    perform, refusals = load_balancers.perform, [Postponed("the cloud is busy")]

    def postpone(before: ObservedLoadBalancer | None, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        if refusals:
            raise refusals.pop()
        return perform(before, operations)

    monkeypatch.setattr(load_balancers, "perform", postpone)
    lose_load_balancer(site)

    running.resync()
    running.handle()
    waiting = len(site.load_balancers())
    running.settle()

    assert (waiting, len(site.load_balancers())) == (0, 1)
    assert corrections(running) == 1.0


def test_what_follows_from_a_change_of_the_service_is_no_drift(site: MyCloudSite, cluster: Cluster) -> None:
    running = served(site, cluster, web())
    running.settle()
    lose_load_balancer(site)

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


def test_a_service_that_is_gone_while_the_copy_still_shows_its_finalizer_is_no_error(
    site: MyCloudSite, cluster: Cluster
) -> None:
    behind = web()
    behind["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    running = Running(site, cluster)
    running.controller._services = Copies({WEB: behind})  # type: ignore[assignment]

    running.handle()

    assert cluster.events == []


def test_what_is_held_is_forgotten_once_a_person_has_deleted_it_in_the_cloud(
    site: MyCloudSite, cluster: Cluster
) -> None:
    served(site, cluster, web())
    cluster.objects["services"].clear()
    running = Running(site, cluster)
    work_off(running)
    assert running.controller._safeguard.held()

    lose_load_balancer(site)
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


# ------------------------------------------------------------------------------------------------------------ faults


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
