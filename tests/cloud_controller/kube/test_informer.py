"""An informer's copy follows the server through restarts, forgotten versions and errors, and misses nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cloud_controller.kube import NODES, EventType, Informer, Object
from tests.cloud_controller.kube.scripted_server import Answer, Call, ScriptedServer

PATIENCE = 60.0


def node(name: str, version: str, uid: str = "u") -> Object:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": version, "managedFields": [{}]}}


def listed(version: str, *nodes: Object) -> Answer:
    return Answer({"metadata": {"resourceVersion": version}, "items": [*nodes]})


def event(type: str, obj: Object) -> dict[str, Any]:
    return {"type": type, "object": obj}


GONE = event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"})


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoffs are as short as can be."""
    monkeypatch.setattr("cloud_controller.kube.informer._FIRST_BACKOFF", 0.001)
    monkeypatch.setattr("cloud_controller.kube.informer._LONGEST_BACKOFF", 0.001)


class Told:
    """What the handlers heard."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def __call__(self, type: EventType, old: Object | None, new: Object | None) -> None:
        obj = new or old
        assert obj is not None
        assert (old is None) == (type is EventType.ADDED)
        assert (new is None) == (type is EventType.DELETED)
        self.events.append((type.value, obj["metadata"]["name"]))


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """A watch that stays open until the test ends."""
    event = threading.Event()
    yield event
    event.set()


def run(server: ScriptedServer, *answers: Answer, until: int) -> tuple[Informer, Told]:
    """Play the answers, wait until so many events were told, and stop."""
    server.script(*answers)
    return followed(server, until=until)


def followed(
    server: ScriptedServer, *, until: int, keep: Callable[[Object], bool] | None = None
) -> tuple[Informer, Told]:
    """Wait until so many events were told, and stop."""
    informer, told = Informer(server.kube, NODES, keep=keep), Told()
    informer.add_handler(told)
    informer.start()
    try:
        informer.wait_synced(PATIENCE)
        arrived = informer.wait_until(lambda: len(told.events) >= until, PATIENCE)
    finally:
        informer.stop()
    assert arrived or len(told.events) >= until, told.events
    return informer, told


def watches(calls: list[Call]) -> list[str]:
    return [call.query["resourceVersion"] for call in calls if "watch" in call.query]


def test_an_informer_lists_and_then_watches(server: ScriptedServer, hang: threading.Event) -> None:
    lines = [event("MODIFIED", node("a", "6")), event("ADDED", node("b", "7")), event("DELETED", node("a", "8"))]

    informer, told = run(
        server, listed("5", node("a", "4")), Answer(lines=[*lines, event("ADDED", node("c", "9"))], hang=hang), until=5
    )

    assert told.events == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("ADDED", "c")]
    assert sorted(each["metadata"]["name"] for each in informer.items()) == ["b", "c"]
    assert informer.get("a") is None


def test_an_informer_removes_managed_fields(server: ScriptedServer, hang: threading.Event) -> None:
    informer, _ = run(server, listed("5", node("a", "4")), Answer(lines=[], hang=hang), until=1)

    found = informer.get("a")
    assert found is not None
    assert "managedFields" not in found["metadata"]


def test_an_informer_keeps_only_the_objects_that_it_is_asked_to_keep(
    server: ScriptedServer, hang: threading.Event
) -> None:
    def odd(name: str, version: str) -> Object:
        obj = node(name, version)
        return {**obj, "metadata": {**obj["metadata"], "labels": {"odd": "true"}}}

    lines = [
        event("ADDED", odd("other", "6")),
        event("DELETED", odd("other", "7")),
        event("MODIFIED", odd("a", "8")),
        event("MODIFIED", node("b", "9")),
    ]
    server.script(listed("5", node("a", "3"), odd("b", "4")), Answer(lines=lines, hang=hang))

    informer, told = followed(server, until=3, keep=lambda obj: "labels" not in obj["metadata"])

    assert told.events == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert [each["metadata"]["name"] for each in informer.items()] == ["b"]


def test_an_ended_watch_resumes_from_the_last_event_or_bookmark(server: ScriptedServer, hang: threading.Event) -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "90"}})

    run(
        server,
        listed("5", node("a", "4")),
        Answer(lines=[bookmark]),
        Answer(lines=[event("ADDED", node("b", "91"))], hang=hang),
        until=2,
    )

    assert watches(server.calls) == ["5", "90"]


def test_a_silent_watch_is_resumed(
    server: ScriptedServer, hang: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud_controller.kube.client.WATCH_SILENCE", 0.5)
    # By what is asked for: a server that is slow to begin its answer seems silent too, and is asked again.
    watched = {
        "5": Answer(lines=[event("MODIFIED", node("a", "6"))], hang=hang),
        "6": Answer(lines=[event("ADDED", node("b", "7"))], hang=hang),
        "7": Answer(lines=[], hang=hang),
    }
    server.answer = lambda call: (
        watched[call.query["resourceVersion"]] if "watch" in call.query else listed("5", node("a", "4"))
    )

    informer, told = followed(server, until=3)

    assert told.events == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b")]
    assert [call.query.get("resourceVersion") for call in server.calls].count(None) == 1, "listed once"
    assert informer.error is None


def test_a_missed_deletion_is_reported_after_the_next_list(server: ScriptedServer, hang: threading.Event) -> None:
    _, told = run(
        server,
        listed("5", node("a", "1"), node("b", "2"), node("c", "3")),
        Answer(lines=[GONE]),
        listed("50", node("b", "2"), node("c", "40"), node("d", "41")),
        Answer(lines=[], hang=hang),
        until=6,
    )

    assert sorted(told.events[3:]) == [("ADDED", "d"), ("DELETED", "a"), ("MODIFIED", "c")]
    assert watches(server.calls)[:2] == ["5", "50"]


def test_only_deletions_reported_by_the_watch_reach_deletion_handlers(
    server: ScriptedServer, hang: threading.Event
) -> None:
    server.script(
        listed("5", node("a", "1"), node("b", "2")),
        Answer(lines=[event("DELETED", node("a", "6")), GONE]),
        listed("50"),
        Answer(lines=[], hang=hang),
    )
    informer, told = Informer(server.kube, NODES), Told()
    seen: list[str] = []
    informer.add_handler(told)
    informer.add_deletion_handler(lambda each: seen.append(each["metadata"]["name"]))

    informer.start()
    try:
        assert informer.wait_until(lambda: len(told.events) >= 4, PATIENCE)
    finally:
        informer.stop()

    assert told.events[2:] == [("DELETED", "a"), ("DELETED", "b")]
    assert seen == ["a"]


def test_a_recreated_object_is_reported_as_deleted_and_added(server: ScriptedServer, hang: threading.Event) -> None:
    _, told = run(
        server,
        listed("5", node("a", "1", "first")),
        Answer(lines=[GONE]),
        listed("50", node("a", "40", "second")),
        Answer(lines=[], hang=hang),
        until=3,
    )

    assert told.events == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_an_informer_recovers_from_errors_of_list_and_watch(server: ScriptedServer, hang: threading.Event) -> None:
    broken = Answer({"message": "etcd is slow"}, 500)

    _, told = run(
        server,
        broken,
        listed("5", node("a", "4")),
        broken,
        listed("6", node("a", "4")),
        Answer(lines=[event("ADDED", node("b", "7"))], hang=hang),
        until=2,
    )

    assert told.events == [("ADDED", "a"), ("ADDED", "b")]
    assert watches(server.calls) == ["5", "6"]


def test_an_informer_accepts_older_data_from_a_restored_server(server: ScriptedServer, hang: threading.Event) -> None:
    informer, told = run(
        server,
        listed("50", node("a", "4"), node("b", "40")),
        Answer({"message": "etcd is being restored"}, 500),
        listed("9", node("a", "4")),
        Answer(lines=[], hang=hang),
        until=3,
    )

    assert told.events[2:] == [("DELETED", "b")]
    assert [each["metadata"]["name"] for each in informer.items()] == ["a"]


def test_waiting_for_an_informer_that_cannot_list_times_out_with_the_reason(server: ScriptedServer) -> None:
    server.answer = lambda _: Answer({"message": "etcd is down"}, 500)
    informer = Informer(server.kube, NODES)
    informer.start()
    try:
        informer.wait_until(lambda: informer.error is not None, PATIENCE)
        with pytest.raises(TimeoutError, match=r"nodes could not be listed within 0 s: .*etcd is down"):
            informer.wait_synced(0)
    finally:
        informer.stop()


def test_an_exception_in_a_handler_affects_neither_the_cache_nor_other_handlers(
    server: ScriptedServer, hang: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(listed("5", node("a", "4")), Answer(lines=[], hang=hang))
    informer, told = Informer(server.kube, NODES), Told()

    def buggy(*_: object) -> None:
        raise KeyError("oops")

    informer.add_handler(buggy)
    informer.add_handler(told)
    informer.start()
    informer.wait_synced(PATIENCE)
    informer.stop()

    assert told.events == [("ADDED", "a")]
    assert "handler failed resource=nodes key=a" in caplog.text


def test_handlers_cannot_be_added_after_the_informer_has_started(server: ScriptedServer) -> None:
    server.script(listed("5"))
    informer = Informer(server.kube, NODES)
    informer.start()
    try:
        with pytest.raises(RuntimeError, match="add handlers before start"):
            informer.add_handler(Told())
    finally:
        informer.stop()
