"""Services without their load balancer's address are found, and load balancers without a Service."""

from __future__ import annotations

import pytest

from cloud_controller.doctor.checks.load_balancers import CHECK
from cloud_controller.doctor.findings import Finding, Severity
from cloud_controller.doctor.seen import Unreadable
from cloud_controller.kube import SERVICES, Object
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, web
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import ago


def only(world: ServiceWorld) -> Finding:
    (finding,) = world.findings(CHECK)
    return finding


def test_a_service_that_is_served_is_no_finding(world: ServiceWorld) -> None:
    world.serve()

    assert world.findings(CHECK) == []


def test_a_new_service_may_be_without_an_address(world: ServiceWorld) -> None:
    world.put(web(), created=ago(seconds=60))

    assert world.findings(CHECK) == []


def test_a_service_without_an_address_is_found_with_its_event(world: ServiceWorld) -> None:
    world.put(web())
    world.event(world.service(), "SyncLoadBalancerFailed", "Error syncing load balancer: QuotaExceeded")

    finding = only(world)
    assert (finding.subject, finding.what) == ("service/default/web", "it has no address")
    assert finding.evidence[0] == "it has no load balancer"
    assert finding.evidence[-1] == "event SyncLoadBalancerFailed: Error syncing load balancer: QuotaExceeded"
    assert finding.severity is Severity.CRITICAL
    assert finding.follows_from is None


def test_a_load_balancer_that_is_still_being_created_is_evidence(world: ServiceWorld) -> None:
    world.serve()
    world.api.change(SERVICES, "default/web", lambda service: service.update(status={}))
    world.site.set_load_balancer_state(world.load_balancer()["id"], "creating")

    assert only(world).evidence[0] == f"load balancer {world.load_balancer()['id']} is pending"


def test_a_service_that_is_refused_is_a_first_cause_at_once(world: ServiceWorld) -> None:
    world.put(web({MAX_QPS: "many"}), created=ago(seconds=1))

    finding = only(world)
    assert finding.what == "the CCM refuses what it asks for"
    assert MAX_QPS in finding.evidence[0]
    assert finding.severity is Severity.CRITICAL
    assert finding.follows_from == frozenset()


def test_a_refused_change_of_a_service_that_is_served_is_a_warning(world: ServiceWorld) -> None:
    world.serve()
    refused = {MAX_QPS: "many"}
    world.api.change(SERVICES, "default/web", lambda service: service["metadata"].update(annotations=refused))

    assert only(world).severity is Severity.WARNING


def test_a_service_of_a_class_that_nobody_serves_is_found(world: ServiceWorld) -> None:
    world.put(web(loadBalancerClass="elsewhere/lb"))

    finding = only(world)
    assert finding.what == "it has no address, and no controller serves it"
    assert "class elsewhere/lb is not one of this controller's" in finding.evidence[0]


def test_another_controller_may_take_its_time_too(world: ServiceWorld) -> None:
    world.put(web(loadBalancerClass="elsewhere/lb"), created=ago(seconds=60))

    assert world.findings(CHECK) == []


def test_a_load_balancer_that_has_failed_is_found(world: ServiceWorld) -> None:
    world.serve()
    world.site.set_load_balancer_state(world.load_balancer()["id"], "failed", "its port is taken")

    finding = only(world)
    assert finding.evidence == ("it has failed: its port is taken",)
    assert finding.follows_from == frozenset({"quotas", "cloud-rights"})


def test_an_address_that_is_not_the_load_balancers_is_found(world: ServiceWorld) -> None:
    world.serve()
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    world.api.change(SERVICES, "default/web", lambda service: service.update(status=status))

    finding = only(world)
    assert finding.what == "its status does not have the address of its load balancer"
    assert f"192.0.2.1 -> {world.load_balancer()['address']}" in finding.evidence[0]


def test_a_service_whose_load_balancer_does_not_end_is_found(world: ServiceWorld) -> None:
    world.serve()
    world.api.change(
        SERVICES, "default/web", lambda service: service["metadata"].update(deletionTimestamp=ago(minutes=3))
    )

    finding = only(world)
    assert finding.what == "it is deleted, and waits until its load balancer is deleted"
    assert "delete load balancer" in finding.evidence[0]


def test_a_deletion_may_take_its_time(world: ServiceWorld) -> None:
    world.serve()
    world.api.change(
        SERVICES, "default/web", lambda service: service["metadata"].update(deletionTimestamp=ago(minutes=1))
    )

    assert world.findings(CHECK) == []


def test_a_load_balancer_without_a_service_is_found(world: ServiceWorld) -> None:
    world.serve()
    tags = {key: tag for key, tag in world.load_balancer()["tags"].items() if key != "kubernetes.io/service"}
    world.site.client.update("load_balancers", world.load_balancer()["id"], {"tags": tags})
    world.site.settle()
    world.api.objects(SERVICES).clear()

    finding = only(world)
    assert "no tag names its Service" in finding.evidence[0]
    assert finding.severity is Severity.WARNING


def test_a_load_balancer_whose_deletion_is_held_is_another_checks(world: ServiceWorld) -> None:
    world.serve()
    world.api.objects(SERVICES).clear()

    assert world.findings(CHECK) == []


def test_where_the_ccm_does_not_serve_services_those_without_an_address_are_found(world: ServiceWorld) -> None:
    world.serve()
    world.put(web(name="other"))
    world.controllers = ("node",)

    finding = only(world)
    assert (finding.subject, finding.follows_from) == ("service/default/other", frozenset())


def test_while_the_cloud_fails_services_without_an_address_are_found_all_the_same(world: ServiceWorld) -> None:
    world.serve()
    world.put(web(name="other"))
    world.site.fault("GET /v1/load_balancers*", "error", count=None, status=500)
    found: list[Finding] = []

    with pytest.raises(Unreadable, match="load_balancers"):
        found.extend(CHECK.run(world.look()))

    assert [each.subject for each in found] == ["service/default/other"]


def test_what_is_no_load_balancer_is_nobodys_concern(world: ServiceWorld) -> None:
    def as_cluster_ip(service: Object) -> None:
        service["spec"]["type"] = "ClusterIP"

    world.put(web())
    world.api.change(SERVICES, "default/web", as_cluster_ip)

    assert world.findings(CHECK) == []
