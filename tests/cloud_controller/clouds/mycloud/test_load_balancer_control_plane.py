"""The service controller as a whole with a real API server: real informers, patches, finalizers and events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller import rbac
from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service.address_changes import ANNOTATION, CONDITION, AddressChanges
from cloud_controller.controllers.service.controller import RESYNC, ServiceOptions
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.kube import (
    EVENTS,
    NODES,
    SERVICES,
    Kube,
    NotFoundError,
    Object,
    PatchType,
    uid,
)
from local.control_plane.control_plane import ControlPlane
from tests.cloud_controller.clouds.mycloud.running_controller import Running, eventually
from tests.cloud_controller.rights import user_with

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

pytestmark = pytest.mark.control_plane

MAX_QPS = CATALOGUE.by_argument["listener_max_qps"].name
SCHEME = CATALOGUE.by_argument["scheme"].name


@pytest.fixture(scope="module")
def daemon(control_plane: ControlPlane, kube: Kube) -> Iterator[Kube]:
    """An identity with the rights that the service controller is given, and no other."""
    with user_with(control_plane, kube, "service-controller-test", rbac.rules(["service"])) as kubeconfig:
        yield Kube.from_kubeconfig(kubeconfig)


@pytest.fixture
def node(kube: Kube, site: MyCloudSite) -> Iterator[Object]:
    """An initialised ingress node with a machine behind it."""
    machine = site.machine("worker-0")
    made = kube.create(
        NODES,
        {
            "metadata": {"name": machine["name"], "annotations": {INGRESS_NODE: "true"}},
            "spec": {"providerID": provider_id(machine)},
        },
    )
    addresses = [{"type": "InternalIP", "address": machine["private_ips"][0]}]
    yield kube.patch(
        NODES, machine["name"], {"status": {"addresses": addresses}}, type=PatchType.STRATEGIC, subresource="status"
    )
    kube.delete(NODES, made["metadata"]["name"])


def web(kube: Kube) -> dict[str, Any]:
    return kube.get(SERVICES, "web", "default")


def ingress_of(kube: Kube) -> list[dict[str, Any]]:
    return list(web(kube)["status"]["loadBalancer"].get("ingress") or [])


def events(kube: Kube, service: Object) -> list[Object]:
    """Those of this Service: others of its name have been here."""
    return [each for each in kube.list(EVENTS, "default").items if each["involvedObject"].get("uid") == uid(service)]


def manifest(**annotations: str) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "web"},
            "ports": [
                {"name": "http", "port": 8080, "targetPort": 80},
                {"name": "dns", "port": 5353, "targetPort": 53, "protocol": "UDP"},
            ],
        },
    }


def test_a_service_from_its_creation_over_changes_and_a_restart_to_its_deletion(
    kube: Kube, daemon: Kube, site: MyCloudSite, node: Object
) -> None:
    address = node["status"]["addresses"][0]["address"]
    with Running(daemon, site):
        # created: the load balancer, its status, the finalizer
        created = kube.create(SERVICES, manifest())
        ports = created["spec"]["ports"]
        (ingress,) = eventually(site, lambda: ingress_of(kube))
        (lb,) = site.load_balancers()
        assert (ingress["ip"], ingress["ipMode"]) == (lb["address"], "Proxy")
        assert [(each["protocol"], each["port"]) for each in lb["listeners"]] == [("TCP", 8080), ("UDP", 5353)]
        assert {(b["address"], b["port"]) for s in lb["backend_sets"] for b in s["backends"]} == {
            (address, port["nodePort"]) for port in ports
        }
        assert web(kube)["metadata"]["finalizers"] == [FINALIZER]

        # a port and an annotation changed: in place
        changes = {
            "metadata": {"annotations": {MAX_QPS: "7"}},
            "spec": {"ports": [{**ports[0], "port": 9090}, ports[1]]},
        }
        kube.patch(SERVICES, "web", changes, "default", type=PatchType.MERGE)
        expected = [(5353, 7), (9090, 7)]
        eventually(
            site,
            lambda: (
                sorted((each["port"], each["max_qps"]) for each in site.load_balancers()[0]["listeners"]) == expected
            ),
        )
        assert [each["id"] for each in site.load_balancers()] == [lb["id"]]
        eventually(site, lambda: all(each["state"] == "available" for each in site.load_balancers()))
        # seen in the list of all Services, the plan is empty once what the old port had is gone
        eventually(
            site,
            lambda: not service.plan(service.observe(kube, site.cloud, ServiceOptions()), ServiceOptions()).changes,
        )

    # restarted: no write, here or there
    before = (site.writes(), web(kube)["metadata"]["resourceVersion"])
    with Running(daemon, site, workers=0) as restarted:
        restarted.controller.handle(RESYNC)
        restarted.controller.handle("default/web")
        assert (site.writes(), web(kube)["metadata"]["resourceVersion"]) == before
        assert restarted.controller.trouble() is None

    # deleted: the load balancer goes first
    with Running(daemon, site):
        kube.delete(SERVICES, "web", "default")
        eventually(site, lambda: not site.load_balancers())
        eventually(site, lambda: _is_gone(kube))
    reasons = {event["reason"] for event in events(kube, created)}
    assert reasons >= {
        "EnsuringLoadBalancer",
        "EnsuredLoadBalancer",
        "DeletingLoadBalancer",
        "DeletedLoadBalancer",
    }
    assert "SyncLoadBalancerFailed" not in reasons


@pytest.mark.usefixtures("node")
def test_a_type_changed_away_gives_up_the_load_balancer_and_keeps_the_service(
    kube: Kube, daemon: Kube, site: MyCloudSite
) -> None:
    with Running(daemon, site):
        kube.create(SERVICES, manifest())
        eventually(site, lambda: ingress_of(kube))

        kube.patch(SERVICES, "web", {"spec": {"type": "ClusterIP"}}, "default", type=PatchType.MERGE)

        eventually(site, lambda: not site.load_balancers())
        eventually(site, lambda: not web(kube)["metadata"].get("finalizers"))
        assert ingress_of(kube) == []
    kube.delete(SERVICES, "web", "default")


@pytest.mark.usefixtures("node")
def test_a_held_change_of_the_address_is_a_condition_until_it_is_acknowledged(
    kube: Kube, daemon: Kube, site: MyCloudSite
) -> None:
    theirs = {"type": "example.com/Theirs", "status": "True", "reason": "Kept", "message": "by somebody else"}

    def annotate(**annotations: str) -> None:
        patch = {"metadata": {"annotations": {SCHEME: "internal", **annotations}}}
        kube.patch(SERVICES, "web", patch, "default", type=PatchType.MERGE)

    def conditions() -> dict[str, Object]:
        return {each["type"]: each for each in web(kube)["status"].get("conditions") or []}

    with Running(daemon, site, address_changes=AddressChanges.ACKNOWLEDGE):
        kube.create(SERVICES, manifest())
        (ingress,) = eventually(site, lambda: ingress_of(kube))
        patch = {"status": {"conditions": [{**theirs, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        kube.patch(SERVICES, "web", patch, "default", type=PatchType.STRATEGIC, subresource="status")
        annotate()
        held = eventually(site, lambda: conditions().get(CONDITION) or {})
        assert (held["status"], held["reason"]) == ("True", "AddressChangeHeld") and held["lastTransitionTime"]
        assert ingress["ip"] in held["message"]
        assert ingress_of(kube) == [ingress]

        annotate(**{ANNOTATION: held["message"].partition(f'{ANNOTATION}: "')[2].partition('"')[0]})
        eventually(site, lambda: ingress_of(kube) not in ([], [ingress]))
        eventually(site, lambda: conditions().keys() == {theirs["type"]})

        kube.delete(SERVICES, "web", "default")
        eventually(site, lambda: _is_gone(kube))


def _is_gone(kube: Kube) -> bool:
    try:
        web(kube)
    except NotFoundError:
        return True
    return False
