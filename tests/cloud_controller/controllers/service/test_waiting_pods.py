"""Which pods wait, since when, which Services have let them pass, and what a change of a pod means for Services."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from cloud_controller.controllers.service.gate_plan import Verdict
from cloud_controller.controllers.service.waiting_pods import PodChange, WaitingPods
from cloud_controller.kube import EventType, Object
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from tests.cloud_controller.load_balancing import service

GATES = ReadinessGates()
GATE = GATES.condition
WEB = "default/web"
PASSED = Verdict(True, "Healthy", "healthy")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Cluster:
    """A cluster with Service `web` and pod `a`, as the caches tell of them. `seconds`: the time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waiting = WaitingPods(GATES, lambda _: True, lambda: self.seconds)
        self.waiting.now = lambda: BEGAN + timedelta(seconds=self.seconds)
        self.web: Object | None = None
        self.put(service(selector={"app": "web"}))

    def put(self, web: Object | None) -> None:
        """Create, change or delete the Service."""
        self.waiting.take_service(EventType.MODIFIED, self.web, web)
        self.web = web

    def change(self, at: float, old: Object | None, new: Object | None) -> PodChange:
        """At this time, the cache tells of a change of a pod."""
        self.seconds = at
        return self.waiting.take_pod(old, new)

    def let_pass(self, each: Object) -> None:
        assert self.web is not None
        self.waiting.passed(each, self.web, PASSED)

    def has_passed(self, each: Object) -> bool:
        return self.waiting.verdict(each, WEB) is not None

    @property
    def counted(self) -> set[str]:
        return self.waiting.counted(service(selector={"app": "web"}))


def pod(*true: str, uid: str = "uid-a", labels: dict[str, str] | None = None, opened: datetime | None = None) -> Object:
    """A pod with a gate, and these conditions True; `opened`: when its gate was opened."""
    gate = {"type": GATE, "status": "True", "lastTransitionTime": opened.isoformat()} if opened else None
    conditions = [{"type": each, "status": "True"} for each in true] + ([gate] if gate else [])
    return {
        "metadata": {"namespace": "default", "name": "a", "uid": uid, "labels": labels or {"app": "web"}},
        "spec": {"nodeName": "node-a", "readinessGates": [{"conditionType": GATE}]},
        "status": {"podIPs": [{"ip": "10.0.0.1"}], "conditions": conditions},
    }


WAITS, STARTS = pod("ContainersReady"), pod()


def remembered_later(cluster: Cluster) -> bool:
    """Whether anything is remembered of any pod once another pod comes and goes."""
    other, waiting = pod(uid="uid-b"), cluster.waiting
    cluster.change(200, None, other)
    cluster.change(201, other, None)
    return any((waiting._pods, waiting._since, waiting._paused, waiting._passed, waiting._opened, waiting._settling))


# -------------------------------------------------------------------------------------------------- how long pods wait


def test_a_pod_waits_from_the_moment_when_only_its_gate_keeps_it_from_being_ready() -> None:
    cluster = Cluster()
    cluster.change(0, None, STARTS)
    assert cluster.waiting.waiting_for(WEB) == []

    change = cluster.change(10, STARTS, WAITS)

    cluster.seconds = 15
    assert (change.waited, change.waits, change.services) == (False, True, [WEB])
    assert cluster.waiting.waiting_for(WEB) == [WAITS]
    assert cluster.waiting.waited(WAITS) == 5


def test_a_pod_that_flaps_has_waited_since_it_first_did() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.change(100, WAITS, STARTS)
    assert cluster.waiting.waiting_for(WEB) == []

    cluster.change(160, STARTS, WAITS)

    assert cluster.waiting.waited(WAITS) == 160


def test_a_pod_that_was_unready_for_long_waits_anew() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.change(100, WAITS, STARTS)
    cluster.change(150, STARTS, STARTS)

    cluster.change(161, STARTS, WAITS)

    assert cluster.waiting.waited(WAITS) == 0


def test_a_pod_made_anew_under_the_same_name_has_neither_waited_nor_passed() -> None:
    cluster, new = Cluster(), pod("ContainersReady", uid="uid-new")
    cluster.change(0, None, WAITS)
    cluster.let_pass(WAITS)

    change = cluster.change(30, WAITS, new)

    assert (change.waited, change.waits, change.is_news) == (False, True, True)
    assert cluster.waiting.waited(new) == 0
    assert not cluster.has_passed(new)
    assert not cluster.has_passed(WAITS)
    assert cluster.waiting.waiting_for(WEB) == [new]
    cluster.change(40, new, None)
    assert not remembered_later(cluster)


# ------------------------------------------------------------------------------------------------ who counts as ready


def test_a_pod_that_became_ready_counts_until_its_endpoint_has_had_time_to_follow() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)

    cluster.change(10, WAITS, None)

    cluster.seconds = 69
    assert cluster.counted == {"uid-a"}
    cluster.seconds = 71
    assert cluster.counted == set()


def test_a_pod_that_fails_soon_after_it_became_ready_counts_no_more_and_its_services_are_told() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.change(10, WAITS, None)

    change = cluster.change(20, None, STARTS)

    assert (change.waited, change.waits, change.services) == (True, False, [WEB])
    assert cluster.counted == set()


def test_a_pod_behind_a_gate_opened_just_now_still_counts_and_one_opened_long_ago_does_not() -> None:
    cluster = Cluster()
    cluster.change(0, None, pod("ContainersReady", opened=BEGAN))

    cluster.seconds = 29
    assert cluster.counted == {"uid-a"}
    cluster.seconds = 31
    assert cluster.counted == set()


# ------------------------------------------------------------------------------------------------------ who has passed


def test_a_pod_that_was_unready_since_it_passed_is_asked_about_again() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.let_pass(WAITS)
    assert cluster.has_passed(WAITS)

    cluster.change(10, WAITS, STARTS)
    cluster.change(11, STARTS, WAITS)

    assert not cluster.has_passed(WAITS)


@pytest.mark.parametrize("new", [STARTS, None])
def test_a_verdict_about_a_pod_that_does_not_wait_any_more_has_no_effect(new: Object | None) -> None:
    """The cloud was asked while the pod still waited."""
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.change(10, WAITS, new)

    cluster.let_pass(WAITS)

    assert not cluster.has_passed(WAITS)
    assert not cluster.waiting._passed


def _annotated(web: Object) -> None:
    web["metadata"]["annotations"] = {"example.com/scheme": "internal"}


def _with_another_address(web: Object) -> None:
    web["status"] = {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}


@pytest.mark.parametrize("change", [_annotated, _with_another_address])
def test_a_verdict_of_a_service_that_has_changed_is_void(change: Callable[[Object], None]) -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.let_pass(WAITS)
    former, changed = cluster.web, copy.deepcopy(cluster.web)
    assert former is not None
    assert changed is not None
    change(changed)

    cluster.put(changed)
    assert not cluster.has_passed(WAITS), "its load balancer may be another now"

    cluster.waiting.passed(WAITS, former, PASSED)
    assert not cluster.has_passed(WAITS), "the cloud was asked before the change"


def test_a_verdict_of_a_service_that_is_gone_is_void() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.let_pass(WAITS)
    former = cluster.web
    assert former is not None

    cluster.put(None)
    assert not cluster.has_passed(WAITS)

    cluster.waiting.passed(WAITS, former, PASSED)
    assert not cluster.has_passed(WAITS)


def test_a_change_of_a_service_that_does_not_touch_its_load_balancer_leaves_its_verdicts() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.let_pass(WAITS)

    changed = copy.deepcopy(cluster.web)
    assert changed is not None
    changed["metadata"]["labels"] = {"team": "a"}
    cluster.put(changed)

    assert cluster.has_passed(WAITS)


def test_services_that_have_not_let_a_pod_pass_are_named() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    assert cluster.waiting.not_passed(WAITS, {WEB, "default/other"}) == {WEB, "default/other"}

    cluster.let_pass(WAITS)

    assert cluster.waiting.not_passed(WAITS, {WEB, "default/other"}) == {"default/other"}


# ------------------------------------------------------------------------------------------------- what changes mean


def _opened(each: Object) -> None:
    each["status"]["conditions"].append({"type": GATE, "status": "True"})


def _explained(each: Object) -> None:
    each["status"]["conditions"].append({"type": GATE, "status": "False", "message": "why"})


def _another_address(each: Object) -> None:
    each["status"]["podIPs"] = [{"ip": "10.0.0.2"}]


def _another_condition(each: Object) -> None:
    each["status"]["conditions"].append({"type": "example.com/warm", "status": "True"})


@pytest.mark.parametrize(
    ("change", "is_news"),
    [
        (_opened, False),
        (_explained, False),
        (lambda each: each["metadata"].update(resourceVersion="9", annotations={"a": "b"}), False),
        (lambda each: each["metadata"]["labels"].update(tier="front"), True),
        (lambda each: each["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (lambda each: each["spec"].update(nodeName="node-b"), True),
        (_another_address, True),
        (_another_condition, True),
    ],
)
def test_what_we_write_into_a_pods_conditions_is_no_news_and_what_services_depend_on_is(
    change: Callable[[Object], Any], is_news: bool
) -> None:
    cluster, changed = Cluster(), copy.deepcopy(WAITS)
    assert cluster.change(0, None, WAITS).is_news
    change(changed)

    assert cluster.change(1, WAITS, changed).is_news is is_news


# ---------------------------------------------------------------------------------------------------- what is forgotten


def test_a_gate_that_was_opened_is_not_closed_although_the_cache_lags() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)

    cluster.waiting.opened(WAITS, GATE)

    assert cluster.waiting.closed(WAITS) == []
    assert cluster.waiting.waiting_for(WEB) == []


def test_a_gate_that_is_opened_after_the_cache_has_shown_the_pod_ready_leaves_nothing_behind() -> None:
    cluster = Cluster()
    cluster.change(0, None, WAITS)
    cluster.change(10, WAITS, None)

    cluster.waiting.opened(WAITS, GATE)

    assert not remembered_later(cluster)


@pytest.mark.parametrize("then", [(None,), (STARTS, None)], ids=["became ready", "went while it was unready"])
def test_a_pod_that_waits_no_more_is_forgotten_though_nothing_asks_who_counts(
    then: tuple[Object | None, ...],
) -> None:
    cluster = Cluster()

    for number, (old, new) in enumerate(pairwise((None, WAITS, *then))):
        cluster.change(10 * number, old, new)

    assert not remembered_later(cluster)
