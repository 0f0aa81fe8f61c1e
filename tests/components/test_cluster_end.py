"""What the program does not declare stops a destroy before anything is deleted, or goes first if that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.cloud import Cloud, ForeignCluster, NotFound, Unavailable
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.kube import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    KubeApi,
    Object,
    Resource,
    UnreachableError,
)
from cloud_controller.load_balancers.model import (
    Listener,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.sharing import LEFT_TAG
from cloud_controller.unmanaged import Declared
from components import cluster_end
from components.cluster_plan import NotConverged
from tests.fake_kubernetes import WRITES, FakeKubernetes, Request

SHOP = {
    "metadata": {"name": "shop", "namespace": "default", "uid": "uid-shop", "finalizers": [FINALIZER]},
    "spec": {"type": "LoadBalancer"},
}
DATA: Object = {
    "metadata": {
        "name": "data",
        "namespace": "default",
        "uid": "uid-data",
        "finalizers": ["kubernetes.io/pvc-protection"],
    },
    "spec": {},
}
PV: Object = {
    "metadata": {"name": "pv", "annotations": {"pv.kubernetes.io/provisioned-by": "p"}},
    "spec": {
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"uid": "uid-data"},
        "csi": {"driver": "d", "volumeHandle": "vol-1"},
    },
}
USER: Object = {
    "metadata": {"name": "user", "namespace": "default"},
    "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
}
OF_SHOP = ObservedLoadBalancer(
    "lb-1", LoadBalancerState.READY, LoadBalancerModel("n", tags=Owner("c-1", "uid-shop", "default", "shop").tags)
)


def cluster_with(objects: Mapping[Resource, Sequence[Object]], *, looks: int = 2) -> FakeKubernetes:
    """Its controller has deleted what it is to delete once the Services were listed so many times afterwards."""
    api = FakeKubernetes()
    api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": "uid-of-this-cluster"}})
    for resource, found in objects.items():
        api.put(resource, *found)
    left = iter(range(looks - 1))

    def work(request: Request) -> None:
        services = api.objects(SERVICES).values()
        deleting = any("deletionTimestamp" in each["metadata"] for each in services)
        if str(request) == "list services" and deleting and next(left, None) is None:
            for resource in objects:
                api.objects(resource).clear()

    api.before.append(work)
    return api


def with_shop(*, looks: int = 2) -> FakeKubernetes:
    return cluster_with({SERVICES: [SHOP]}, looks=looks)


def with_claim(*pods: Object) -> FakeKubernetes:
    claim = {PERSISTENT_VOLUME_CLAIMS: [DATA], PERSISTENT_VOLUMES: [PV], PODS: pods}
    return cluster_with({SERVICES: [SHOP], **claim})


def objects_of(api: FakeKubernetes) -> list[str]:
    return [
        name for resource in (SERVICES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES) for name in api.objects(resource)
    ]


def opening(api: KubeApi) -> Callable[[], KubeApi]:
    return lambda: api


def cloud(*load_balancers: ObservedLoadBalancer) -> Cloud:
    made: Any = SimpleNamespace(
        cluster_id="c-1",
        load_balancers=SimpleNamespace(read=lambda: load_balancers),
        load_balancer_classes=frozenset({"ours"}),
    )
    typed: Cloud = made
    return typed


def failing(error: Exception) -> Callable[[], KubeApi]:
    def open_kube() -> KubeApi:
        raise error

    return open_kube


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_end, "_PAUSE", 0.001)
    monkeypatch.setattr(cluster_end, "ANSWER_SECONDS", 0.01)


def clear_existing(
    open_kube: Callable[[], KubeApi],
    *load_balancers: ObservedLoadBalancer,
    declared: Declared = Declared(),  # noqa: B008 - frozen
    delete: bool = False,
    deadline: float = 60.0,
    without_class: bool = True,
) -> list[str]:
    """In a cluster that the program did not make."""
    told: list[str] = []
    made = cloud(*load_balancers)
    cluster_end.clear_existing(
        made, open_kube, declared, UNBOUND, deadline, told.append, delete=delete, without_class=without_class
    )
    return told


def clear(
    open_kube: Callable[[], KubeApi],
    *load_balancers: ObservedLoadBalancer,
    declared: Declared = Declared(),  # noqa: B008 - frozen
    delete: bool = False,
    deadline: float = 60.0,
    binding: Binding = UNBOUND,
) -> list[str]:
    told: list[str] = []
    cluster_end.clear(cloud(*load_balancers), open_kube, declared, binding, deadline, told.append, delete=delete)
    return told


def test_a_cluster_without_undeclared_objects_can_be_destroyed() -> None:
    clear(opening(FakeKubernetes()))


def test_undeclared_services_and_claims_are_named_and_nothing_is_deleted() -> None:
    cluster = with_claim()

    with pytest.raises(NotConverged) as stopped:
        clear(opening(cluster))

    assert "Service default/shop, PersistentVolumeClaim default/data. Nothing was deleted" in str(stopped.value)
    assert "down --delete-unmanaged" in str(stopped.value)
    assert cluster.writes == []


def test_declared_objects_do_not_stop_a_destroy() -> None:
    declared = Declared(frozenset({"default/shop"}), frozenset({"default/data"}))

    clear(opening(with_claim()), declared=declared)


def test_on_request_undeclared_objects_are_deleted_and_awaited() -> None:
    cluster = with_claim()

    clear(opening(cluster), delete=True)

    assert [(str(each), each.body) for each in cluster.requests if each.verb in WRITES] == [
        ("delete services/default/shop", "uid-shop"),
        ("delete persistentvolumeclaims/default/data", "uid-data"),
    ]
    assert objects_of(cluster) == []


def test_a_claim_in_use_stops_a_destroy_before_anything_is_deleted() -> None:
    cluster = with_claim(USER)

    with pytest.raises(NotConverged, match=r"default/data by pod user\. Nothing of the stack was deleted"):
        clear(opening(cluster), delete=True)

    assert cluster.writes == []


def test_in_another_kubernetes_cluster_nothing_is_deleted() -> None:
    cluster = with_claim()

    with pytest.raises(ForeignCluster, match="the UID was uid-of-the-stack and is uid-of-this-cluster"):
        clear(opening(cluster), delete=True, binding=Binding("uid-of-the-stack"))

    assert cluster.writes == []


def test_in_the_stacks_own_kubernetes_cluster_undeclared_objects_are_deleted() -> None:
    cluster = with_shop()

    clear(opening(cluster), delete=True, binding=Binding("uid-of-this-cluster"))

    assert objects_of(cluster) == []


def test_the_wait_for_the_controller_ends_at_the_deadline() -> None:
    cluster = with_shop(looks=1_000_000)

    with pytest.raises(NotConverged, match="the controller did not delete Service default/shop"):
        clear(opening(cluster), delete=True, deadline=0.05)


def test_a_service_that_is_being_deleted_already_is_awaited() -> None:
    cluster = with_shop()
    cluster.remove(SERVICES, "default/shop")

    clear(opening(cluster))

    assert objects_of(cluster) == []


def test_an_api_server_that_is_briefly_unreachable_is_called_again() -> None:
    cluster = with_shop()
    cluster.fail(UnreachableError("connection refused"), "list", times=3)

    clear(opening(cluster), delete=True)

    assert objects_of(cluster) == []


@pytest.mark.parametrize("error", [UnreachableError("refused"), NotFound("no such cluster"), Unavailable("it heals")])
def test_an_unreachable_cluster_can_be_destroyed_if_the_cloud_has_no_load_balancers_of_it(error: Exception) -> None:
    told = clear(failing(error))

    assert told == [f"could not read the cluster's Services ({error}); the cloud has no load balancer of the cluster"]


@pytest.mark.parametrize("declared", [Declared(), Declared(frozenset({"default/shop"}))])
def test_an_unreachable_cluster_with_load_balancers_in_the_cloud_stops_a_destroy(declared: Declared) -> None:
    with pytest.raises(NotConverged, match=r"refused.* default/shop\..*cloud-controller cleanup --cluster-id c-1"):
        clear(failing(UnreachableError("refused")), OF_SHOP, declared=declared, delete=True)


@pytest.mark.parametrize("open_kube", [opening(FakeKubernetes()), failing(NotFound("gone"))], ids=["alive", "gone"])
def test_a_preserved_load_balancer_does_not_stop_a_destroy(open_kube: Callable[[], KubeApi]) -> None:
    owner = Owner("c-1", "uid-shop", "default", "shop")
    free = LoadBalancerModel("n", tags=owner.released(owner.tags))

    clear(open_kube, ObservedLoadBalancer("lb-1", LoadBalancerState.READY, free))


def test_a_load_balancer_whose_service_is_gone_stops_a_destroy() -> None:
    with pytest.raises(NotConverged, match=r"lb-1 of Service default/shop of cluster c-1\. .*cloud-controller confirm"):
        clear(opening(FakeKubernetes()), OF_SHOP, delete=True)


def test_a_load_balancer_of_a_declared_service_does_not_stop_a_destroy() -> None:
    clear(opening(with_shop()), OF_SHOP, declared=Declared(frozenset({"default/shop"})))


def left_to(*users: Owner) -> ObservedLoadBalancer:
    """The load balancer of a Service that has gone and left it to these."""
    parts = tuple(Listener("TCP", 80 + number, "p", tags=user.tags) for number, user in enumerate(users))
    tags = {**Owner("c-1", "uid-gone", "default", "gone").tags, LEFT_TAG: "true"}
    return replace(OF_SHOP, model=replace(OF_SHOP.model, tags=tags, listeners=parts))


def test_a_load_balancer_that_goes_with_its_last_service_does_not_stop_a_destroy() -> None:
    user = Owner("c-1", "uid-shop", "default", "shop")

    clear(opening(with_shop()), left_to(user), declared=Declared(frozenset({"default/shop"})))


def test_a_load_balancer_that_its_last_service_has_left_is_awaited() -> None:
    with pytest.raises(NotConverged, match="did not delete load balancer lb-1 of Service default/gone"):
        clear(opening(FakeKubernetes()), left_to(), deadline=0.01)


def test_a_load_balancer_that_another_cluster_uses_stops_a_destroy() -> None:
    with pytest.raises(NotConverged, match=r"Services are gone .*load balancer lb-1 of Service default/gone"):
        clear(opening(FakeKubernetes()), left_to(Owner("c-2", "uid-theirs", "default", "theirs")))


def of_class(name: str | None) -> Object:
    return {**SHOP, "spec": {"type": "LoadBalancer", **({"loadBalancerClass": name} if name else {})}}


def test_undeclared_services_and_claims_stay_in_an_existing_cluster_and_the_services_are_named() -> None:
    cluster = with_claim(USER)

    told = clear_existing(opening(cluster), OF_SHOP)

    assert len(told) == 1
    assert "no controller of this stack will serve these objects any more: Service default/shop" in told[0]
    assert cluster.writes == []


def test_a_service_of_an_existing_cluster_with_another_controllers_load_balancer_is_not_named() -> None:
    """Upstream's controller uses the same finalizer."""
    assert clear_existing(opening(with_shop())) == []


def test_declared_services_of_an_existing_cluster_are_not_named() -> None:
    assert clear_existing(opening(with_shop()), OF_SHOP, declared=Declared(frozenset({"default/shop"}))) == []


def test_undeclared_objects_of_an_existing_cluster_are_not_deleted_on_request() -> None:
    cluster = with_claim()

    with pytest.raises(NotConverged, match="only for clusters that the stack made"):
        clear_existing(opening(cluster), delete=True)

    assert cluster.requests == []


@pytest.mark.parametrize("load_balancer_class", [None, "ours"])
def test_a_deletion_that_the_controller_has_begun_in_an_existing_cluster_is_awaited(
    load_balancer_class: str | None,
) -> None:
    cluster = cluster_with({SERVICES: [of_class(load_balancer_class)]}, looks=1_000_000)
    cluster.remove(SERVICES, "default/shop")

    with pytest.raises(NotConverged, match="the controller did not delete Service default/shop"):
        clear_existing(opening(cluster), deadline=0.05)


def test_another_controllers_service_of_an_existing_cluster_matters_to_nobody() -> None:
    cluster = cluster_with({SERVICES: [of_class("theirs")]}, looks=1_000_000)
    cluster.remove(SERVICES, "default/shop")

    assert clear_existing(opening(cluster)) == []


def test_a_deletion_of_a_service_without_a_class_is_not_awaited_where_the_clouds_own_controller_serves_it() -> None:
    """It adds the same finalizer."""
    cluster = cluster_with({SERVICES: [of_class(None)]}, looks=1_000_000)
    cluster.remove(SERVICES, "default/shop")

    assert clear_existing(opening(cluster), without_class=False, deadline=0.05) == []


def test_a_load_balancer_without_its_service_stops_a_destroy_in_an_existing_cluster_too() -> None:
    with pytest.raises(NotConverged, match="cloud-controller confirm"):
        clear_existing(opening(FakeKubernetes()), OF_SHOP)
