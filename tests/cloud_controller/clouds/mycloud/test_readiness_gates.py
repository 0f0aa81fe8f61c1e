"""The life of readiness gates, from a new pod to its place in the load balancer, on mycloud's real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloud_controller.cloud import CloudError, Throttled, Unavailable
from cloud_controller.controllers.queue import Cause
from cloud_controller.kube import ENDPOINT_SLICES, PODS, SERVICES, Object
from cloud_controller.load_balancers.readiness_gates import ANNOTATION
from tests.cloud_controller.clouds.mycloud.gated import GATE, WEB, Gated, pod, true
from tests.cloud_controller.clouds.mycloud.services import named
from tests.cloud_controller.load_balancing import port, service

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite


def test_a_pod_that_only_waits_for_its_gate_becomes_a_member_and_its_gate_opens_when_it_is_healthy(
    site: MyCloudSite,
) -> None:
    gated = Gated(site).serve()
    gated.add(pod("a", "10.244.0.5", GATE))
    gated.decide()
    assert gated.asked == 0, "a pod that is no member yet needs no call"

    gated.settle()
    assert gated.members() == {"10.244.0.5:8000"}
    gated.health = {("tcp-8080", "10.244.0.5", 8000): False}
    gated.decide()
    assert not gated.is_open("a")

    gated.health = {("tcp-8080", "10.244.0.5", 8000): True}
    gated.gates.queue.add(WEB)
    gated.decide()

    assert gated.is_open("a")
    assert gated.condition("a") == {
        "type": GATE,
        "status": "True",
        "reason": "Healthy",
        "message": "Service web: healthy in its load balancer",
        "lastTransitionTime": gated.condition("a")["lastTransitionTime"],  # type: ignore[index]
    }
    assert gated.pod_writes == ["patch pods/default/a/status"]


def test_the_cloud_is_not_asked_about_health_unless_a_pod_waits(site: MyCloudSite) -> None:
    gated = Gated(site).serve()
    gated.add(pod("without", "10.244.0.5"), ready=True)
    gated.add(pod("starting", "10.244.0.6", GATE, ContainersReady="False"))
    gated.settle()
    gated.decide()

    assert gated.asked == 0
    assert gated.gates.queue.wait(0) is False


def test_many_pods_that_wait_together_cost_one_call_and_a_write_each(site: MyCloudSite) -> None:
    gated = Gated(site).serve()
    gated.add(*(pod(f"p{n}", f"10.244.0.{n}", GATE) for n in range(2, 22)))
    gated.settle()
    gated.health = {("tcp-8080", f"10.244.0.{n}", 8000): True for n in range(2, 22)}

    gated.decide()

    assert gated.asked == 1
    assert len(gated.pod_writes) == 20


def test_a_pod_whose_containers_become_ready_wakes_its_service_although_its_endpoint_stays_the_same(
    site: MyCloudSite,
) -> None:
    gated = Gated(site).serve()
    gated.add(pod("a", "10.244.0.5", GATE, ContainersReady="False"))
    gated.settle()
    queue = gated.controller._queue

    def next_service(patience: float) -> str | None:
        while (found := queue.get(timeout=patience)) is not None:
            queue.done(found)
            if found == WEB:
                return found
        return None

    while next_service(0.6):
        pass

    def ready(each: Object) -> None:
        each["status"]["conditions"] = [true("ContainersReady"), {"type": "Ready", "status": "False"}]

    gated.kube.change(PODS, "default/a", ready)

    assert next_service(10)


def test_an_open_gate_stays_open_when_the_pod_becomes_unhealthy(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)
    gated.decide()

    gated.health = {("tcp-8080", "10.244.0.5", 8000): False}
    gated.gates.queue.add(WEB)
    gated.decide()

    assert gated.is_open("a")


def test_a_gate_that_names_a_service_waits_for_that_one_alone(site: MyCloudSite) -> None:
    gated = Gated(site).serve()
    mine, others = "ready.example.com/web", "ready.example.com/gone"
    gated.add(pod("a", "10.244.0.5", mine, others))
    gated.decide()
    assert gated.is_open("a", others), "there is no such Service"
    assert not gated.is_open("a", mine)

    gated.settle()
    gated.health = {("tcp-8080", "10.244.0.5", 8000): True}
    gated.decide()

    assert gated.is_open("a", mine)


def test_a_gate_that_names_a_service_of_another_controller_is_left_to_that_controller(site: MyCloudSite) -> None:
    gated = Gated(site).serve(loadBalancerClass="others.example.com/nlb")
    gated.add(pod("a", "10.244.0.5", GATE, "ready.example.com/web"))
    gated.decide()

    assert gated.is_open("a"), "the general gate is ours alone"
    assert gated.condition("a", "ready.example.com/web") is None

    gated.kube.remove(SERVICES, WEB)
    gated.decide()

    assert gated.is_open("a", "ready.example.com/web"), "nobody else opens it any more"


def test_a_gate_of_another_controllers_service_stays_closed_when_ours_let_the_pod_pass(site: MyCloudSite) -> None:
    gated = Gated(site).serve()
    gated.kube.put(SERVICES, service({}, port(9090), name="theirs", loadBalancerClass="others.example.com/nlb"))
    gated.add(pod("a", "10.244.0.5", GATE, "ready.example.com/theirs"))
    gated.settle()
    gated.health = {("tcp-8080", "10.244.0.5", 8000): True}

    gated.decide()

    assert gated.is_open("a")
    assert gated.condition("a", "ready.example.com/theirs") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each["spec"].update(type="ClusterIP"),
        lambda each: each["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
        lambda each: each["metadata"]["annotations"].update({ANNOTATION: "false"}),
        lambda each: each["spec"].update(selector={"app": "other"}),
        lambda each: each["spec"].update(selector=None),
    ],
)
def test_no_pod_waits_for_a_service_that_goes_or_asks_for_no_gates_or_does_not_select_it_any_more(
    site: MyCloudSite, change: Any
) -> None:
    gated = Gated(site).with_member()
    gated.decide()
    assert not gated.is_open("a")

    gated.kube.change(SERVICES, WEB, change)
    gated.decide()

    assert gated.is_open("a")


def test_a_pod_whose_service_went_while_no_controller_ran_does_not_wait(site: MyCloudSite) -> None:
    gated = Gated(site)
    gated.add(pod("a", "10.244.0.5", GATE))

    restarted = Gated(site, gated.kube)
    restarted.decide()

    assert restarted.is_open("a")


def test_a_gate_waits_for_every_load_balancer_of_its_pod(site: MyCloudSite) -> None:
    gated = Gated(site).serve()
    second = service(named(backend_type="pod-ip"), port(9090), name="second", selector={"app": "web"})
    gated.kube.put(SERVICES, second)
    gated.add(pod("a", "10.244.0.5", GATE))
    gated.settle()
    gated.health = {("tcp-8080", "10.244.0.5", 8000): True}
    gated.decide()
    assert not gated.is_open("a"), "the second has no endpoints yet"

    first = gated.kube.objects(ENDPOINT_SLICES)["default/web-1"]
    labels = {"kubernetes.io/service-name": "second"}
    gated.kube.put(
        ENDPOINT_SLICES, {**first, "metadata": {"namespace": "default", "name": "second-1", "labels": labels}}
    )
    gated.settle()
    asked = gated.asked
    gated.health |= {("tcp-9090", "10.244.0.5", 8000): True}
    gated.gates.queue.add("default/second", Cause.OBJECT)
    gated.decide()

    assert gated.is_open("a")
    assert gated.asked == asked + 1, "the first Service has let the pod pass already"


def test_a_gate_opens_although_the_status_has_a_name_that_no_load_balancer_has(site: MyCloudSite) -> None:
    gated = Gated(site).with_member(healthy=True)

    def publish(service: Object) -> None:
        service["status"]["loadBalancer"]["ingress"] = [{"hostname": "web.example.com"}]

    gated.kube.change(SERVICES, WEB, publish)
    gated.decide()

    assert gated.is_open("a")


def test_no_gate_opens_before_the_service_has_an_address(site: MyCloudSite) -> None:
    gated = Gated(site)
    gated.kube.put(SERVICES, service(named(backend_type="pod-ip"), port(8080), selector={"app": "web"}))
    gated.add(pod("a", "10.244.0.5", GATE))
    gated.health = {("tcp-8080", "10.244.0.5", 8000): True}
    gated.controller.handle(WEB)
    gated.decide()
    assert not gated.is_open("a")

    gated.settle()
    gated.decide()

    assert gated.is_open("a")


def test_after_a_while_a_closed_gate_says_what_it_waits_for_and_is_not_written_again(site: MyCloudSite) -> None:
    gated = Gated(site)
    now = 1000.0
    gated.gates._waiting.clock = lambda: now
    gated.with_member(healthy=False)
    gated.decide()
    assert gated.condition("a") is None

    now += 11
    for _ in range(3):
        gated.gates.queue.add(WEB)
        gated.decide()

    assert gated.condition("a")["reason"] == "Unhealthy"  # type: ignore[index]
    assert len(gated.pod_writes) == 1


@pytest.mark.parametrize("error", [Throttled("slow down", retry_after=30.0), Unavailable("no answer")])
def test_a_cloud_that_does_not_answer_is_asked_again_later_and_new_pods_do_not_hurry_it(
    site: MyCloudSite, error: CloudError
) -> None:
    gated = Gated(site).with_member()
    gated.error = error
    with pytest.raises(type(error)):
        gated.decide()
    gated.gates.queue.add_after_error(WEB, error)
    reasons = [reason for _, reason, _ in gated.events()]
    assert ("ReadinessGatesFailed" in reasons) == isinstance(error, Unavailable), "throttling is no error"

    gated.add(pod("b", "10.244.0.6", GATE))

    ready = gated.gates.queue.get_batch()
    assert WEB not in ready
    assert "default/" in ready, "the new pod has been noticed"
