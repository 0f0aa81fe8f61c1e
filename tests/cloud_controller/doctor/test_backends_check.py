"""Load balancers without the right members, or without anything behind them, are found."""

from __future__ import annotations

import pytest

from cloud_controller.doctor.checks import backend_health, backends
from cloud_controller.doctor.findings import Check
from cloud_controller.doctor.seen import Unreadable
from cloud_controller.kube import ENDPOINT_SLICES, NODES, Object
from tests.cloud_controller.clouds.mycloud.services import web
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import ago

EXCLUDE = {"node.kubernetes.io/exclude-from-external-load-balancers": ""}


def exclude(world: ServiceWorld, *nodes: str) -> None:
    for node in nodes:
        world.change(node, lambda each: each["metadata"]["labels"].update(EXCLUDE))


def as_not_ready(slices: Object) -> None:
    slices["endpoints"][0]["conditions"]["ready"] = False


def test_a_service_with_all_its_members_is_no_finding(world: ServiceWorld) -> None:
    world.serve()

    assert world.findings(backends.CHECK) == []


OF_MEMBERS = pytest.mark.parametrize("check", [backends.CHECK, backend_health.CHECK], ids=lambda check: check.name)


@OF_MEMBERS
def test_nothing_is_said_about_members_that_cannot_be_read(world: ServiceWorld, check: Check) -> None:
    world.serve()
    world.site.fault("GET /v1/load_balancers*", "error", count=None, status=500)

    with pytest.raises(Unreadable, match="load_balancers"):
        world.findings(check)


@OF_MEMBERS
def test_members_are_nobodys_concern_where_the_ccm_serves_no_services(world: ServiceWorld, check: Check) -> None:
    world.serve()
    world.api.objects(ENDPOINT_SLICES).clear()
    world.controllers = ("node",)

    assert world.findings(check) == []


def test_a_member_that_somebody_took_out_is_found(world: ServiceWorld) -> None:
    world.serve()
    lb = world.load_balancer()
    pool = lb["backend_sets"][0]
    gone = [{key: pool["backends"][0][key] for key in ("address", "port")}]
    world.site.client.post(
        f"load_balancers/{lb['id']}/backend_sets/{pool['name']}/backends:batch_deregister", {"backends": gone}
    )

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "the members of its load balancer are not the nodes or pods that they should be"
    assert gone[0]["address"] in finding.evidence[0]
    assert "event MembersLeftOut" in finding.remedy


def test_a_member_that_the_ccm_adds_meanwhile_is_none(world: ServiceWorld) -> None:
    exclude(world, "b")
    world.serve()
    world.change("b", lambda node: node["metadata"]["labels"].pop(*EXCLUDE))
    world.meanwhile = world.reconcile

    assert world.findings(backends.CHECK) == []


def test_a_service_whose_pods_are_not_ready_is_a_first_cause(world: ServiceWorld) -> None:
    world.serve()
    world.api.change(ENDPOINT_SLICES, "default/web-1", as_not_ready)

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "nothing ready is behind it"
    assert finding.follows_from == frozenset()


def test_a_new_service_may_have_nothing_ready_behind_it(world: ServiceWorld) -> None:
    world.put(web(), created=ago(seconds=60))
    world.reconcile()
    world.api.change(ENDPOINT_SLICES, "default/web-1", as_not_ready)

    assert world.findings(backends.CHECK) == []


def test_a_service_without_nodes_is_found_with_the_label_that_excludes_them(world: ServiceWorld) -> None:
    exclude(world, "a", "b")
    world.serve()

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "its load balancer has nothing to send traffic to"
    assert finding.evidence[0] == "there are no available nodes for it"
    assert finding.evidence[1].endswith("exclude-from-external-load-balancers: a, b")
    assert finding.follows_from == frozenset()


def test_last_members_that_a_label_excludes_are_found(world: ServiceWorld) -> None:
    world.serve()
    exclude(world, "a", "b")
    world.reconcile()

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "only nodes that a label excludes serve it"
    assert "without a, b, excluded by label" in finding.evidence[0]


def test_a_service_whose_nodes_are_all_gone_follows_from_that(world: ServiceWorld) -> None:
    world.serve()
    world.api.objects(NODES).clear()
    world.reconcile()

    (finding,) = world.findings(backends.CHECK)
    assert finding.evidence == ("there are no available nodes for it",)
    assert finding.follows_from is None


def test_pods_on_excluded_nodes_alone_get_no_local_traffic(world: ServiceWorld) -> None:
    exclude(world, "a")
    world.serve(externalTrafficPolicy="Local")

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "its load balancer has nothing to send traffic to"


def test_an_excluded_node_among_others_is_no_finding(world: ServiceWorld) -> None:
    exclude(world, "a")
    world.serve()

    assert world.findings(backends.CHECK) == []
