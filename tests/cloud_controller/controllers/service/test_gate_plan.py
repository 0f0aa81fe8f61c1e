"""When a gate opens, by what the load balancer has as members and says of their health."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.controllers.service.gate_plan import (
    UNKNOWN_PATIENCE,
    Registered,
    ServiceView,
    Target,
    Verdict,
    judged,
    registration,
    with_waiting,
)
from cloud_controller.load_balancers.backends import Member

HTTP, HTTPS = ("TCP", 80), ("TCP", 443)
POD = {
    "metadata": {"uid": "uid-a"},
    "spec": {"nodeName": "node-a"},
    "status": {"podIPs": [{"ip": "10.1.0.5"}, {"ip": "fd00::5"}]},
}
A, B = Member("10.1.0.5", 8080, "i-a"), Member("10.1.0.6", 8080, "i-a")


def registered(
    *members: Member, listener: tuple[str, int] = HTTP, lb: str = "lb-1", checked: bool = True
) -> Registered:
    return Registered(lb, listener, f"pool-{listener[1]}", checked, frozenset(each.key for each in members))


def view(*found: Registered, wanted: tuple[Member, ...] = (A,), **more: Any) -> ServiceView:
    given: dict[str, Any] = {"by_pod": True, "wanted": {HTTP: wanted}, "serves": True, "known_nodes": {"node-a"}} | more
    return ServiceView("web", registered=found, **given)


def reason(found: Verdict | tuple[Target, ...]) -> tuple[bool, str]:
    assert isinstance(found, Verdict)
    return found.opens, found.reason


def test_the_health_of_each_of_the_pods_members_decides() -> None:
    both = view(registered(A, B), registered(A, listener=HTTPS), wanted=(A, B))
    both = ServiceView("web", True, {HTTP: (A, B), HTTPS: (A,)}, both.registered, True)

    assert registration(POD, both) == (Target("lb-1", "pool-443", *A.key), Target("lb-1", "pool-80", *A.key))


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        pytest.param(view(registered(B)), (False, "NotRegistered"), id="no member of a listener yet"),
        pytest.param(view(), (True, "Registered"), id="no listeners to be behind"),
        pytest.param(view(registered(A), serves=False), (False, "NoLoadBalancer"), id="load balancer does not serve"),
        pytest.param(view(registered(B), wanted=(B,)), (False, "NotAnEndpoint"), id="in no endpoint slice yet"),
        pytest.param(
            view(registered(B), wanted=(B,), endpoints=frozenset({"uid-a"}), known_nodes=()),
            (False, "NodeUnknown"),
            id="on a node that is not known yet",
        ),
        pytest.param(
            view(registered(B), wanted=(B,), endpoints=frozenset({"uid-a"})),
            (True, "NotAMember"),
            id="an endpoint that may not be a member",
        ),
        pytest.param(view(registered(A, checked=False)), (True, "Registered"), id="a member without health check"),
    ],
)
def test_a_pod_waits_until_it_is_registered_wherever_it_may_be(seen: ServiceView, verdict: tuple[bool, str]) -> None:
    assert reason(registration(POD, seen)) == verdict


def test_behind_node_ports_the_members_of_the_pods_node_are_enough() -> None:
    node, other = Member("10.0.0.1", 30080, "i-a"), Member("10.0.0.2", 30080, "i-b")
    nodes = {"by_pod": False, "nodes": {"node-a": "i-a", "node-b": "i-b"}}

    assert reason(registration(POD, view(registered(node), wanted=(node, other), **nodes))) == (True, "Registered")
    assert reason(registration(POD, view(registered(other), wanted=(node, other), **nodes))) == (False, "NotRegistered")
    assert reason(registration(POD, view(registered(other), wanted=(other,), **nodes))) == (True, "Registered")


@pytest.mark.parametrize(
    ("health", "waited", "expected"),
    [
        ({A.key: True}, 0.0, (True, "Healthy")),
        ({A.key: False}, UNKNOWN_PATIENCE, (False, "Unhealthy")),
        ({}, 0.0, (False, "HealthUnknown")),
        ({}, UNKNOWN_PATIENCE, (True, "HealthUnknown")),
        ({B.key: True}, 0.0, (False, "HealthUnknown")),
    ],
)
def test_a_healthy_member_opens_the_gate_and_an_unknown_one_only_when_no_word_ever_comes(
    health: dict[tuple[str, int], bool], waited: float, expected: tuple[bool, str]
) -> None:
    reported = {"lb-1": {("pool-80", *key): fit for key, fit in health.items()}}

    assert reason(judged([Target("lb-1", "pool-80", *A.key)], reported, waited, "web")) == expected


def test_one_unhealthy_member_keeps_the_gate_closed() -> None:
    targets = [Target("lb-1", "pool-80", *A.key), Target("lb-1", "pool-443", *A.key)]
    health = {"lb-1": {("pool-80", *A.key): True, ("pool-443", *A.key): False}}

    assert reason(judged(targets, health, 0.0, "web")) == (False, "Unhealthy")


def test_endpoints_of_waiting_pods_count_as_ready_unless_they_end() -> None:
    def endpoint(uid: str, **conditions: bool) -> dict[str, Any]:
        return {"addresses": ["10.1.0.5"], "conditions": conditions, "targetRef": {"kind": "Pod", "uid": uid}}

    slices: list[dict[str, Any]] = [
        {"endpoints": [endpoint("waits", ready=False), endpoint("ends", ready=False, terminating=True)]},
        {"endpoints": [endpoint("other", ready=False), endpoint("ready", ready=True)]},
        {"endpoints": None},
    ]

    found = with_waiting(slices, {"waits", "ends"})

    ready = [each["conditions"]["ready"] for one in found for each in one["endpoints"]]
    assert ready == [True, False, False, True]
    assert slices[0]["endpoints"][0]["conditions"]["ready"] is False, "the cached objects stay as they are"
