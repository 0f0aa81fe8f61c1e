"""Held actions wait for a person; the identity of the cluster is compared before what nobody asked for is deleted."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cloud_controller.binding import Binding
from cloud_controller.cloud import ForeignCluster, InvalidConfiguration
from cloud_controller.kube import (
    LEASES,
    NAMESPACES,
    ApiError,
    Object,
    UnreachableError,
)
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, Plan, hold
from cloud_controller.safeguard import _RECORDED, ANNOTATION, HELD_ANNOTATION, Safeguard, confirm, confirmed
from tests.fake_kubernetes import FakeKubernetes
from tests.waiting import eventually

LEASE = ("kube-system", "cloud-controller-manager")
HELD = {"holderIdentity": "a"}


def api_server(
    *, uid: str | None = "uid-here", lease: bool = True, annotations: Object | None = None
) -> FakeKubernetes:
    """With the namespace kube-system and a Lease that somebody holds."""
    api = FakeKubernetes()
    if uid:
        api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": uid}})
    if lease:
        metadata = {"namespace": LEASE[0], "name": LEASE[1], "annotations": annotations or {}}
        api.put(LEASES, {"metadata": metadata, "spec": HELD})
    return api


def annotations_of(api: FakeKubernetes) -> dict[str, str]:
    """The Lease's; its holder is as it was."""
    lease = api.objects(LEASES)["/".join(LEASE)]
    assert lease.get("spec") in (None, HELD)
    return dict(lease["metadata"]["annotations"])


@dataclass
class Said:
    events: list[tuple[str, str, str]] = field(default_factory=list)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.events.append((f"{obj['kind']}/{obj['metadata']['name']}", reason, message))

    normal = warning


def deletion(name: str = "lb-1") -> Action:
    return Action(ActionKind.DELETE, "service/default/web", f"delete load balancer {name}", operation=object())


def held(*names: str) -> Plan:
    return Plan.of(each for name in names for each in hold([deletion(name)], name, "its deletion was not seen"))


def digest(plan: Plan) -> str:
    [action] = plan.held
    assert action.held
    return action.held


def safeguard(api: FakeKubernetes, **more: Any) -> Safeguard:
    return Safeguard(api, *LEASE, **more)


def confirm_in(api: FakeKubernetes, *digests: str) -> None:
    confirm(api, *LEASE, digests)


def holding(api: FakeKubernetes, *names: str) -> FakeKubernetes:
    """A daemon has recorded that it holds these."""
    safeguard(api).record({"service": held(*names).held})
    return api


def recorded(api: FakeKubernetes) -> dict[str, str]:
    """What `confirm` is told, by digest."""
    found = annotations_of(api).items()
    return {key.removeprefix(HELD_ANNOTATION): what for key, what in found if key.startswith(HELD_ANNOTATION)}


# ------------------------------------------------------------------------------------------------------ held actions


def test_a_held_action_is_not_among_the_changes() -> None:
    plan = held("lb-1")

    assert (plan.changes, len(plan.held)) == ((), 1)


def test_a_held_action_shows_its_digest_to_people_and_to_programs() -> None:
    [action] = held("lb-1").held

    assert f"[held {action.held}]" in str(action)
    assert action.to_json()["held"] == action.held


def test_the_digest_is_another_for_another_object_of_the_same_name() -> None:
    [first], [second] = hold([deletion()], "uid-1", "why"), hold([deletion()], "uid-2", "why")

    assert first.held != second.held


def test_the_digest_does_not_depend_on_the_reason() -> None:
    [first], [second] = hold([deletion()], "uid-1", "why"), hold([deletion()], "uid-1", "another reason")

    assert first.held == second.held


def test_actions_that_are_held_as_one_have_one_digest() -> None:
    actions = hold([deletion("lb-1"), deletion("lb-2")], "uid-1", "why")

    assert len({action.held for action in actions}) == 1


def test_without_a_confirmation_nothing_is_released() -> None:
    assert safeguard(api_server()).admit("service", held("lb-1")).changes == ()


def test_a_confirmed_action_is_carried_out_and_no_other() -> None:
    api = holding(api_server(), "lb-1", "lb-2")
    confirm_in(api, digest(held("lb-1")))

    plan = safeguard(api).admit("service", held("lb-1", "lb-2"))

    assert [action.summary for action in plan.changes] == ["delete load balancer lb-1"]
    assert [action.summary for action in plan.held] == ["delete load balancer lb-2"]


def test_a_confirmation_releases_once() -> None:
    api = holding(api_server(annotations={"somebody.else/note": "stays"}), "lb-1")
    confirm_in(api, digest(held("lb-1")))
    guard = safeguard(api)
    plan = guard.admit("service", held("lb-1"))

    guard.used(plan, plan.changes)

    assert annotations_of(api) == {"somebody.else/note": "stays"}


def test_a_confirmation_outlives_the_renewals_of_the_lease() -> None:
    api = holding(api_server(), "lb-1")
    api.meddle(lambda: api.change(LEASES, "/".join(LEASE), lambda lease: lease["metadata"]), "replace", times=3)

    confirm_in(api, digest(held("lb-1")))

    assert ANNOTATION + digest(held("lb-1")) in annotations_of(api)


def test_what_is_no_digest_is_refused_before_anything_is_written() -> None:
    api = api_server()

    with pytest.raises(InvalidConfiguration, match=r"'lb-1' is not a digest.*12 hexadecimal"):
        confirm_in(api, digest(held("lb-1")), "lb-1")

    assert annotations_of(api) == {}


def test_a_digest_that_nothing_holds_is_refused_with_what_is_held_and_none_beside_it_is_confirmed() -> None:
    api, real = holding(api_server(), "lb-1"), digest(held("lb-1"))
    told = rf"holds 0123456789ab.*allowed: {real} \(service service/default/web: delete load balancer lb-1\)"

    with pytest.raises(InvalidConfiguration, match=told):
        confirm_in(api, real, "0123456789ab")

    assert confirmed(api, *LEASE) == frozenset()


def test_where_there_is_no_lease_nothing_is_confirmed_and_none_is_made() -> None:
    api = api_server(lease=False)

    with pytest.raises(InvalidConfiguration, match=r"Lease kube-system/cloud-controller-manager .*nothing is held"):
        confirm_in(api, "0123456789ab")

    assert api.writes == []


def test_a_second_confirmation_before_the_first_is_used_changes_nothing() -> None:
    api = holding(api_server(), "lb-1")
    confirm_in(api, digest(held("lb-1")))
    holding(api)  # Released, so held no more, and not carried out yet.

    confirm_in(api, digest(held("lb-1")))

    assert confirmed(api, *LEASE) == {digest(held("lb-1"))}


def test_what_is_held_is_recorded_by_controller_where_there_is_no_lease_too() -> None:
    api = api_server(lease=False)
    safeguard(api).record({"route": held("r-1").held})

    holding(api, "lb-1", "lb-2")
    assert len(recorded(api)) == 3
    holding(api, "lb-2")

    route, lb = digest(held("r-1")), digest(held("lb-2"))
    assert recorded(api).keys() == {route, lb}
    assert recorded(api)[lb] == "service service/default/web: delete load balancer lb-2"


def test_nothing_is_written_where_nothing_is_held() -> None:
    api = holding(api_server(lease=False))

    assert api.writes == []


def test_more_than_a_lease_can_carry_follows_as_the_others_are_released() -> None:
    names = [f"lb-{number}" for number in range(_RECORDED + 1)]
    api = holding(api_server(), *names)
    first = recorded(api)
    assert len(first) == _RECORDED

    holding(api, *(each for each in names if digest(held(each)) not in sorted(first)[:1]))

    assert len(recorded(api).keys() - first.keys()) == 1


def test_a_change_that_its_author_acknowledges_is_not_confirmed() -> None:
    api = api_server()
    [action] = held("lb-1").held

    safeguard(api).record({"service": [replace(action, acknowledgement="key: value")]})

    assert recorded(api) == {}


def test_where_there_is_no_lease_nothing_has_been_confirmed() -> None:
    assert confirmed(api_server(lease=False), *LEASE) == frozenset()


def test_a_plan_that_holds_nothing_costs_no_read_of_the_lease() -> None:
    api = api_server()

    safeguard(api).admit("service", Plan.of([deletion()]))

    assert api.requests == []


def test_a_held_action_is_told_once_at_its_object_with_what_releases_it() -> None:
    said, guard = Said(), safeguard(api_server())

    for _ in range(3):
        guard.admit("service", held("lb-1"), said)

    [(obj, reason, message)] = said.events
    assert (obj, reason) == ("Service/web", "ActionHeld")
    assert f"cloud-controller confirm {digest(held('lb-1'))}" in message


def test_held_actions_are_counted_by_controller_until_they_are_gone() -> None:
    metrics = Metrics()
    guard = safeguard(api_server(), metrics=metrics)

    guard.admit("service", held("lb-1", "lb-2"))
    assert b'cloudcontroller_actions_held{controller="service"} 2.0' in metrics.render()

    guard.admit("service", Plan())
    assert b'cloudcontroller_actions_held{controller="service"} 0.0' in metrics.render()


def test_a_plan_for_one_object_does_not_forget_what_is_held_of_others() -> None:
    guard = safeguard(api_server())
    guard.admit("service", held("lb-1"))
    other = replace(deletion("lb-9"), target="service/default/api")

    guard.admit("service", Plan.of(hold([other], "lb-9", "why")), about={"service/default/api"})

    assert {action.target for action in guard.held()} == {"service/default/web", "service/default/api"}


def test_readiness_tells_what_is_held() -> None:
    guard = safeguard(api_server())
    assert guard.detail() is None

    guard.admit("service", held("lb-1"))

    assert "1 held: -  service/default/web: delete load balancer lb-1" in str(guard.detail())


def test_the_controller_is_woken_when_its_held_action_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud_controller.safeguard._PERIOD", 0.005)
    api, stop, woken = api_server(), threading.Event(), threading.Event()
    guard = safeguard(api)
    guard.admit("service", held("lb-1"))
    calls: list[tuple[str, frozenset[str]]] = []

    def wake(controller: str, targets: frozenset[str]) -> None:
        calls.append((controller, targets))
        woken.set()

    thread = threading.Thread(target=guard.watch, args=(stop, ["service"], wake))
    thread.start()
    eventually(lambda: recorded(api), "the daemon has recorded what it holds")
    confirm_in(api, digest(held("lb-1")))

    assert woken.wait(60)
    stop.set()
    thread.join(60)
    assert calls[0] == ("service", frozenset({"service/default/web"}))


def test_what_a_former_process_held_is_forgotten_and_what_others_hold_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud_controller.safeguard._PERIOD", 0.005)
    api, stop = holding(api_server(), "lb-1"), threading.Event()
    safeguard(api).record({"route": held("r-1").held})

    thread = threading.Thread(target=safeguard(api).watch, args=(stop, ["service", "volume"], lambda *_: None))
    thread.start()

    eventually(lambda: digest(held("lb-1")) not in recorded(api), "it is forgotten")
    stop.set()
    thread.join(60)
    assert list(recorded(api)) == [digest(held("r-1"))]


def test_what_is_held_hinders_nothing_else_while_the_confirmations_cannot_be_read() -> None:
    api = api_server()
    api.fail(ApiError(403, "Forbidden", "may not get leases"), "get")

    plan = safeguard(api).admit("service", held("lb-1") + Plan.of([deletion("lb-2")]))

    assert [action.summary for action in plan.changes] == ["delete load balancer lb-2"]


# ---------------------------------------------------------------------------------------------------------- identity


def test_the_same_cluster_is_no_reason_to_stop() -> None:
    safeguard(api_server(), binding=Binding("uid-here")).verify()


@pytest.mark.parametrize("uid", ["uid-there", None])
def test_an_api_server_that_became_another_clusters_ends_the_process(uid: str | None) -> None:
    why: list[str] = []
    guard = safeguard(api_server(uid=uid), binding=Binding("uid-here"), foreign=why.append)

    with pytest.raises(ForeignCluster, match="uid-here"):
        guard.verify()

    assert len(why) == 1


def test_what_is_newly_held_has_the_identity_compared() -> None:
    guard = safeguard(api_server(uid="uid-there"), binding=Binding("uid-here"))

    with pytest.raises(ForeignCluster):
        guard.admit("service", held("lb-1"))


def test_what_is_held_while_the_api_server_is_silent_is_told_once_it_answers() -> None:
    api, said = api_server(), Said()
    guard = safeguard(api, binding=Binding("uid-here"))
    api.fail(UnreachableError("connection refused"), times=1)
    with pytest.raises(UnreachableError):
        guard.report("service", held("lb-1").held, said)

    guard.report("service", held("lb-1").held, said)

    assert [reason for _, reason, _ in said.events] == ["ActionHeld"]


def test_a_deletion_that_was_confirmed_is_not_carried_out_in_another_cluster() -> None:
    plan = held("lb-1")
    api = api_server(uid="uid-elsewhere", annotations={f"{ANNOTATION}{digest(plan)}": "now"})

    with pytest.raises(ForeignCluster):
        safeguard(api, binding=Binding("uid-here")).admit("service", plan)
