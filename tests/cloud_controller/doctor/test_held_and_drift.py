"""Changes that wait for somebody are found, and so is what differs from what the CCM makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cloud_controller.cloud import InstanceState, Route, Unavailable
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.doctor.checks import drift, held
from cloud_controller.doctor.findings import Check, Finding, Severity, Unreadable
from cloud_controller.kube import SERVICES
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.planning import PlanSettings
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, SCHEME, named, web
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import World, not_ready
from tests.cloud_controller.load_balancing import port

BOTH = pytest.mark.parametrize("check", [held.CHECK, drift.CHECK], ids=lambda check: check.name)


@pytest.fixture
def nodes() -> World:
    """Two nodes in order."""
    world = World()
    world.node("a")
    world.node("b", 1)
    return world


@BOTH
def test_nodes_in_order_are_no_finding(nodes: World, check: Check) -> None:
    assert nodes.findings(check) == []
    assert nodes.pauses == 0


@BOTH
def test_a_service_in_order_is_no_finding(world: ServiceWorld, check: Check) -> None:
    world.serve()

    assert world.findings(check) == []


@BOTH
def test_what_one_controller_cannot_read_does_not_hide_what_another_finds(
    world: ServiceWorld, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("GET machines: no answer")

    world.serve()
    changed = world.load_balancer()["id"]
    world.serve(name="lost")
    world.rename(changed)
    world.api.objects(SERVICES).pop("default/lost")
    monkeypatch.setattr(world.cloud.instances, "describe", refuse)
    world.controllers = ("node", "service")
    found: list[Finding] = []

    with pytest.raises(Unreadable, match="GET machines"):
        found.extend(check.run(world.look()))

    assert len(found) == 1


# ------------------------------------------------------------------------------------------------------------ held


def test_a_deletion_that_waits_for_a_confirmation_is_found_with_its_command(world: ServiceWorld) -> None:
    world.serve()
    world.api.objects(SERVICES).clear()

    (finding,) = world.findings(held.CHECK)
    assert finding.subject == "service/default/web"
    assert finding.what.startswith("a change waits for a confirmation: delete load balancer")
    assert finding.evidence[0] == "its Service no longer exists, and its deletion was not seen"
    assert "cloud-controller confirm " in finding.remedy
    assert finding.severity is Severity.WARNING


def test_actions_that_are_held_together_are_one_finding(world: ServiceWorld) -> None:
    world.settings = PlanSettings(service=ServiceOptions(sharing=Sharing.ANY))
    world.serve()
    world.serve(named(id=world.load_balancer()["id"]), name="guest", ports=[port(8081)])
    world.api.objects(SERVICES).pop("default/guest")

    (finding,) = world.findings(held.CHECK)
    assert finding.subject == "service/default/guest"
    assert "with it: service/default/guest" in finding.evidence[-1]


def test_a_change_of_address_that_waits_is_found_with_its_annotation(world: ServiceWorld) -> None:
    world.settings = PlanSettings(service=ServiceOptions(address_changes=AddressChanges.ACKNOWLEDGE))
    world.serve()
    internal = {SCHEME: "internal"}
    world.api.change(SERVICES, "default/web", lambda service: service["metadata"].update(annotations=internal))

    (finding,) = world.findings(held.CHECK)
    assert "acknowledgement" in finding.what
    assert "cloud-controller/acknowledge-address-change" in finding.remedy


def test_a_node_of_another_cluster_is_held(nodes: World) -> None:
    nodes.cloud.machines.clear()
    nodes.change("a", not_ready)

    subjects = [each.subject for each in nodes.findings(held.CHECK)]
    assert "node/a" in subjects


# ----------------------------------------------------------------------------------------------------------- drift


def test_a_load_balancer_that_somebody_changed_is_found(world: ServiceWorld) -> None:
    world.serve()
    world.rename(world.load_balancer()["id"])

    (finding,) = world.findings(drift.CHECK)
    assert finding.subject == "service/default/web"
    assert "update load balancer" in finding.evidence[0]
    assert finding.severity is Severity.WARNING


def test_a_change_that_the_ccm_undoes_meanwhile_is_none(world: ServiceWorld) -> None:
    world.serve()
    world.rename(world.load_balancer()["id"])
    world.meanwhile = world.reconcile

    assert world.findings(drift.CHECK) == []
    assert world.pauses == 1


def test_a_service_whose_change_the_ccm_has_not_seen_is_found(world: ServiceWorld) -> None:
    world.serve()
    limited = {MAX_QPS: "100"}
    world.api.change(SERVICES, "default/web", lambda service: service["metadata"].update(annotations=limited))

    (finding,) = world.findings(drift.CHECK)
    assert finding.subject == "service/default/web"


def test_a_service_that_is_still_without_an_address_is_another_checks(world: ServiceWorld) -> None:
    world.put(web())

    assert world.findings(drift.CHECK) == []


def test_an_annotation_that_only_the_cloud_may_set_is_found(nodes: World) -> None:
    machine = nodes.cloud.machines["a"]
    nodes.cloud.machines["a"] = replace(machine, additional_annotations={"cloud/only": "yes"})

    (finding,) = nodes.findings(drift.CHECK)
    assert finding.subject == "node/a"


def test_a_shutdown_taint_on_a_node_that_is_ready_again_is_found(nodes: World) -> None:
    taint = {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}
    nodes.change("a", lambda node: node["spec"].update(taints=[taint]))

    (finding,) = nodes.findings(drift.CHECK)
    assert "remove shutdown taint" in finding.evidence[0]


def test_a_missing_mark_that_the_network_is_there_is_found(nodes: World) -> None:
    nodes.change("a", lambda node: node["status"]["conditions"].pop(1))

    (finding,) = nodes.findings(drift.CHECK)
    assert finding.subject == "node/a"


def stop(world: World) -> None:
    world.cloud.machine("a", state=InstanceState.STOPPED)
    world.change("a", not_ready)


def lose(world: World) -> None:
    del world.cloud.machines["a"]
    world.change("a", not_ready)


def label(world: World) -> None:
    world.change("a", lambda node: node["metadata"]["labels"].clear())


def move(world: World) -> None:
    world.cloud.table[0] = Route("10.1.0.0/24", "i-b")


@pytest.mark.parametrize("break_", [stop, lose, label, move], ids=lambda each: each.__name__)
def test_what_other_checks_find_about_nodes_is_not_found_twice(nodes: World, break_: Callable[[World], None]) -> None:
    break_(nodes)

    assert nodes.findings(drift.CHECK) == []
