"""What differs from what the CCM makes is found, unless another check finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from cloud_controller.cloud import InstanceState, Route, Unavailable
from cloud_controller.doctor.checks import drift, held, quotas
from cloud_controller.doctor.findings import Check, Finding, Result, Severity, explained
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import SERVICES
from cloud_controller.plan import Action, ActionKind, Plan
from tests.cloud_controller.clouds.mycloud.services import MAX_QPS, web
from tests.cloud_controller.doctor.conftest import ServiceWorld
from tests.cloud_controller.doctor.looks import World, not_ready


@pytest.mark.parametrize("check", [drift.CHECK, held.CHECK], ids=lambda check: check.name)
def test_nodes_and_services_in_order_are_no_finding(nodes: World, world: ServiceWorld, check: Check) -> None:
    world.serve()

    assert nodes.findings(check) == world.findings(check) == []
    assert nodes.pauses == 0


@pytest.mark.parametrize(
    ("check", "happens"),
    [
        (drift.CHECK, lambda world: world.rename(world.load_balancer()["id"])),
        (held.CHECK, lambda world: world.api.objects(SERVICES).clear()),
    ],
    ids=["drift", "held"],
)
def test_what_one_controller_cannot_read_does_not_hide_what_another_finds(
    world: ServiceWorld, monkeypatch: pytest.MonkeyPatch, check: Check, happens: Callable[[ServiceWorld], object]
) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("GET machines: no answer")

    world.serve()
    happens(world)
    monkeypatch.setattr(world.cloud.instances, "describe", refuse)
    world.controllers = ("node", "service")
    found: list[Finding] = []

    with pytest.raises(Unreadable, match="GET machines"):
        found.extend(check.run(world.look()))

    assert len(found) == 1


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


@pytest.mark.parametrize(("kind", "causes"), [(ActionKind.CREATE, ("quotas",)), (ActionKind.UPDATE, ())])
def test_what_a_used_up_quota_keeps_from_being_made_follows_from_it_and_what_was_changed_does_not(
    kind: ActionKind, causes: tuple[str, ...]
) -> None:
    used_up = Finding(what="the quota of volumes is used up", remedy="request more")
    plan = Plan.of([Action(kind, "claim/default/data", "as the claim requests")])
    seen = SimpleNamespace(
        daemon=lambda: SimpleNamespace(controllers=("volume",)), plan=lambda _: SimpleNamespace(plan=plan)
    )
    (undone,) = drift.CHECK.run(cast("Seen", seen))

    found = explained([Result(quotas.CHECK, (used_up,)), Result(drift.CHECK, (undone,))])

    assert [each.causes for each in found] == [(), causes]


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
