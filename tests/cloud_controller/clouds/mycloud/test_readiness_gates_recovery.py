"""What goes wrong while readiness gates are opened: writes fail, pods vanish or flap, Services change meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from cloud_controller.controllers.queue import Cause
from cloud_controller.controllers.service.controller import ServiceOptions, observe
from cloud_controller.kube import PODS, SERVICES, ConflictError, InvalidError, Object, UnreachableError
from tests.cloud_controller.clouds.mycloud.gated import GATE, GATES, WEB, Gated, pod, true
from tests.cloud_controller.clouds.mycloud.services import named
from tests.cloud_controller.load_balancing import port, service

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

FIT = {("tcp-8080", "10.244.0.5", 8000): True}


def second_service() -> Object:
    return service(named(backend_type="pod-ip"), port(9090), name="second", selector={"app": "web"})


# ------------------------------------------------------------------------------------------------------ failed writes


def vanish(gated: Gated) -> None:
    """The pod is gone; the cache does not show it yet."""
    gated.kube.objects(PODS).pop("default/a", None)


def come_anew(gated: Gated) -> None:
    """Another pod has the name; the cache does not show it yet."""
    found = pod("a", "10.244.0.9", GATE)
    found["metadata"] |= {"uid": "uid-new", "resourceVersion": "99"}
    gated.kube.objects(PODS)["default/a"] = found


@pytest.mark.parametrize("with_service", [True, False])
@pytest.mark.parametrize("meanwhile", [vanish, come_anew])
def test_a_pod_that_is_deleted_or_made_anew_before_its_gate_is_opened_is_left_alone(
    site: MyCloudSite, meanwhile: Callable[[Gated], None], with_service: bool
) -> None:
    gated, tries = Gated(site).with_member(healthy=True), 0

    def change() -> None:
        nonlocal tries
        tries += 1
        meanwhile(gated)

    if not with_service:
        gated.kube.remove(SERVICES, WEB)
    gated.kube.meddle(change, "patch")
    gated.decide()
    gated.ask_again(WEB, "default/")

    assert tries == 1
    assert gated.pauses == {}
    assert gated.pod_writes == []
    present = gated.kube.objects(PODS).get("default/a")
    assert present is None or present["status"]["conditions"] == pod("a", "10.244.0.9", GATE)["status"]["conditions"]


@pytest.mark.parametrize("meanwhile", [vanish, come_anew])
def test_a_pod_that_is_deleted_or_made_anew_before_its_condition_is_explained_is_left_alone(
    site: MyCloudSite, meanwhile: Callable[[Gated], None]
) -> None:
    gated = Gated(site).with_member(healthy=False)
    gated.gates._waiting.clock = lambda: time.monotonic() + 11
    gated.kube.meddle(lambda: meanwhile(gated), "patch")

    gated.decide()

    assert gated.pod_writes == []


def test_an_invalid_write_for_another_reason_is_an_error(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    causes = [{"field": "status.conditions[0].type", "message": "too long"}]
    gated.kube.fail(InvalidError(422, "Invalid", "invalid", {"causes": causes}), "patch", times=1)

    with pytest.raises(InvalidError):
        gated.decide()


def test_a_gate_whose_write_conflicts_is_opened_a_little_later(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    gated.kube.fail(ConflictError(409, "Conflict", "try again"), "patch", times=1)

    gated.decide()
    assert not gated.is_open("a")
    assert gated.pauses.keys() == {WEB}
    gated.ask_again()

    assert gated.is_open("a")
    assert gated.pauses == {}


def test_a_gate_that_waits_for_no_service_is_opened_a_little_later_if_its_write_conflicts(site: MyCloudSite) -> None:
    gated = Gated(site)
    gated.add(pod("a", "10.244.0.5", GATE))
    gated.kube.fail(ConflictError(409, "Conflict", "try again"), "patch", times=1)

    gated.decide()
    assert gated.pauses.keys() == {"default/"}
    gated.ask_again("default/")

    assert gated.is_open("a")


def test_a_pod_that_changes_while_its_condition_is_explained_keeps_what_it_has(site: MyCloudSite) -> None:
    """Another replica may just have opened the gate."""
    gated = Gated(site).with_member(healthy=False)
    gated.gates._waiting.clock = lambda: time.monotonic() + 11

    def opened_by_another() -> None:
        present = gated.kube.objects(PODS)["default/a"]
        conditions = [*present["status"]["conditions"], true(GATE)]
        changed = {**present, "status": {**present["status"], "conditions": conditions}}
        changed["metadata"] = {**present["metadata"], "resourceVersion": "99"}
        gated.kube.objects(PODS)["default/a"] = changed

    gated.kube.meddle(opened_by_another, "patch", times=1)
    gated.decide()

    assert gated.is_open("a")
    assert gated.pod_writes == []


def test_a_gate_opens_at_the_second_try_if_its_first_write_fails(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    gated.kube.fail(UnreachableError("no answer"), "patch", times=1)
    with pytest.raises(UnreachableError):
        gated.decide()
    asked = gated.asked

    gated.gates.queue.add(WEB, Cause.OBJECT)
    gated.decide()

    assert gated.is_open("a")
    assert gated.asked == asked, "its health is known"


# ------------------------------------------------------------------------------------- how often the cloud is asked


def test_the_more_services_are_waited_for_the_less_often_each_is_asked(site: MyCloudSite) -> None:
    gated = Gated(site)
    others = [f"other{number}" for number in range(59)]
    for name in ("web", *others):
        gated.kube.put(SERVICES, service(named(backend_type="pod-ip"), port(8080), name=name, selector={"app": "web"}))
    gated.add(pod("a", "10.244.0.5", GATE))

    gated.decide()
    gated.ask_again()
    assert gated.pauses[WEB] == pytest.approx(0.6, abs=0.05)

    for name in others:
        gated.kube.remove(SERVICES, f"default/{name}")
    gated.decide()
    gated.ask_again()
    assert gated.pauses[WEB] == pytest.approx(0.3, abs=0.05)


def test_a_service_is_not_polled_for_pods_that_it_has_let_pass(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    gated.kube.put(SERVICES, second_service())
    gated.decide()

    assert not gated.is_open("a"), "the second Service has no load balancer yet"
    assert gated.pauses.keys() == {"default/second"}


def test_a_service_that_changes_while_the_cloud_is_asked_is_asked_about_again(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)

    def change_meanwhile(id: str) -> dict[tuple[str, str, int], bool]:
        health = gated._health(id)
        if gated.asked == 1:
            gated.kube.change(
                SERVICES, WEB, lambda each: each["metadata"]["annotations"].update({"example.com/a": "b"})
            )
        return health

    gated.cloud.load_balancers.health = change_meanwhile  # type: ignore[method-assign]
    gated.decide()
    assert not gated.is_open("a")
    assert WEB in gated.pauses

    gated.decide()

    assert gated.is_open("a")
    assert gated.asked == 2


# -------------------------------------------------------------------------------------------------------- explanations


def test_of_two_services_that_keep_a_gate_closed_one_says_why_and_its_write_wakes_nobody(site: MyCloudSite) -> None:
    gated = Gated(site)
    now = 1000.0
    gated.gates._waiting.clock = lambda: now
    gated.serve()
    gated.kube.put(SERVICES, service(named(backend_type="pod-ip"), port(9090), name="second", selector={"app": "web"}))
    gated.add(pod("a", "10.244.0.5", GATE))
    gated.settle()
    gated.health = {("tcp-8080", "10.244.0.5", 8000): False}
    gated.decide()

    now += 11
    for _ in range(3):
        gated.gates.queue.add(WEB, Cause.OBJECT)
        gated.gates.queue.add("default/second", Cause.OBJECT)
        gated.decide()
        assert not {WEB, "default/second"} & {*gated.gates.queue.get_batch()}

    assert len(gated.pod_writes) == 1


# ------------------------------------------------------------------------------------------------------------ members


def test_a_plan_counts_the_pods_that_the_controller_counts(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    dead = pod("dead", "10.244.0.6", GATE)
    dead["status"]["conditions"].append({**true(GATE), "lastTransitionTime": "2026-01-01T00:00:00Z"})
    gated.add(dead)

    found = observe(gated.kube, gated.cloud, ServiceOptions(gates=GATES))

    (endpoints,) = (each["endpoints"] for each in found.slices[WEB])
    assert {each["addresses"][0]: each["conditions"]["ready"] for each in endpoints} == {
        "10.244.0.5": True,
        "10.244.0.6": False,
    }
