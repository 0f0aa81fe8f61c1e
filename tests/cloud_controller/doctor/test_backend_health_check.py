"""Members of load balancers that fail their health checks are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from cloud_controller.cloud import Unavailable
from cloud_controller.doctor.checks import backend_health
from cloud_controller.doctor.findings import Severity
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import ENDPOINT_SLICES, SERVICES, Object
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.planning import Found
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import not_ready

Fail = Callable[..., None]


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


def test_a_service_with_all_its_members_is_no_finding(world: ServiceWorld, fail: Fail) -> None:
    world.serve()
    fail()

    assert world.findings(backend_health.CHECK) == []


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


@pytest.mark.parametrize(("failing", "found"), [("b", 0), ("a", 1)])
def test_with_local_traffic_nodes_are_known_by_their_machines_where_members_are_these(
    world: ServiceWorld, monkeypatch: pytest.MonkeyPatch, failing: str, found: int
) -> None:
    """As on AWS, where an instance's ID is a target's address."""
    world.serve()
    local = {"externalTrafficPolicy": "Local"}
    world.api.change(SERVICES, "default/web", lambda service: service["spec"].update(local))
    machines = {each.name: each.id for each in world.cloud.instances.list()}
    planned = Seen.plan

    def by_machine(self: Seen, controller: str) -> Found | None:
        plan = planned(self, controller)
        assert plan is not None
        return replace(plan, load_balancers={each: _by_machine(lb) for each, lb in plan.load_balancers.items()})

    def health(_: str) -> dict[tuple[str, str, int], bool]:
        return {
            (pool["name"], machine, each["port"]): name != failing
            for pool in world.load_balancer()["backend_sets"]
            for each in pool["backends"]
            for name, machine in machines.items()
        }

    monkeypatch.setattr(Seen, "plan", by_machine)
    monkeypatch.setattr(world.cloud.load_balancers, "health", health)

    assert len(world.findings(backend_health.CHECK)) == found


def _by_machine(lb: ObservedLoadBalancer) -> ObservedLoadBalancer:
    pools = tuple(
        replace(pool, members=tuple(each._replace(address=each.instance_id) for each in pool.members))
        for pool in lb.model.pools
    )
    return replace(lb, model=replace(lb.model, pools=pools))


def test_members_of_unknown_health_are_no_finding_and_not_taken_for_healthy(world: ServiceWorld) -> None:
    world.serve()

    result = world.examined(backend_health.CHECK)

    assert (result.findings, result.passed) == ((), False)
    assert result.out_of_reach == "the cloud tells the health of no backend of service/default/web"


def test_nothing_is_said_about_health_that_cannot_be_read(world: ServiceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def health(_: str) -> None:
        raise Unavailable("GET health: no answer")

    world.serve()
    monkeypatch.setattr(world.cloud.load_balancers, "health", health)

    with pytest.raises(Unreadable, match="GET health"):
        world.findings(backend_health.CHECK)
