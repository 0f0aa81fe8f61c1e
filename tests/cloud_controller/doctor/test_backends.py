"""Load balancers without the right members, or whose members fail, are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.doctor.checks import backend_health, backends
from cloud_controller.doctor.findings import Check, Severity, Unreadable
from cloud_controller.kube import ENDPOINT_SLICES, NODES, SERVICES, Object
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import not_ready

EXCLUDE = {"node.kubernetes.io/exclude-from-external-load-balancers": ""}
Fail = Callable[..., None]


def exclude(world: ServiceWorld, *nodes: str) -> None:
    for node in nodes:
        world.change(node, lambda each: each["metadata"]["labels"].update(EXCLUDE))


def as_not_ready(slices: Object) -> None:
    slices["endpoints"][0]["conditions"]["ready"] = False


@pytest.fixture
def fail(world: ServiceWorld, monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Health checks of the members on these nodes fail, those of the others pass."""

    def fail(*nodes: str) -> None:
        addresses = {
            each["metadata"]["name"]: each["status"]["addresses"][0]["address"] for each in world.look().nodes()
        }
        failing = {addresses[node] for node in nodes}

        def health(_: str) -> dict[tuple[str, str, int], bool]:
            pools = world.load_balancer()["backend_sets"]
            members: Iterable[tuple[str, str, int]] = (
                (pool["name"], each["address"], each["port"]) for pool in pools for each in pool["backends"]
            )
            return {member: member[1] not in failing for member in members}

        monkeypatch.setattr(world.cloud.load_balancers, "health", health)

    return fail


@pytest.mark.parametrize("check", [backends.CHECK, backend_health.CHECK], ids=lambda check: check.name)
def test_a_service_with_all_its_members_is_no_finding(world: ServiceWorld, fail: Fail, check: Check) -> None:
    world.serve()
    fail()

    assert world.findings(check) == []


@pytest.mark.parametrize("check", [backends.CHECK, backend_health.CHECK], ids=lambda check: check.name)
def test_nothing_is_said_about_members_that_cannot_be_read(world: ServiceWorld, check: Check) -> None:
    world.serve()
    world.site.fault("GET /v1/load_balancers*", "error", count=None, status=500)

    with pytest.raises(Unreadable, match="load_balancers"):
        world.findings(check)


@pytest.mark.parametrize("check", [backends.CHECK, backend_health.CHECK], ids=lambda check: check.name)
def test_members_are_nobodys_concern_where_the_ccm_serves_no_services(world: ServiceWorld, check: Check) -> None:
    world.serve()
    world.api.objects(ENDPOINT_SLICES).clear()
    world.controllers = ("node",)

    assert world.findings(check) == []


# --------------------------------------------------------------------------------------------------------- members


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


def test_a_service_without_nodes_is_found_with_the_label_that_excludes_them(world: ServiceWorld) -> None:
    exclude(world, "a", "b")
    world.serve()

    (finding,) = world.findings(backends.CHECK)
    assert finding.what == "its load balancer has nothing to send traffic to"
    assert finding.evidence[0] == "there are no available nodes for it"
    assert finding.evidence[1].endswith("exclude-from-external-load-balancers: a, b")
    assert finding.follows_from == frozenset()


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


# ---------------------------------------------------------------------------------------------------------- health


def test_a_member_that_fails_is_a_warning(world: ServiceWorld, fail: Fail) -> None:
    world.serve()
    fail("b")

    (finding,) = world.findings(backend_health.CHECK)
    assert (finding.subject, finding.what) == ("service/default/web", "1 of its 2 backends fail their health checks")
    assert finding.severity is Severity.WARNING
    assert "security groups" in finding.remedy


def test_a_service_all_of_whose_members_fail_is_critical(world: ServiceWorld, fail: Fail) -> None:
    world.serve()
    fail("a", "b")

    (finding,) = world.findings(backend_health.CHECK)
    assert finding.severity is Severity.CRITICAL


def test_a_node_that_is_not_ready_explains_its_failing_member(world: ServiceWorld, fail: Fail) -> None:
    world.serve()
    world.change("b", not_ready)
    fail("b")

    (finding,) = world.findings(backend_health.CHECK)
    assert finding.evidence[1] == "nodes that are not ready: b"
    assert finding.remedy == "see why these nodes are not ready"


def test_health_checks_of_a_service_without_ready_pods_fail_as_they_should(world: ServiceWorld, fail: Fail) -> None:
    world.serve()
    world.api.change(ENDPOINT_SLICES, "default/web-1", as_not_ready)
    fail("a", "b")

    assert world.findings(backend_health.CHECK) == []


def test_with_local_traffic_only_nodes_with_pods_have_to_be_healthy(world: ServiceWorld, fail: Fail) -> None:
    world.serve()  # In a cloud where all nodes are members, whatever the policy.
    local = {"externalTrafficPolicy": "Local"}
    world.api.change(SERVICES, "default/web", lambda service: service["spec"].update(local))

    fail("b")
    assert world.findings(backend_health.CHECK) == []
    fail("a")
    (finding,) = world.findings(backend_health.CHECK)
    assert finding.what == "1 of its 1 backends fail their health checks"


def test_members_of_unknown_health_are_no_finding(world: ServiceWorld) -> None:
    world.serve()

    assert world.findings(backend_health.CHECK) == []


def test_nothing_is_said_about_health_that_cannot_be_read(world: ServiceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def health(_: str) -> None:
        raise Unavailable("GET health: no answer")

    world.serve()
    monkeypatch.setattr(world.cloud.load_balancers, "health", health)

    with pytest.raises(Unreadable, match="GET health"):
        world.findings(backend_health.CHECK)
