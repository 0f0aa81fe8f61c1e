"""The life of a gate's condition with a real API server, with the rights of the service controller and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller import rbac
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.kube import (
    NODES,
    PODS,
    SERVICES,
    ForbiddenError,
    Kube,
    NotFoundError,
    Object,
    PatchType,
)
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.clouds.mycloud.running_controller import Running, eventually
from tests.cloud_controller.clouds.mycloud.services import members, named
from tests.cloud_controller.rights import user_with

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

USER = "service-controller-with-gates"
GATES = ReadinessGates()
POD_CIDR = "10.200.7.0/24"
LABELS = {"app": "gated"}


@pytest.fixture
def daemon(control_plane: ControlPlane, kube: Kube) -> Iterator[Kube]:
    """An identity with the rights that the service controller has where gates are on."""
    with user_with(control_plane, kube, USER, rbac.rules(["service"], readiness_gates=True)) as kubeconfig:
        yield Kube.from_kubeconfig(kubeconfig)


@pytest.fixture(autouse=True)
def _node(kube: Kube, site: MyCloudSite) -> Iterator[None]:
    """A node with a machine behind it, and a route to its pods."""
    machine = site.machine("worker-7")
    spec = {"providerID": provider_id(machine), "podCIDR": POD_CIDR, "podCIDRs": [POD_CIDR]}
    kube.create(NODES, {"metadata": {"name": "worker-7"}, "spec": spec})
    addresses = {"status": {"addresses": [{"type": "InternalIP", "address": machine["private_ips"][0]}]}}
    kube.patch(NODES, "worker-7", addresses, type=PatchType.STRATEGIC, subresource="status")
    route = {"destination_cidr": POD_CIDR, "next_hop_machine_id": machine["id"]}
    table = f"route_tables/{site.network['route_table_id']}/routes:batch_create"
    assert site.client.post(table, {"routes": [route]})["results"][0]["error"] is None
    yield
    for pod in kube.list(PODS, "default", label_selector="app=gated").items:
        kube.delete(PODS, pod["metadata"]["name"], "default", uid=pod["metadata"]["uid"])
    kube.delete(NODES, "worker-7")


def create_service(kube: Kube) -> None:
    spec = {"type": "LoadBalancer", "selector": LABELS, "ports": [{"port": 8080, "targetPort": 80}]}
    kube.create(
        SERVICES, {"metadata": {"name": "gated", "annotations": named(backend_type="pod-ip")}, "spec": spec}, "default"
    )


def create_pod(kube: Kube, name: str, number: int) -> Object:
    """A pod with a gate, whose containers run, as far as its status says; no kubelet is there."""
    spec = {
        "nodeName": "worker-7",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80}]}],
        "readinessGates": [{"conditionType": GATES.condition}],
    }
    kube.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": spec}, "default")
    ip = f"10.200.7.{number}"
    conditions = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]
    status = {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}}
    return kube.patch(PODS, name, status, "default", type=PatchType.STRATEGIC, subresource="status")


def condition(kube: Kube, name: str) -> dict[str, Any] | None:
    found = kube.get(PODS, name, "default")["status"]["conditions"]
    return next((each for each in found if each["type"] == GATES.condition), None)


def is_open(kube: Kube, *names: str) -> Callable[[], bool]:
    return lambda: all((found := condition(kube, each)) is not None and found["status"] == "True" for each in names)


def serving(site: MyCloudSite, *addresses: str) -> Callable[[], bool]:
    expected = {f"{each}:80" for each in addresses}
    return lambda: [members(each) for each in site.load_balancers()] == [expected]


class Health:
    """What the cloud says of its members' health; those of `healthy` are fit, all others not."""

    def __init__(self, *running: Running) -> None:
        self.healthy: frozenset[str] = frozenset()
        for each in running:
            load_balancers: Any = each.cloud.load_balancers
            load_balancers.health = self.ask

    def ask(self, _: str) -> dict[tuple[str, str, int], bool]:
        return {("tcp-8080", f"10.200.7.{n}", 80): f"10.200.7.{n}" in self.healthy for n in range(2, 10)}

    def add(self, *addresses: str) -> None:
        self.healthy |= {*addresses}


def test_a_gate_opens_with_health_and_over_a_restart_and_when_the_service_goes(
    kube: Kube, daemon: Kube, site: MyCloudSite
) -> None:
    create_service(kube)
    with Running(daemon, site, gates=GATES) as first:
        health = Health(first)
        create_pod(kube, "one", 2)
        eventually(site, serving(site, "10.200.7.2"))
        assert condition(kube, "one") is None

        health.add("10.200.7.2")
        eventually(site, is_open(kube, "one"))
        types = {each["type"] for each in kube.get(PODS, "one", "default")["status"]["conditions"]}
        assert types >= {"ContainersReady", "Ready", GATES.condition}
        create_pod(kube, "two", 3)
        eventually(site, serving(site, "10.200.7.2", "10.200.7.3"))

    with Running(daemon, site, gates=GATES) as second:
        health = Health(second)
        health.add("10.200.7.3")
        eventually(site, is_open(kube, "two"))
        create_pod(kube, "three", 4)
        eventually(site, serving(site, "10.200.7.2", "10.200.7.3", "10.200.7.4"))
        assert not is_open(kube, "three")()

        kube.delete(SERVICES, "gated", "default")

        eventually(site, is_open(kube, "three"))
        assert condition(kube, "three")["reason"] == "NoLoadBalancer"  # type: ignore[index]
        eventually(site, lambda: not _exists(kube))


def test_two_controllers_at_once_open_each_gate(kube: Kube, daemon: Kube, site: MyCloudSite) -> None:
    create_service(kube)
    with Running(daemon, site, gates=GATES) as one, Running(daemon, site, gates=GATES) as other:
        health = Health(one, other)
        for number in (5, 6, 7):
            create_pod(kube, f"p{number}", number)
        eventually(site, serving(site, "10.200.7.5", "10.200.7.6", "10.200.7.7"))
        health.add("10.200.7.5", "10.200.7.6", "10.200.7.7")
        eventually(site, is_open(kube, "p5", "p6", "p7"))

        kube.delete(SERVICES, "gated", "default")
        eventually(site, lambda: not _exists(kube))


def test_without_gates_the_rights_do_not_reach_pods(control_plane: ControlPlane, kube: Kube) -> None:
    with user_with(control_plane, kube, USER, rbac.rules(["service"])) as kubeconfig, pytest.raises(ForbiddenError):
        Kube.from_kubeconfig(kubeconfig).list(PODS)


def _exists(kube: Kube) -> bool:
    try:
        kube.get(SERVICES, "gated", "default")
    except NotFoundError:
        return False
    return True
